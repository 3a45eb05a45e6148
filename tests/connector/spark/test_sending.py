"""Rows of a task on a real broker, at least once: one transaction, several, or none."""

import pyarrow as pa
import pytest
from proxy import Proxy
from rawstomp import RawStomp
from streaming import access, left

from pyspark_jms.errors import MessageFormatError, SchemaError, TransactionRolledBackError
from pyspark_jms.options import SinkOptions
from pyspark_jms.spark.sending import send_at_least_once, with_rows


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
    sent = send_at_least_once(options_of(broker, queue, transaction=transaction), batches(0, 20, 1, 0, 39))
    assert sent == 60
    assert bodies(broker, queue, 60) == [str(n) for n in range(60)]
    assert broker.message_count(queue) == 0


@pytest.mark.broker
@pytest.mark.parametrize(
    ("transaction", "commits", "there"), [("task", 1, 0), (25, 3, 50), (10, 3, 50), ("none", 1, 59)]
)
def test_what_is_there_when_the_task_ends_early(broker, queue, transaction, commits, there):
    """The connection is cut at a COMMIT, or a row cannot be encoded."""
    options = options_of(broker, queue, transaction=transaction)
    if transaction == 10:
        rows = iter([*batches(55), pa.record_batch({"text": ["no"], "JMSPriority": [77]})])
        with pytest.raises(MessageFormatError, match="Row 55 of the task"):
            send_at_least_once(options, rows)
    else:
        pattern = b"receipt:r%d\n" % commits
        with Proxy(broker.host, broker.port) as proxy:
            proxy.to_broker.cut_at(pattern)
            options = options_of(broker, queue, transaction=transaction, brokerUrl=proxy.url)
            with pytest.raises(TransactionRolledBackError):
                send_at_least_once(options, batches(60))
    assert left(broker, queue, there) == there


def test_a_task_without_rows_connects_nowhere():
    options = SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1"})
    assert send_at_least_once(options, batches(0, 0)) == 0
    assert send_at_least_once(options, iter(())) == 0
    assert with_rows(batches(0)) is None


def test_columns_are_checked_before_anything_connects():
    rows = with_rows(batches(0, 2, 3))
    assert rows is not None
    assert [batch.num_rows for batch in rows] == [2, 3]
    with pytest.raises(SchemaError, match="JMSTyp"):
        send_at_least_once(
            SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1"}), iter([pa.record_batch({"JMSTyp": ["x"]})])
        )
