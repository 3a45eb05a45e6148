"""A task of the sink in Spark's Python worker: the rows Spark gives it, checked to be all, and its report."""

import inspect
from collections.abc import Iterator
from io import BufferedReader, BufferedRWPair

import pyarrow as pa
from pyspark import TaskContext

from pyspark_jms.errors import IllegalStateError, TransactionRolledBackError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.sink.tasks import LedgerTask, TaskResult
from pyspark_jms.spark.calls import freeze_gc
from pyspark_jms.spark.protocols import connect_sink

__all__ = ["run_task"]


def run_task(options: SinkOptions, batches: Iterator[pa.RecordBatch], task: LedgerTask | None) -> TaskResult:
    """Send every row or, unless option ``transaction`` allows otherwise, none. ``task``: for exactly-once writes."""
    freeze_gc()
    rows, patience = require_all_rows(batches), task_patience(options)
    if task is None:
        connect = connect_sink(options)
        return TaskResult(send_at_least_once(connect, options, rows, patience=patience))
    from pyspark_jms.amqp.sink import CommitLedger  # over STOMP the options refuse such writes
    from pyspark_jms.sink.sending_once import send_exactly_once

    ledger = CommitLedger(options.connection, task.owner)
    outcome = send_exactly_once(ledger, options, task, rows, patience=patience)
    return TaskResult(outcome.sent, outcome)


def require_all_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches. After the last one, raise if Spark ended the input early.

    When rows fail before they reach the sink (an expression, a lost shuffle), Spark fails the task and closes its
    input. pyarrow takes the end of the input for the end of the rows: without this check, the sink would commit a part
    of them. If the input of the task cannot be found, the check is impossible: raise before the first row.
    """
    given = _find_input()
    if given is None and TaskContext.get() is not None:
        raise IllegalStateError(
            "The Python worker of this Spark does not show where it reads the rows of a task from, so the sink cannot"
            " distinguish a complete task from one that was cut off.",
            "Nothing was sent. Use a PySpark version that docs/deployment.md names, and report this with yours.",
        )
    yield from batches
    # After the last row, Spark writes a marker at once. peek waits for it and leaves it in the input.
    if given is not None and not given.peek(1):
        raise TransactionRolledBackError(
            "Spark ended the rows of this task before the last one.", "The cause is the error that Spark reported."
        )


def _find_input() -> BufferedReader | BufferedRWPair | None:
    """Return what ``pyspark.worker.main``, which called us, reads from, or None outside of a worker."""
    frame = inspect.currentframe()
    while frame is not None:
        found = frame.f_locals.get("infile") if frame.f_code.co_name == "main" else None
        if isinstance(found, BufferedReader | BufferedRWPair):
            return found
        frame = frame.f_back
    return None


def task_patience(options: SinkOptions) -> float:
    """Seconds: ``reconnectTimeout`` in a running query, 0 in its first batch and in a ``df.write``.

    So a new query with a wrong address fails at once. Tasks inside ``foreachBatch`` belong to their query.
    """
    context = TaskContext.get()
    batch = context.getLocalProperty("streaming.sql.batchId") if context else None
    return options.connection.reconnect_timeout if int(batch or 0) > 0 else 0.0
