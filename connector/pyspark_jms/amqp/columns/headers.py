"""Fields of the sections of messages → columns: strings, numbers, times, ids, annotations and destinations.

A row with a field of another type is refused: the reader of one message makes it again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Refusals
from pyspark_jms.amqp.columns.walk import Entries, Field, Fields
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.constructors import CONSTANTS, NULL, TYPES, codes_of
from pyspark_jms.amqp.wire.sections import EMPTY_MESSAGE_ID, ENCODED_IDS, FINGERPRINT_BYTES
from pyspark_jms.columns.arrays import (
    Ints,
    Mask,
    Pieces,
    Uint8s,
    contents,
    is_utf8,
    not_utf8,
    require_offsets,
    strings_at,
)
from pyspark_jms.columns.schema import FIRST_MS, LAST_MS, TIMESTAMP
from pyspark_jms.jms.headers import Annotation
from pyspark_jms.jms.model import DESTINATION_WORDS, Destination, DestinationKind
from pyspark_jms.jms.names import may_receive

__all__ = [
    "ABSENT",
    "BOOLEAN",
    "BYTE",
    "LONG",
    "TIME",
    "UBYTE",
    "UINT",
    "Annotations",
    "DistinctNames",
    "destination_of",
    "field_at",
    "fingerprint_texts",
    "ids",
    "names_of",
    "numbers",
    "reply_to_of",
    "string",
    "times",
    "uuid_texts",
]

_REFUSED = -(1 << 62)
_SHORT = 64

BOOLEAN, UBYTE, UINT, BYTE, TIME, LONG = (
    {code: CONSTANTS.get(code) for code in TYPES[name]}
    for name in ("boolean", "ubyte", "uint", "byte", "timestamp", "long")
)
"""The constructors of a type, each with its number if it has only one."""


def field_at(fields: Fields, number: int) -> Field | None:
    """A field by its number; None where no row has it."""
    field = fields[number] if number < len(fields) else None
    if field is None or not len(field.rows) or (isinstance(field.code, int) and field.code == NULL):
        return None
    return field


def string(
    reader: ByteReader, field: Field | None, rows: int, refusals: Refusals, codes: tuple[int, ...] = TYPES["string"]
) -> pa.Array:
    """A string column of the values with the constructors ``codes``, null for a null."""
    if field is None:
        return pa.nulls(rows, pa.string())
    given = _given(field, codes, refusals)
    if given.content is not None and len(given.rows) == rows:
        return _repeated(given.content, rows, refusals)
    starts, stops, keep = _spread(given, rows)
    if keep is None and rows and int(stops[0] - starts[0]) <= _SHORT:
        pieces = Pieces(reader.buffer, starts, stops)
        if pieces.all_same(np.arange(rows)):
            return _repeated(pieces.take(np.zeros(1, np.int64)).view(pa.binary())[0].as_py(), rows, refusals)
    column = strings_at(reader.buffer, starts, stops, keep)
    if is_utf8(column):
        return column
    wrong = not_utf8(column)
    refusals.add(np.flatnonzero(wrong))
    return strings_at(reader.buffer, starts, stops, ~wrong if keep is None else keep & ~wrong)


def _given(field: Field, codes: tuple[int, ...], refusals: Refusals) -> Field:
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


def _spread(found: Field, rows: int) -> tuple[Ints, Ints, Mask | None]:
    """Return start, stop and presence of the field in every row; the presence is None if all rows have it."""
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
            if code == constructors.BOOLEAN:  # it may be neither 0 nor 1
                values[at] = np.where(values[at] > 1, _REFUSED, values[at])
    return values


def times(milliseconds: Ints) -> pa.Array:
    """Timestamps of milliseconds since the epoch; null for 0 and outside of the years that Spark has."""
    given = (milliseconds != 0) & (milliseconds >= FIRST_MS) & (milliseconds <= LAST_MS)
    if given.all():
        return pa.array(milliseconds * 1000).view(TIMESTAMP)
    return pa.array(np.where(given, milliseconds, 0) * 1000, mask=~given).view(TIMESTAMP)


# --- keys of maps -----------------------------------------------------------------------------------

# Each distinct key is read once. What the names mean is not known here.


class DistinctNames:
    """The distinct names of some entries, numbered from 0."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.codes: list[int | Ints] = []
        """By entry, the number of its name in each row; one number if the rows have the same name."""

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def __len__(self) -> int:
        return len(self.numbers)

    def texts(self) -> pa.Array:
        return pa.array(list(self.numbers), pa.string())


