"""``DataSourceArrowWriter``: ``df.write``. Spark's calls → ``sink.writing``."""

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyspark_jms.errors import IllegalStateError, OptionConflictError, UnsupportedError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import LedgerTask, require_identity
from pyspark_jms.spark.reports import finish
from pyspark_jms.spark.short_tracebacks import short_traceback

__all__ = ["JmsBatchWriter"]


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
        from pyspark_jms.spark.worker import run_task  # heavy, and only tasks need it: see spark.reports

        task = _this_task(self._options.write_id, self._execution) if self._options.exactly_once else None
        return run_task(self._options, iterator, task)

    @short_traceback
    def commit(self, messages: list[Any]) -> None:
        finish(self._options, "this write", messages)

    def abort(self, messages: list[Any]) -> None:
        """There is nothing to undo: a task that succeeded has committed its rows, a task that failed has not."""


def _this_task(write_id: str | None, execution: str) -> LedgerTask:
    context = TaskContext.get()
    if context is None or write_id is None:
        raise IllegalStateError("A batch write runs outside of a Spark task.", "Report this with Spark's version.")
    query, batch = map(context.getLocalProperty, ("sql.streaming.queryId", "streaming.sql.batchId"))
    identity = require_identity(write_id, query, batch)
    return LedgerTask(
        owner=identity.owner,
        write=write_id,
        partition=context.partitionId(),
        batch=identity.batch,
        execution=execution,
        may_be_repeated=True,
    )
