"""Rows of a task on a real broker, at least once: one transaction, several, or none."""

import threading
import time
import uuid

import pyarrow as pa
import pytest
from addresses import create_in, types_of
from proxy import Proxy
from rawstomp import RawStomp
from streaming import access, left
from waiting import await_count

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.errors import (
    BrokerUnreachableError,
    InvalidDestinationError,
    MessageFormatError,
    MessageTooLargeError,
    SchemaError,
    TransactionRolledBackError,
)
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.sending import nonempty_batches, send_at_least_once
from pyspark_jms.sink.sending_once import send_exactly_once
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.spark.protocols import connect_sink
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.testing import EmbeddedArtemis


def options_of(broker, queue, **options):
    return SinkOptions.parse(access(broker) | {"queue": queue} | {name: str(value) for name, value in options.items()})


def batches(*sizes):
    """Batches of these sizes; the texts count on over all of them."""
    first = 0
    for size in sizes:
        yield pa.record_batch({"text": pa.array([str(n) for n in range(first, first + size)], pa.string())})
        first += size


def bodies(broker, queue, wanted):
    with RawStomp(broker) as client:
        return [message.body.decode() for message in client.read(queue, wanted=wanted)]


@pytest.mark.broker
@pytest.mark.parametrize("transaction", ["task", "none", 1, 7, 20, 60, 1_000])
def test_all_rows_arrive_in_order(broker, queue, transaction):
    sent = send_at_least_once(
        StompSinkLink, options_of(broker, queue, transaction=transaction), batches(0, 20, 1, 0, 39)
    )
    assert sent == (60, 0)
    assert bodies(broker, queue, 60) == [str(n) for n in range(60)]
    await_count(broker, queue, 0)


@pytest.mark.broker
@pytest.mark.parametrize(
    ("transaction", "commits", "there"), [("task", 1, 0), (25, 3, 50), (10, 3, 50), ("none", 1, 59)]
)
def test_what_is_there_when_the_task_ends_early(broker, queue, transaction, commits, there):
    """The connection is cut at a COMMIT, or a row cannot be encoded."""
    options = options_of(broker, queue, transaction=transaction)
    if transaction == 10:
        rows = iter([*batches(55), pa.record_batch({"text": ["no"], "JMSPriority": [77]})])
        with pytest.raises(MessageFormatError, match="Row 55 "):
            send_at_least_once(StompSinkLink, options, rows)
    else:
        pattern = b"COMMIT\ntransaction:t\nreceipt:r%d\n" % (2 * commits)  # each has a receipt for refusals before it
        with Proxy(broker.host, broker.port) as proxy:
            proxy.to_broker.cut_at(pattern)
            options = options_of(broker, queue, transaction=transaction, brokerUrl=proxy.url)
            with pytest.raises(TransactionRolledBackError):
                send_at_least_once(StompSinkLink, options, batches(60))
    assert left(broker, queue, there) == there


@pytest.mark.broker
def test_a_task_with_patience_waits_for_a_broker_that_is_away(broker, queue):
    with Proxy(broker.host, broker.port) as proxy:
        proxy.refuse()
        options = options_of(broker, queue, brokerUrl=proxy.url)
        with pytest.raises(BrokerUnreachableError):
            send_at_least_once(StompSinkLink, options, batches(3))
        threading.Timer(1, proxy.accept).start()
        assert send_at_least_once(StompSinkLink, options, batches(3), patience=60) == (3, 0)
    assert bodies(broker, queue, 3) == ["0", "1", "2"]


def test_a_task_without_rows_connects_nowhere():
    options = SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1"})
    assert send_at_least_once(StompSinkLink, options, batches(0, 0)) == (0, 0)
    assert send_at_least_once(StompSinkLink, options, iter(())) == (0, 0)
    assert nonempty_batches(options, batches(0)) is None


def test_columns_are_checked_before_anything_connects():
    options = SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1", "queue": "q"})
    rows = nonempty_batches(options, batches(0, 2, 3))
    assert rows is not None
    assert [batch.num_rows for batch in rows] == [2, 3]
    with pytest.raises(SchemaError, match="JMSTyp"):
        send_at_least_once(StompSinkLink, options, iter([pa.record_batch({"JMSTyp": ["x"]})]))


# --- bad rows ----------------------------------------------------------------------------------------


def with_bad(count, bad):
    """Rows 0 … count - 1 in batches of 7; those in ``bad`` have a fault, one of three kinds."""
    texts = [f"{n}\0" if n in bad and n % 3 == 0 else str(n) for n in range(count)]
    priorities = [77 if n in bad and n % 3 == 1 else 4 for n in range(count)]
    properties = [[("JMS-" if n in bad and n % 3 == 2 else "ab", str(n))] for n in range(count)]
    whole = pa.record_batch(
        {
            "text": pa.array(texts),
            "JMSPriority": pa.array(priorities),
            "properties": pa.array(properties, pa.map_(pa.string(), pa.string())),
        }
    )
    return (whole.slice(start, 7) for start in range(0, count, 7))


