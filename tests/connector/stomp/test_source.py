import contextlib

import pytest
from numbered import fill
from streaming import access
from waiting import wait_until

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.stomp.source import StompSource


@contextlib.contextmanager
def linked(broker, queue):
    stomp = StompSource()
    link = stomp.connect(SourceOptions.parse(access(broker) | {"queue": queue}).connection, StateCondition())
    try:
        yield link
    finally:
        link.close()


def subscription(queue, **more):
    return Subscription(destination=Destination.parse(f"queue://{queue}"), window_bytes=1 << 20, **more)


def block(link):
    wait_until(lambda: link.waiting()[0])
    [found] = link.take()
    return found


def test_a_link_connects_then_subscribes_then_receives(broker, queue):
    fill(broker, queue, 3)
    with linked(broker, queue) as link:
        assert (link.dialect.name, link.is_down) == ("artemis", False)
        assert broker.consumer_count(queue) == 0
        link.subscribe(subscription(queue))
        found = block(link)
        assert link.redelivered(found) == 0
        assert abs(link.sent_ms(found, 0) - link.sent_ms(found, len(found) - 1)) < 60_000
        link.has_receipt(link.acknowledge([one for one in found.ids if one is not None]), wait=True)


def test_a_link_that_never_subscribed_closes_without_a_word(broker, queue):
    with linked(broker, queue) as link:
        pass
    assert link.is_down


def test_what_artemis_cannot_do_is_refused(broker, queue):
    shared, topic = DurableSubscription("daily", shared=True), Destination.parse("topic://t")
    with linked(broker, queue) as link:
        with pytest.raises(UnsupportedError, match="clientId"):
            link.subscribe(Subscription(destination=topic, window_bytes=1, durable=shared, selector="a = 1"))
        assert link.is_down


def test_what_a_dialect_knows():
    stomp = StompSource()
    assert stomp.recognition("rabbitmq") is None
