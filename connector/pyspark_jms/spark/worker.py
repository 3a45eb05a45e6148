"""Whether the rows that Spark gave a task were all of them."""

import inspect
from collections.abc import Iterator
from io import BufferedReader, BufferedRWPair

import pyarrow as pa
from pyspark import TaskContext

from pyspark_jms.errors import IllegalStateError, TransactionRolledBackError

__all__ = ["to_the_end"]


def to_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; behind the last, an error if it was not the last.

    When rows fail on the way to us (an expression, a shuffle that is gone), Spark fails the task and closes our
    input. pyarrow takes the end of a stream for its proper end: without this, a part of the rows were committed.
    A task whose input cannot be found is refused before its first row, for nobody could tell whether it was complete.
    """
    given = _input()
    if given is None and TaskContext.get() is not None:
        raise IllegalStateError(
            "The Python worker of this Spark does not show where it reads the rows of a task from, so the sink cannot"
            " tell a complete task from one that was cut off.",
            "Nothing was sent. Use a PySpark version that docs/deployment.md names, and report this with yours.",
        )
    yield from batches
    # Behind a proper end Spark says at once that it has no more; peek waits for that, and leaves it where it is.
    if given is not None and not given.peek(1):
        raise TransactionRolledBackError(
            "Spark ended the rows of this task before the last one.", "The cause is the error that Spark reported."
        )


def _input() -> BufferedReader | BufferedRWPair | None:
    """Where ``pyspark.worker.main``, which called us, reads from; None outside of a worker."""
    frame = inspect.currentframe()
    while frame is not None:
        found = frame.f_locals.get("infile") if frame.f_code.co_name == "main" else None
        if isinstance(found, BufferedReader | BufferedRWPair):
            return found
        frame = frame.f_back
    return None