@pytest.mark.broker
@pytest.mark.parametrize("transaction", ["task", "none", 1, 4, 1_000])
@pytest.mark.parametrize(
    "bad", [{5}, {0, 29}, {1, 2, 3, 4, 5, 6, 7, 8, 20}, set(range(21, 30)), set(range(1, 30)), set(range(30))]
)
def test_bad_rows_are_left_out_and_counted(broker, queue, caplog, transaction, bad):
    options = options_of(broker, queue, transaction=transaction, onBadRow="drop")
    assert send_at_least_once(StompSinkLink, options, with_bad(30, bad)) == (30 - len(bad), len(bad))
    good = [str(n) for n in range(30) if n not in bad]
    assert bodies(broker, queue, len(good)) == good
    await_count(broker, queue, 0)
    (record,) = [record for record in caplog.records if "dropped" in record.message]
    assert f"= {len(bad)} of 30 rows were dropped: " in record.message
    assert f"Row {min(bad)} of the task has " in record.message


@pytest.mark.broker
def test_a_bad_row_fails_the_task_by_default(broker, queue):
    with pytest.raises(MessageFormatError, match=r"\[JMS_MESSAGE_FORMAT\] Row 12 .*U\+0000") as caught:
        send_at_least_once(StompSinkLink, options_of(broker, queue), with_bad(30, {12}))
    assert caught.value.__cause__ is None
    await_count(broker, queue, 0)


@pytest.mark.broker
def test_what_is_no_single_row_s_fault_is_not_dropped(broker, queue):
    options = SinkOptions.parse(access(broker) | {"onBadRow": "drop"})
    rows = pa.record_batch({"destination": [queue, None, "ftp://x"], "text": ["a", "b", "c"]})
    assert send_at_least_once(StompSinkLink, options, iter([rows])) == (1, 2)
    assert bodies(broker, queue, 1) == ["a"]
    with pytest.raises(InvalidDestinationError, match="column destination"):
        send_at_least_once(StompSinkLink, options, batches(2))


@pytest.mark.broker
def test_a_row_that_is_too_large_is_dropped_as_well(broker, queue):
    rows = pa.record_batch({"text": ["a", "x" * 5000, "b"]})
    options = options_of(broker, queue, onBadRow="drop", maxMessageBytes="1k")
    assert send_at_least_once(StompSinkLink, options, iter([rows])) == (2, 1)
    with pytest.raises(MessageTooLargeError, match=r"Row 1 .*\b5\d{3} bytes.*\b1024\b"):
        send_at_least_once(StompSinkLink, options_of(broker, queue, maxMessageBytes="1k"), iter([rows]))
    assert bodies(broker, queue, 2) == ["a", "b"]


# --- typed columns -----------------------------------------------------------------------------------


# --- what only the broker, or whoever manages it, may say ------------------------------------------------


def copies(broker, queue, properties, **columns):
    """One row to a queue, or where it says."""
    maps = pa.array([list(properties.items())], pa.map_(pa.string(), pa.string()))
    rows = pa.record_batch({"text": ["x"], "properties": maps} | {name: [value] for name, value in columns.items()})
    return send_at_least_once(StompSinkLink, options_of(broker, queue), iter([rows]))


@pytest.mark.broker
def test_a_duplicate_id_that_was_read_twice_does_not_stop_a_job_that_copies(broker, queue):
    """A producer sends one message to two queues, with one id; both copies go to a third."""
    for _ in range(2):
        copies(broker, queue, {"_AMQ_DUPL_ID": f"{queue}-1", "_AMQ_ORIG_QUEUE": "orders", "n": "1"})
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=2)
    assert [message.headers["n"] for message in found] == ["1", "1"]
    assert not {"_AMQ_DUPL_ID", "_AMQ_ORIG_QUEUE"} & (found[0].headers.keys() | found[1].headers.keys())


@pytest.mark.broker
def test_a_row_gives_no_order_to_the_broker(broker, queue):
    """Sent as it is, this row deletes the queue: the sink's user may manage the broker."""
    broker.create_queue(queue)
    order = {"_AMQ_ResourceName": "broker", "_AMQ_OperationName": "destroyQueue"}
    rows = {"text": f'["{queue}"]', "destination": "queue://activemq.management"}
    maps = pa.array([list(order.items())], pa.map_(pa.string(), pa.string()))
    batch = pa.record_batch({"properties": maps} | {name: [value] for name, value in rows.items()})
    with pytest.raises(InvalidDestinationError, match="management"):
        send_at_least_once(StompSinkLink, options_of(broker, queue), iter([batch]))
    with pytest.raises(MessageFormatError, match=r"JMS_MESSAGE_FORMAT.*_AMQ_ResourceName"):
        send_at_least_once(StompSinkLink, options_of(broker, queue), iter([batch.drop_columns("destination")]))
    time.sleep(0.5)
    assert broker.server.locateQueue(queue) is not None


