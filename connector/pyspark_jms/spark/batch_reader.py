"""``spark.read.format("jms")``: a peek at a queue (``source.peek``)."""

import logging
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sentences import counted
from pyspark_jms.source.unmatched import peek_or_tell
from pyspark_jms.spark.calls import freeze_gc, short_traceback_of_rows
from pyspark_jms.spark.protocols import reading_of

__all__ = ["JmsPeek"]

_log = logging.getLogger("pyspark_jms.source")


class _WholeRead(InputPartition):
    """One task: the bounds are of the whole read, and a connection sees a queue's messages in order."""


class JmsPeek(DataSourceReader):
    """At most ``maxMessagesPerTrigger`` messages and ``maxBytesPerTrigger`` bytes, or what came before a silence."""

    def __init__(self, options: SourceOptions) -> None:
        if options.destinations[0].kind is DestinationKind.TOPIC:
            raise UnsupportedError(
                "A topic keeps no messages for a batch read.",
                "Use spark.readStream, which stays subscribed.",
            )
        self._options = options

    def partitions(self) -> list[InputPartition]:
        return [_WholeRead(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002  # there is one
        """Runs again for every action on the DataFrame, and then shows the queue as it is then."""
        freeze_gc()
        return short_traceback_of_rows(self._rows())

    def _rows(self) -> Iterator[Any]:
        """The rows, and a line at their end."""
        rows = 0
        for batch in peek_or_tell(reading_of(self._options)):
            rows += batch.num_rows
            yield batch
        queues = ", ".join(self._options.queues)
        _log.warning("= the read has ended: %s of %s; nothing was removed", counted(rows, "row"), queues)
