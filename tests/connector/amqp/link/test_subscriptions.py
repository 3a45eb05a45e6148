from dataclasses import replace

import pytest
from amqp_messages import string
from amqp_sending import subscription_to
from waiting import wait_until

from pyspark_jms.amqp.dialects import ARTEMIS, CLASSIC
from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.subscriptions import end_subscription, require_echo, source_of
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.amqp.wire.values import Described
from pyspark_jms.errors import (
    InvalidDestinationError,
    InvalidSelectorError,
    SelectorChangedError,
    SubscriptionInUseError,
    UnsupportedError,
)
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.network.address import Address

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


@pytest.mark.parametrize("durable", [UNSHARED, SHARED, GLOBAL], ids=["unshared", "shared", "global"])
def test_another_topic_is_refused_without_management_too(restricted, queue, put, named, settings_for, opened, durable):
    durable = named(durable)
    settings = replace(settings_for(restricted, user="worker", password="pw"), client_id=durable.client_id)

    def subscribe(topic):
        link = opened(Consumer(settings))
        link.subscribe(subscription_to(topic, kind="topic", durable=durable))
        return link

    subscribe(queue).close()
    put(restricted, queue, "one", kind="topic")
    for topic in (f"{queue}.other", f"{queue}.new"):
        restricted.create_queue(f"{queue}.other", topic=True)
        with pytest.raises(InvalidDestinationError, match=f"belongs to another topic than {topic}"):
            subscribe(topic)
        with pytest.raises(InvalidDestinationError, match=f"belongs to another topic than {topic}"):
            end_subscription(settings, replace(TOPIC, name=topic), durable)
    read(subscribe(queue), 1)


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


# --- sources ----------------------------------------------------------------------------------------


ADDRESS = Address("host", 1, protocol="amqp")


def test_a_queue(subscription_to):
    source = source_of(subscription_to("q"), ARTEMIS)
    assert (source.address, source.capabilities, source.durable, source.filter) == ("q", ("queue",), 0, None)
    assert (source.expiry_policy, source.distribution_mode) == ("link-detach", None)


@pytest.mark.parametrize(
    ("durable", "capabilities"),
    [
        (None, ("topic",)),
        (DurableSubscription("s", "c"), ("topic",)),
        (DurableSubscription("s", "c", shared=True), ("topic", "shared")),
        (DurableSubscription("s", shared=True), ("topic", "shared", "global")),
    ],
)
def test_topics_and_their_subscriptions(subscription_to, durable, capabilities):
    source = source_of(subscription_to("t", kind="topic", durable=durable), ARTEMIS)
    assert source.capabilities == capabilities
    assert (source.durable, source.expiry_policy) == ((2, "never") if durable else (0, "link-detach"))


def test_a_selector_is_a_described_filter(subscription_to):
    [value] = source_of(subscription_to("q", selector="a = 1"), ARTEMIS).filter.values()
    assert value == Described(0x468C00000004, "a = 1")


def test_what_the_broker_left_out_is_an_error(subscription_to):
    selected, browse = (
        source_of(subscription_to("q", selector="a = 1"), ARTEMIS),
        source_of(subscription_to("q", browse=True), ARTEMIS),
    )
    require_echo(ADDRESS, selected, selected)
    require_echo(ADDRESS, browse, browse)
    named = Source(filter={"any key": Described("apache.org:selector-filter:string", "a = 1")})
    require_echo(ADDRESS, selected, named)
    for echoed in (None, Source(), Source(filter={"x": "a = 1"})):
        with pytest.raises(InvalidSelectorError, match="selector"):
            require_echo(ADDRESS, selected, echoed)
    for echoed in (None, Source(), Source(distribution_mode="move")):
        with pytest.raises(UnsupportedError):
            require_echo(ADDRESS, browse, echoed)


def test_the_address_is_spelled_as_the_broker_wants_it(subscription_to):
    assert source_of(subscription_to("q"), CLASSIC).address == "queue://q"
    assert source_of(subscription_to("t", kind="topic"), CLASSIC).address == "topic://t"
