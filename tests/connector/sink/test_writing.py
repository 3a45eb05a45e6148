"""A whole write in memory: its tasks, and what the driver does after them."""

import uuid

import pyarrow as pa
import pytest
from memory_sink import MemorySink

from pyspark_jms.errors import CommitInDoubtError, ReplayMismatchError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.sending import Sent
from pyspark_jms.sink.tasks import LedgerTask, ledger_queue
from pyspark_jms.sink.writing import TaskResult, finish_write, write_task

OPTIONS = SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1", "queue": "q", "deliveryGuarantee": "exactly-once"})


def tasks(count, batch=0):
    execution = uuid.uuid4().hex
    return [
        LedgerTask(
            queue=ledger_queue("o"), write=f"o/{batch}", partition=n, batch=batch, execution=execution,
            may_be_repeated=True,
        )
        for n in range(count)
    ]  # fmt: skip


def write(sink, *partitions, batch=0, finish=True):
    """``partitions``: the texts of each, or None for a task that fails before it sends."""
    results = [
        write_task(sink, OPTIONS, iter([pa.record_batch({"text": texts})]), task, patience=0)
        for task, texts in zip(tasks(len(partitions), batch), partitions, strict=True)
        if texts is not None
    ]
    if finish:
        finish_write(sink, OPTIONS, f"batch {batch}", results)
    return results


def test_without_a_task_of_the_ledger_rows_are_sent_at_least_once():
    sink = MemorySink()
    rows = iter([pa.record_batch({"text": ["a", "b"]})])
    assert write_task(sink, OPTIONS, rows, None, patience=3) == TaskResult(Sent(2))
    assert (sink.messages, sink.entries) == (["a", "b"], [])


def test_a_repeated_write_sends_nothing_again():
    sink = MemorySink()
    write(sink, ["a", "b"], ["c"])
    write(sink, ["b", "a"], ["c"])
    assert sink.messages == ["a", "b", "c"]
    with pytest.raises(ReplayMismatchError):
        write(sink, ["a"], ["c"])


def test_rows_that_tasks_held_are_sent_at_the_end():
    sink = MemorySink()
    write(sink, None, ["c"], finish=False)
    write(sink, ["a", "b"], ["c"])
    assert sink.messages == ["c", "a", "b"]
    with pytest.raises(ReplayMismatchError, match="in other partitions"):
        write(sink, None, None, ["a", "b", "c"])


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_commit_without_confirmation_is_looked_up(lost):
    sink = MemorySink(lose_commit=lost)
    if lost == "before":
        with pytest.raises(CommitInDoubtError, match="is not in queue"):
            write(sink, ["a"])
        assert sink.messages == []
    write(sink, ["a"])
    assert sink.messages == ["a"]


def test_old_entries_are_deleted_only_when_asked(caplog):
    sink = MemorySink()
    results = write(sink, ["a"])
    later = write(sink, ["b"], batch=1, finish=False)
    finish_write(sink, OPTIONS, "batch 1", later, tidy=False)
    assert [entry.batch for entry in sink.entries] == [0, 1]
    finish_write(sink, OPTIONS, "batch 1", later)
    assert [entry.batch for entry in sink.entries] == [1]
    finish_write(sink, OPTIONS, "batch 2", [TaskResult(Sent(3, 1)), *results], tidy=False)
    assert "= batch 2: 1 of 5 rows were dropped (onBadRow=drop)" in caplog.text


def test_the_driver_does_not_connect_for_at_least_once_writes():
    sink = MemorySink()
    finish_write(sink, OPTIONS, "this write", [TaskResult(Sent(3))])
    assert sink.log == []
