"""The rows of one task → messages at the broker, at least once. Knows no ``TaskContext``."""

import time
from collections.abc import Iterator

import pyarrow as pa

from pyspark_jms.columns.encode import SendDefaults, check_columns, encode
from pyspark_jms.dialect import Dialect
from pyspark_jms.link.producer import Producer
from pyspark_jms.options import SinkOptions

__all__ = ["RowFrames", "send_at_least_once", "with_rows"]


def with_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch] | None:
    """The batches that have rows, their columns checked; None when there is none, and nothing to connect for."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return None
    check_columns(first.schema)
    return _chained(first, filled)


def _chained(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


class RowFrames:
    """The batches of a task → SEND frames; ``rows`` is how many there were so far."""

    def __init__(self, options: SinkOptions, dialect: Dialect) -> None:
        self.rows = 0
        self.defaults = SendDefaults(
            destination=options.destination,
            delivery_mode=options.delivery_mode,
            priority=options.priority,
            time_to_live_ms=options.time_to_live_ms,
            delivery_delay_ms=options.delivery_delay_ms,
        )
        self._dialect = dialect
        self._max_frame_bytes = options.connection.max_message_bytes

    def take(self, batch: pa.RecordBatch, transaction: str | None) -> list[memoryview]:
        """The frames of the task's next rows."""
        frames = self.encoded(batch, transaction, int(time.time() * 1000))
        self.rows += batch.num_rows
        return frames

    def encoded(self, batch: pa.RecordBatch, transaction: str | None, now_ms: int) -> list[memoryview]:
        return encode(
            batch,
            dialect=self._dialect,
            defaults=self.defaults,
            transaction=transaction,
            now_ms=now_ms,
            first_row=self.rows,
            max_frame_bytes=self._max_frame_bytes,
        )


def send_at_least_once(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> int:
    """Returns how many rows were sent and confirmed; raises when the broker has not confirmed them all."""
    rows = with_rows(batches)
    if rows is None:
        return 0
    with Producer(options.connection) as producer:
        frames = RowFrames(options, producer.dialect)
        if options.transaction == "none":
            _send_untied(producer, frames, rows)
        elif options.transaction == "task":
            for batch in rows:
                _send(producer, frames, batch)
        else:
            _send_in_parts(producer, frames, rows, int(options.transaction))
        producer.commit()
    return frames.rows


def _send(producer: Producer, frames: RowFrames, batch: pa.RecordBatch) -> None:
    for buffer in frames.take(batch, producer.transaction):
        producer.send(buffer)


def _send_in_parts(producer: Producer, frames: RowFrames, rows: Iterator[pa.RecordBatch], size: int) -> None:
    """One transaction per ``size`` rows; the last one is left to the caller."""
    left = size
    for batch in rows:
        start = 0
        while start < batch.num_rows:
            if not left:
                producer.commit()
                left = size
            part = batch.slice(start, left)
            _send(producer, frames, part)
            start, left = start + part.num_rows, left - part.num_rows


def _send_untied(producer: Producer, frames: RowFrames, rows: Iterator[pa.RecordBatch]) -> None:
    """No transaction, but for the last row: the confirmation of its COMMIT is that of all rows before it."""
    last = None
    for batch in rows:
        for part in (last, batch.slice(0, batch.num_rows - 1)):
            if part is not None and part.num_rows:
                for buffer in frames.take(part, None):
                    producer.send_at_once(buffer)
        last = batch.slice(batch.num_rows - 1)
    assert last is not None
    _send(producer, frames, last)
