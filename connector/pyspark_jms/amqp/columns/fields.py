"""One field of a section → a column: strings, numbers, times. A row with a field of another type is refused."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import NULL, STR8, STR32, ByteReader
from pyspark_jms.amqp.columns.compound_cursor import Field
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.columns.walk import Fields
from pyspark_jms.columns.strings import Ints, Mask, Pieces, is_utf8, not_utf8, strings_at

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


def string(
    reader: ByteReader, field: Field | None, rows: int, refusals: Refusals, codes: tuple[int, int] = (STR8, STR32)
) -> pa.Array:
    """A string column of the values with the constructors ``codes``, null for a null."""
    if field is None:
        return pa.nulls(rows, pa.string())
    given = _given(field, codes, refusals)
    if given.content is not None and len(given.rows) == rows:
        return _repeated(given.content, rows, refusals)
    starts, stops, keep = _spread(given, rows)
    if keep is None and _short(starts, stops):
        pieces = Pieces(reader.buffer, starts, stops)
        if rows and pieces.all_same(np.arange(rows)):
            return _repeated(pieces.take(np.zeros(1, np.int64)).view(pa.binary())[0].as_py(), rows, refusals)
    column = strings_at(reader.buffer, starts, stops, keep)
    if is_utf8(column):
        return column
    wrong = not_utf8(column)
    refusals.add(np.flatnonzero(wrong))
    return strings_at(reader.buffer, starts, stops, ~wrong if keep is None else keep & ~wrong)


def _given(field: Field, codes: tuple[int, int], refusals: Refusals) -> Field:
    """The values with the constructors ``codes``. A row with another one is refused, if it is not a null."""
    known = np.equal(field.code, codes[0]) | np.equal(field.code, codes[1])
    if known.all():
        return field
    refusals.add_where(field.rows, ~known & np.not_equal(field.code, NULL))
    return field.only(np.broadcast_to(known, field.rows.shape))


def _repeated(content: bytes, rows: int, refusals: Refusals) -> pa.Array:
    try:
        return pa.repeat(pa.scalar(content.decode(), pa.string()), rows)
    except UnicodeDecodeError:
        refusals.add(np.arange(rows))
        return pa.nulls(rows, pa.string())


def _short(starts: Ints, stops: Ints) -> bool:
    return bool(len(starts)) and int(stops[0] - starts[0]) <= _SHORT


def _spread(found: Field, rows: int) -> tuple[Ints, Ints, Mask | None]:
    """Start, stop and presence of the field in every row; None: all rows have it."""
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
    refusals: Refusals | None,
) -> Ints:
    """The number in each row, ``absent`` for a null and in a row without the field.

    A value of another type is absent too, and refused if there are ``refusals``.
    """
    if field is None:
        return np.full(rows, absent, np.int64)
    values = _numbers(reader, field, codes, absent)
    wrong = values == _REFUSED
    if wrong.any():
        values = np.where(wrong, absent, values)
        if refusals is not None:
            refusals.add(field.rows[wrong])
    if len(values) == rows:
        return values
    found = np.full(rows, absent, np.int64)
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
            if constant is None and field.content is not None:
                constant = reader.number(code, field.content)
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
