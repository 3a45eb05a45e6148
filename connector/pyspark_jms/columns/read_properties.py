"""Rows of the fixed schema → the columns that are asked for: properties as columns of their own, by JMS 3.1 §3.5.4.

A value that the table of conversions does not allow, or that is not exact in the column's type, is null with a reason.
The reference is ``jms.conversions.convert``: texts are read all at once only where it would give the same value, and
every other text goes to it. Does not know protocols.
"""

from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from itertools import groupby
from re import compile as pattern

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.arrays import Ints, Mask
from pyspark_jms.columns.schema import (
    FIRST_MS,
    LAST_MS,
    NATIVE_TYPES,
    TIMESTAMP,
    VALUE_TYPES,
    ReadColumns,
    property_keys,
)
from pyspark_jms.columns.value_texts import integers, java_text, placed
from pyspark_jms.errors import MessageError, MessageFormatError
from pyspark_jms.jms.conversions import READABLE_AS, JmsValue, ValueType, convert
from pyspark_jms.jms.rules import TEXTS
from pyspark_jms.sentences import joined_faults, with_article

__all__ = ["asked_rows", "body_errors"]

_T = ValueType
_PLAIN_FLOAT = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?([eE]-?[0-9]{1,3})?$"
"""Texts of floats and doubles that Java and Arrow read alike; not all of them."""

