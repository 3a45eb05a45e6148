"""One subscription on a real broker: what arrives, what is acknowledged, what is given back."""

import re
from dataclasses import replace

import pytest
from flooding_broker import FloodingBroker
from rawstomp import RawStomp
from waiting import await_count, await_value, wait_until

from pyspark_jms.errors import (
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    MessageTooLargeError,
    PrefetchExceededError,
    UnconvertibleMessageError,
)
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.stomp.dialects import ARTEMIS
from pyspark_jms.stomp.link.consumer import subscribe_headers
from pyspark_jms.stomp.link.prefetch import SEGMENT_BYTES
from pyspark_jms.stomp.wire.frame import parse_frame


def put(broker, queue, *bodies, topic=False):
    with RawStomp(broker) as client:
        client.send(queue, [((), body) for body in bodies], topic=topic)


def bodies(frames):
    return [parse_frame(frame).body for frame in frames]


def test_what_is_subscribed():
    subscription = Subscription(destination=Destination.parse("queue://orders"), window_bytes=5000, selector="a = 1")
    assert subscribe_headers(subscription, ARTEMIS) == {
        "id": "1",
        "destination": "orders",
        "ack": "client-individual",
        "consumer-window-size": "5000",
        "subscription-type": "ANYCAST",
        "selector": "a = 1",
    }
    subscription = Subscription(destination=Destination.parse("topic://news"), window_bytes=1 << 40)
    assert subscribe_headers(subscription, ARTEMIS)["consumer-window-size"] == str(2**31 - 1)
    assert subscribe_headers(subscription, ARTEMIS)["subscription-type"] == "MULTICAST"
    assert "selector" not in subscribe_headers(subscription, ARTEMIS)
    durable = subscribe_headers(replace(subscription, durable=DurableSubscription("daily", "app")), ARTEMIS)
    assert durable == subscribe_headers(subscription, ARTEMIS) | {"durable-subscription-name": "daily"}
    shared = subscribe_headers(replace(subscription, durable=DurableSubscription("daily", shared=True)), ARTEMIS)
    assert shared == subscribe_headers(subscription, ARTEMIS) | {"destination": "news::daily"}


def test_each_message_is_acknowledged_on_its_own(broker, queue, settings_for, consume, receive):
    put(broker, queue, b"one", "zwei", b"\0\n\0", b"")
    consumer = consume(settings_for(broker), queue)
    frames, ids = receive(consumer, 4)
    assert bodies(frames) == [b"one", b"zwei", b"\0\n\0", b""]
    consumer.has_receipt(consumer.acknowledge([ids[1], ids[3]]), wait=True)
    await_value(lambda: (broker.message_count(queue), broker.delivering_count(queue)), (2, 2))
    consumer.close()
    with RawStomp(broker) as client:
        assert [message.body for message in client.read(queue, wanted=2)] == [b"one", b"\0\n\0"]


def test_the_broker_stops_at_the_window(broker, queue, settings_for, consume, receive):
    put(broker, queue, *[b"x" * 1000] * 40)
    consumer = consume(settings_for(broker), queue, window_bytes=10_000)
    wait_until(lambda: broker.delivering_count(queue) == consumer.waiting()[0] >= 7)
    waiting, size = consumer.waiting()
    assert waiting <= 10  # frames have some 300 bytes of headers
    assert size <= 10_000 + 1400
    _, ids = receive(consumer, waiting)
    consumer.has_receipt(consumer.acknowledge(ids[:3]), wait=True)
    wait_until(lambda: broker.delivering_count(queue) == waiting - 3 + consumer.waiting()[0] >= waiting - 1)
    assert consumer.waiting()[0] <= 4
    await_count(broker, queue, 37)


def test_close_gives_back_without_spending_an_attempt(broker, queue, settings_for, consume, receive):
    put(broker, queue, *[b"%d" % n for n in range(5)])
    for _ in range(3):
        consumer = consume(settings_for(broker), queue)
        frames, _ = receive(consumer, 5)
        consumer.close()
        assert bodies(frames) == [b"0", b"1", b"2", b"3", b"4"]
        await_value(lambda: broker.delivery_counts(queue), [0] * 5)


def test_a_dropped_link_gives_back_too(broker, queue, settings_for, consume, receive):
    put(broker, queue, b"a", b"b")
    consumer = consume(settings_for(broker), queue)
    _, first = receive(consumer, 2)
    consumer.drop()
    wait_until(lambda: broker.consumer_count(queue) == 0)
    frames, second = receive(consume(settings_for(broker), queue), 2)
    assert bodies(frames) == [b"a", b"b"]
    assert not set(first) & set(second)
    stable = re.compile(ARTEMIS.stable_id_separator.encode() + b"(.*)")
    assert [stable.search(i)[1] for i in first] == [stable.search(i)[1] for i in second]


def test_blocks_are_closed_at_some_megabytes(broker, queue, settings_for, consume):
    put(broker, queue, *[b"x" * 1_000_000] * 24)
    consumer = consume(settings_for(broker), queue, window_bytes=1 << 30)
    wait_until(lambda: consumer.waiting()[0] == 24)
    blocks = consumer.take()
    assert sum(map(len, blocks)) == 24
    assert len(blocks) >= 2
    assert max(len(block.data) for block in blocks) < SEGMENT_BYTES + (2 << 20)
    assert consumer.waiting() == (0, 0)


