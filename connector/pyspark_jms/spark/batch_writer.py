"""``DataSourceArrowWriter``: the rows of a batch write's task → the broker, all or nothing per task."""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyspark_jms.errors import IllegalStateError, OptionConflictError, UnsupportedError
from pyspark_jms.options.parsing import SinkOptions
from pyspark_jms.sink.committing import LedgerTask
from pyspark_jms.sink.sending import Sent, say_dropped, send_at_least_once
from pyspark_jms.sink.sending_held import send_held
from pyspark_jms.sink.sending_once import Outcome, forget, send_exactly_once
from pyspark_jms.spark.sink_patience import task_patience
from pyspark_jms.spark.worker import to_the_end
from pyspark_jms.stomp.link.ledger_entries import ledger_queue, outdated_batch, outdated_time

__all__ = ["KEEP_WRITES_MS", "JmsBatchWriter"]

KEEP_WRITES_MS = 7 * 24 * 3_600_000
"""How long the ledger remembers a batch write: whoever tries it again must do so within a week."""

_ALL_WRITES = "writes"


@dataclass
class _Written(WriterCommitMessage):
    sent: Sent
    once: Outcome | None
    """Of a task that sends exactly once."""


class JmsBatchWriter(DataSourceArrowWriter):
    """``df.write``, also inside ``foreachBatch``: a write is told from another one by its ``writeId``."""

    def __init__(self, options: SinkOptions, *, overwrite: bool) -> None:
        if overwrite:
            raise UnsupportedError("Save mode overwrite cannot empty a queue.", "Use mode('append').")
        if options.exactly_once and options.write_id is None:
            raise OptionConflictError(
                "deliveryGuarantee=exactly-once of a batch write needs option writeId: without it nothing tells a write"
                " that is tried again from another one.",
                "Give each write a writeId of its own, the same when it is tried again: in foreachBatch the batch id"
                " with a name of the query, in a job the name of its run.",
            )
        self._options = options
        self._execution = uuid.uuid4().hex
        """A writer is made once for all tasks of a write."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send every row or, unless option ``transaction`` says otherwise, none."""
        rows, patience = to_the_end(iterator), task_patience(self._options)
        if not self._options.exactly_once:
            return _Written(send_at_least_once(self._options, rows, patience=patience), None)
        task = _this_task(self._options.write_id, self._execution)
        outcome = send_exactly_once(self._options, task, rows, patience=patience)
        return _Written(outcome.sent, outcome)

    def commit(self, messages: list[Any]) -> None:
        """Send what tasks have left to the driver; all others have committed. Old entries of the ledger are deleted."""
        say_dropped("this write", [message.sent for message in messages if message])
        outcomes = [message.once for message in messages if message and message.once]
        if not outcomes:
            return
        send_held(self._options, outcomes)
        task = outcomes[0].task
        now_ms = int(time.time() * 1000)
        of_no_query = task.queue == ledger_queue(_ALL_WRITES)
        selector = (
            outdated_time(now_ms - KEEP_WRITES_MS, now_ms=now_ms)
            if of_no_query
            else outdated_batch(task.batch, now_ms=now_ms)
        )
        forget(self._options, task.queue, selector)

    def abort(self, messages: list[Any]) -> None:
        """Nothing can be taken back: tasks that succeeded have sent their rows, the others none."""


def _this_task(write_id: str | None, execution: str) -> LedgerTask:
    """In ``foreachBatch`` the entries lie in the query's own ledger, and go with its batches."""
    context = TaskContext.get()
    if context is None or write_id is None:
        raise IllegalStateError("A batch write runs outside of a Spark task.", "Report this with Spark's version.")
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    return LedgerTask(
        queue=ledger_queue(query or _ALL_WRITES),
        write=write_id,
        partition=context.partitionId(),
        batch=int(batch or 0),
        execution=execution,
        may_be_repeated=True,
    )
