from pyspark_jms.amqp.reading import AmqpProbe, AmqpReaderLink
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.source.readers.links import Probe, ReaderLink, ReaderProtocol
from pyspark_jms.source.staged.links import SourcesLink


def missing(protocol, value):
    return {name for name in vars(protocol) if not name.startswith("_") and not hasattr(value, name)}


def test_amqp_is_a_protocol_for_tasks_that_receive():
    assert missing(ReaderProtocol, AmqpSource()) == set()
    assert missing(SourcesLink, AmqpReaderLink) == {"lanes"}, "an attribute of each link"
    assert missing(ReaderLink, AmqpReaderLink) == set()
    assert missing(Probe, AmqpProbe) == set()
