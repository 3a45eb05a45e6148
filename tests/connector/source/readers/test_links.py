from pyspark_jms.amqp.reading import AmqpProbe, AmqpReaderLink, AmqpReadSource
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.source.readers.links import Probe, ReaderLink, ReaderProtocol, ReadSource


def missing(protocol, value):
    members = {name for each in protocol.__mro__ for name in vars(each)}
    return {name for name in members if not name.startswith("_") and not hasattr(value, name)}


def test_amqp_is_a_protocol_for_tasks_that_receive():
    assert missing(ReaderProtocol, AmqpSource()) == set()
    assert missing(ReaderLink, AmqpReaderLink) == {"sources"}, "an attribute of each link"
    assert missing(ReadSource, AmqpReadSource) == {"subscription"}, "an attribute of each source"
    assert missing(Probe, AmqpProbe) == set()
