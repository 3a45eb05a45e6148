"""How much a batch takes, when there is one, and when a query ends: every trigger and limit through a real Spark.

Without Spark: tests/connector/source/test_receiver.py, and the limits in tests/connector/delivery/test_ledger.py.
"""

import contextlib
import itertools
import json
import threading

import pytest
from numbered import fill
from rawstomp import RawStomp
from streaming import left, read
from waiting import await_value, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]


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


def metrics(query):
    return json.loads(query.lastProgress["sources"][0]["latestOffset"]) if query.lastProgress else {}


@contextlib.contextmanager
def running(frame, folder, **trigger):
    """Yields the query, and its rows as they come."""
    rows = Rows()
    writer = frame.writeStream.foreachBatch(rows).option("checkpointLocation", str(folder / "checkpoint"))
    query = (writer.trigger(**trigger) if trigger else writer).start()
    try:
        yield query, rows
    finally:
        query.stop()
    if query.exception() is not None:
        raise query.exception()


def run(frame, folder, **trigger):
    """The rows of a run that ends by itself."""
    with running(frame, folder, **trigger or {"availableNow": True}) as (query, rows):
        assert query.awaitTermination(240), "the query did not end"
    return rows


def journal(folder, wanted):
    return {"deliveryGuarantee": "exactly-once", "journalLocation": str(folder / "journal")} if wanted else {}


WITH_AND_WITHOUT = pytest.mark.parametrize("journaled", [False, True], ids=["plain", "journal"])


# --- how much ----------------------------------------------------------------------------------


@WITH_AND_WITHOUT
def test_the_smaller_of_both_limits_bounds_a_batch(spark, broker, queue, tmp_path, journaled):
    fill(broker, queue, 60, size=1000)
    options = {"maxMessagesPerTrigger": 20, "maxBytesPerTrigger": "12k", "idleTimeout": "500ms"}
    frame = read(spark, broker, queue=queue, **options, **journal(tmp_path, journaled))
    rows = run(frame, tmp_path)
    assert rows.numbers == list(range(60))
    assert max(rows.sizes) <= 12  # 1,000 bytes of text and a header each: fewer than 12 in 12 k
    assert left(broker, queue) == 0
    fill(broker, queue, 60, first=60, size=10)
    rows = run(frame, tmp_path)
    assert rows.numbers == list(range(60, 120))
    assert max(rows.sizes) <= 20


@WITH_AND_WITHOUT
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


# --- when --------------------------------------------------------------------------------------


@pytest.mark.parametrize("most_kept", [{}, {"maxJournalBytes": "1k"}], ids=["window", "journal"])
def test_a_full_window_or_journal_is_a_batch_and_the_next_one_follows(spark, broker, queue, tmp_path, most_kept):
    fill(broker, queue, 40, size=1000)
    frame = read(spark, broker, queue=queue, windowBytes="8k", **most_kept, **journal(tmp_path, bool(most_kept)))
    with running(frame, tmp_path) as (_, rows):
        wait_until(lambda: rows.numbers == list(range(40)), what="batches of a window each")
        assert max(rows.sizes) < 20


def test_processing_time(spark, broker, queue, tmp_path):
    fill(broker, queue, 10)
    with running(read(spark, broker, queue=queue), tmp_path, processingTime="1 second") as (_, rows):
        wait_until(lambda: rows.numbers == list(range(10)), what="the first messages")
        fill(broker, queue, 10, first=10)
        wait_until(lambda: rows.numbers == list(range(20)), what="the others")
        assert left(broker, queue) == 0


# --- the end -----------------------------------------------------------------------------------


@contextlib.contextmanager
def sending_on_and_on(broker, queue, first):
    """Yields a list of the numbers that were sent; it grows until the end of the block."""
    sent, enough = [], threading.Event()

    def send():
        with RawStomp(broker) as client:
            for n in itertools.count(first):
                client.send(queue, [([("n", str(n))], f"text {n}")])
                sent.append(n)
                if enough.wait(0.01):
                    return

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        enough.set()
        thread.join()


@WITH_AND_WITHOUT
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


def test_once_with_a_journal(spark, broker, queue, tmp_path):
    """Without one it is refused: test_stream_reader.py."""
    frame = read(spark, broker, queue=queue, **journal(tmp_path, wanted=True))
    for first, count in ((0, 10), (10, 0), (10, 5)):
        fill(broker, queue, count, first)
        assert run(frame, tmp_path, once=True).numbers == list(range(first, first + count))
        assert left(broker, queue) == 0
