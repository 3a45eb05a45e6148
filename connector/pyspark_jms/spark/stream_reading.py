"""What the stream readers of all releases share: the engine in the runner, and the decoding on executors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.reader_input import ReaderInput
from pyspark_jms.source.task_inputs import TaskInput, read_task
from pyspark_jms.spark.protocols import SourceEngine, source_engine, source_protocol
from pyspark_jms.spark.short_tracebacks import short_traceback, short_traceback_of_rows

__all__ = ["StreamReading"]


@dataclass(repr=False)
class _TaskPartition(InputPartition):
    task: TaskInput | ReaderInput

    def __repr__(self) -> str:
        return repr(self.task)


class StreamReading(DataSourceStreamReader):
    """The object in the streaming runner owns the engine. The copies for executors have only the options."""

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

    @short_traceback
    def initialOffset(self) -> dict[str, Any]:
        return self._engine().initial_offset()

    @short_traceback
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_TaskPartition(task) for task in self._engine().partitions(start, end)]

    @short_traceback
    def commit(self, end: dict[str, Any]) -> None:
        self._engine().commit(end)

    def stop(self) -> None:
        if self._source is not None:
            self._source.stop()

    # --- on an executor ------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _TaskPartition)
        protocol = source_protocol(self._options)
        if isinstance(partition.task, ReaderInput):
            from pyspark_jms.source.readers.task import read_reader  # imports AMQP

            return short_traceback_of_rows(read_reader(partition.task, self._options, protocol))
        return short_traceback_of_rows(read_task(partition.task, self._options, protocol))
