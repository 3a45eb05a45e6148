"""``ADDRESS::QUEUE`` on Artemis: subscriptions to it leave the address as it is."""

import contextlib
from dataclasses import replace

import pytest
from addresses import types_of
from rawstomp import RawStomp
from waiting import wait_until

from pyspark_jms.errors import InvalidDestinationError, JMSSecurityError, UnsupportedError
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.management.attributes import ARTEMIS_MANAGEMENT, BROKER_J_MANAGEMENT
from pyspark_jms.management.queue_facts import look_up_queues
from pyspark_jms.management.routing import is_fully_qualified
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.stomp.link.consumer import Consumer


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("prices::app.daily", ARTEMIS_MANAGEMENT, True),
        ("prices", ARTEMIS_MANAGEMENT, False),
        ("prices.#::app.daily", ARTEMIS_MANAGEMENT, False),
        ("prices::app.daily", BROKER_J_MANAGEMENT, False),
        ("prices::app.daily", None, False),
    ],
)
def test_which_names_are_fully_qualified(name, words, expected):
    assert is_fully_qualified(name, words) is expected


def subscribe(settings, topic):
    """Over STOMP the durable subscription ``app.TOPIC`` is created, or found, and has no consumer afterwards."""
    subscription = Subscription(
        destination=Destination(DestinationKind.TOPIC, topic), window_bytes=1, durable=DurableSubscription(topic, "app")
    )
    with contextlib.closing(Consumer(replace(settings, client_id="app"))) as consumer:
        consumer.subscribe(subscription)


@pytest.fixture
def stomp_settings(settings_for):
    return lambda broker: settings_for(broker, addresses=parse_broker_url(broker.url))


def test_reading_the_queue_of_a_subscription_leaves_the_topic_as_it_is(
    broker, queue, settings_for, stomp_settings, consume
):
    subscribe(stomp_settings(broker), queue)
    with RawStomp(broker) as client:
        client.send(queue, [((), "kept")], topic=True)
    link = consume(settings_for(broker), f"{queue}::app.{queue}")
    wait_until(lambda: link.waiting()[0] == 1)
    link.close()
    assert types_of(broker, queue) == "[MULTICAST]"
    subscribe(stomp_settings(broker), queue)
    assert broker.message_count(f"app.{queue}") == 1


def test_the_queue_of_a_queue_is_read_as_before(broker, queue, settings_for, consume):
    broker.create_queue(queue)
    with RawStomp(broker) as client:
        client.send(queue, [((), "kept")])
    link = consume(settings_for(broker), f"{queue}::{queue}")
    wait_until(lambda: link.waiting()[0] == 1)
    assert types_of(broker, queue) == "[ANYCAST]"
    new = consume(settings_for(broker), f"{queue}.new::{queue}.new")
    assert new.waiting() == (0, 0)
    assert types_of(broker, f"{queue}.new") == "[ANYCAST]"


def test_a_name_that_would_change_the_topic_is_refused(broker, queue, settings_for, stomp_settings, consume):
    subscribe(stomp_settings(broker), queue)
    broker.create_queue(f"{queue}.other")
    with pytest.raises(InvalidDestinationError, match=rf"{queue} has no queue app\.typo, and its .* is MULTICAST"):
        consume(settings_for(broker), f"{queue}::app.typo")
    with pytest.raises(InvalidDestinationError, match=rf"app\.{queue} belongs to address {queue}, not to"):
        consume(settings_for(broker), f"{queue}.other::app.{queue}")
    assert (types_of(broker, queue), types_of(broker, f"{queue}.other")) == ("[MULTICAST]", "[ANYCAST]")
    assert not broker.has_queue("app.typo")


