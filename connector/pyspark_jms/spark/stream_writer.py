"""``DataSourceStreamArrowWriter``: the rows of a task → one STOMP transaction, committed with a receipt."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_jms.columns.encode import SendDefaults, check_columns, encode
from pyspark_jms.link.producer import Producer
from pyspark_jms.options import SinkOptions

__all__ = ["JmsStreamWriter"]


@dataclass
class _Sent(WriterCommitMessage):
    rows: int


class JmsStreamWriter(DataSourceStreamArrowWriter):
    """At least once: a task that failed or was repeated may send its rows again, one that succeeded sent all."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send every row or none. Nothing is connected for a task without rows."""
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return _Sent(0)
        check_columns(first.schema)
        with Producer(self._options.connection) as producer:
            rows = self._send(producer, first, 0)
            for batch in batches:
                rows += self._send(producer, batch, rows)
            producer.commit()
        return _Sent(rows)

    def _send(self, producer: Producer, batch: pa.RecordBatch, first_row: int) -> int:
        for buffer in encode(
            batch,
            dialect=producer.dialect,
            defaults=self._defaults(),
            transaction=producer.transaction,
            now_ms=int(time.time() * 1000),
            first_row=first_row,
            max_frame_bytes=self._options.connection.max_message_bytes,
        ):
            producer.send(buffer)
        return int(batch.num_rows)

    def _defaults(self) -> SendDefaults:
        return SendDefaults(
            destination=self._options.destination,
            delivery_mode=self._options.delivery_mode,
            priority=self._options.priority,
            time_to_live_ms=self._options.time_to_live_ms,
            delivery_delay_ms=self._options.delivery_delay_ms,
        )

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Nothing is left to do: each task committed its own transaction."""

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Nothing can be taken back; a failed task's transaction was never visible."""