_DECIMAL = pattern(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_TRUE, _FALSE = (pa.scalar(text, pa.string()) for text in ("true", "false"))
_NO_STRING, _NO_TRUTH = pa.scalar(None, pa.string()), pa.scalar(None, pa.bool_())
_UNKNOWN = -1
_SOURCES = list(NATIVE_TYPES)
_SOURCE_NAMES = pa.array([kind.value for kind in _SOURCES], pa.string())


def asked_rows(columns: ReadColumns, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    """The rows with the columns that are asked for, and the reasons of all their faults, as ``body_error``.

    ``rows``: of the fixed schema, or of ``WantedColumns``.
    """
    faults: list[tuple[int, str]] = []
    arrays: list[pa.Array] = []
    for field, fixed in zip(columns.schema, columns.fixed, strict=True):
        if fixed is not None:
            arrays.append(rows.column(fixed))
            continue
        texts, types = _property(rows, field.name)
        array, reasons = read_property(field.name, texts, types, field.type)
        arrays.append(array)
        faults += reasons.items()
    known = rows.column("body_error") if "body_error" in rows.schema.names else pa.nulls(len(rows), pa.string())
    errors = _with_reasons(known, faults)
    if "body_error" in columns.fixed:
        arrays[columns.fixed.index("body_error")] = errors
    return pa.RecordBatch.from_arrays(arrays, schema=columns.schema), errors


def _with_reasons(errors: pa.Array, faults: list[tuple[int, str]]) -> pa.Array:
    if not faults:
        return errors
    texts = errors.to_pylist()
    for row, of_row in groupby(sorted(faults, key=lambda fault: fault[0]), key=lambda fault: fault[0]):
        reasons = joined_faults([reason for _, reason in of_row])
        texts[row] = reasons if texts[row] is None else f"{texts[row]}; {reasons}"
    return pa.array(texts, pa.string())


def _property(rows: pa.RecordBatch, name: str) -> tuple[pa.Array, pa.Array]:
    text, kind = property_keys(name)
    if text in rows.schema.names:
        return rows.column(text), rows.column(kind)
    return _entries(rows.column("properties"), name), _entries(rows.column("property_types"), name)


def _entries(maps: pa.MapArray, key: str) -> pa.Array:
    """The entry of that key in each map, of which a map has one; null without it."""
    if maps.null_count == len(maps):
        return pa.nulls(len(maps), pa.string())
    offsets = np.asarray(maps.offsets)
    start, stop = int(offsets[0]), int(offsets[-1])
    keys, items = maps.keys.slice(start, stop - start), maps.items.slice(start, stop - start)
    places = np.flatnonzero(np.asarray(pc.equal(keys, pa.scalar(key, pa.string()))))
    found = np.full(len(maps), _UNKNOWN)
    found[np.searchsorted(offsets - start, places, side="right") - 1] = places
    return items.take(pa.array(found, mask=found < 0))


# --- one property ----------------------------------------------------------------------------------


def read_property(name: str, texts: pa.Array, types: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """The values of a property, and by row the reason why a value could not be read.

    ``types``: the type that each value was written as, null for a string. AMQP's own types are read like strings.
    """
    values = pa.nulls(len(texts), wanted)
    reasons: dict[int, str] = {}
    for source, rows in _by_source(texts, types):
        some = texts if rows is None else texts.take(pa.array(rows))
        found, wrong = _read(some, source, wanted)
        values = found if rows is None else placed(values, rows, found)
        reason = _reason(name, source, wanted)
        reasons |= dict.fromkeys((wrong if rows is None else rows[wrong]).tolist(), reason)
    return values, reasons


def _by_source(texts: pa.Array, types: pa.Array) -> list[tuple[ValueType, Ints | None]]:
    """Return the rows that have a value, by the type of the value, or None if all values have the type."""
    if texts.null_count == len(texts):
        return []
    if types.null_count == len(types):
        return [(_T.STRING, None)]
    codes = pc.index_in(types, value_set=_SOURCE_NAMES).fill_null(_SOURCES.index(_T.STRING)).to_numpy()
    given = np.asarray(texts.is_valid())
    present = np.flatnonzero(np.bincount(codes[given], minlength=len(_SOURCES))).tolist()
    if len(present) == 1:
        return [(_SOURCES[present[0]], None)]
    return [(_SOURCES[code], np.flatnonzero(given & (codes == code))) for code in present]


def _reason(name: str, source: ValueType, wanted: pa.DataType) -> str:
    spelled = "decimal" if pa.types.is_decimal(wanted) else "timestamp" if wanted == TIMESTAMP else _target(wanted)
    if _target(wanted) not in _readable(source, wanted):
        return f"property {name!r} was written as {source}, which is not readable as {spelled}"
    if pa.types.is_decimal(wanted):
        return f"property {name!r} is not an exact decimal({wanted.precision},{wanted.scale})"
    return f"property {name!r} is not {with_article(spelled)}"


def _target(wanted: pa.DataType) -> ValueType:
    """The type of JMS as which a value of this column is read first."""
    if wanted == TIMESTAMP:
        return _T.LONG
    return _T.STRING if pa.types.is_decimal(wanted) else VALUE_TYPES[wanted]


def _readable(source: ValueType, wanted: pa.DataType) -> frozenset[ValueType]:
    """The conversions of JMS; into a decimal, only those of whole numbers and of texts, which are exact."""
    if pa.types.is_decimal(wanted) and source not in {_T.STRING, _T.BYTE, _T.SHORT, _T.INT, _T.LONG}:
        return frozenset()
    return READABLE_AS[source]


def _read(texts: pa.Array, source: ValueType, wanted: pa.DataType) -> tuple[pa.Array, Ints]:
    """The values, and which of them could not be read."""
    target = _target(wanted)
    if target not in _readable(source, wanted):
        return pa.nulls(len(texts), wanted), np.flatnonzero(np.asarray(texts.is_valid()))
    values = _converted(texts, source, target)
    if wanted == TIMESTAMP:
        values = _moments(values)
    elif pa.types.is_decimal(wanted):
        values = _decimals(values, wanted)
    return values, np.flatnonzero(_unread(texts, values))


def _unread(texts: pa.Array, values: pa.Array) -> Mask:
    unread: Mask = np.asarray(texts.is_valid()) & np.asarray(values.is_null())
    return unread


def _converted(texts: pa.Array, source: ValueType, target: ValueType) -> pa.Array:
    """``convert`` of each text; null where it raises."""
    if source is target is _T.STRING:
        return texts
    parsed = _parsed(texts, target if source is _T.STRING else source)
    values = _widened(parsed, target)
    return _filled(values, texts, lambda text: convert(text, source, target))


def _filled(values: pa.Array, texts: pa.Array, read: Callable[[str], JmsValue | Decimal | None]) -> pa.Array:
    """``values`` with what ``read`` makes of the texts that have no value yet."""
    left = np.flatnonzero(_unread(texts, values))
    if not len(left):
        return values
    found = []
    for row in left.tolist():
        try:
            found.append(read(texts[row].as_py()))
        except MessageError:
            found.append(None)
    return placed(values, left, pa.array(found, values.type))


def _parsed(texts: pa.Array, kind: ValueType) -> pa.Array:
    """The values of usual texts; null for others, which may have a value too."""
    if kind is _T.BOOLEAN:
        return pc.if_else(pc.equal(texts, _FALSE), pc.equal(texts, _TRUE), _truths(texts))
    numbers = TEXTS[kind].numbers
    if numbers is not None:
        return integers(texts, numbers.start, numbers.stop - 1)[0].cast(NATIVE_TYPES[kind])
    usual = pc.if_else(pc.match_substring_regex(texts, _PLAIN_FLOAT), texts, _NO_STRING)
    return usual.cast(NATIVE_TYPES[kind])


def _truths(texts: pa.Array) -> pa.Array:
    true = pc.equal(texts, _TRUE)
    return pc.if_else(true, true, _NO_TRUTH)


def _widened(parsed: pa.Array, target: ValueType) -> pa.Array:
    if target is not _T.STRING:
        return parsed.cast(NATIVE_TYPES[target])
    if pa.types.is_boolean(parsed.type):
        return pc.if_else(parsed, _TRUE, _FALSE)
    return java_text(parsed).view(pa.string()) if pa.types.is_floating(parsed.type) else parsed.cast(pa.string())


def _moments(milliseconds: pa.Array) -> pa.Array:
    """Milliseconds since 1970 as timestamps; null outside of the years that Spark has."""
    numbers = milliseconds.fill_null(LAST_MS + 1).to_numpy()
    inside = (numbers >= FIRST_MS) & (numbers <= LAST_MS)
    return pa.array(np.where(inside, numbers, 0) * 1000, mask=~inside).view(TIMESTAMP)


def _decimals(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    whole, scale = wanted.precision - wanted.scale, wanted.scale
    fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale > 0 else ""
    usual = rf"^-?[0-9]{{1,{whole}}}{fraction}$" if whole > 0 else "^-?0$"
    values = pc.if_else(pc.match_substring_regex(texts, usual), texts, _NO_STRING).cast(wanted)
    return _filled(values, texts, lambda text: _exact(text, wanted))


def _exact(text: str, wanted: pa.DataType) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise MessageFormatError("The text is not a decimal number.")
    context = Context(prec=wanted.precision, traps=[InvalidOperation, Inexact])
    try:
        return Decimal(text).quantize(Decimal(1).scaleb(-wanted.scale), context=context)
    except (InvalidOperation, Inexact):
        raise MessageFormatError("The number has more digits than the column.") from None


def body_errors(rows: pa.RecordBatch, columns: ReadColumns | None = None) -> dict[int, str]:
    """Row number → ``body_error``, of the rows that have one. ``columns``: those of the schema that the user gave."""
    errors = rows.column("body_error") if columns is None else asked_rows(columns, rows)[1]
    bad = np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False))
    return {int(index): str(errors[int(index)].as_py()) for index in bad}
