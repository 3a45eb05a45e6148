"""Columns → encoded AMQP values and sections, as pieces for ``join_rows`` (AMQP 1.0 §1.6, §3.2; AMQP-JMS §3.4.1).

The texts are checked before (``columns.value_texts``). A null has no type in AMQP.
"""

import base64
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jms_selector.meaning.conversions import parse_java
from jms_selector.syntax.kinds import Kind
from pyspark_jms.amqp.wire import constructors
from pyspark_jms.columns.arrays import (
    Int64s,
    Mask,
    Piece,
    Uint8s,
    binary_array,
    bytes_of,
    join_rows,
    mask_of,
    offsets_of,
)
from pyspark_jms.columns.value_texts import integers
from pyspark_jms.jms.conversions import ValueType

__all__ = [
    "NO_VALUE",
    "NO_VALUE_SCALAR",
    "SMALL",
    "TIME_TYPE",
    "VALUE_TYPES",
    "compound",
    "encoded_numbers",
    "encoded_values",
    "fixed",
    "in_groups",
    "lengths_of",
    "merged",
    "numbers",
    "only_where",
    "plain_values",
    "side_by_side",
    "sized",
    "table",
]

# --- values and sections as pieces ------------------------------------------------------------------

# Sizes come first in AMQP, so the lengths of pieces are summed; strings are not copied before the one join.

NO_VALUE: Final = bytes((constructors.NULL,))
"""The encoded null."""

NO_VALUE_SCALAR: Final = pa.scalar(NO_VALUE, pa.binary())

SMALL = 0xFF
"""The largest size of one byte."""

_MOST_MERGED = 64
"""The width up to which a piece is copied once more, to save a piece."""

_BINARY = pa.binary()
_NOTHING = pa.scalar(b"", _BINARY)


def sized(texts: pa.Array, code: int) -> list[Piece]:
    """Return constructors with sizes, and bytes, for each entry of a binary array. A null becomes AMQP's."""
    lengths = lengths_of(texts)
    if texts.null_count:
        given = texts.is_valid()
        heads = _heads(np.where(mask_of(given), lengths, 0), code)
        return [pc.if_else(given, heads, NO_VALUE_SCALAR), texts.fill_null(_NOTHING)]
    return [_heads(lengths, code), texts]


def _heads(lengths: Int64s, code: int) -> pa.Array:
    wide = lengths > SMALL
    if not wide.any():
        return numbers(lengths, code, "u1")
    large = numbers(lengths, code + constructors.WIDE, ">u4")
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
    head = bytes((constructors.DESCRIBED, constructors.SMALL_ULONG, section, code))
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


# --- texts as values of a type ----------------------------------------------------------------------

TIME_TYPE = "timestamp"
VALUE_TYPES: tuple[str, ...] = (*ValueType, TIME_TYPE)
_LAYOUTS = {
    ValueType.BYTE: (constructors.BYTE, "i1", pa.int8()),
    ValueType.SHORT: (constructors.SHORT, ">i2", pa.int16()),
    ValueType.INT: (constructors.INT, ">i4", pa.int32()),
    ValueType.LONG: (constructors.LONG, ">i8", pa.int64()),
    ValueType.FLOAT: (constructors.FLOAT, ">f4", pa.float32()),
    ValueType.DOUBLE: (constructors.DOUBLE, ">f8", pa.float64()),
    TIME_TYPE: (constructors.TIMESTAMP, ">i8", pa.int64()),
}
_BOOLEANS, _CODES = pa.array(["true", "false"]), np.array([constructors.TRUE, constructors.FALSE], np.uint8)
_LARGEST = np.iinfo(np.int64)
_OF_INTEGERS, _OF_DECIMALS = np.zeros(256, np.bool_), np.zeros(256, np.bool_)
"""The bytes of numbers that Arrow reads as Java does: without words, blanks and hexadecimal digits."""
_OF_INTEGERS[list(b"-0123456789")] = _OF_DECIMALS[list(b"-+.0123456789eE")] = True

_PLAIN = "^-?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"
"""Decimal numbers that Arrow reads as Java does."""


