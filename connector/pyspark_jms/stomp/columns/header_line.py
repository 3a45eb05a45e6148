"""A header's name and values → the header line of each SEND frame, as pieces to be joined."""

import pyarrow as pa

from pyspark_jms.columns.strings import Piece, join_rows
from pyspark_jms.stomp.wire.header import escape

__all__ = ["fixed_line", "header_line"]

_NO_LINE = pa.scalar(b"", pa.binary())


def fixed_line(name: str, value: str) -> bytes:
    """The line that is the same in every frame. A line begins with its LF and has none at its end."""
    return f"\n{escape(name)}:{escape(value)}".encode()


def header_line(name: str, values: pa.Array) -> list[Piece]:
    """A line for each entry of a binary array, whose values are escaped already; no line for a null."""
    # The LF stands before the name and not after the value: so a line is two pieces, and the join costs by the piece.
    pieces: list[Piece] = [fixed_line(name, ""), values]
    return [join_rows(pieces).fill_null(_NO_LINE)] if values.null_count else pieces