# --- destinations at which nothing would arrive ---------------------------------------------------

IS_TOPIC = "{} is a topic on the broker, and no queue"


def send(running, way, rows, **options):
    url = {} if way == "stomp" else {"brokerUrl": running.amqp_url}
    if way == "exactly once":
        options["deliveryGuarantee"] = "exactly-once"
    parsed = SinkOptions.parse(access(running) | url | options)
    batches = iter([pa.record_batch(rows)])
    if way != "exactly once":
        return send_at_least_once(connect_sink(parsed), parsed, batches)
    owner = LedgerOwner("query", uuid.uuid4().hex)
    task = LedgerTask(owner=owner, write="q/0", partition=0, batch=0, execution="first", may_be_repeated=False)
    return send_exactly_once(CommitLedger(parsed.connection, owner), parsed, task, batches).sent


@pytest.fixture
def topic(broker, queue):
    if not isinstance(broker, EmbeddedArtemis):
        pytest.skip("needs an embedded Artemis")
    broker.server.getActiveMQServerControl().createAddress(queue, "MULTICAST")
    yield queue
    assert types_of(broker, queue) == "[MULTICAST]"


@pytest.mark.parametrize("way", ["stomp", "amqp", "exactly once"])
def test_a_topic_is_not_written_to_as_a_queue_and_stays_a_topic(broker, topic, way):
    for _ in range(2):
        with pytest.raises(InvalidDestinationError, match=IS_TOPIC.format(topic)):
            send(broker, way, {"text": ["x"]}, queue=topic)
        with pytest.raises(InvalidDestinationError, match=f"row 1 of the task is refused: {IS_TOPIC.format(topic)}"):
            send(broker, way, {"text": ["x", "y"], "destination": [f"{topic}.other", f"queue://{topic}"]})
    assert send(broker, way, {"text": ["x"]}, topic=topic) == (1, 0)
    assert send(broker, way, {"text": ["x"], "destination": [f"topic://{topic}"]}) == (1, 0)


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_rows_to_a_topic_as_a_queue_can_be_dropped(broker, topic, way):
    rows = {"text": ["x", "y", "z"], "destination": [f"{topic}.other", topic, f"{topic}.other"]}
    assert send(broker, way, rows, onBadRow="drop") == (2, 1)
    assert broker.message_count(f"{topic}.other") == 2


@pytest.mark.parametrize("way", ["stomp", "amqp", "exactly once"])
def test_a_queue_whose_address_has_another_name_is_written_to_by_its_full_name(broker, queue, way):
    if not isinstance(broker, EmbeddedArtemis):
        pytest.skip("needs an embedded Artemis")
    create_in(broker, f"{queue}.address", queue)
    error = f"Queue {queue} belongs to address {queue}.address. .* Send to queue={queue}.address::{queue} "
    with pytest.raises(InvalidDestinationError, match=error):
        send(broker, way, {"text": ["x"]}, queue=queue)
    rows = {"text": ["x", "y"], "destination": [f"{queue}.other", f"queue://{queue}"]}
    with pytest.raises(InvalidDestinationError, match=f"row 1 of the task is refused: {error}"):
        send(broker, way, rows)
    full_name = f"{queue}.address::{queue}"
    assert send(broker, way, rows | {"destination": [f"queue://{full_name}", None]}, queue=full_name) == (2, 0)
    await_count(broker, queue, 2)
    assert types_of(broker, f"{queue}.address") == "[ANYCAST]"


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_one_subscription_is_written_to_as_a_topic_with_its_full_name(broker, topic, way):
    for name in ("one", "two"):
        create_in(broker, topic, f"{topic}.{name}", "MULTICAST")
    with pytest.raises(InvalidDestinationError, match=f"the queue of a topic.* Send to topic={topic}::{topic}.one "):
        send(broker, way, {"text": ["x"]}, queue=f"{topic}::{topic}.one")
    assert send(broker, way, {"text": ["x"]}, topic=f"{topic}::{topic}.one") == (1, 0)
    await_count(broker, f"{topic}.one", 1)
    assert broker.message_count(f"{topic}.two") == 0


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_a_queue_is_not_written_to_as_a_topic_and_stays_a_queue(broker, queue, way):
    if not isinstance(broker, EmbeddedArtemis):
        pytest.skip("needs an embedded Artemis")
    broker.create_queue(queue)
    with pytest.raises(InvalidDestinationError, match=f"{queue} is a queue on the broker, and no topic"):
        send(broker, way, {"text": ["x"]}, topic=queue)
    assert types_of(broker, queue) == "[ANYCAST]"


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_a_process_asks_for_a_queue_once(broker, queue, way):
    url = broker.url if way == "stomp" else broker.amqp_url
    with Proxy(broker.host, parse_broker_url(url)[0].port, way) as proxy:
        for connections in (2, 3):
            send(broker, way, {"text": ["x"]}, queue=queue, brokerUrl=proxy.url)
            assert proxy.accepted == connections
