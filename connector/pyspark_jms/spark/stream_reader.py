"""``DataSourceStreamReader``: Spark's calls → ``source.stream``.

The object in the streaming runner owns the engine. The copies for executors have only the options, and decode.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.engine import SourceEngine
from pyspark_jms.source.task_inputs import TaskInput, read_task
from pyspark_jms.spark.protocols import source_engine, source_protocol

__all__ = ["JmsStreamReader"]


@dataclass(repr=False)
class _TaskPartition(InputPartition):
    task: TaskInput

    def __repr__(self) -> str:
        return f"{len(self.task)} JMS messages"


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """At least once: a message is acknowledged when Spark's commit log holds its batch, and not before."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._source: SourceEngine | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_source": None}

    def _engine(self) -> SourceEngine:
        if self._source is None:
            self._source = source_engine(self._options)
        return self._source

    # --- in the runner -------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        return self._engine().initial_offset()

    def getDefaultReadLimit(self) -> ReadLimit:
        # Options maxBytesPerTrigger and maxMessagesPerTrigger apply in any case; Spark has no limit of two parts.
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self._engine().drain()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if isinstance(limit, ReadAllAvailable) and self._options.exactly_once:
            raise UnsupportedError(
                "Trigger.Once runs one batch, and the first batch of an exactly-once read is empty.",
                "Use trigger(availableNow=True).",
            )
        if isinstance(limit, ReadAllAvailable) and self._options.journal is None:
            raise UnsupportedError(
                "Trigger.Once does not report that its batch is done: without a journal nothing could be acknowledged.",
                "Use trigger(availableNow=True), or journalLocation.",
            )
        return self._engine().latest_offset(start)

    def reportLatestOffset(self) -> dict[str, Any]:
        return {} if self._source is None else self._source.progress()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_TaskPartition(task) for task in self._engine().partitions(start, end)]

    def commit(self, end: dict[str, Any]) -> None:
        self._engine().commit(end)

    def stop(self) -> None:
        if self._source is not None:
            self._source.stop()

    # --- on an executor ------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _TaskPartition)
        return read_task(partition.task, self._options, source_protocol(self._options))
