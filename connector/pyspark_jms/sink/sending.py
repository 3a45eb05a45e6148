"""The rows of one task → messages at the broker, at least once. Knows no ``TaskContext``."""

import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.good_rows import BadRows, good_rows
from pyspark_jms.errors import InvalidDestinationError, JMSError
from pyspark_jms.options.parsing import SinkOptions
from pyspark_jms.stomp.columns.encode import SendDefaults, check_columns, encode, receipt_of
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.dialects.refusals import require_transactions
from pyspark_jms.stomp.link.producer import Producer

__all__ = ["RowFrames", "Sent", "check_schema", "say_dropped", "send_at_least_once", "with_rows"]

_log = logging.getLogger("pyspark_jms.spark")

_UNDER_WAY = 500
"""Rows that wait for their receipts at a time: a broker that stops reading while it writes must never have to wait for
room for its answers."""

_SHOWN_FAULTS = 5
"""Kinds of faults that a task's log names."""


class Sent(NamedTuple):
    """What became of the rows of a task."""

    rows: int
    dropped: int = 0


def check_schema(options: SinkOptions, schema: pa.Schema) -> None:
    """Raise what is wrong with the columns, whatever the rows hold."""
    check_columns(schema, options.property_columns)
    if options.destination is None and "destination" not in {name.lower() for name in schema.names}:
        raise InvalidDestinationError(
            "The rows have no column destination, and there is no default.",
            "Set option queue or topic, or give each row a destination.",
        )


def with_rows(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch] | None:
    """The batches that have rows, their columns checked; None when there is none, and nothing to connect for."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return None
    check_schema(options, first.schema)
    return _chained(first, filled)


def _chained(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def say_dropped(write: str, tasks: Sequence[Sent]) -> None:
    """On the driver, what ``onBadRow=drop`` cost a whole write; each task's log has the reasons."""
    dropped = sum(task.dropped for task in tasks)
    if dropped:
        rows = dropped + sum(task.rows for task in tasks)
        _log.warning("= %s: %d of %d rows were dropped (onBadRow=drop)", write, dropped, rows)


class RowFrames:
    """The batches of a task → SEND frames; ``rows`` is how many there were so far, ``dropped`` how many rows not."""

    def __init__(self, options: SinkOptions, dialect: Dialect) -> None:
        self.rows = 0
        self.dropped = 0
        self.defaults = SendDefaults(
            destination=options.destination,
            delivery_mode=options.delivery_mode,
            priority=options.priority,
            time_to_live_ms=options.time_to_live_ms,
            delivery_delay_ms=options.delivery_delay_ms,
        )
        self._drop = options.drop_bad_rows
        self._faults: list[BadRows] = []
        self._encode = partial(
            encode,
            dialect=dialect,
            defaults=self.defaults,
            max_frame_bytes=options.connection.max_message_bytes,
            property_columns=options.property_columns,
        )

    def good(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows to be sent: all of them, or with ``onBadRow=drop`` those that can be."""
        for batch in batches:
            left = self._without_bad(batch) if self._drop else batch
            if left.num_rows:
                yield left

    def _without_bad(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        now_ms = int(time.time() * 1000)
        left, bad = good_rows(
            batch,
            self.next_row,
            lambda part, numbers: self._encode(part, transaction=Producer.transaction, now_ms=now_ms, numbers=numbers),
        )
        self.dropped += batch.num_rows - left.num_rows
        self._faults += bad[: _SHOWN_FAULTS - len(self._faults)]
        return left

    def take(self, batch: pa.RecordBatch, transaction: str | None, *, receipts: bool = False) -> list[MessageBlock]:
        """The frames of the task's next rows."""
        frames = self.encoded(batch, transaction, int(time.time() * 1000), receipts=receipts)
        self.rows += batch.num_rows
        return frames

    @property
    def next_row(self) -> int:
        """The place in the task of the row to be taken next."""
        return self.rows + self.dropped

    def encoded(
        self, batch: pa.RecordBatch, transaction: str | None, now_ms: int, *, receipts: bool = False
    ) -> list[MessageBlock]:
        first_row = self.next_row
        try:
            return self._encode(batch, transaction=transaction, now_ms=now_ms, first_row=first_row, receipts=receipts)
        except JMSError as error:
            raise error from None  # which other rows have the fault is of no interest here

    def sent(self) -> Sent:
        """After the last row; says in the log what was dropped."""
        if self.dropped:
            faults = " ".join(f"{bad.count} x {bad.first.fact}" for bad in self._faults)
            _log.warning("= %d of %d rows were dropped: %s", self.dropped, self.rows + self.dropped, faults)
        return Sent(self.rows, self.dropped)


def send_at_least_once(options: SinkOptions, batches: Iterator[pa.RecordBatch], *, patience: float = 0.0) -> Sent:
    """Returns how many rows were sent and confirmed; raises when the broker has not confirmed them all.

    ``patience``: how many seconds to try to connect. What fails later is not tried again here.
    """
    rows = with_rows(options, batches)
    if rows is None:
        return Sent(0)
    with Producer(options.connection, patience=patience) as producer:
        frames = RowFrames(options, producer.dialect)
        if options.transaction != "none":
            require_transactions(producer.dialect)
        if options.transaction == "none" and producer.dialect.send_receipts:
            _send_each(producer, frames, frames.good(rows))
        elif options.transaction == "none":
            _send_untied(producer, frames, frames.good(rows))
        elif options.transaction == "task":
            for batch in frames.good(rows):
                _send(producer, frames, batch)
        else:
            _send_in_parts(producer, frames, frames.good(rows), int(options.transaction))
        producer.commit()
    return frames.sent()


def _send_each(producer: Producer, frames: RowFrames, rows: Iterator[pa.RecordBatch]) -> None:
    """No transaction, and a receipt for each row, a few of them under way at a time."""
    for batch in rows:
        for start in range(0, batch.num_rows, _UNDER_WAY):
            part = batch.slice(start, _UNDER_WAY)
            first = frames.next_row
            for block in frames.take(part, None, receipts=True):
                producer.send_at_once(block.data)
            producer.await_each(receipt_of(first + index) for index in range(part.num_rows))


def _send(producer: Producer, frames: RowFrames, batch: pa.RecordBatch) -> None:
    for block in frames.take(batch, producer.transaction):
        producer.send(block.data)


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
                for block in frames.take(part, None):
                    producer.send_at_once(block.data)
        last = batch.slice(batch.num_rows - 1)
    if last is not None:
        _send(producer, frames, last)
