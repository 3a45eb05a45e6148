"""A message that Artemis cannot send over STOMP, among others: what each start and each look costs them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from amqp_messages import application_properties, section, string, timestamp
from amqp_sending import put_encoded
from plain_decoder import block_of
from proxy import Proxy
from pyspark.sql.streaming.datasource import ReadMaxBytes
from rawstomp import RawStomp
from streaming import access, stopping
from waiting import await_value, wait_until

from pyspark_jms.errors import UnconvertibleMessageError
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.peek import peek
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.spark.stream_reader import JmsStreamReader
from pyspark_jms.stomp.dialects import ARTEMIS
from pyspark_jms.stomp.link.consumer import Consumer
from pyspark_jms.stomp.link.conversion_probe import is_redelivered, other_messages

STARTS = 12
"""Artemis moves a message to the dead-letter queue after ten attempts."""
FEW = 5
"""The first message of a busy broker may come so late that a start has opened the whole window."""
NEIGHBOURS = 4
"""The message that cannot be sent, and those behind it that may lose more than the one attempt of the first start.

They come back to the head of the queue if the broker ends their connection later than that of the messages before them.
"""


def received(*headers, redelivered=b"false"):
    lines = [b"MESSAGE", b"message-id:1,2", b"redelivered:" + redelivered, *headers]
    return block_of([b"\n".join(lines) + b"\n\nx\0\n"])


@pytest.mark.parametrize(
    ("headers", "selector"),
    [
        ([b"timestamp:17"], "AMQTimestamp <> 17"),
        ([b"timestamp:0"], "AMQTimestamp <> 0"),
        (
            [b"timestamp:0", rb"NATIVE_MESSAGE_ID:ID\cAMQP_NO_PREFIX\cit's"],
            "AMQTimestamp <> 0 OR AMQUserID <> 'ID:it''s' OR AMQUserID IS NULL",
        ),
        (
            [b"timestamp:0", rb"NATIVE_MESSAGE_ID:ID\ca\c1"],
            "AMQTimestamp <> 0 OR AMQUserID <> 'ID:a:1' OR AMQUserID IS NULL",
        ),
        ([b"timestamp:5", rb"NATIVE_MESSAGE_ID:ID\cAMQP_UUID\c7"], "AMQTimestamp <> 5"),
        ([], None),
    ],
)
def test_a_selector_that_the_neighbour_does_not_match(headers, selector):
    assert other_messages(received(*headers), ARTEMIS) == selector


def test_the_mark_of_a_redelivered_message():
    assert is_redelivered(received(redelivered=b"true"))
    assert not is_redelivered(received(b"a:redelivered:true"))


def put_healthy(broker, queue, *bodies, topic=False):
    with RawStomp(broker) as client:
        client.send(queue, [((), body) for body in bodies], topic=topic)


def put_unconvertible(broker, queue, *, kind="queue"):
    """A message with a property of type timestamp, which no converter of Artemis knows."""
    message = application_properties(t=timestamp(1)) + section(0x77, string("only over AMQP"))
    put_encoded(broker, queue, [message], kind=kind)


def look(options, seen=()):
    rows = [text for batch in peek(reading_of(options)) for text in batch.column("text").to_pylist()]
    return [*dict.fromkeys([*seen, *rows])]


def stream(options, seen=None):
    """``seen`` gets the rows of every batch, because a batch may be acknowledged before the error of the next one."""
    reader, end, rows = JmsStreamReader(options), {"seq": 0}, [] if seen is None else seen
    with stopping(reader):
        while True:
            start, end = end, reader.latestOffset(end, ReadMaxBytes(1 << 20))
            if end == start:
                return [*dict.fromkeys(rows)]
            for part in reader.partitions(start, end):
                rows += [text for batch in reader.read(part) for text in batch.column("text").to_pylist()]


@pytest.mark.broker
@pytest.mark.parametrize(
    ("read", "before"),
    [
        (look, 25),
        pytest.param(look, 0, marks=pytest.mark.slow),
        pytest.param(stream, 0, marks=pytest.mark.deep),
        pytest.param(stream, 25, marks=pytest.mark.slow),
    ],
)
def test_however_often_a_query_starts_only_the_message_that_cannot_be_sent_is_moved(broker, queue, read, before):
    healthy = [str(number) for number in range(50)]
    put_healthy(broker, queue, *healthy[:before])
    put_unconvertible(broker, queue)
    put_healthy(broker, queue, *healthy[before:])
    options = SourceOptions.parse(access(broker) | {"queue": queue, "idleTimeout": "1s"})
    seen, rows = [], []
    for _ in range(2 * STARTS):  # a read of a slow broker may end before its messages come
        try:
            if "49" in (rows := read(options, seen)):
                break
        except UnconvertibleMessageError:
            wait_until(lambda: broker.consumer_count(queue) == 0)
            counts = broker.delivery_counts(queue)
            assert sorted(counts)[-NEIGHBOURS - 1] <= FEW, counts
    assert rows == healthy, "the message is gone now, and no other"
    broker.purge(queue)


@pytest.mark.broker
def test_a_first_message_that_arrives_late_is_looked_at(broker, queue, settings_for, consume):
    put_healthy(broker, queue, "1", "2")
    consumer = consume(settings_for(broker), queue)
    wait_until(lambda: consumer.waiting()[0] == 2)
    consumer.drop()
    await_value(lambda: broker.delivery_counts(queue), [1, 1])
    subscription = replace(consumer.subscription, probes=True)
    put_unconvertible(broker, queue)
    put_healthy(broker, queue, *map(str, range(20)))
    with Proxy(broker.host, broker.port) as proxy, ThreadPoolExecutor(1) as pool:
        proxy.to_client.hold_at(b"MESSAGE\n")
        opened = pool.submit(lambda: Consumer(settings_for(broker, url=proxy.url)).subscribe(subscription))
        assert proxy.to_client.held.wait(30)
        wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the first look")
        proxy.to_client.release()
        assert isinstance(opened.exception(60), UnconvertibleMessageError)
    wait_until(lambda: broker.consumer_count(queue) == 0)
    assert sum(count > 0 for count in broker.delivery_counts(queue)) <= 2 + NEIGHBOURS
    broker.purge(queue)


@pytest.mark.broker
def test_redelivered_messages_that_can_be_sent_cost_no_attempt(broker, queue, settings_for, consume):
    put_healthy(broker, queue, "1", "2", "3")
    consumer = consume(settings_for(broker), queue)
    wait_until(lambda: consumer.waiting()[0] == 3)
    consumer.drop()
    await_value(lambda: broker.delivery_counts(queue), [1, 1, 1])
    put_healthy(broker, queue, "4")
    assert look(SourceOptions.parse(access(broker) | {"queue": queue, "idleTimeout": "1s"})) == ["1", "2", "3", "4"]
    await_value(lambda: broker.delivery_counts(queue), [1, 1, 1, 0])
    broker.purge(queue)


def unshared(topic):
    """The options of a durable subscription, and the name of its queue."""
    return {"topic": topic, "subscriptionName": "daily", "clientId": topic}, f"{topic}.daily"


def shared(topic):
    name = topic.replace(".", "-")
    return {"topic": topic, "subscriptionName": name, "sharedSubscription": "true"}, name


def full_name(topic):
    return {"queue": f"{topic}::{topic}.daily"}, f"{topic}.daily"


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.parametrize(("durable", "read"), [(unshared, stream), (shared, stream), (full_name, look)])
def test_each_later_start_of_a_durable_subscription_costs_the_message_and_the_next_one_an_attempt(
    broker, queue, durable, read
):
    """Artemis takes no selector there, so nothing can spare the next one. Over AMQP the message is a row."""
    more, subscription = durable(queue)
    created = unshared(queue)[0] if durable is full_name else more
    stream(SourceOptions.parse(access(broker) | created))
    put_healthy(broker, queue, *map(str, range(25)), topic=True)
    put_unconvertible(broker, queue, kind="topic")
    put_healthy(broker, queue, *map(str, range(25, 50)), topic=True)
    over_amqp = {"brokerUrl": broker.amqp_url, "queue": f"{queue}::{subscription}"}
    assert look(SourceOptions.parse(access(broker) | over_amqp))[24:27] == ["24", "only over AMQP", "25"]
    seen, rows = [], []
    for _ in range(2 * STARTS):
        try:
            if "49" in (rows := read(SourceOptions.parse(access(broker) | more), seen)):
                break
        except UnconvertibleMessageError:
            wait_until(lambda: broker.consumer_count(subscription) == 0)
            counts = broker.delivery_counts(subscription)
            assert sorted(counts)[-NEIGHBOURS - 1] <= FEW, counts
    assert [row for row in rows if row not in {"25", "26", "27"}] == [
        str(number) for number in range(50) if not 25 <= number <= 27
    ]
    assert "27" in rows, "at most two are moved with it"


@pytest.mark.broker
def test_a_queue_that_admits_one_consumer_is_read(broker, queue):
    """As the durable subscription of an AMQP client."""
    more, subscription = unshared(queue)
    stream(SourceOptions.parse(access(broker, "amqp") | more))
    put_healthy(broker, queue, "1", "2", topic=True)
    options = SourceOptions.parse(access(broker) | full_name(queue)[0] | {"idleTimeout": "1s"})
    consumer = Consumer(options.connection)
    consumer.subscribe(Subscription(destination=options.destinations[0], window_bytes=1 << 20))
    wait_until(lambda: consumer.waiting()[0] == 2)
    consumer.drop()
    await_value(lambda: broker.delivery_counts(subscription), [1, 1])
    assert look(options) == ["1", "2"]
