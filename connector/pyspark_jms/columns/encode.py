"""A RecordBatch of the sink's rows in, whole SEND frames out, end to end in a few buffers.

Knows columns and the dialect; refuses to know connections, transactions and what the broker answers.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.encode_body import body_of
from pyspark_jms.columns.encode_columns import Rows, check_columns, row_bytes, sink_columns
from pyspark_jms.columns.encode_headers import SendDefaults, destination_lines, header_lines
from pyspark_jms.columns.encode_octets import Int64s, join_rows, offsets_of
from pyspark_jms.columns.encode_properties import property_lines
from pyspark_jms.dialect.base import Dialect
from pyspark_jms.errors import MessageTooLargeError

__all__ = ["BUFFER_BYTES", "SendDefaults", "check_columns", "encode"]

BUFFER_BYTES = 16 << 20
"""About what one buffer holds: rows are taken until their octets reach it. A buffer of its own is the least
for a larger row, and two bytes for each of its header's are the most: see MAX_FRAME_BYTES."""

MAX_FRAME_BYTES = (1 << 30) - (1 << 20)
"""The largest frame whatever the caller allows: Arrow's binary arrays have 31-bit offsets, and the escapes of
STOMP 1.2 may double a header."""

_FIXED_BYTES = 512
"""What a frame has beside its columns' octets, roughly: names, numbers, the destination's type."""


def encode(
    batch: pa.RecordBatch,
    *,
    dialect: Dialect,
    defaults: SendDefaults,
    transaction: str | None,
    now_ms: int,
    first_row: int = 0,
    max_frame_bytes: int,
) -> list[memoryview]:
    """One SEND frame a row, in order. A row that cannot be sent raises before anything is returned.

    ``first_row`` is the batch's place in the task, for the errors; ``now_ms`` is what a time to live counts from.
    """
    columns = sink_columns(batch)
    limit = min(max_frame_bytes, MAX_FRAME_BYTES)
    sizes = _sizes(columns, batch.num_rows)
    _check_sizes(sizes, first_row, limit, "at least ")
    buffers = []
    for start, stop in _cuts(sizes):
        part = {name: array.slice(start, stop - start) for name, array in columns.items()}
        rows = Rows(columns=part, first=first_row + start, count=stop - start)
        frames = _frames(rows, dialect, defaults, transaction, now_ms)
        offsets = offsets_of(frames)
        _check_sizes(np.diff(offsets), rows.first, limit)
        buffers.append(memoryview(frames.buffers()[2])[offsets[0] : offsets[-1]])
    return buffers


def _frames(rows: Rows, dialect: Dialect, defaults: SendDefaults, transaction: str | None, now_ms: int) -> pa.Array:
    length_line, body = body_of(rows)
    return join_rows(
        [
            b"SEND\n",
            destination_lines(rows, dialect, defaults.destination),
            length_line,
            *header_lines(rows, dialect, defaults, transaction, now_ms),
            property_lines(rows, dialect),
            b"\n",
            body,
            b"\0",
        ],
        nulls="replace",
    )


def _sizes(columns: dict[str, pa.Array], count: int) -> Int64s:
    """A lower bound of each frame's size: its columns' octets, unescaped."""
    return sum(row_bytes(columns), start=np.zeros(count, np.int64))


def _cuts(sizes: Int64s) -> list[tuple[int, int]]:
    """Ranges of rows of about ``BUFFER_BYTES``, at least one row each."""
    ends = np.cumsum(sizes + _FIXED_BYTES)
    cuts = [0]
    while cuts[-1] < len(sizes):
        done = ends[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(max(int(np.searchsorted(ends, done + BUFFER_BYTES, side="right")), cuts[-1] + 1))
    return list(pairwise(cuts))


def _check_sizes(sizes: Int64s, first_row: int, limit: int, how: str = "") -> None:
    too_large = sizes > limit
    if too_large.any():
        index = int(too_large.argmax())
        raise MessageTooLargeError(
            f"Row {first_row + index} of the task makes a frame of {how}{sizes[index]} octets; the limit is {limit}.",
            "Send a smaller body, or split it into several rows.",
        )
