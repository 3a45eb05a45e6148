"""Entries of maps and lists → columns: ``properties`` and ``property_types``, and the elements of ``bodies``.

The entries of all rows are put in the order of the rows, with JMS types and texts of Java. The properties are those of
the producer, and those that JMS derives from other sections.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Code, Refusals
from pyspark_jms.amqp.columns.headers import DistinctNames, field_at, names_of, uuid_texts
from pyspark_jms.amqp.columns.one_value import AMQP_NAMES, JMS_TYPES
from pyspark_jms.amqp.columns.walk import Entries, Field, Fields, Parts
from pyspark_jms.amqp.dialects.base import COMPRESSED_PROPERTY, Dialect
from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.constructors import TYPES, codes_of
from pyspark_jms.columns.arrays import Ints, Mask, is_first, is_utf8, not_utf8, strings_at, tiled
from pyspark_jms.columns.schema import property_keys
from pyspark_jms.columns.value_texts import java_text
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.headers import JMSX_FIELDS
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER
from pyspark_jms.jms.rules import AMQP_TYPES

__all__ = [
    "IS_ELEMENT",
    "MARKERS",
    "OF_ELEMENTS",
    "EnvelopedError",
    "FlattenedEntries",
    "PropertyReader",
    "flatten",
    "only_of_types",
    "texts_of",
    "types_of",
]

MARKERS = frozenset({BODY_MARKER, TYPES_MARKER})
"""The properties of an envelope (docs/typed-messages.md)."""

_COUNT = "JMSXDeliveryCount"
_MAX_INT = (1 << 31) - 1


class EnvelopedError(Exception):
    """A message is in an envelope: all of its properties must be read."""


@dataclass(frozen=True, slots=True)
class PropertyReader:
    """Makes the columns of properties: those of the producer, and those that other sections have."""

    reader: ByteReader
    parts: Parts
    refusals: Refusals
    dialect: Dialect
    from_stomp: Mask
    """The rows without a message-id, whose properties may be headers of a SEND frame."""
    delivery_counts: Ints

    def columns(self) -> dict[str, pa.Array]:
        """``properties`` and ``property_types``."""
        names = names_of(self.reader, self.parts.application_properties, self.refusals)
        flat = self._flattened(names)
        offsets = pa.array(flat.offsets, pa.int32())
        keys = flat.pick_each(names.texts(), flat.name)
        return {
            "properties": pa.MapArray.from_arrays(offsets, keys, texts_of(self.reader, flat, self.refusals)),
            "property_types": pa.MapArray.from_arrays(offsets, keys, types_of(flat)),
        }

    def wanted(self, wanted: Sequence[str]) -> dict[str, pa.Array]:
        """The text and type of each wanted property, as columns. ``EnvelopedError`` if a message is in an envelope."""
        names = names_of(self.reader, self.parts.application_properties, self.refusals)
        if MARKERS & names.numbers.keys():
            raise EnvelopedError
        if not wanted:
            return {}
        flat, rows = self._flattened(names, wanted), len(self.parts)
        texts, types = texts_of(self.reader, flat, self.refusals), types_of(flat)
        owners = flat.row_of_each()
        places = flat.name if isinstance(flat.name, np.ndarray) else np.tile(np.array(flat.name, np.int64), rows)
        found: dict[str, pa.Array] = {}
        for place, name in enumerate(wanted):
            at = np.flatnonzero(places == place)
            index = np.full(rows, -1)
            index[owners[at]] = at
            take = pa.array(index, mask=index < 0)
            found |= dict(zip(property_keys(name), (texts.take(take), types.take(take)), strict=True))
        return found

    def _flattened(self, names: DistinctNames, wanted: Sequence[str] | None = None) -> "FlattenedEntries":
        """The properties of all rows, or those with the wanted names, whose numbers are then those in ``wanted``."""
        fields, codes = _of_producer(
            self.parts.application_properties, names, self.dialect, self.from_stomp, self.refusals
        )
        if wanted is not None:
            numbers = {names.numbers.get(name, -1): place for place, name in enumerate(wanted)}
            fields, codes = _of_names(fields, codes, numbers)
        fields = [only_of_types(field, _IS_PROPERTY, self.refusals) for field in fields]
        for name, field in _own_fields(self.parts, self.delivery_counts, self.refusals):
            if wanted is None or name in wanted:
                fields.append(field)
                codes.append(names.number(name) if wanted is None else wanted.index(name))
        flat = flatten(fields, codes, len(self.parts))
        self.refusals.add(flat.rows_with_a_name_twice(len(names if wanted is None else wanted)))
        return flat


def _of_names(fields: list[Field], codes: list[Code], numbers: dict[int, int]) -> tuple[list[Field], list[Code]]:
    """The entries with some names, by the new numbers of these names."""
    kept_fields: list[Field] = []
    kept_codes: list[Code] = []
    for field, code in zip(fields, codes, strict=True):
        for number, place in numbers.items():
            which = np.equal(code, number)
            if which.any():
                kept_fields.append(field if which.all() else field.only(which))
                kept_codes.append(place)
    return kept_fields, kept_codes


def _of_producer(
    entries: Entries, names: DistinctNames, dialect: Dialect, from_stomp: Mask, refusals: Refusals
) -> tuple[list[Field], list[Code]]:
    """The entries that become properties. A row with a name that concerns another section is refused."""
    number_of = names.numbers
    ignored = np.zeros(len(names), np.bool_)
    stomp, own = ignored.copy(), ignored.copy()
    for name, number in number_of.items():
        ignored[number] = (
            name == _COUNT or name in dialect.ignored_properties or name.startswith(dialect.ignored_property_prefixes)
        )
        stomp[number] = name in dialect.ignored_stomp_headers
        own[number] = name in JMSX_FIELDS or name == COMPRESSED_PROPERTY
    found: list[Field] = []
    codes: list[Code] = []
    for entry, code in zip(entries, names.codes, strict=True):
        field = entry.field
        refusals.add_where(field.rows, own[code])
        dropped = ignored[code]
        if stomp[code].any():
            dropped = dropped | (stomp[code] & from_stomp[field.rows])
        if not dropped.any():
            found.append(field)
            codes.append(code)
        elif not dropped.all():
            kept = ~dropped
            found.append(field.only(kept))
            codes.append(code if isinstance(code, int) else code[kept])
    return found, codes


def _own_fields(parts: Parts, delivery_counts: Ints, refusals: Refusals) -> list[tuple[str, Field]]:
    """The properties that other sections have, as fields with constructors of a property."""
    counts = np.minimum(delivery_counts + 1, _MAX_INT)
    found = [(_COUNT, Field(np.arange(len(parts)), NUMBER, counts, counts))]
    for name, codes in _RECODED.items():
        field = field_at(parts.properties, JMSX_FIELDS[name])
        given = None if field is None else _recoded(field, codes, refusals)
        if given is not None:
            found.append((name, given))
    return found


def _recoded(field: Field, codes: dict[int, int], refusals: Refusals) -> Field | None:
    """The values that are not null, with another constructor. A row with any other value is refused."""
    table = np.full(256, -1, np.int64)
    table[list(codes)] = list(codes.values())
    code = np.broadcast_to(np.asarray(field.code), field.rows.shape)
    given = table[code] >= 0
    refusals.add_where(field.rows, ~given & (code != constructors.NULL))
    if not given.any():
        return None
    return Field(field.rows[given], table[code[given]], field.start[given], field.stop[given])


# --- the entries of all rows ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlattenedEntries:
    """Row i has the entries from ``offsets[i]`` to ``offsets[i + 1]``."""

    offsets: Ints
    name: Ints | Sequence[int]
    """The number of each entry's name; a sequence if all rows have these names, in this order."""
    code: Ints | Sequence[int]
    """The constructor of each value; a sequence if all rows have these constructors, in this order."""
    start: Ints
    stop: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    def row_of_each(self) -> Ints:
        return np.repeat(np.arange(self.rows), np.diff(self.offsets))

    def constructors(self) -> set[int]:
        """The constructors that some value has."""
        if isinstance(self.code, np.ndarray):
            return set(np.flatnonzero(np.bincount(self.code)).tolist())
        return set(self.code if self.rows else ())

    def places_of(self, *codes: int) -> Ints:
        """The numbers of the values with one of the constructors, in order."""
        if not isinstance(self.code, np.ndarray):
            places = np.flatnonzero([code in codes for code in self.code])
            return np.add.outer(np.arange(0, len(self), len(self.code)), places).ravel()
        wanted = np.zeros(256, np.bool_)
        wanted[list(codes)] = True
        return np.flatnonzero(wanted[self.code])

    def pick_each(self, choices: pa.Array, which: Ints | Sequence[int]) -> pa.Array:
        """``choices`` by the numbers of each entry, which are as ``name`` and ``code``."""
        if isinstance(which, np.ndarray):
            return choices.take(pa.array(which))
        return tiled(choices.take(pa.array(which, pa.int64())), self.rows)

    def rows_with_a_name_twice(self, names: int) -> Ints:
        """``names``: the number of different names."""
        if not isinstance(self.name, np.ndarray):
            return np.arange(0 if len(set(self.name)) == len(self.name) else self.rows)
        rows = self.row_of_each()
        return rows[~is_first(rows, self.name, self.rows, names)]