def test_looking_at_a_subscription_that_is_not_durable_leaves_it_there(broker, queue, settings_for, consume, protocol):
    """Artemis deletes it with its messages when a STOMP client unsubscribes from it."""
    core = broker.jvm.org.apache.activemq.artemis.api.core
    subscription = core.QueueConfiguration.of(f"{queue}.s").setAddress(queue).setRoutingType(core.RoutingType.MULTICAST)
    broker.server.createQueue(subscription.setDurable(False).setAutoDelete(False), True)
    with RawStomp(broker) as client:
        client.send(queue, [((), "kept")], topic=True)
    if protocol == "stomp":
        with pytest.raises(UnsupportedError, match=r"deletes topic subscription .* over AMQP"):
            consume(settings_for(broker), f"{queue}::{queue}.s")
    else:
        link = consume(settings_for(broker), f"{queue}::{queue}.s")
        wait_until(lambda: link.waiting()[0] == 1)
        link.close()
    assert broker.message_count(f"{queue}.s") == 1


def test_a_topic_is_not_read_as_a_queue(broker, queue, settings_for, stomp_settings, open_link):
    """Over STOMP the subscription would give the topic a second routing type for good."""
    broker.create_queue(queue, topic=True)
    for _ in range(2):
        with pytest.raises(InvalidDestinationError, match=f"{queue} is a topic .*queue={queue}::CLIENTID"):
            look_up_queues(open_link, settings_for(broker), [queue])
        subscribe(stomp_settings(broker), queue)
    assert types_of(broker, queue) == "[MULTICAST]"


@pytest.mark.parametrize("protocol", ["stomp"], indirect=True)
@pytest.mark.parametrize("durable", [True, False])
def test_a_queue_is_not_read_as_a_topic(broker, queue, stomp_settings, durable):
    """SUBSCRIBE would give its address the routing type MULTICAST for good."""
    broker.create_queue(queue)
    topic = Destination(DestinationKind.TOPIC, queue)
    subscription = Subscription(
        destination=topic, window_bytes=1, durable=DurableSubscription("s", "app") if durable else None
    )
    settings = replace(stomp_settings(broker), client_id="app")
    with (
        pytest.raises(InvalidDestinationError, match=f"{queue} is a queue .*Use option queue={queue}"),
        contextlib.closing(Consumer(settings)) as consumer,
    ):
        consumer.subscribe(subscription)
    assert types_of(broker, queue) == "[ANYCAST]"
    broker.create_queue(f"{queue}.t", topic=True)
    for name in (f"{queue}.t", f"{queue}.new"):
        with contextlib.closing(Consumer(settings)) as consumer:
            consumer.subscribe(replace(subscription, destination=Destination(DestinationKind.TOPIC, name)))
        assert types_of(broker, name) in {"[MULTICAST]", None}


def test_a_selector_that_the_broker_would_ignore_is_refused(
    broker, queue, settings_for, stomp_settings, consume, protocol
):
    subscribe(stomp_settings(broker), queue)
    with RawStomp(broker) as client:
        client.send(queue, [([("color", color)], color) for color in ("blue", "red", "blue")], topic=True)
    name = f"{queue}::app.{queue}"
    if protocol == "stomp":
        with pytest.raises(UnsupportedError, match="ignores the selector of topic subscription"):
            consume(settings_for(broker), name, selector="color = 'red'")
        return
    link = consume(settings_for(broker), name, selector="color = 'red'")
    link.has_receipt(link.probe(), wait=True)
    assert link.waiting()[0] == 1


def test_a_user_who_may_not_ask_changes_nothing(restricted, queue, settings_for, stomp_settings, consume, protocol):
    subscribe(stomp_settings(restricted), queue)
    worker = settings_for(restricted, user="worker")
    if protocol == "stomp":
        with pytest.raises(JMSSecurityError, match="is a queue or a topic subscription"):
            consume(worker, f"{queue}::app.{queue}")
    else:
        consume(worker, f"{queue}::app.{queue}")
    assert types_of(restricted, queue) == "[MULTICAST]"


@pytest.mark.parametrize("protocol", ["stomp"], indirect=True)
def test_the_remedy_for_a_topic_with_both_routing_types_helps(broker, queue, settings_for):
    subscribe(settings_for(broker), queue)
    control = broker.server.getActiveMQServerControl()
    control.updateAddress(queue, "MULTICAST,ANYCAST")
    with pytest.raises(JMSSecurityError, match="update --name TOPIC --multicast --no-anycast"):
        subscribe(settings_for(broker), queue)
    control.updateAddress(queue, "MULTICAST")  # what that command of Artemis calls
    subscribe(settings_for(broker), queue)