def names_of(reader: ByteReader, entries: Entries, refusals: Refusals) -> DistinctNames:
    """The names of entries of maps. A row with a name that is not UTF-8 is refused."""
    names = DistinctNames()
    for entry in entries:
        if entry.key is not None:
            try:
                name = entry.key.decode()
            except UnicodeDecodeError:
                name = ""
                refusals.add(entry.field.rows)
            names.codes.append(names.number(name))
            continue
        assert entry.key_start is not None and entry.key_stop is not None  # noqa: PT018
        keys = strings_at(reader.buffer, entry.key_start, entry.key_stop)
        if not is_utf8(keys):
            wrong = not_utf8(keys)
            refusals.add(entry.field.rows[wrong])
            keys = strings_at(reader.buffer, entry.key_start, np.where(wrong, entry.key_start, entry.key_stop))
        encoded = keys.dictionary_encode()
        numbers = np.array([names.number(name) for name in encoded.dictionary.to_pylist()], np.int64)
        names.codes.append(numbers[encoded.indices.to_numpy()])
    return names


# --- message annotations of JMS ---------------------------------------------------------------------

ABSENT = -(1 << 61)


class Annotations:
    def __init__(self, reader: ByteReader, entries: Entries, rows: int, refusals: Refusals) -> None:
        self._reader = reader
        self._rows = rows
        self._fields: dict[Annotation, list[Field]] = {role: [] for role in Annotation}
        names = names_of(reader, entries, refusals)
        for role, fields in self._fields.items():
            number = names.numbers.get(role, -1)
            for entry, code in zip(entries, names.codes, strict=True):
                which = np.equal(code, number)
                if which.any():
                    fields.append(entry.field if which.all() else entry.field.only(which))

    def numbers(self, role: Annotation, codes: Mapping[int, int | None]) -> Ints:
        """The annotation in each row; ``ABSENT`` without one, or if its value has none of the constructors."""
        found = np.full(self._rows, ABSENT, np.int64)
        for field in self._fields[role]:
            values = numbers(self._reader, field, self._rows, codes, absent=ABSENT, refusals=None)
            if len(field.rows) == self._rows:
                found = values
            else:
                found[field.rows] = values[field.rows]
        return found

    def small(self, role: Annotation, codes: Mapping[int, int | None], values: range) -> Ints:
        """The annotation as an index; -1 without one, and where it is not one of ``values``."""
        found = self.numbers(role, codes)
        return np.where((found >= values.start) & (found < values.stop), found, -1)


# --- message-id and correlation-id ------------------------------------------------------------------

# As JMS spells them (AMQP-JMS binding §3.2.1.1).

_OTHERS = codes_of("ulong", "uuid", "binary")
_IS_OTHER = np.zeros(256, np.bool_)
_IS_OTHER[list(_OTHERS)] = True
_UUID_BYTES, _DASHES = 16, (8, 13, 18, 23)
_NOTHING = pa.scalar("", pa.string())
_ENCODED, _IS_ENCODED = "ID:AMQP_", rf"\A({'|'.join(ENCODED_IDS)})"
_LOWER, _UPPER = (
    np.frombuffer("".join(f"{byte:02{case}}" for byte in range(256)).encode(), "V2") for case in ("x", "X")
)
"""The two digits of each byte."""


def ids(reader: ByteReader, field: Field | None, rows: int, refusals: Refusals, *, of_messages: bool) -> pa.Array:
    """A column of a field that holds ids, null for a null. A row with a value that is no id is refused."""
    if field is None or not _IS_OTHER[field.code].any():
        return _escaped(string(reader, field, rows, refusals), of_messages=of_messages)
    codes = np.broadcast_to(np.asarray(field.code), field.rows.shape)
    texts = string(reader, field.only(~_IS_OTHER[codes]), rows, refusals)
    parts = [_escaped(texts, of_messages=of_messages)]
    places = np.arange(rows)
    for code in _OTHERS:
        which = codes == code
        if not which.any():
            continue
        places[field.rows[which]] = np.arange(int(which.sum())) + sum(map(len, parts))
        parts.append(_spelled(reader, code, field.start[which], field.stop[which]))
    return pa.concat_arrays(parts).take(pa.array(places))


