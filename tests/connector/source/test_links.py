from pyspark_jms.source.links import SourceLink, SourceProtocol
from pyspark_jms.stomp.source import StompSource, StompSourceLink


def missing(protocol, value):
    members = {name for each in protocol.__mro__ for name in vars(each)}
    return {name for name in members if not name.startswith("_") and not hasattr(value, name)}


def test_stomp_is_a_protocol_for_reading():
    assert missing(SourceProtocol, StompSource()) == set()
    assert missing(SourceLink, StompSourceLink) == {"browse_ended"}, "an attribute of each link"