def only_of_types(field: Field, known: Mask, refusals: Refusals) -> Field:
    """The values with a null for each one whose constructor is not ``known``, by constructor. Such a row is refused."""
    right = known[field.code]
    if right.all():
        return field
    refusals.add_where(field.rows, ~right)
    return field._replace(code=np.where(right, field.code, constructors.NULL), content=None)


def flatten(fields: Fields, names: Sequence[int | Ints], rows: int) -> FlattenedEntries:
    """``names``: the numbers of the names of each field; any numbers for the elements of lists."""
    regular = all(len(field.rows) == rows for field in fields)
    if regular:
        width = len(fields)
        offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
        places: list[slice | Ints] = [slice(number, None, width) for number in range(width)]
    else:
        offsets, places = _places(fields, rows)
    total = int(offsets[-1])
    start, stop = np.empty(total, np.int64), np.empty(total, np.int64)
    for field, place in zip(fields, places, strict=True):
        start[place], stop[place] = field.start, field.stop
    name = _each(names, places, total, regular=regular)
    code = _each([field.code for field in fields], places, total, regular=regular)
    return FlattenedEntries(offsets, name, code, start, stop)


def _places(fields: Fields, rows: int) -> tuple[Ints, list[slice | Ints]]:
    counts = np.zeros(rows, np.int64)
    ranks = []
    for field in fields:
        ranks.append(counts[field.rows])
        counts[field.rows] += 1
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets, [offsets[field.rows] + rank for field, rank in zip(fields, ranks, strict=True)]


