"""The engine of a streaming read without Spark: offsets in, what tasks read out."""

import contextlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numbered import fill
from streaming import access, left, stopping

from pyspark_jms.delivery.journal.binding import JournalMark
from pyspark_jms.delivery.message_range import Batch, MessageRange
from pyspark_jms.errors import OptionConflictError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.offsets import ReceivedOffset
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stores.received import QueryJournal, received_partitions
from pyspark_jms.source.task_inputs import read_task
from pyspark_jms.spark.protocols import query_of, reading_of
from pyspark_jms.stomp.wire.scan import FrameScanner


@contextlib.contextmanager
def streaming(broker, queue, **more):
    options = SourceOptions.parse(access(broker) | {"queue": queue} | {key: str(each) for key, each in more.items()})
    with stopping(query_of(reading_of(options))) as source:
        yield source, options


def batch(source, start):
    """The next batch that has messages."""
    end = start
    while end == start:
        end = source.latest_offset(start)
    return end


def rows(source, options, start, end):
    tasks = pickle.loads(pickle.dumps(source.partitions(start, end)))
    return [row for task in tasks for part in read_task(task, reading_of(options)) for row in part.to_pylist()]


@pytest.mark.parametrize("journal", [False, True])
def test_each_batch_is_read_once_and_acknowledged_when_the_next_is_asked_for(broker, queue, tmp_path, journal, caplog):
    fill(broker, queue, 30)
    more = {"deliveryGuarantee": "exactly-once", "journalLocation": tmp_path} if journal else {}
    with streaming(broker, queue, maxMessagesPerTrigger=20, **more) as (source, options):
        start, found = source.initial_offset(), []
        while len(found) < 30:
            end = batch(source, start)
            assert found or source.initial_offset() == start  # Spark asks again
            found += [row["sequence"] for row in rows(source, options, start, end)]
            source.commit(end)
            start = end
        assert found == list(range(30))
        source.latest_offset(start)
        assert left(broker, queue, 0) == 0
        assert source.progress()["seq"] == 30
    assert "the checkpoint is new" not in caplog.text


def test_a_batch_of_an_earlier_process_is_empty(broker, queue):
    with streaming(broker, queue) as (source, _):
        assert source.partitions({"seq": 0}, {"seq": 5}) == []


def test_dropped_messages_are_counted_where_they_are_decoded(broker, queue):
    fill(broker, queue, 20)
    more = {"selector": "JMSRedelivered = TRUE", "selectorInSpark": "residual"}
    with streaming(broker, queue, **more) as (source, options):
        start = source.initial_offset()
        assert source.progress() == {}
        end = batch(source, start)
        assert source.progress()["selectorDropped"] == 0
        source.partitions(start, end)
        assert "not known" in str(source.progress()["selectorDropped"])  # no task has run
        rows(source, options, start, end)
        assert source.progress()["selectorDropped"] == end["seq"]
        source.commit(end)
        assert source.progress()["selectorDropped"] == end["seq"]


ORIGINS = [("queue://a", "artemis"), ("queue://b", "artemis")]


def block_of(sizes):
    scanner = FrameScanner(max_body_bytes=1 << 20)
    for n, size in enumerate(sizes):
        scanner.feed(b"MESSAGE\nmessage-id:9,%d\ncontent-length:%d\n\n%s\0\n" % (n, size, b"x" * size))
    return scanner.take()


@given(st.lists(st.lists(st.integers(0, 900), min_size=1, max_size=9), min_size=1, max_size=4), st.integers(1, 4000))
def test_partitions_hold_every_message_once_in_order_within_their_bytes(blocks, partition_bytes):
    ranges, count = [], 0
    for subscription, sizes in enumerate(blocks):
        ranges.append(MessageRange(subscription % 2, block_of(sizes), 0, len(sizes)))
        count += len(sizes)
    tasks = list(received_partitions(Batch(100, 100 + count, tuple(ranges)), ORIGINS, partition_bytes, None))
    assert all(tasks)
    at = 100
    for task in tasks:
        for part in task:
            assert part.first_sequence == at
            at += len(part)
        assert sum(len(part.place.data) for part in task) <= partition_bytes or sum(map(len, task)) == 1
    assert at == 100 + count


# --- the journal of a query -----------------------------------------------------------------------


def journal_of(folder=None, **more):
    raw = (
        {"brokerUrl": "stomp://h", "queue": "q"}
        | ({"deliveryGuarantee": "exactly-once", "journalLocation": str(folder)} if folder else {})
        | more
    )
    return contextlib.closing(QueryJournal(reading_of(SourceOptions.parse(raw)), StopRequest()))


def test_without_the_option_there_is_no_store():
    with journal_of() as journal:
        assert (journal.store(), journal.mark(), journal.require_belongs(ReceivedOffset(3).logged())) == (
            None,
            None,
            None,
        )


def test_the_mark_names_the_journal_and_its_end(tmp_path):
    with journal_of(tmp_path) as journal:
        assert journal.mark() == JournalMark(journal.store().meta.id, 0)
        assert journal.require_belongs(ReceivedOffset(0, None, journal.mark()).logged()) is journal.store()


def test_a_checkpoint_without_a_journal_gets_none(tmp_path):
    with (
        journal_of(tmp_path / "journal") as journal,
        pytest.raises(OptionConflictError, match=r"without a journal \(at-least-once\).* new output folder"),
    ):
        journal.require_belongs(ReceivedOffset(4).logged(), ReceivedOffset(4).logged())
    with journal_of(tmp_path / "other", failOnDataLoss="false") as journal:
        assert journal.require_belongs(ReceivedOffset(4).logged()) is journal.store()


def test_a_checkpoint_with_a_journal_needs_it(tmp_path):
    with journal_of(tmp_path) as journal:
        marked = ReceivedOffset(0, None, journal.mark()).logged()
    with journal_of() as journal, pytest.raises(OptionConflictError, match=r"journalLocation .* new output folder"):
        journal.require_belongs(marked)
    with journal_of(failOnDataLoss="false") as journal:
        assert journal.require_belongs(marked) is None
