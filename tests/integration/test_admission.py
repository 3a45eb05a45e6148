"""Several queues in one query, and the end of a run while messages arrive, through a real Spark.

Without Spark: tests/connector/source/test_receiver.py. Limits of batches: tests/connector/delivery/test_ledger.py.
"""

import json

import pytest
from numbered import fill, sending_on_and_on
from streaming import journal_in, left, read, stopping
from waiting import await_value, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]
plain_or_journal = pytest.mark.parametrize(
    "journaled", [pytest.param(False, id="plain", marks=pytest.mark.slow), pytest.param(True, id="journal")]
)


class Rows(list):
    """A sink that can go on where it was: the rows in order of sequence, and how many each batch had."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def __call__(self, frame, _batch):
        rows = frame.select("sequence", "JMSDestination", "properties.n").collect()
        self += sorted((row.sequence, row.JMSDestination, int(row.n)) for row in rows)
        self.sizes += [len(rows)] if rows else []

    @property
    def numbers(self):
        return [number for _, _, number in self]


def run(frame, folder):
    """The rows of a run with AvailableNow."""
    rows = Rows()
    writer = frame.writeStream.foreachBatch(rows).option("checkpointLocation", str(folder / "checkpoint"))
    with stopping(writer.trigger(availableNow=True).start()) as query:
        assert query.awaitTermination(240), "the query did not end"
    return rows


def journal(folder, wanted):
    return journal_in(folder / "journal") if wanted else {}


@plain_or_journal
def test_several_queues_are_one_query_with_one_limit(spark, broker, queue, tmp_path, journaled):
    names = [f"{queue}.{k}" for k in range(3)]
    for k, name in enumerate(names):
        fill(broker, name, 50, first=100 * k)
    options = {"queue": json.dumps(names), "maxMessagesPerTrigger": 40, "idleTimeout": "2s"}
    frame = read(spark, broker, **options, **journal(tmp_path, journaled))
    rows = run(frame, tmp_path)
    assert [sequence for sequence, _, _ in rows] == list(range(150))
    for k, name in enumerate(names):
        assert [n for _, where, n in rows if where == f"queue://{name}"] == list(range(100 * k, 100 * k + 50))
    assert max(rows.sizes) <= 40
    assert [left(broker, name) for name in names] == [0, 0, 0]
    assert run(frame, tmp_path) == []


@plain_or_journal
def test_available_now_ends_although_messages_keep_arriving(spark, broker, queue, tmp_path, journaled):
    fill(broker, queue, 100)
    frame = read(spark, broker, queue=queue, idleTimeout="1s", **journal(tmp_path, journaled))
    with sending_on_and_on(broker, queue, 100) as sent:
        first = run(frame, tmp_path).numbers
        wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
        wait_until(lambda: 100 + len(sent) > len(first) + 10, what="some more")
    assert first == list(range(len(first)))
    assert len(first) >= 100
    rest = 100 + len(sent) - len(first)
    assert left(broker, queue, rest) == rest
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    assert run(frame, tmp_path).numbers == list(range(len(first), 100 + len(sent)))
    assert left(broker, queue) == 0
    assert run(frame, tmp_path) == []