def _each(found: Sequence[Code], places: Sequence[slice | Ints], total: int, *, regular: bool) -> Ints | Sequence[int]:
    constants = [number for number in found if isinstance(number, int)]
    if regular and len(constants) == len(found):
        return constants
    each = np.empty(total, np.int64)
    for number, place in zip(found, places, strict=True):
        each[place] = number
    return each


# --- the types and the texts of values ------------------------------------------------------------------

NUMBER = 0x01
"""Not of AMQP: the constructor of an int that does not stand in the block; its ``start`` is the number itself."""

_SMALL_SEQUENCE, _SEQUENCE_0 = 0x02, 0x03
_SEQUENCES = {
    constructors.UINT: constructors.INT,
    constructors.SMALL_UINT: _SMALL_SEQUENCE,
    constructors.UINT_0: _SEQUENCE_0,
}
"""Constructor of JMSXGroupSeq, a uint → that of the int of the same bits. Two are not of AMQP: the wide one is."""
_RECODED = {
    "JMSXGroupID": dict(zip(TYPES["string"], TYPES["string"], strict=True)),
    "JMSXGroupSeq": _SEQUENCES,
    "JMSXUserID": dict(zip(TYPES["binary"], TYPES["string"], strict=True)),
}
"""By property, the constructors of its field → those of the property."""

