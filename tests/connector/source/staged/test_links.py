from pyspark_jms.amqp.link.staged_messages import SeenBlock, SeenToken
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.amqp.staging import AmqpStagedLane, AmqpStagedLink
from pyspark_jms.source.staged.links import SourcesLink, StagedLane, StagedLink, StagedProtocol, StagedToken, Stretch


def missing(protocol, value):
    return {name for name in vars(protocol) if not name.startswith("_") and not hasattr(value, name)}


def test_amqp_is_a_protocol_for_staged_reading():
    assert missing(StagedProtocol, AmqpSource()) == set()
    assert missing(StagedLane, AmqpStagedLane) == {"subscription"}, "an attribute of each lane"
    assert missing(SourcesLink, AmqpStagedLink) == {"lanes"}, "an attribute of each link"
    assert missing(StagedLink, AmqpStagedLink) == set()
    assert missing(StagedToken, SeenToken("", 0)) == set()
    assert missing(Stretch, SeenBlock) == set()
