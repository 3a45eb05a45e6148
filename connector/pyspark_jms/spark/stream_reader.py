"""``DataSourceStreamReader`` with admission control (Spark 4.2 and newer): Spark's calls → ``source.query``."""

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.spark.calls import short_traceback
from pyspark_jms.spark.stream_reading import StreamReading

__all__ = ["JmsStreamReader"]


class JmsStreamReader(StreamReading, SupportsTriggerAvailableNow):
    """At least once: a message is acknowledged when Spark's commit log holds its batch, and not before."""

    def getDefaultReadLimit(self) -> ReadLimit:
        # Options maxBytesPerTrigger and maxMessagesPerTrigger apply in any case; Spark has no limit of two parts.
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self._running().drain()

    @short_traceback
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if isinstance(limit, ReadAllAvailable) and not self._options.batches_are_kept:
            raise UnsupportedError(
                "Trigger.Once does not report that its batch is done, so an at-least-once read could acknowledge"
                " nothing.",
                "Use trigger(availableNow=True), or deliveryGuarantee=exactly-once.",
            )
        return self._running().latest_offset(start)

    def reportLatestOffset(self) -> dict[str, Any]:
        return {} if self._query is None else self._query.progress()
