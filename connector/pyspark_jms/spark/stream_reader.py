"""``DataSourceStreamReader`` with admission control (Spark 4.2 and newer): Spark's calls → ``source.stream``."""

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.spark.short_tracebacks import short_traceback
from pyspark_jms.spark.stream_reading import StreamReading

__all__ = ["JmsStreamReader"]


class JmsStreamReader(StreamReading, SupportsTriggerAvailableNow):
    """At least once: a message is acknowledged when Spark's commit log holds its batch, and not before."""

    def getDefaultReadLimit(self) -> ReadLimit:
        # Options maxBytesPerTrigger and maxMessagesPerTrigger apply in any case; Spark has no limit of two parts.
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self._engine().drain()

    @short_traceback
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        is_kept = self._options.readers is not None or self._options.stream_offset is not None
        if isinstance(limit, ReadAllAvailable) and is_kept:
            return self._engine().latest_offset(start)  # one batch, which is done when its tasks are
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
