from pyspark_jms.blocks.oversized import OversizedMessage
from pyspark_jms.source.links import DeadLetter, Oversized, SourceLink, SourceProtocol
from pyspark_jms.stomp.link import dead_letters
from pyspark_jms.stomp.source import StompSource, StompSourceLink


def missing(protocol, value):
    return {name for name in vars(protocol) if not name.startswith("_") and not hasattr(value, name)}


def test_stomp_is_a_protocol_for_reading():
    assert missing(SourceProtocol, StompSource()) == set()
    assert missing(Oversized, OversizedMessage(b"", b"1,2", None)) == set()
    assert missing(DeadLetter, dead_letters.DeadLetter) == set()
    assert missing(SourceLink, StompSourceLink) == {"browse_ended"}, "an attribute of each link"