_TYPES = pa.array([*(kind.value for kind in ValueType), *AMQP_TYPES], pa.string())

_ORDER = _TYPES.to_pylist()
_ZEROS = (_SEQUENCE_0, constructors.UINT_0, constructors.ULONG_0)
_STORED = {_SMALL_SEQUENCE: constructors.SMALL_UINT}
_OF_AMQP = codes_of("ubyte", "ushort", "uint", "ulong", "timestamp", "uuid", "symbol")
"""The constructors without a JMS type whose values are read all at once. Others are left to the reader of one value."""

_WHOLE = (
    *codes_of("byte", "short", "int", "long", "timestamp", "ubyte", "ushort", "uint", "ulong"),
    *(_SEQUENCE_0, _SMALL_SEQUENCE, NUMBER),
)
_TEXTS, _BYTES = frozenset(codes_of("string", "symbol")), codes_of("binary")
_TRUTHS = pa.array(["false", "true"], pa.string())

OF_ELEMENTS = np.full(256, -1, np.int64)
OF_ELEMENTS[list(JMS_TYPES)] = [_ORDER.index(kind) for kind in JMS_TYPES.values()]
OF_ELEMENTS[[NUMBER, _SMALL_SEQUENCE, _SEQUENCE_0]] = _ORDER.index(ValueType.INT)
_OF_PROPERTIES = OF_ELEMENTS.copy()
OF_ELEMENTS[list(_OF_AMQP)] = [_ORDER.index(AMQP_TYPES[AMQP_NAMES[code]]) for code in _OF_AMQP]
"""By constructor, the JMS type of an element; -1 without one. That of a property may be of AMQP."""
_OF_PROPERTIES[[*_OF_AMQP, *_BYTES]] = [_ORDER.index(AMQP_NAMES[code]) for code in (*_OF_AMQP, *_BYTES)]

IS_ELEMENT = OF_ELEMENTS >= 0
_IS_PROPERTY = IS_ELEMENT.copy()
_IS_PROPERTY[constructors.CHAR] = False
"""By constructor: whether such values are read all at once."""


def types_of(flat: FlattenedEntries, numbers: Ints = _OF_PROPERTIES) -> pa.Array:
    """The type of each value, by a table like ``OF_ELEMENTS``, in which all of them are."""
    if isinstance(flat.code, np.ndarray):
        return _TYPES.take(pa.array(numbers[flat.code]))
    return flat.pick_each(_TYPES, [int(numbers[code]) for code in flat.code])


def texts_of(reader: ByteReader, flat: FlattenedEntries, refusals: Refusals) -> pa.Array:
    """The text of each value, null for a null."""
    return _Texts(reader, flat, refusals).column()


