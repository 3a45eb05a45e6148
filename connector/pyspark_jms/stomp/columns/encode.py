"""A RecordBatch of the sink's rows in, whole SEND frames out, in a few blocks.

Does not know connections, transactions and the broker's answers.
"""

from collections.abc import Sequence

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.row_parts import block_of, parts_of
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_properties import properties_of, typed_columns
from pyspark_jms.columns.strings import Int64s, Piece, join_rows
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.encode_body import body_of
from pyspark_jms.stomp.columns.encode_headers import check_stable, destination_lines, header_line, header_lines
from pyspark_jms.stomp.columns.encode_properties import column_lines, property_lines, types_line
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["BUFFER_BYTES", "encode", "receipt_of"]

BUFFER_BYTES = 16 << 20
"""The size to which a block is filled; a larger row gets a block of its own. At this size the fixed cost of a block,
half a millisecond, is negligible."""

MAX_FRAME_BYTES = (1 << 30) - (1 << 20)
"""The largest row, whatever the caller allows: Arrow's binary arrays have 31-bit offsets, and the escapes of STOMP 1.2
may double a header. (Artemis 2.44 with 1 GB of heap failed at 250 MB.)"""


def encode(
    batch: pa.RecordBatch,
    *,
    dialect: Dialect,
    destination: Destination | None,
    transaction: str | None,
    now_ms: int,
    first_row: int = 0,
    numbers: Int64s | None = None,
    max_frame_bytes: int,
    property_columns: Sequence[str] = (),
    receipts: bool = False,
) -> list[MessageBlock]:
    """One SEND frame a row, in order, each ending in its NUL; the blocks have no heads and no ids.

    A row that cannot be sent raises before anything is returned.
    ``destination`` is that of rows without one; ``first_row`` is the batch's place in the task, for the errors, or
    ``numbers`` each row's, when they do not follow each other; ``now_ms`` is what a time to live counts from;
    ``property_columns`` are sent as typed properties; with ``receipts`` each frame requests ``receipt_of`` its number.
    """
    limit = min(max_frame_bytes, MAX_FRAME_BYTES)
    blocks = []
    for rows in parts_of(
        batch,
        property_columns=property_columns,
        first_row=first_row,
        numbers=numbers,
        part_bytes=BUFFER_BYTES,
        max_row_bytes=MAX_FRAME_BYTES,
    ):
        if dialect.unstable_characters:
            check_stable(rows)
        frames = _frames(rows, dialect, destination, transaction, now_ms, receipts=receipts)
        blocks.append(block_of(rows, frames, limit))
    return blocks


def receipt_of(number: int) -> str:
    """The receipt that the SEND of a task's row requests."""
    return f"s{number}"


def _receipt_line(rows: Rows) -> list[Piece]:
    return header_line("receipt", pa.array([receipt_of(rows.first + index).encode() for index in range(rows.count)]))


def _frames(
    rows: Rows,
    dialect: Dialect,
    destination: Destination | None,
    transaction: str | None,
    now_ms: int,
    *,
    receipts: bool,
) -> pa.Array:
    body_lines, body = body_of(rows, dialect)
    return join_rows(
        [
            b"SEND",
            destination_lines(rows, dialect, destination),
            *(_receipt_line(rows) if receipts else []),
            *body_lines,
            *header_lines(rows, dialect, transaction, now_ms),
            *_properties(rows, dialect),
            b"\n\n",
            body,
            b"\0",
        ]
    )


def _properties(rows: Rows, dialect: Dialect) -> list[Piece]:
    properties, columns = properties_of(rows), typed_columns(rows)
    lines = column_lines(rows, columns, dialect)
    if properties is not None:
        lines.append(property_lines(properties, dialect, columns))
    return lines + types_line(rows, properties, columns, dialect) if dialect.envelopes else lines
