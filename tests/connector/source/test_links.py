from typing import Protocol

from pyspark_jms.amqp.moving import AmqpMover
from pyspark_jms.amqp.source import AmqpSource, AmqpSourceLink
from pyspark_jms.sink.links import SinkLink
from pyspark_jms.source.links import SourceLink, SourceProtocol
from pyspark_jms.source.moving import MovingLink
from pyspark_jms.stomp.moving import StompMover
from pyspark_jms.stomp.source import StompSource, StompSourceLink


def members(*ports):
    every = {each for port in ports for each in port.__mro__ if each not in {Protocol, *Protocol.__mro__}}
    return {(each, name) for each in every for name in vars(each) if not name.startswith("_")}


def missing(port, value):
    return {name for _, name in members(port) if not hasattr(value, name)}


def test_both_protocols_have_the_ports_for_reading():
    for protocol, link in ((StompSource(), StompSourceLink), (AmqpSource(), AmqpSourceLink)):
        assert missing(SourceProtocol, protocol) == set()
        assert missing(SourceLink, link) <= {"browse_ended"}, "an attribute of each link"
    assert missing(MovingLink, StompMover) | missing(MovingLink, AmqpMover) <= {"browse_ended"}


def test_a_protocol_is_small():
    """What each protocol must have. ARCHITECTURE.md has the table."""
    assert len(members(SourceProtocol, MovingLink, SinkLink)) <= 45