def test_only_what_the_selector_says(broker, queue, settings_for, consume, receive):
    with RawStomp(broker) as client:
        client.send(queue, [((("colour", colour),), colour) for colour in ("red", "blue", "red")])
    frames, _ = receive(consume(settings_for(broker), queue, selector="colour = 'red'"), 2)
    assert bodies(frames) == [b"red", b"red"]
    await_count(broker, queue, 3)


@pytest.mark.parametrize("selector", ["colour = ", "a = 1 OR", "", "NOT n > 1"])
def test_a_bad_selector(broker, queue, settings_for, consume, selector):
    with pytest.raises(InvalidSelectorError, match=r"JMS_INVALID_SELECTOR.*selector"):
        consume(settings_for(broker), queue, selector=selector)


def test_a_topic(broker, queue, settings_for, consume, receive):
    put(broker, queue, b"before", topic=True)
    consumers = [consume(settings_for(broker), queue, kind=DestinationKind.TOPIC) for _ in range(2)]
    put(broker, queue, b"news", topic=True)
    for consumer in consumers:
        frames, ids = receive(consumer, 1)
        assert bodies(frames) == [b"news"]
        consumer.has_receipt(consumer.acknowledge(ids), wait=True)


def test_a_probe_is_answered_and_changes_nothing(broker, queue, settings_for, consume):
    put(broker, queue, *[b"x"] * 100)
    consumer = consume(settings_for(broker), queue)
    consumer.connection.await_receipt(consumer.probe())
    wait_until(lambda: consumer.waiting()[0] == 100)  # which may be on their way still: a probe is no barrier
    assert consumer.waiting()[1] == sum(len(block.data) for block in consumer.take())


def test_an_ack_the_broker_refuses_ends_the_session(broker, queue, settings_for, consume):
    consumer = consume(settings_for(broker), queue)
    receipt = consumer.acknowledge([b"0,123456789"])
    with pytest.raises(UnconvertibleMessageError, match="closed its consumer"):
        consumer.has_receipt(receipt, wait=True)
    wait_until(lambda: consumer.connection.is_down)
    with pytest.raises(UnconvertibleMessageError):
        consumer.acknowledge([b"0,1"])


# --- permissions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["nobody", "writer"])
def test_a_user_who_may_not_consume(secured, queue, settings_for, consume, user):
    secured.create_queue(queue)
    with pytest.raises(JMSSecurityError, match=r"JMS_SECURITY.*consume"):
        consume(settings_for(secured, user=user), queue)


def test_a_user_who_may_not_create(secured, queue, settings_for, consume):
    with pytest.raises(JMSSecurityError, match=r"JMS_SECURITY.*CREATE"):
        consume(settings_for(secured, user="worker"), queue)
    assert not secured.has_queue(queue)


def test_a_user_who_may_only_consume(secured, queue, settings_for, consume):
    secured.create_queue(queue)
    assert consume(settings_for(secured, user="reader"), queue).waiting() == (0, 0)


def test_a_queue_that_may_not_come_into_being(secured, queue, settings_for, consume):
    with pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION"):
        consume(settings_for(secured), f"closed.{queue}")


# --- sizes --------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_50_megabytes(broker, queue, settings_for, consume, receive):
    body = bytes(range(256)) * (50 << 12)
    put(broker, queue, body)
    frames, ids = receive(consume(settings_for(broker), queue), 1)
    assert parse_frame(frames[0]).body == body
    assert len(ids) == 1


def test_a_message_above_the_limit_is_said_and_stays(broker, queue, settings_for, consume):
    put(broker, queue, b"x" * 2001, b"y" * 2000)
    consumer = consume(settings_for(broker, max_message_bytes=2000), queue)
    wait_until(lambda: consumer.waiting()[0] == 1)
    with pytest.raises(MessageTooLargeError, match=r"2,001 bytes .*maxMessageBytes \(2,000\)"):
        consumer.connection.check_messages()
    consumer.close()
    await_value(lambda: broker.delivery_counts(queue), [0, 0])


@pytest.mark.parametrize(
    ("server", "unit"),
    [
        ("ActiveMQ-Artemis/2.44.0", "1,048,576 bytes"),
        ("ActiveMQ/6.1.0", "256 messages"),
        ("RabbitMQ/4.0", "256 messages"),
    ],
)
def test_a_broker_that_ignores_the_prefetch_window_cannot_fill_the_memory(server, unit, settings_for, consume):
    with FloodingBroker(server, body_bytes=50_000) as flooding:
        settings = settings_for(None, url=f"stomp://127.0.0.1:{flooding.port}", user="u", password="p")
        consumer = consume(settings, "q", window_bytes=1 << 20)
        flooding.send(10_000)
        wait_until(lambda: consumer.connection.is_down, 60)
        two_reads = 2 << 18
        assert consumer.waiting()[1] <= (64 << 20) + two_reads + 50_000
        with pytest.raises(PrefetchExceededError, match=rf"JMS_PREFETCH_EXCEEDED.*window of {unit}"):
            consumer.connection.check_messages()
