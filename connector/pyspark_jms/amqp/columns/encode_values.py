"""JMS types and texts of values → encoded AMQP values, over whole columns (AMQP 1.0 §1.6; AMQP-JMS binding, §3.4.1).

The texts are checked before (``columns.typed_values``). A null has no type in AMQP.
"""

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jms_selector.meaning.conversions import parse_java
from jms_selector.syntax.kinds import Kind
from pyspark_jms.amqp.columns.encode_pieces import BIN8, NULL, STR8, fixed, numbers, sized
from pyspark_jms.columns.strings import Int64s, Mask, Piece, bytes_of, join_rows
from pyspark_jms.columns.value_texts import integers
from pyspark_jms.jms.model import ValueType

__all__ = ["VALUE_TYPES", "encoded_numbers", "encoded_values", "plain_values"]

VALUE_TYPES = tuple(ValueType)
_LAYOUTS = {
    ValueType.BYTE: (0x51, "i1", pa.int8()),
    ValueType.SHORT: (0x61, ">i2", pa.int16()),
    ValueType.INT: (0x71, ">i4", pa.int32()),
    ValueType.LONG: (0x81, ">i8", pa.int64()),
    ValueType.FLOAT: (0x72, ">f4", pa.float32()),
    ValueType.DOUBLE: (0x82, ">f8", pa.float64()),
}
_TRUE, _FALSE = 0x41, 0x42
_BOOLEANS, _CODES = pa.array(["true", "false"]), np.array([_TRUE, _FALSE], np.uint8)
_CHAR = 0x73
_LARGEST = np.iinfo(np.int64)
_NO_VALUE = pa.scalar(NULL, pa.binary())
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
    return [_mixed(groups, texts)]


def _mixed(groups: Int64s, texts: pa.Array) -> pa.Array:
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(len(VALUE_TYPES) + 2))
    parts = [
        join_rows(_group(group, texts.take(pa.array(order[bounds[group] : bounds[group + 1]]))))
        for group in range(len(VALUE_TYPES) + 1)
        if bounds[group] < bounds[group + 1]
    ]
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(back))


def plain_values(kind: ValueType, texts: pa.Array) -> list[Piece] | None:
    """The same for texts of one type, a number or a boolean, that Arrow reads as Java does.

    None if a text is null, is not valid for the type, or is written in another way. So no other check is needed.
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
        return [pa.repeat(_NO_VALUE, len(texts))]
    kind = VALUE_TYPES[group]
    match kind:
        case ValueType.STRING:
            return sized(texts.view(pa.binary()), STR8)
        case ValueType.BYTES:
            data = [base64.b64decode(text) for text in texts.to_pylist()]
            return sized(pa.array(data, pa.binary()), BIN8)
        case ValueType.BOOLEAN:
            return [_booleans(pc.equal(pc.ascii_lower(texts), pa.scalar("true", pa.string())))]
        case ValueType.CHAR:
            return [numbers(_distinct(texts, ord, np.int64), _CHAR, ">u4")]
        case ValueType.FLOAT | ValueType.DOUBLE:
            return [_floating(kind, texts)]
    unsigned = pc.replace_substring_regex(texts, "^\\+", "")
    values, _ = integers(unsigned, _LARGEST.min, _LARGEST.max)
    code, layout, _ = _LAYOUTS[kind]
    return [numbers(values.to_numpy(), code, layout)]


def _booleans(array: pa.Array) -> pa.Array:
    codes = np.where(array.to_numpy(zero_copy_only=False), _TRUE, _FALSE)
    return fixed(codes.astype(np.dtype([("code", "u1")])))


def _floating(kind: ValueType, texts: pa.Array) -> pa.Array:
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
