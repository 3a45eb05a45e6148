"""Columns -> candidates: the distinct values of a name, and the kinds that each value may have.

There are two sources: a schema of headers and properties, where properties are texts, and columns of Arrow types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jms_selector.meaning.conversions import FLOATING_TEXT, INTEGER_TEXT
from jms_selector.meaning.lenient import TRUSTED_TYPES, NameLocation, locate
from jms_selector.syntax.dialects import Dialect
from jms_selector.syntax.kinds import BITS, NULL, Kind, Schema, Value
from jms_selector.targets.arrow import vectors

__all__ = ["Candidates", "SchemaColumns", "typed_column"]

Mask = NDArray[np.bool_]


@dataclass(slots=True)
class Candidates:
    """The possible values of one name: for each kind, the distinct values that may have it."""

    codes: NDArray[np.intp]
    """Row -> index of its distinct value."""

    size: int
    kinds: dict[Kind, tuple[Mask, Any]]
    """Kind -> (mask of the distinct values that may have this kind, data of the distinct values)."""

    undecided: Mask | None = None
    """Mask of the distinct values for which every outcome is possible."""


# --- columns of the schema ------------------------------------------------------------------------


class SchemaColumns:
    """Finds the candidates of a name in a batch of a schema."""

    def __init__(self, batch: pa.RecordBatch | pa.Table, dialect: Dialect, schema: Schema) -> None:
        self.batch = batch
        self.schema = schema
        self.dialect = dialect
        self.names = set(batch.schema.names)

    def candidates(self, name: str) -> Candidates:
        location = locate(self.dialect, name, self.schema)
        rows = self.batch.num_rows
        if not location.visible:
            return Candidates(np.zeros(rows, np.intp), 1, {}, np.ones(1, bool))
        if location.kind:
            return self._header(location)
        texts = self._entries("properties", location.name)
        types = self._entries("property_types", location.name)
        if types.null_count == rows:
            return self._candidates_of_texts(location, *_encode(texts))
        return self._candidates_with_types(location, texts, types)

    def _column(self, name: str) -> pa.Array:
        if name not in self.names:
            return pa.nulls(self.batch.num_rows)
        column = self.batch.column(name)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def _entries(self, column: str, key: str) -> pa.Array:
        """The entry ``key`` of a map column; null in rows without it."""
        rows = self.batch.num_rows
        maps = self._column(column)
        if maps.null_count == rows:
            return pa.nulls(rows, pa.string())
        return _lookup_first(maps, key)

    # --- headers ---------------------------------------------------------------------------------

    def _header(self, location: NameLocation) -> Candidates:
        column = self._column(location.name)
        if location.words is not None:
            column = _replace_words(column, location.words)
        elif location.kind is Kind.LONG and pa.types.is_timestamp(column.type):
            # Without the session's zone: Arrow does not know all of Java's zones, and some hours come twice.
            column = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))
            column = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms")).cast(pa.int64())
        assert location.kind is not None
        if pa.types.is_null(column.type):
            column = column.cast(pa.string() if location.kind is Kind.STRING else pa.int64())
        codes, distinct = _encode(column)
        size = len(distinct) + 1
        present = np.arange(size) < len(distinct)
        kinds = {location.kind: (present, vectors.data(distinct, location.kind, size))}
        found = self._add_absent_values(location, Candidates(codes, size, kinds), ~present)
        if location.respelled:
            respelled = np.append(_mask(pc.starts_with(distinct, location.respelled)), False)
            found.undecided = respelled if found.undecided is None else found.undecided | respelled
        return found

    # --- properties ------------------------------------------------------------------------------

    def _candidates_of_texts(self, location: NameLocation, codes: NDArray[np.intp], distinct: pa.Array) -> Candidates:
        size = len(distinct) + 1
        column = Candidates(codes, size, _readings(distinct, size))
        absent = np.arange(size) == len(distinct)
        for text in self.dialect.null_texts:
            same = np.append(_mask(pc.equal(distinct, text)), False)
            _add_value(column.kinds, same, NULL)
        return self._add_absent_values(location, column, absent)

    def _candidates_with_types(self, location: NameLocation, texts: pa.Array, types: pa.Array) -> Candidates:
        """Return the candidates: in rows with a stated type of JMS, that type is the only one."""
        codes, distinct = _encode(texts)
        type_codes, stated = _encode(types)
        size = len(distinct) + 1
        plain = self._candidates_of_texts(location, codes, distinct)
        width = len(stated) + 1
        types_of_codes = [*(name if name in TRUSTED_TYPES else None for name in stated.to_pylist()), None]
        kinds: dict[Kind, tuple[Mask, Any]] = {}
        for kind, (member, data) in plain.kinds.items():
            # The candidates of an absent value do not depend on a stated type.
            fits = np.array([name is None or name == kind for name in types_of_codes])
            may_be = member[:, None] & fits[None, :]
            may_be[-1] |= member[-1]
            kinds[kind] = (may_be.ravel(), vectors.take(data, np.repeat(np.arange(size), width)))
        undecided = None if plain.undecided is None else np.repeat(plain.undecided, width)
        beyond_jms = np.append(~_mask(pc.is_in(stated, pa.array(sorted(TRUSTED_TYPES)))), False)
        if self.dialect.typed_messages and beyond_jms.any():
            undecided = np.tile(beyond_jms, size) | (False if undecided is None else undecided)
        return Candidates(codes * width + type_codes, size * width, kinds, undecided)

    def _add_absent_values(self, location: NameLocation, column: Candidates, absent: Mask) -> Candidates:
        """Add the candidates of absent values, and NULL where the broker may not have the value."""
        if location.absent is None:
            column.undecided = absent
        for value in location.absent or ():
            _add_value(column.kinds, absent, value)
        if location.may_be_null:
            _add_value(column.kinds, np.ones(column.size, bool), NULL)
        return column


def _add_value(kinds: dict[Kind, tuple[Mask, Any]], member: Mask, value: Value) -> None:
    """Add a value that absent ones may have. ``member``: the mask of these. Integral kinds share their data."""
    before, _ = kinds.get(value.kind, (np.zeros_like(member), None))
    data = None
    if value is not NULL:
        alike = {kind for kind in kinds if kind is value.kind or {kind, value.kind} <= BITS.keys()}
        known = next((kinds[kind][1] for kind in alike), vectors.data(pa.array([]), value.kind, len(member)))
        data = np.where(member, value.value, known)
        for kind in alike:
            kinds[kind] = (kinds[kind][0], data)
    kinds[value.kind] = (before | member, data)


def _replace_words(column: pa.Array, words: Mapping[int, str]) -> pa.Array:
    values = pc.index_in(column, pa.array(list(words), column.type))
    return pc.coalesce(pa.array(list(words.values())).take(values), column.cast(pa.string()))


def _mask(array: pa.Array) -> Mask:
    found: Mask = np.asarray(array.fill_null(False))  # noqa: FBT003 - the value to fill with
    return found


def _encode(column: pa.Array) -> tuple[NDArray[np.intp], pa.Array]:
    """Indexes of the distinct values, with null last; and the distinct values."""
    encoded = column.dictionary_encode()
    codes = encoded.indices.fill_null(len(encoded.dictionary))
    return np.asarray(codes).astype(np.intp), encoded.dictionary


def _lookup_first(maps: pa.MapArray, key: str) -> pa.Array:
    """``map_lookup(…, 'first')``, but thirty times faster, because it compares all keys in one call."""
    offsets = np.asarray(maps.offsets)
    start, stop = int(offsets[0]), int(offsets[-1])
    keys = maps.keys.slice(start, stop - start) if len(maps.keys) != stop - start else maps.keys
    places = np.flatnonzero(_mask(pc.equal(keys, key)))
    widths = np.diff(offsets)
    if len(widths) and widths[0] and (widths == widths[0]).all():
        rows = places // widths[0]
    else:
        rows = np.searchsorted(offsets - start, places, side="right") - 1
    found = np.full(len(maps), -1, np.int64)
    found[rows[::-1]] = places[::-1]  # the first entry wins
    if maps.null_count:
        found[~np.asarray(maps.is_valid())] = -1
    items = maps.items.slice(start, stop - start) if len(maps.items) != stop - start else maps.items
    return items.take(pa.array(found, mask=found < 0))


def _readings(distinct: pa.Array, size: int) -> dict[Kind, tuple[Mask, Any]]:
    """Vectorised :func:`conversions.readings`, with one more element for the absent value."""
    present = np.arange(size) < len(distinct)
    kinds: dict[Kind, tuple[Mask, Any]] = {Kind.STRING: (present, vectors.data(distinct, Kind.STRING, size))}
    booleans = np.append(_mask(pc.is_in(distinct, pa.array(["true", "false"]))), False)
    if booleans.any():
        true = np.append(_mask(pc.equal(distinct, "true")), False)
        kinds[Kind.BOOLEAN] = (booleans, true)
    integers, numbers = _integers(distinct, size)
    if integers.any():
        for kind, bits in BITS.items():
            half = 1 << (bits - 1)
            kinds[kind] = (integers & (numbers >= -half) & (numbers <= half - 1), numbers)
    floats = np.append(_mask(pc.match_substring_regex(distinct, rf"\A(?:{FLOATING_TEXT})\z")), False)
    if floats.any():
        doubles = np.zeros(size)
        texts = distinct.filter(pa.array(floats[:-1]))
        doubles[np.flatnonzero(floats)] = np.asarray(pc.replace_substring(texts, "Infinity", "inf").cast(pa.float64()))
        with np.errstate(over="ignore"):
            kinds[Kind.FLOAT] = (floats, doubles.astype(np.float32))
        kinds[Kind.DOUBLE] = (floats, doubles)
    return kinds


_LARGEST_LONG = "9223372036854775807"


def _integers(distinct: pa.Array, size: int) -> tuple[Mask, NDArray[np.int64]]:
    """Mask of the texts of ``Long.toString``, and their numbers."""
    texts = pc.match_substring_regex(distinct, rf"\A(?:{INTEGER_TEXT})\z")
    digits = pc.utf8_ltrim(distinct, "-")
    limit = pc.if_else(pc.starts_with(distinct, "-"), "9223372036854775808", _LARGEST_LONG)
    small = pc.or_(pc.less(pc.utf8_length(digits), len(_LARGEST_LONG)), pc.less_equal(digits, limit))
    member = np.append(_mask(pc.and_(texts, small)), False)
    numbers = np.zeros(size, np.int64)
    if member.any():
        numbers[np.flatnonzero(member)] = np.asarray(distinct.filter(pa.array(member[:-1])).cast(pa.int64()))
    return member, numbers


# --- typed columns --------------------------------------------------------------------------------

_ARROW_KINDS: Sequence[tuple[Any, Kind]] = (
    (pa.types.is_boolean, Kind.BOOLEAN),
    (pa.types.is_int8, Kind.BYTE),
    (pa.types.is_int16, Kind.SHORT),
    (pa.types.is_int32, Kind.INT),
    (pa.types.is_int64, Kind.LONG),
    (pa.types.is_float32, Kind.FLOAT),
    (pa.types.is_float64, Kind.DOUBLE),
    (pa.types.is_string, Kind.STRING),
    (pa.types.is_large_string, Kind.STRING),
)


def typed_column(table: pa.RecordBatch | pa.Table, name: str, dialect: Dialect) -> Candidates:
    rows = table.num_rows
    own = dialect.aliases.get(name, name)
    if own not in table.schema.names or own in dialect.never_seen:
        absent: dict[Kind, tuple[Mask, Any]] = {}
        _add_value(absent, np.ones(1, bool), dialect.defaults.get(own, NULL))
        return Candidates(np.zeros(rows, np.intp), 1, absent)
    column = table.column(own)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if words := dialect.words.get(name):
        column = pc.coalesce(pa.array(list(words.values())).take(pc.index_in(column, pa.array(list(words)))), column)
    kind = next((kind for is_it, kind in _ARROW_KINDS if is_it(column.type)), None)
    if kind is None:
        raise TypeError(f"Column {own} has the type {column.type}, which no JMS property has.")
    codes, distinct = _encode(column)
    size = len(distinct) + 1
    present = np.arange(size) < len(distinct)
    kinds = {kind: (present, vectors.data(distinct, kind, size))}
    _add_value(kinds, ~present, dialect.defaults.get(own, NULL))
    return Candidates(codes, size, kinds)
