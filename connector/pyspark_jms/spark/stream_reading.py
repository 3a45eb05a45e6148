"""What the stream readers of all releases share, and the reader without admission control (before Spark 4.2)."""

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.query import Query
from pyspark_jms.source.readers.reader_input import ReaderInput
from pyspark_jms.source.task_inputs import TaskInput, read_task
from pyspark_jms.spark.calls import freeze_gc, short_traceback, short_traceback_of_rows
from pyspark_jms.spark.protocols import query_of, reading_of

__all__ = ["JmsBasicStreamReader", "StreamReading"]

_log = logging.getLogger("pyspark_jms.source")


@dataclass(repr=False)
class _TaskPartition(InputPartition):
    task: TaskInput | ReaderInput

    def __repr__(self) -> str:
        return repr(self.task)


class StreamReading(DataSourceStreamReader):
    """What all releases share. The object in the streaming runner owns the query, those on executors have none."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._query: Query | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_query": None}

    def _running(self) -> Query:
        if self._query is None:
            self._query = query_of(reading_of(self._options))
        return self._query

    # --- in the runner -------------------------------------------------------------------------

    @short_traceback
    def initialOffset(self) -> dict[str, Any]:
        return self._running().initial_offset()

    @short_traceback
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_TaskPartition(task) for task in self._running().partitions(start, end)]

    @short_traceback
    def commit(self, end: dict[str, Any]) -> None:
        self._running().commit(end)

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    # --- on an executor ------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _TaskPartition)
        freeze_gc()
        reading = reading_of(self._options)
        if isinstance(partition.task, ReaderInput):
            from pyspark_jms.source.readers.task import read_reader  # imports AMQP

            return short_traceback_of_rows(read_reader(partition.task, reading))
        return short_traceback_of_rows(read_task(partition.task, reading))


class JmsBasicStreamReader(StreamReading):
    """The same guarantees as with later releases; ``latestOffset`` finds out which batch it follows.

    Spark plans a batch (``partitions``), writes the commit log when its tasks are done, and only then asks for the next
    offset. So the batch that was planned last is in the commit log whenever ``latestOffset`` is called. A query that
    starts from a checkpoint first plans ``(E, E)`` with the end E of its last batch, and then that batch again if it
    was not done. Only with a new checkpoint Spark asks for an offset before it plans anything.

    Trigger.AvailableNow and Trigger.Once run one batch (SPARK-45178) and then ask for no offset, and Spark does not
    report the trigger to the reader. Nothing would acknowledge the messages of that batch, and every run would read
    the same ones. So the first batch of a run is empty, unless a journal or a staging queue keeps its messages.
    """

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._first_is_empty = not options.batches_are_kept
        self._asked = 0
        self._answer: dict[str, Any] | None = None
        """What ``latestOffset`` returned last."""
        self._planned: dict[str, Any] | None = None
        """The end of the batch that Spark planned last."""
        self._planned_rows = False

    @short_traceback
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # later releases give arguments
        start = self.initialOffset() if self._planned is None else self._planned
        self._asked += 1
        if self._is_first_and_empty():  # Spark makes a batch only of an offset that differs from the last one
            self._answer = start | {"run": uuid.uuid4().hex[:8]}
        else:
            self._answer = self._running().latest_offset(start)
        return self._answer

    def _is_first_and_empty(self) -> bool:
        return self._asked == 1 and self._first_is_empty

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if self._planned is None and self._answer not in (None, end):
            raise UnsupportedError(
                "Spark asked for an offset before it gave the one of the checkpoint:"
                " spark.sql.streaming.triggerAvailableNowWrapper.enabled is on, and this Spark has no admission control"
                " for Python sources.",
                "Remove the setting, or use Spark 4.2 or newer.",
            )
        # The query does not see the empty batch, so that a wrong address is still an error at the first connection.
        found = [] if self._is_first_and_empty() and end == self._answer else super().partitions(start, end)
        self._planned, self._planned_rows = end, bool(found)
        return found

    def stop(self) -> None:
        if self._asked == 1 and self._planned == self._answer and not self._planned_rows:
            _log.warning(
                "! the run ended after its first batch, which is empty: before Spark 4.2, trigger(availableNow=True)"
                " and trigger(once=True) read nothing in such a run. Use start(), processAllAvailable() and stop(), or"
                " deliveryGuarantee=exactly-once"
            )
        super().stop()
