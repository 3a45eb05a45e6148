"""The least that a source in Python costs a query: numbers that are due at a constant rate, nothing to acknowledge."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

__all__ = ["ToySource"]

_POLL_SECONDS, _IDLE_SECONDS = 0.001, 0.5


class _ToyReader(DataSourceStreamReader):
    """Number ``n`` is due ``n / perSecond`` seconds after ``began``. The end of a batch is known when one is due."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._began, self._per_second = float(options["began"]), float(options["persecond"])
        self._numbers = int(options["numbers"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"seq": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        until = time.monotonic() + _IDLE_SECONDS
        while (due := self._due()) <= start["seq"] and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        return {"seq": max(due, start["seq"])}

    def _due(self) -> int:
        return max(0, min(self._numbers, int((time.time() - self._began) * self._per_second) + 1))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["seq"], end["seq"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"number": pa.array(range(*partition.value), pa.int64())})


class ToySource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "toy"

    def schema(self) -> str:
        return "number bigint"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return _ToyReader(self.options)
