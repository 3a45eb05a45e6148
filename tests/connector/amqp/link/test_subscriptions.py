from dataclasses import replace

import pytest
from amqp_messages import string
from waiting import wait_until

from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.subscriptions import end_subscription
from pyspark_jms.errors import InvalidDestinationError, SelectorChangedError, SubscriptionInUseError
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription

UNSHARED = DurableSubscription("daily", "me")
SHARED = DurableSubscription("daily", "me", shared=True)
GLOBAL = DurableSubscription("daily", shared=True)
TOPIC = Destination(DestinationKind.TOPIC, "prices")


@pytest.fixture
def subscribe(broker, queue, settings_for, subscription_to, opened):
    """``subscribe(durable)`` to the topic with the name of the test's queue."""

    def subscribed(durable, topic=queue, **more):
        link = opened(Consumer(replace(settings_for(broker), client_id=durable.client_id)))
        link.subscribe(subscription_to(topic, kind="topic", durable=durable, **more))
        return link

    return subscribed


@pytest.fixture
def named(queue):
    """A subscription of the test's own."""
    return lambda durable: replace(durable, name=queue.replace(".", "-"))


def read(link, count):
    wait_until(lambda: link.waiting()[0] == count)
    link.has_receipt(link.acknowledge([one for block in link.take() for one in block.ids]), wait=True)


@pytest.mark.parametrize("durable", [UNSHARED, SHARED, GLOBAL], ids=["unshared", "shared", "global"])
def test_it_keeps_what_is_sent_while_nobody_reads(broker, queue, put, subscribe, named, settings_for, durable):
    durable = named(durable)
    subscribe(durable).close()
    put(broker, queue, "one", "two", kind="topic")
    link = subscribe(durable)
    read(link, 2)
    link.close()
    settings, topic = replace(settings_for(broker), client_id=durable.client_id), replace(TOPIC, name=queue)
    end_subscription(settings, topic, durable)
    with pytest.raises(InvalidDestinationError, match="durable subscription"):
        end_subscription(settings, topic, durable)


@pytest.mark.parametrize("durable", [UNSHARED, SHARED, GLOBAL], ids=["unshared", "shared", "global"])
def test_another_topic_is_refused_and_the_messages_stay(broker, queue, put, subscribe, named, settings_for, durable):
    """An attach to another topic deletes what waits, and unsubscribe the subscription."""
    durable = named(durable)
    subscribe(durable).close()
    put(broker, queue, "one", kind="topic")
    settings, other = replace(settings_for(broker), client_id=durable.client_id), f"{queue}.other"
    with pytest.raises(InvalidDestinationError, match=f"belongs to topic {queue}"):
        subscribe(durable, topic=other)
    with pytest.raises(InvalidDestinationError, match=f"belongs to topic {queue}"):
        end_subscription(settings, replace(TOPIC, name=other), durable)
    assert not broker.has_queue(other)
    read(subscribe(durable), 1)


def test_several_readers_share_one(broker, queue, put, subscribe, named):
    first, second = (subscribe(named(GLOBAL), window_bytes=8_000) for _ in range(2))
    put(broker, queue, *map(str, range(20)), kind="topic")
    wait_until(lambda: first.waiting()[0] and second.waiting()[0])


def test_an_unshared_one_has_one_reader(subscribe, named):
    subscribe(named(UNSHARED))
    with pytest.raises(SubscriptionInUseError):
        subscribe(named(UNSHARED))


@pytest.mark.parametrize("durable", [UNSHARED, SHARED, GLOBAL], ids=["unshared", "shared", "global"])
def test_another_selector_is_refused_and_the_messages_stay(broker, queue, put, subscribe, named, durable):
    durable = named(durable)
    subscribe(durable, selector="JMSType = 'a'").close()
    put(broker, queue, "one", kind="topic", subject=string("a"))
    for selector in (None, "JMSType = 'b'"):
        with pytest.raises(SelectorChangedError, match="JMS_SELECTOR_CHANGED"):
            subscribe(durable, selector=selector)
    read(subscribe(durable, selector="JMSType = 'a'"), 1)