def encoded_values(kinds: Int64s, texts: pa.Array) -> list[Piece]:
    """Each text as a value of its type; ``kinds``: an index into ``VALUE_TYPES`` for each text, a string array."""
    if not len(texts):
        return [pa.array([], pa.binary())]
    nulls: Mask = texts.is_null().to_numpy(zero_copy_only=False)
    groups = np.where(nulls, len(VALUE_TYPES), kinds)
    if (groups == groups[0]).all():
        return _group(int(groups[0]), texts)
    return [in_groups(groups, lambda group, rows: join_rows(_group(group, texts.take(pa.array(rows)))))]


def in_groups(groups: Int64s, encode: Callable[[int, Int64s], pa.Array]) -> pa.Array:
    """Return what ``encode`` makes of the rows of each group, in the order of all rows. Each row has its group."""
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(int(groups.max()) + 2)).tolist()
    parts = [encode(group, order[begin:end]) for group, (begin, end) in enumerate(pairwise(bounds)) if begin < end]
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(back))


def plain_values(kind: ValueType, texts: pa.Array) -> list[Piece] | None:
    """Encode texts of one type, a number or a boolean, that Arrow reads as Java does.

    Return None if a text is null, is not valid for the type, or is written in another way. So no other check is needed.
    """
    if texts.null_count:
        return None
    if kind is ValueType.BOOLEAN:
        which = pc.index_in(texts, value_set=_BOOLEANS)
        return None if which.null_count else [fixed(_CODES[which.to_numpy()])]
    code, layout, arrow = _LAYOUTS[kind]
    integral = pa.types.is_integer(arrow)
    if not (_OF_INTEGERS if integral else _OF_DECIMALS)[bytes_of(texts.view(pa.binary()))].all():
        return None
    try:
        return [numbers(texts.cast(arrow).to_numpy(), code, layout)]
    except pa.ArrowInvalid:  # a lone minus, an empty text, or a number out of range
        return None


def encoded_numbers(array: pa.Array) -> pa.Array:
    """Numbers and booleans of a column in the AMQP type of the same width; for a null, any value."""
    if pa.types.is_boolean(array.type):
        return _booleans(array.fill_null(pa.scalar(value=False)))
    code, layout, _ = next(row for row in _LAYOUTS.values() if row[2] == array.type)
    return numbers(array.fill_null(pa.scalar(0, array.type)).to_numpy(), code, layout)


def _group(group: int, texts: pa.Array) -> list[Piece]:
    """Values of one type; the last group is that of nulls."""
    if group == len(VALUE_TYPES):
        return [pa.repeat(NO_VALUE_SCALAR, len(texts))]
    kind = VALUE_TYPES[group]
    match kind:
        case ValueType.STRING:
            return sized(texts.view(pa.binary()), constructors.STR8)
        case ValueType.BYTES:
            data = [base64.b64decode(text) for text in texts.to_pylist()]
            return sized(pa.array(data, pa.binary()), constructors.BIN8)
        case ValueType.BOOLEAN:
            return [_booleans(pc.equal(pc.ascii_lower(texts), pa.scalar("true", pa.string())))]
        case ValueType.CHAR:
            return [numbers(_distinct(texts, ord, np.int64), constructors.CHAR, ">u4")]
        case ValueType.FLOAT | ValueType.DOUBLE:
            return [_floating(kind, texts)]
    unsigned = pc.replace_substring_regex(texts, "^\\+", "")
    values, _ = integers(unsigned, _LARGEST.min, _LARGEST.max)
    code, layout, _ = _LAYOUTS[kind]
    return [numbers(values.to_numpy(), code, layout)]


def _booleans(array: pa.Array) -> pa.Array:
    codes = np.where(array.to_numpy(zero_copy_only=False), constructors.TRUE, constructors.FALSE)
    return fixed(codes.astype(np.dtype([("code", "u1")])))


def _floating(kind: str, texts: pa.Array) -> pa.Array:
    code, layout, arrow = _LAYOUTS[kind]
    if pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py():
        return numbers(texts.cast(arrow).to_numpy(), code, layout)
    values = _distinct(texts, lambda text: parse_java(text, Kind(kind)), np.float64)
    return numbers(values, code, layout)


def _distinct(texts: pa.Array, value: Callable[[str], float | None], kind: type[np.generic]) -> npt.NDArray[Any]:
    """A number for each text, computed once for each distinct text."""
    encoded = texts.dictionary_encode()
    found: npt.NDArray[Any] = np.array([value(text) for text in encoded.dictionary.to_pylist()], kind)
    each: npt.NDArray[Any] = found[encoded.indices.to_numpy()]
    return each