class _Texts:
    def __init__(self, reader: ByteReader, flat: FlattenedEntries, refusals: Refusals) -> None:
        self._reader = reader
        self._flat = flat
        self._index = np.zeros(len(flat), np.int64)
        self._parts: list[pa.Array] = []
        self._size = 0
        self._refusals = refusals

    def column(self) -> pa.Array:
        present = self._flat.constructors()
        self._strings(present)
        self._numbers(present)
        self._booleans(present)
        for code in {constructors.FLOAT, constructors.DOUBLE} & present:
            at = self._flat.places_of(code)
            numbers = self._reader.numbers(code, self._flat.start[at])
            native = numbers.astype(np.float32 if code == constructors.FLOAT else np.float64)
            self._add(at, java_text(pa.array(native)).view(pa.string()))
        if constructors.CHAR in present:
            self._chars()
        if constructors.UUID in present:
            at = self._flat.places_of(constructors.UUID)
            self._add(at, uuid_texts(self._reader, self._flat.start[at]))
        for code in present.intersection(_BYTES):
            at = self._flat.places_of(code)
            contents = strings_at(self._reader.buffer, self._flat.start[at], self._flat.stop[at]).view(pa.binary())
            self._add(at, pa.array([b64encode(content).decode() for content in contents.to_pylist()], pa.string()))
        if not self._parts:
            return pa.nulls(len(self._flat), pa.string())
        nulls = None
        if constructors.NULL in present:
            nulls = np.zeros(len(self._flat), np.bool_)
            nulls[self._flat.places_of(constructors.NULL)] = True
        whole = self._parts[0] if len(self._parts) == 1 else pa.concat_arrays(self._parts)
        return whole.take(pa.array(self._index, mask=nulls))

    def _add(self, at: Ints, texts: pa.Array) -> None:
        """The texts of the values at some places."""
        self._index[at] = np.arange(self._size, self._size + len(at))
        self._parts.append(texts)
        self._size += len(texts)

    def _strings(self, present: set[int]) -> None:
        if not _TEXTS & present:
            return
        at = self._flat.places_of(*_TEXTS)
        start, stop = self._flat.start[at], self._flat.stop[at]
        texts = strings_at(self._reader.buffer, start, stop)
        if not is_utf8(texts):
            wrong = not_utf8(texts)
            self._refuse(at[wrong])
            texts = strings_at(self._reader.buffer, start, stop, ~wrong)
        self._add(at, texts)

    def _numbers(self, present: set[int]) -> None:
        codes = [code for code in _WHOLE if code in present]
        if not codes:
            return
        places = [self._flat.places_of(code) for code in codes]
        each = [self._whole(code, self._flat.start[at]) for code, at in zip(codes, places, strict=True)]
        at, numbers = np.concatenate(places), np.concatenate(each)
        if constructors.ULONG in codes:  # one that no long holds has become negative
            ulongs = places[codes.index(constructors.ULONG)]
            self._refuse(ulongs[each[codes.index(constructors.ULONG)] < 0])
        if (numbers == numbers[0]).all():  # JMSXDeliveryCount, where nothing is redelivered
            self._add(at[:1], pa.array(numbers[:1]).cast(pa.string()))
            self._index[at] = self._index[at[0]]
        else:
            self._add(at, pa.array(numbers).cast(pa.string()))

    def _whole(self, code: int, start: Ints) -> Ints:
        if code == NUMBER:
            return start
        if code in _ZEROS:  # they have no bytes
            return np.zeros(len(start), np.int64)
        numbers: Ints = self._reader.numbers(_STORED.get(code, code), start).astype(np.int64)
        return numbers

    def _booleans(self, present: set[int]) -> None:
        codes = [code for code in TYPES["boolean"] if code in present]
        for code in codes:
            at = self._flat.places_of(code)
            truths = np.full(len(at), int(code == constructors.TRUE))
            if code == constructors.BOOLEAN:
                truths = self._reader.numbers(code, self._flat.start[at]).astype(np.int64)
                self._refuse(at[truths > 1])
                truths = np.minimum(truths, 1)
            self._index[at] = self._size + truths
        if codes:
            self._parts.append(_TRUTHS)
            self._size += len(_TRUTHS)

    def _chars(self) -> None:
        at = self._flat.places_of(constructors.CHAR)
        points = self._reader.numbers(constructors.CHAR, self._flat.start[at]).astype(np.int64)
        wrong = (points > 0xFFFF) | ((points >= 0xD800) & (points < 0xE000))  # noqa: PLR2004 - surrogates
        self._refuse(at[wrong])
        self._add(at, pa.array([chr(point) for point in np.where(wrong, 0, points).tolist()], pa.string()))

    def _refuse(self, entries: Ints) -> None:
        if len(entries):
            self._refusals.add(self._flat.row_of_each()[entries])
