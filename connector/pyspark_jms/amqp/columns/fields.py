"""One field of a section → a column: strings, numbers, times. A row whose field is of another type is refused."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import NULL, STR8, STR32, ByteReader
from pyspark_jms.amqp.columns.inside import Field
from pyspark_jms.amqp.columns.refusals import RefusedRowsError
from pyspark_jms.amqp.columns.walk import Fields
from pyspark_jms.columns.cut import Ints, Mask, Pieces, cut, is_utf8, not_utf8

__all__ = ["BOOLEAN", "BYTE", "TIME", "UBYTE", "UINT", "field_at", "numbers", "string", "times"]

_REFUSED = -(1 << 62)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, as Spark SQL has them."""

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_SHORT = 64

BOOLEAN: Mapping[int, int | None] = {0x41: 1, 0x42: 0, 0x56: None}
UBYTE: Mapping[int, int | None] = {0x50: None}
UINT: Mapping[int, int | None] = {0x70: None, 0x52: None, 0x43: 0}
BYTE: Mapping[int, int | None] = {0x51: None}
TIME: Mapping[int, int | None] = {0x83: None}
"""The constructors of a type, each with its number if it has only one."""


def field_at(fields: Fields, number: int) -> Field | None:
    """A field by its number; None where no row has it."""
    field = fields[number] if number < len(fields) else None
    if field is None or not len(field.rows) or (isinstance(field.code, int) and field.code == NULL):
        return None
    return field


def string(reader: ByteReader, field: Field | None, rows: int, codes: tuple[int, int] = (STR8, STR32)) -> pa.Array:
    """A string column of the values with the constructors ``codes``, null for a null."""
    if field is None:
        return pa.nulls(rows, pa.string())
    known = _known(field, codes)
    starts, stops, keep = _spread(field, known, rows)
    if keep is None and _short(starts, stops):
        pieces = Pieces(reader.buffer, starts, stops)
        if rows and pieces.all_same(np.arange(rows)):
            column = pieces.take(np.zeros(1, np.int64))
            if is_utf8(column):
                return pa.repeat(column[0], rows)
    column = cut(reader.buffer, starts, stops, keep)
    if not is_utf8(column):
        raise RefusedRowsError(np.flatnonzero(not_utf8(column)))
    return column


def _short(starts: Ints, stops: Ints) -> bool:
    return bool(len(starts)) and int(stops[0] - starts[0]) <= _SHORT


def _known(field: Field, codes: tuple[int, int]) -> Mask | None:
    """Which values are not null; None if none is."""
    if isinstance(field.code, int):
        if field.code not in codes:
            _refuse(field, np.ones(len(field.rows), np.bool_))
        return None
    known = (field.code == codes[0]) | (field.code == codes[1])
    _refuse(field, ~known & (field.code != NULL))
    return None if known.all() else known


def _refuse(field: Field, wrong: Mask) -> None:
    if wrong.any():
        raise RefusedRowsError(field.rows[wrong])


def _spread(field: Field, known: Mask | None, rows: int) -> tuple[Ints, Ints, Mask | None]:
    """Start, stop and presence of the field in every row; None: all rows have it."""
    found = field if known is None else field.only(known)
    if len(found.rows) == rows:
        return found.start, found.stop, None
    starts, stops, keep = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    starts[found.rows], stops[found.rows], keep[found.rows] = found.start, found.stop, True
    return starts, stops, keep


def numbers(
    reader: ByteReader,
    field: Field | None,
    rows: int,
    codes: Mapping[int, int | None],
    *,
    absent: int,
    lenient: bool = False,
) -> Ints:
    """The number in each row, ``absent`` for a null and in a row without the field.

    ``lenient``: a value of another type is absent too.
    """
    found = np.full(rows, absent, np.int64)
    if field is None:
        return found
    values = _numbers(reader, field, codes, absent)
    wrong = values == _REFUSED
    if lenient:
        values = np.where(wrong, absent, values)
    else:
        _refuse(field, wrong)
    found[field.rows] = values
    return found


def _numbers(reader: ByteReader, field: Field, codes: Mapping[int, int | None], absent: int) -> Ints:
    present = [field.code] if isinstance(field.code, int) else np.flatnonzero(np.bincount(field.code)).tolist()
    values = np.full(len(field.rows), _REFUSED, np.int64)
    for code in present:
        at = slice(None) if isinstance(field.code, int) else np.flatnonzero(field.code == code)
        if code == NULL:
            values[at] = absent
        elif code in codes:
            constant = codes[code]
            values[at] = reader.numbers(code, field.start[at]) if constant is None else constant
            if code == 0x56:  # noqa: PLR2004 - a boolean that is neither 0 nor 1
                values[at] = np.where(values[at] > 1, _REFUSED, values[at])
    return values


def times(milliseconds: Ints) -> pa.Array:
    """Timestamps of milliseconds since the epoch; null for 0 and outside of the years that Spark has."""
    given = (milliseconds != 0) & (milliseconds >= _FIRST_MS) & (milliseconds <= _LAST_MS)
    if given.all():
        return pa.array(milliseconds * 1000).view(_TIMESTAMP)
    return pa.array(np.where(given, milliseconds, 0) * 1000, mask=~given).view(_TIMESTAMP)
