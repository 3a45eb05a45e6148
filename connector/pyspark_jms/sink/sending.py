"""The rows of one task → messages at the broker, at least once, if they would arrive. Knows no ``TaskContext``."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.arrays import Int64s
from pyspark_jms.columns.row_parts import BadRows, good_rows, sink_columns
from pyspark_jms.columns.rows import Rows, distinct_destinations
from pyspark_jms.errors import InvalidDestinationError, JMSError
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.sink import SinkOptions, check_schema
from pyspark_jms.sink.links import ConnectSink, SinkLink
from pyspark_jms.sink.tasks import Sent

__all__ = ["RowEncoder", "nonempty_batches", "send_at_least_once"]

_log = logging.getLogger("pyspark_jms.spark")

_MAX_UNCONFIRMED_ROWS = 500
"""Rows that wait for their confirmations at a time. A broker that does not read while it writes must never have to wait
until there is room for its answers."""

_MAX_LOGGED_FAULTS = 5
"""Kinds of faults that the log of a task names."""


def nonempty_batches(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch] | None:
    """Return the batches that have rows, after a check of their columns, or None if there are no rows, and so no
    connection.
    """
    nonempty = (batch for batch in batches if batch.num_rows)
    first = next(nonempty, None)
    if first is None:
        return None
    check_schema(options, first.schema)
    return _chained(first, nonempty)


def _chained(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


class RowEncoder:
    """The batches of a task → blocks of messages. Counts the rows: ``rows`` were encoded, ``dropped`` were left out."""

    def __init__(self, options: SinkOptions, link: SinkLink) -> None:
        self.rows = 0
        self.dropped = 0
        self._drop = options.drop_bad_rows
        self._faults: list[BadRows] = []
        self._targets = Targets(options, link)
        self._encode = partial(link.encode, destination=options.destination, property_columns=options.property_columns)

    def sendable(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows to send: all of them, or with ``onBadRow=drop`` those that can be sent."""
        for batch in batches:
            left = self._without_bad(batch) if self._drop else batch
            if left.num_rows:
                self._targets.require(left, self.next_row)
                yield left

    def _without_bad(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        now_ms = _now_ms()

        def encode(part: pa.RecordBatch, numbers: Int64s) -> None:
            self._targets.require(part, self.next_row, numbers)
            self._encode(part, numbers=numbers, now_ms=now_ms)

        left, bad = good_rows(batch, self.next_row, encode)
        self.dropped += batch.num_rows - left.num_rows
        self._faults += bad[: _MAX_LOGGED_FAULTS - len(self._faults)]
        return left

    def take(self, batch: pa.RecordBatch, *, in_transaction: bool = True) -> Sequence[MessageBlock]:
        """The blocks of the task's next rows."""
        first_row = self.next_row
        try:
            blocks = self._encode(batch, now_ms=_now_ms(), first_row=first_row, in_transaction=in_transaction)
        except JMSError as error:
            raise error from None  # its cause lists all rows with the fault, which only ``good_rows`` needs
        self.rows += batch.num_rows
        return blocks

    def at_the_epoch(self, batch: pa.RecordBatch) -> Sequence[MessageBlock]:
        """The blocks of the same rows as if it were 1970: they do not depend on the clock. Counts no row."""
        try:
            return self._encode(batch, now_ms=0, first_row=self.next_row)
        except JMSError as error:
            raise error from None

    @property
    def next_row(self) -> int:
        """The number in the task of the row to be encoded next."""
        return self.rows + self.dropped

    def sent(self) -> Sent:
        """The counts after the last row. Logs what was dropped."""
        if self.dropped:
            faults = " ".join(f"{bad.count} x {bad.first.fact}" for bad in self._faults)
            _log.warning("= %d of %d rows were dropped: %s", self.dropped, self.rows + self.dropped, faults)
        return Sent(self.rows, self.dropped)


def _now_ms() -> int:
    return int(time.time() * 1000)


def send_at_least_once(
    connect: ConnectSink, options: SinkOptions, batches: Iterator[pa.RecordBatch], *, patience: float = 0.0
) -> Sent:
    """Return how many rows were sent and confirmed. Raise if the broker has not confirmed all of them.

    ``patience``: for how many seconds to retry the connection. A later failure is not retried here.
    """
    rows = nonempty_batches(options, batches)
    if rows is None:
        return Sent(0)
    with closing(connect(options.connection, patience)) as link:
        encoder = RowEncoder(options, link)
        _send_all(link, encoder, encoder.sendable(rows), _transaction_of(options, link))
        link.commit()
    return encoder.sent()


def _transaction_of(options: SinkOptions, link: SinkLink) -> str | int:
    """Option ``transaction`` on the broker that answered: not ``auto``."""
    if options.transaction == "auto":
        return "task" if link.dialect.has_transactions else "none"
    return options.transaction


def _send_all(link: SinkLink, encoder: RowEncoder, rows: Iterator[pa.RecordBatch], transaction: str | int) -> None:
    if transaction == "none" and link.dialect.confirms_single_messages:
        _send_confirming_each(link, encoder, rows)
    elif transaction == "none":
        _send_confirming_last(link, encoder, rows)
    elif transaction == "task":
        for batch in rows:
            _send(link, encoder, batch)
    else:
        _send_in_parts(link, encoder, rows, int(transaction))


def _send_confirming_each(link: SinkLink, encoder: RowEncoder, rows: Iterator[pa.RecordBatch]) -> None:
    """No transaction, and a confirmation for each row. A few hundred rows wait for theirs at a time."""
    for batch in rows:
        for start in range(0, batch.num_rows, _MAX_UNCONFIRMED_ROWS):
            part = batch.slice(start, _MAX_UNCONFIRMED_ROWS)
            for block in encoder.take(part, in_transaction=False):
                link.send(block, in_transaction=False)
            link.commit()


def _send(link: SinkLink, encoder: RowEncoder, batch: pa.RecordBatch) -> None:
    for block in encoder.take(batch):
        link.send(block)


def _send_in_parts(link: SinkLink, encoder: RowEncoder, rows: Iterator[pa.RecordBatch], size: int) -> None:
    """A transaction for every ``size`` rows. The caller commits the last one."""
    left = size
    for batch in rows:
        start = 0
        while start < batch.num_rows:
            if not left:
                link.commit()
                left = size
            part = batch.slice(start, left)
            _send(link, encoder, part)
            start, left = start + part.num_rows, left - part.num_rows


def _send_confirming_last(link: SinkLink, encoder: RowEncoder, rows: Iterator[pa.RecordBatch]) -> None:
    """No transaction, except for the last row: its commit, which the caller does, confirms all rows before it too."""
    last = None
    for batch in rows:
        for part in (last, batch.slice(0, batch.num_rows - 1)):
            if part is not None and part.num_rows:
                for block in encoder.take(part, in_transaction=False):
                    link.send(block, in_transaction=False)
        last = batch.slice(batch.num_rows - 1)
    if last is not None:
        _send(link, encoder, last)


# --- destinations at which nothing would arrive ---------------------------------------------------

_MOST_ASKED = 100
"""New destinations of a batch that are asked for: rows may name as many as there are rows."""

_MOST_REMEMBERED = 10_000
_asked: set[tuple[ConnectionSettings, Destination]] = set()
"""Destinations that this process need not ask for again: Spark runs many tasks in a Python worker."""


class Targets:
    def __init__(self, options: SinkOptions, link: SinkLink) -> None:
        self._options, self._link = options, link
        self._refused: dict[Destination, InvalidDestinationError] = {}

    def require(self, batch: pa.RecordBatch, first_row: int, numbers: Int64s | None = None) -> None:
        """Raise for rows that would not arrive. If they name the destination themselves, they are the error's cause.

        Nothing is known without the permission ``manage``.
        """
        column = sink_columns(batch, self._options.property_columns).get("destination")
        columns = {} if column is None else {"destination": column}
        rows = Rows(columns=columns, first=first_row, count=batch.num_rows, numbers=numbers)
        default = self._options.destination
        found = distinct_destinations(rows, default, lambda destination, _: destination).distinct
        self._ask([each for each in found if not each.temporary])
        if self._refused:
            distinct_destinations(rows, default, self._usable)

    def _usable(self, destination: Destination, _: bool) -> None:  # noqa: FBT001
        if destination in self._refused:
            raise self._refused[destination]

    def _ask(self, destinations: Sequence[Destination]) -> None:
        settings = self._options.connection
        new = [each for each in destinations if (settings, each) not in _asked][:_MOST_ASKED]
        if not new:
            return
        try:
            self._link.require_destinations(new)
        except InvalidDestinationError:
            self._refused |= {each: error for each in new if (error := self._error_of(each)) is not None}
        if len(_asked) > _MOST_REMEMBERED:
            _asked.clear()
        _asked.update((settings, each) for each in new if each not in self._refused)

    def _error_of(self, destination: Destination) -> InvalidDestinationError | None:
        try:
            self._link.require_destinations([destination])
        except InvalidDestinationError as error:
            return error
        return None
