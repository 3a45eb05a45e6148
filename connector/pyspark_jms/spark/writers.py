"""``df.write`` and ``df.writeStream``: Spark's calls → tasks (``spark.worker``), and a write's end on the driver."""

import logging
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.errors import IllegalStateError, OptionConflictError, UnsupportedError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sentences import counted
from pyspark_jms.sink.tasks import LedgerTask, TaskResult, log_dropped_rows, may_be_repeated, require_identity
from pyspark_jms.spark.calls import freeze_gc, short_traceback
from pyspark_jms.spark.releases import StreamArrowWriter

__all__ = ["JmsBatchWriter", "JmsStreamWriter"]

_log = logging.getLogger("pyspark_jms.spark")

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""What Spark calls the properties of a task that name its query and its batch."""


@dataclass
class TaskReport(WriterCommitMessage):
    """What Spark carries from a task to the driver."""

    result: TaskResult
    in_a_query: bool = True
    """It writes a batch of a query, with ``writeStream`` or in ``foreachBatch``."""


class JmsBatchWriter(DataSourceArrowWriter):
    """All or nothing per task. Inside ``foreachBatch`` too: a ``writeId`` distinguishes one write from another."""

    def __init__(self, options: SinkOptions, *, overwrite: bool) -> None:
        if overwrite:
            raise UnsupportedError("Save mode overwrite cannot empty a queue.", "Use mode('append').")
        if options.exactly_once and options.write_id is None:
            raise OptionConflictError(
                "deliveryGuarantee=exactly-once of a batch write needs option writeId: without it, a write that is"
                " retried cannot be distinguished from another write.",
                "Give each write a writeId of its own, the same when it is retried: in foreachBatch"
                " pyspark_jms.functions.write_id(batch, number), in a job job:NAME/RUN.",
            )
        self._options = options
        self._execution = uuid.uuid4().hex
        """Spark makes one writer for all tasks of a write."""

    @short_traceback
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from pyspark_jms.spark.worker import run_task  # heavy, and only tasks need it

        task = _task_of_batch_write(self._options.write_id, self._execution) if self._options.exactly_once else None
        context = TaskContext.get()
        in_a_query = context is not None and context.getLocalProperty(_QUERY) is not None
        return TaskReport(run_task(self._options, iterator, task), in_a_query)

    @short_traceback
    def commit(self, messages: list[Any]) -> None:
        """Log a closing line, except in ``foreachBatch``, where writes are many."""
        freeze_gc()
        reports = _finish(self._options, "this write", messages)
        if not any(report.in_a_query for report in reports):
            rows = sum(report.result.sent.rows for report in reports)
            _log.warning("= the write has ended: %s in %s", counted(rows), counted(len(reports), "task"))

    def abort(self, messages: list[Any]) -> None:
        """There is nothing to undo: a task that succeeded has committed its rows, a task that failed has not."""


class JmsStreamWriter(StreamArrowWriter):  # type: ignore[misc]  # its base class depends on the release
    """At-least-once by default: a task that succeeded has sent all its rows, a retried task may send its rows again."""

    def __init__(self, options: SinkOptions) -> None:
        if options.write_id is not None:
            raise OptionConflictError(
                "Option writeId is given to writeStream, where query and batch name each write.", "Remove the option."
            )
        self._options = options
        self._execution = uuid.uuid4().hex
        """Spark makes one writer for all tasks of a batch, and calls ``commit`` on another one."""

    @short_traceback
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from pyspark_jms.spark.worker import run_task  # heavy, and only tasks need it

        task = _task_of_stream(self._execution) if self._options.exactly_once else None
        return TaskReport(run_task(self._options, iterator, task))

    @short_traceback
    def commit(self, messages: list[Any], batchId: int) -> None:
        _finish(self._options, f"batch {batchId}", messages)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """There is nothing to undo: the transaction of a failed task was never visible."""


def _task_of_batch_write(write_id: str | None, execution: str) -> LedgerTask:
    context = TaskContext.get()
    if context is None or write_id is None:
        raise IllegalStateError("A batch write runs outside of a Spark task.", "Report this with Spark's version.")
    query, batch = map(context.getLocalProperty, (_QUERY, _BATCH))
    identity = require_identity(write_id, query, batch)
    return LedgerTask(
        owner=identity.owner,
        write=write_id,
        partition=context.partitionId(),
        batch=identity.batch,
        execution=execution,
        may_be_repeated=True,
    )


def _task_of_stream(execution: str) -> LedgerTask:
    context = TaskContext.get()
    names = (_QUERY, _BATCH, "spark.jobGroup.id")
    query, batch, run = (context.getLocalProperty(name) if context else None for name in names)
    if context is None or query is None or batch is None or run is None:
        raise IllegalStateError(
            "Spark does not report which query and batch this task belongs to.", "Report this with Spark's version."
        )
    return LedgerTask(
        owner=LedgerOwner("query", query),
        write=f"{query}/{batch}",
        partition=context.partitionId(),
        batch=int(batch),
        execution=execution,
        may_be_repeated=may_be_repeated(run, int(batch), context.attemptNumber()),
    )


def _finish(options: SinkOptions, name: str, messages: Iterable[TaskReport | None]) -> list[TaskReport]:
    """On the driver, after all tasks. Return their reports. ``name``: of the write, in the log.

    The process that Spark runs this in needs the code of a broker only after exactly-once writes. Its import takes
    0.6 s of CPU, and Spark ends the process after an idle minute.
    """
    reports = [message for message in messages if message is not None]
    results = [report.result for report in reports]
    log_dropped_rows(name, [result.sent for result in results])
    outcomes = [result.outcome for result in results if result.outcome]
    if outcomes:
        from pyspark_jms.amqp.sink import CommitLedger
        from pyspark_jms.sink.writing import finish_write

        finish_write(CommitLedger(options.connection, outcomes[0].task.owner), options, outcomes)
    return reports
