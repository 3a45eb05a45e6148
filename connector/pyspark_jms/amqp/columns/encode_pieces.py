"""Columns → encoded AMQP values and sections, as pieces for ``join_rows`` (AMQP 1.0 §1.6, §3.2).

Sizes come first in AMQP, so the lengths of pieces are summed; strings are not copied before the one join.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.strings import Int64s, Mask, Piece, Uint8s, binary_array, bytes_of, mask_of, offsets_of

__all__ = [
    "BIN8",
    "LIST32",
    "MAP32",
    "NULL",
    "SMALL",
    "STR8",
    "SYM8",
    "WIDE",
    "compound",
    "fixed",
    "lengths_of",
    "merged",
    "numbers",
    "only_where",
    "side_by_side",
    "sized",
    "sized_bytes",
    "table",
]

NULL: Final = b"\x40"
BIN8, STR8, SYM8 = 0xA0, 0xA1, 0xA3
LIST32, MAP32 = 0xD0, 0xD1
WIDE = 0x10
"""What a constructor with a size of four bytes has more than the one with a size of one byte."""

SMALL = 0xFF
"""The largest size of one byte."""

_MOST_MERGED = 64
"""The width up to which a piece is copied once more, to save a piece."""

_BINARY = pa.binary()
_NOTHING = pa.scalar(b"", _BINARY)
_NO_VALUE = pa.scalar(NULL, _BINARY)


def sized_bytes(data: bytes, code: int) -> bytes:
    """One string, symbol or binary; ``code``: its constructor with a size of one byte."""
    if len(data) <= SMALL:
        return bytes((code, len(data))) + data
    return bytes((code + WIDE,)) + struct.pack(">I", len(data)) + data


def sized(texts: pa.Array, code: int, prefix: bytes = b"") -> list[Piece]:
    """The same for each entry of a binary array: the constructors and sizes, and the bytes. A null becomes AMQP's.

    ``prefix``: bytes before those of each entry, none of which is null.
    """
    lengths = lengths_of(texts)
    if prefix:
        return [_heads(lengths + len(prefix), code), prefix, texts]
    if texts.null_count:
        given = texts.is_valid()
        heads = _heads(np.where(mask_of(given), lengths, 0), code)
        return [pc.if_else(given, heads, _NO_VALUE), texts.fill_null(_NOTHING)]
    return [_heads(lengths, code), texts]


def _heads(lengths: Int64s, code: int) -> pa.Array:
    wide = lengths > SMALL
    if not wide.any():
        return numbers(lengths, code, "u1")
    large = numbers(lengths, code + WIDE, ">u4")
    return large if wide.all() else pc.if_else(pa.array(wide), large, numbers(np.where(wide, 0, lengths), code, "u1"))


def numbers(values: npt.NDArray[Any], code: int, layout: str) -> pa.Array:
    """A constructor and a big-endian number for each value; ``layout`` is numpy's name of the number's type."""
    found = np.empty(len(values), np.dtype([("code", "u1"), ("value", layout)]))
    found["code"], found["value"] = code, values
    return fixed(found)


def fixed(records: npt.NDArray[Any]) -> pa.Array:
    """The bytes of each record of an array, or of each row of a matrix, as binary."""
    width = records.dtype.itemsize * (records.shape[1] if records.ndim > 1 else 1)
    offsets = np.arange(len(records) + 1, dtype=np.int32) * np.int32(width)
    return binary_array(offsets, records.view(np.uint8).reshape(-1))


def table(choices: Sequence[bytes | None], which: Int64s) -> Piece:
    """The choice of each row; one of them for all rows if they agree."""
    if (which == which[0]).all() and (only := choices[int(which[0])]) is not None:
        return only
    return pa.array(choices, _BINARY).take(pa.array(which))


def only_where(given: Mask, piece: Piece) -> Piece:
    """The piece in these rows, and nothing in the others."""
    if given.all():
        return piece
    return pc.if_else(pa.array(given), pa.scalar(piece, _BINARY) if isinstance(piece, bytes) else piece, _NOTHING)


def compound(section: int, code: int, pieces: Sequence[Piece], counts: int | Int64s) -> list[Piece]:
    """A section with a list or a map; ``counts``: the number of its elements, which for a map are keys and values."""
    head = bytes((0, 0x53, section, code))
    sizes: int | Int64s = 4 + sum(len(piece) for piece in pieces if isinstance(piece, bytes))
    for piece in pieces:
        if not isinstance(piece, bytes):
            sizes = sizes + lengths_of(piece)
    if isinstance(sizes, int) and isinstance(counts, int):
        return [head + struct.pack(">II", sizes, counts), *pieces]
    rows = len(sizes) if isinstance(counts, int) else len(counts)  # type: ignore[arg-type]  # one of them is an array
    found = np.empty(rows, np.dtype([("head", "S4"), ("size", ">u4"), ("count", ">u4")]))
    found["head"], found["size"], found["count"] = head, sizes, counts
    return [fixed(found), *pieces]


def lengths_of(array: pa.Array) -> Int64s:
    offsets = offsets_of(array)
    lengths: Int64s = np.subtract(offsets[1:], offsets[:-1], dtype=np.int64)
    return lengths


def merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbours that have one width in all rows become one piece, because ``join_rows`` costs by the piece."""
    found: list[Piece] = []
    run: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, bytes) or _has_one_width(piece):
            run.append(piece)
        else:
            found += [*_one(run), piece]
            run = []
    return found + _one(run)


def _has_one_width(array: pa.Array) -> bool:
    if array.null_count or not len(array):
        return False
    offsets = offsets_of(array)
    width = int(offsets[1]) - int(offsets[0])
    if width > _MOST_MERGED or int(offsets[-1]) - int(offsets[0]) != width * len(array):
        return False
    return bool((offsets[1:] - offsets[:-1] == width).all())


def _one(run: list[Piece]) -> list[Piece]:
    arrays = [piece for piece in run if not isinstance(piece, bytes)]
    if len(run) == 1 or not arrays:
        return run
    rows = len(arrays[0])
    parts = [piece if isinstance(piece, bytes) else bytes_of(piece).reshape(rows, -1) for piece in run]
    return [fixed(side_by_side(parts, rows))]


def side_by_side(parts: Sequence[bytes | Uint8s], rows: int) -> Uint8s:
    """A matrix whose rows have the same bytes, or the bytes of a matrix's row, part by part."""
    template = b"".join(part if isinstance(part, bytes) else bytes(part.shape[1]) for part in parts)
    # The template is repeated first, because numpy copies a matrix into a wider one with 5 ns a row, and a short
    # constant too. A matrix as one column of a void type takes 1 to 3 ns.
    found = np.frombuffer(bytearray(template) * rows, np.uint8)
    place = 0
    for part in parts:
        width = len(part) if isinstance(part, bytes) else part.shape[1]
        if width and not isinstance(part, bytes):
            kind = np.dtype(f"V{width}")
            column = np.ndarray((rows,), kind, found.data, place, (len(template),))
            column[:] = np.ascontiguousarray(part).view(kind)[:, 0]
        place += width
    return found.reshape(rows, len(template))
