"""``DataSourceStreamArrowWriter``: the rows of a micro-batch's task → the broker, once it is known which task it is."""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_jms.errors import IllegalStateError, OptionConflictError
from pyspark_jms.options.parsing import SinkOptions
from pyspark_jms.sink.committing import LedgerTask
from pyspark_jms.sink.sending import Sent, say_dropped, send_at_least_once
from pyspark_jms.sink.sending_held import send_held
from pyspark_jms.sink.sending_once import Outcome, forget, send_exactly_once
from pyspark_jms.spark.sink_patience import task_patience
from pyspark_jms.spark.worker import to_the_end
from pyspark_jms.stomp.link.ledger_entries import ledger_queue, outdated_batch

__all__ = ["TIDY_EVERY", "JmsStreamWriter"]

TIDY_EVERY = 16
"""Batches between two deletions of old ledger entries: each takes a connection, and entries take little room."""

_first_batches: dict[str, int] = {}
"""Run of a query → the first batch of it that this worker process saw: no other batch of a run can be a replay."""

_MOST_RUNS = 100  # a worker process lives for minutes; this bounds the one that does not


@dataclass
class _Written(WriterCommitMessage):
    sent: Sent
    once: Outcome | None
    """Of a task that sends exactly once."""


class JmsStreamWriter(DataSourceStreamArrowWriter):
    """At least once: a task that failed or was repeated may send its rows again, one that succeeded sent all."""

    def __init__(self, options: SinkOptions) -> None:
        if options.write_id is not None:
            raise OptionConflictError(
                "Option writeId is given to writeStream, where query and batch name each write.", "Leave it out."
            )
        self._options = options
        self._execution = uuid.uuid4().hex
        """A writer is made once for all tasks of a batch; ``commit`` is called on another one."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send every row or, unless option ``transaction`` says otherwise, none."""
        rows, patience = to_the_end(iterator), task_patience(self._options)
        if not self._options.exactly_once:
            return _Written(send_at_least_once(self._options, rows, patience=patience), None)
        outcome = send_exactly_once(self._options, _this_task(self._execution), rows, patience=patience)
        return _Written(outcome.sent, outcome)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Send what tasks have left to the driver; all others have committed. And tidy up the ledger, now and then."""
        say_dropped(f"batch {batchId}", [message.sent for message in messages if message])
        outcomes = [message.once for message in messages if message and message.once]
        send_held(self._options, outcomes)
        if outcomes and batchId % TIDY_EVERY == 0:
            forget(self._options, outcomes[0].task.queue, outdated_batch(batchId, now_ms=int(time.time() * 1000)))

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Nothing can be taken back; a failed task's transaction was never visible."""


def _this_task(execution: str) -> LedgerTask:
    context = TaskContext.get()
    names = ("sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id")
    query, batch, run = (context.getLocalProperty(name) if context else None for name in names)
    if context is None or query is None or batch is None or run is None:
        raise IllegalStateError(
            "Spark does not say which query and batch this task belongs to.", "Report this with Spark's version."
        )
    return LedgerTask(
        queue=ledger_queue(query),
        write=f"{query}/{batch}",
        partition=context.partitionId(),
        batch=int(batch),
        execution=execution,
        may_be_repeated=_may_be_repeated(run, int(batch), context.attemptNumber()),
    )


def _may_be_repeated(run: str, batch: int, attempt: int) -> bool:
    if len(_first_batches) > _MOST_RUNS:
        _first_batches.clear()
    return _first_batches.setdefault(run, batch) == batch or attempt > 0