def _escaped(texts: pa.Array, *, of_messages: bool) -> pa.Array:
    """Strings as ids: what begins like another type is escaped, and each JMSMessageID begins with ``ID:``."""
    escaped = texts
    if pc.any(pc.starts_with(texts, _ENCODED)).as_py():
        encoded = pc.match_substring_regex(texts, _IS_ENCODED)
        escaped = pc.if_else(encoded, _with_prefix("ID:AMQP_STRING:", texts), texts)
    if of_messages:
        prefixed = pc.starts_with(texts, "ID:")
        if pc.all(prefixed).as_py() is False:
            escaped = pc.if_else(prefixed, escaped, _with_prefix(EMPTY_MESSAGE_ID, texts))
    return escaped


def _spelled(reader: ByteReader, code: int, start: Ints, stop: Ints) -> pa.Array:
    """The ids with one constructor."""
    if code == constructors.UUID:
        return _with_prefix("ID:AMQP_UUID:", uuid_texts(reader, start))
    if code in TYPES["binary"]:
        return _with_prefix("ID:AMQP_BINARY:", _digits(strings_at(reader.buffer, start, stop)))
    numbers = (
        np.zeros(len(start), np.uint64)
        if code == constructors.ULONG_0
        else reader.numbers(code, start).astype(np.uint64)
    )
    return _with_prefix("ID:AMQP_ULONG:", pa.array(numbers).cast(pa.string()))


def _with_prefix(prefix: str, texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(prefix, pa.string()), texts, _NOTHING)


def fingerprint_texts(digests: Sequence[bytes]) -> pa.Array:
    """``~`` and the digits of each digest, at least one."""
    raw = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, FINGERPRINT_BYTES)
    texts: Uint8s = np.full((len(raw), 1 + 2 * FINGERPRINT_BYTES), ord("~"), np.uint8)
    texts[:, 1:] = _LOWER[raw].view(np.uint8).reshape(len(raw), -1)
    return _strings(np.arange(len(raw) + 1) * texts.shape[1], texts)


def uuid_texts(reader: ByteReader, start: Ints) -> pa.Array:
    digits = _LOWER[reader.raw[start[:, None] + np.arange(_UUID_BYTES)]].view(np.uint8).reshape(len(start), -1)
    width = digits.shape[1] + len(_DASHES)
    texts: Uint8s = np.full((len(start), width), ord("-"), np.uint8)
    texts[:, np.delete(np.arange(width), _DASHES)] = digits
    return _strings(np.arange(len(start) + 1) * width, texts)


def _digits(column: pa.Array) -> pa.Array:
    data, limits = contents(column)
    return _strings(2 * limits, _UPPER[np.frombuffer(data, np.uint8)])


def _strings(limits: Ints, data: npt.NDArray[Any]) -> pa.Array:
    require_offsets(int(limits[-1]))
    offsets = pa.py_buffer(limits.astype(np.int32))
    return pa.Array.from_buffers(pa.string(), len(limits) - 1, [None, offsets, pa.py_buffer(data)])


# --- to and reply-to --------------------------------------------------------------------------------

_MANY = frozenset("*#>,")
"""The wildcards of any broker, and what separates the names in a list of destinations."""


def is_pattern(source: Destination) -> bool:
    """Return whether messages of several destinations may be read from ``source``."""
    return not _MANY.isdisjoint(source.name)


def destination_of(to: str | None, kind: int | None, source: Destination, dialect: Dialect) -> str:
    """JMSDestination: where the message was read.

    A producer can write anything into ``to`` and ``x-opt-jms-dest`` (``kind``). So they only say which of the
    destinations of a pattern it is, and whether the one with this name is temporary.
    """
    if not to:
        return str(source)
    word, name = dialect.split_address(to)
    if kind is not None:
        word = DESTINATION_WORDS[kind]
    receives = is_pattern(source) and any(may_receive(each, name) for each in source.name.split(","))
    if name != source.name and not receives:
        return str(source)
    return str(Destination(source.kind, name, temporary=word == f"temp-{source.kind}"))


def reply_to_of(reply_to: str | None, kind: int | None, dialect: Dialect) -> str | None:
    """JMSReplyTo: a queue, if the message does not state the kind."""
    if not reply_to:
        return None
    word, name = dialect.split_address(reply_to)
    if kind is not None:
        word = DESTINATION_WORDS[kind]
    return f"{word or DestinationKind.QUEUE}://{name}"
