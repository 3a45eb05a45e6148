"""``df.writeStream``: Spark's calls → ``sink.writing``."""

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.errors import IllegalStateError, OptionConflictError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import LedgerTask, may_be_repeated
from pyspark_jms.spark.releases import StreamArrowWriter
from pyspark_jms.spark.reports import finish
from pyspark_jms.spark.short_tracebacks import short_traceback

__all__ = ["JmsStreamWriter"]


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
        from pyspark_jms.spark.worker import run_task  # heavy, and only tasks need it: see spark.reports

        task = _this_task(self._execution) if self._options.exactly_once else None
        return run_task(self._options, iterator, task)

    @short_traceback
    def commit(self, messages: list[Any], batchId: int) -> None:
        finish(self._options, f"batch {batchId}", messages)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """There is nothing to undo: the transaction of a failed task was never visible."""


def _this_task(execution: str) -> LedgerTask:
    context = TaskContext.get()
    names = ("sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id")
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
