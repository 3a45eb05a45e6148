"""``DataSourceStreamArrowWriter``: the rows of a micro-batch's task → the broker, once it is known which task it is."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_jms.errors import IllegalStateError, OptionConflictError
from pyspark_jms.link.ledger_entries import ledger_queue, outdated_batch
from pyspark_jms.options import SinkOptions
from pyspark_jms.spark.sending import Sent, say_dropped, send_at_least_once
from pyspark_jms.spark.sending_once import LedgerTask, forget, send_exactly_once

__all__ = ["TIDY_EVERY", "JmsStreamWriter"]

TIDY_EVERY = 16
"""Batches between two deletions of old ledger entries: each takes a connection, and entries take little room."""

_first_batches: dict[str, int] = {}
"""Run of a query → the first batch of it that this worker process saw: no other batch of a run can be a replay."""

_MOST_RUNS = 100  # a worker process lives for minutes; this bounds the one that does not


@dataclass
class _Written(WriterCommitMessage):
    sent: Sent
    ledger: str | None


class JmsStreamWriter(DataSourceStreamArrowWriter):
    """At least once: a task that failed or was repeated may send its rows again, one that succeeded sent all."""

    def __init__(self, options: SinkOptions) -> None:
        if options.write_id is not None:
            raise OptionConflictError(
                "Option writeId is given to writeStream, where query and batch name each write.", "Leave it out."
            )
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send every row or, unless option ``transaction`` says otherwise, none."""
        if not self._options.exactly_once:
            return _Written(send_at_least_once(self._options, iterator), None)
        task = _this_task()
        return _Written(send_exactly_once(self._options, task, iterator), task.queue)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Each task has committed its own transaction. What is left is to tidy up the ledger, now and then."""
        say_dropped(f"batch {batchId}", [message.sent for message in messages if message])
        ledger = next((message.ledger for message in messages if message and message.ledger), None)
        if ledger is not None and batchId % TIDY_EVERY == 0:
            forget(self._options, ledger, outdated_batch(batchId, now_ms=int(time.time() * 1000)))

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Nothing can be taken back; a failed task's transaction was never visible."""


def _this_task() -> LedgerTask:
    context = TaskContext.get()
    names = ("sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id")
    query, batch, run = (context.getLocalProperty(name) if context else None for name in names)
    if context is None or query is None or batch is None or run is None:
        raise IllegalStateError(
            "Spark does not say which query and batch this task belongs to.", "Report this with Spark's version."
        )
    return LedgerTask(
        queue=ledger_queue(query),
        name=f"{query}/{batch}/{context.partitionId()}",
        batch=int(batch),
        may_be_repeated=_may_be_repeated(run, int(batch), context.attemptNumber()),
    )


def _may_be_repeated(run: str, batch: int, attempt: int) -> bool:
    if len(_first_batches) > _MOST_RUNS:
        _first_batches.clear()
    return _first_batches.setdefault(run, batch) == batch or attempt > 0
