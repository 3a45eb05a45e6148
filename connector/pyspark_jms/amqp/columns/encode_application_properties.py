"""Column ``properties`` and typed columns → section ``application-properties``, and the fields of groups.

Each property has the AMQP type of its JMS type (AMQP 1.0 §3.2.5). A property whose value is null is not sent: JMS 3.1
§3.5.4 reads both as null, and STOMP has no null.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.encode_values import (
    NO_VALUE_SCALAR,
    SMALL,
    TIME_TYPE,
    VALUE_TYPES,
    compound,
    encoded_numbers,
    encoded_values,
    lengths_of,
    merged,
    numbers,
    only_where,
    plain_values,
    side_by_side,
    sized,
)
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.wire.constructors import MAP32, STR8, UINT, WIDE
from pyspark_jms.amqp.wire.sections import APPLICATION_PROPERTIES
from pyspark_jms.amqp.wire.values import sized_bytes
from pyspark_jms.columns.arrays import (
    Int64s,
    Mask,
    Piece,
    Uint8s,
    binary_array,
    is_first,
    join_rows,
    mask_of,
    repeated,
    slices_of,
    to_binary,
)
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.schema import PROPERTY_COLUMN, value_type
from pyspark_jms.columns.sink_properties import (
    Properties,
    PropertyNames,
    StatedTypes,
    check_column_name,
    check_names,
    distinct_names,
    places_of,
    properties_of,
    repeated_width,
    stated_types,
)
from pyspark_jms.columns.value_texts import integers
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.headers import JMSX_FIELDS, PropertiesField
from pyspark_jms.jms.rules import PROPERTY_TYPES

__all__ = ["application_properties"]

_GROUP_ID, _GROUP_SEQUENCE = "JMSXGroupID", "JMSXGroupSeq"
_GROUP = (_GROUP_ID, _GROUP_SEQUENCE)
_STRING = VALUE_TYPES.index(ValueType.STRING)
_TYPE_NAMES = pa.array([kind.encode() for kind in VALUE_TYPES], pa.binary())
_INTEGERS = frozenset({ValueType.BYTE, ValueType.SHORT, ValueType.INT, ValueType.LONG})
_MIN_INT, _MAX_INT = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ApplicationProperties:
    section: list[Piece]
    """Nothing if no row has a property."""
    groups: dict[PropertiesField, list[Piece]]
    """``group-id`` and ``group-sequence`` of section ``properties``; nothing if no row has one."""


def application_properties(rows: Rows, dialect: Dialect) -> ApplicationProperties:
    columns = _typed_columns(rows, dialect)
    properties, stated = properties_of(rows), stated_types(rows)
    pieces: list[Piece] = []
    counts: Int64s = np.zeros(rows.count, np.int64)
    groups: dict[str, pa.Array] = {name: columns[name] for name in _GROUP if name in columns}
    for name, array in columns.items():
        if name not in groups:
            given = mask_of(array.is_valid())
            pieces += _column(rows, name, array, given)
            counts += given
    if properties is not None:
        names = distinct_names(properties)
        _check(properties, names, dialect, columns.keys())
        entries, kept = _entries(properties, names, stated, columns, dialect)
        pieces += entries
        counts += kept
        groups |= _groups(properties, names)
    elif stated is not None:
        places_of(stated, None, _types_of(columns))
    section = compound(APPLICATION_PROPERTIES, MAP32, pieces, 2 * counts) if counts.any() else []
    encoders = {_GROUP_ID: _group_ids, _GROUP_SEQUENCE: _group_sequences}
    fields = {JMSX_FIELDS[name]: encode(rows, groups[name]) for name, encode in encoders.items() if name in groups}
    return ApplicationProperties(section, fields)


# --- typed columns -------------------------------------------------------------------------------------


def _typed_columns(rows: Rows, dialect: Dialect) -> dict[str, pa.Array]:
    """The columns by property name, except those that are null in all of these rows."""
    found = {}
    for key in rows.columns:
        if key.startswith(PROPERTY_COLUMN):
            name = key.removeprefix(PROPERTY_COLUMN)
            check_column_name(name, dialect)
            found[name] = rows.column(key)
    return {name: array for name, array in found.items() if array is not None}


def _column(rows: Rows, name: str, array: pa.Array, given: Mask) -> list[Piece]:
    key = sized_bytes(name.encode(), STR8)
    if value_type(array.type) is not ValueType.STRING:
        value = [encoded_numbers(array)]
    else:
        texts = to_binary(array)
        rows.require_utf8(texts, f"a column {name}")
        value = sized(texts, STR8)
    return [key, *value] if given.all() else [only_where(given, join_rows([key, *value]))]


# --- column properties ---------------------------------------------------------------------------------


def _check(properties: Properties, names: PropertyNames, dialect: Dialect, columns: Collection[str]) -> None:
    check_names(properties, names, dialect, columns)
    entries, distinct = properties.entries, names.distinct
    if not names.each_row or len(set(distinct)) < len(distinct):
        codes = properties.names.dictionary_encode().indices.to_numpy()
        first = is_first(entries.owners_of_all(), codes, entries.rows.count, len(codes))
        entries.refuse_any(~first, "an earlier property has the same name", "Use each name once.")


def _entries(
    properties: Properties,
    names: PropertyNames,
    stated: StatedTypes | None,
    columns: dict[str, pa.Array],
    dialect: Dialect,
) -> tuple[list[Piece], int | Int64s]:
    """Keys and values of each row, and how many of the row's properties they are."""
    apart = [dialect.left_out(name.decode()) or name.decode() in _GROUP for name in names.distinct]
    sent = None if stated is None else _as_sent(stated, dialect)
    pieces = None if any(apart) else uniform_entries(properties, names, sent)
    if pieces is not None:
        return pieces, len(names.distinct)
    kinds = np.full(len(properties.names), _STRING)
    if stated is not None and sent is not None:
        here = places_of(stated, properties, _types_of(columns))
        codes = pc.index_in(sent.types, value_set=_TYPE_NAMES).to_numpy(zero_copy_only=False)
        kinds[here.drop_null().to_numpy()] = codes[mask_of(here.is_valid())]
    keys = pa.array([sized_bytes(name, STR8) for name in names.distinct], pa.binary())
    values = encoded_values(kinds, properties.values.view(pa.string()))
    keys = repeated(keys, properties.entries.rows.count) if names.each_row else keys.take(pa.array(names.codes()))
    entries, bounds = join_rows(merged([keys, *values])), properties.entries.bounds
    kept = mask_of(properties.values.is_valid()) & ~np.array(apart)[names.codes()]
    if not kept.all():
        entries = only_where(kept, entries)
    return [slices_of(entries, bounds)], np.diff(np.concatenate([[0], np.cumsum(kept)])[bounds])


def _as_sent(stated: StatedTypes, dialect: Dialect) -> StatedTypes:
    """Return them with the types that the values have in the message, which need not be of JMS."""
    if not dialect.send.sends_timestamps:
        return stated
    is_time = pc.equal(stated.given, pa.scalar(TIME_TYPE.encode(), pa.binary()))
    return replace(stated, types=pc.if_else(is_time, stated.given, stated.types))


def _types_of(columns: dict[str, pa.Array]) -> dict[str, ValueType]:
    return {name: value_type(array.type) or ValueType.STRING for name, array in columns.items()}


def _groups(properties: Properties, names: PropertyNames) -> dict[str, pa.Array]:
    """The group's id and sequence of each row, as strings."""
    found = {}
    for name in _GROUP:
        if name.encode() in names.distinct:
            at = np.flatnonzero(names.codes() == names.distinct.index(name.encode()))
            places = np.full(properties.entries.rows.count, -1)
            places[properties.entries.owners(at)] = at
            found[name] = properties.values.view(pa.string()).take(pa.array(places, mask=places < 0))
    return found


# --- groups --------------------------------------------------------------------------------------------


def _group_ids(rows: Rows, ids: pa.Array) -> list[Piece]:
    if value_type(ids.type) is not ValueType.STRING:
        raise SchemaError(f"Column {_GROUP_ID} of propertyColumns is not a string.", "JMS 3.1 §3.5.9: cast it.")
    texts = to_binary(ids)
    rows.require_utf8(texts, f"a {_GROUP_ID}")
    return sized(texts, STR8)


def _group_sequences(rows: Rows, sequences: pa.Array) -> list[Piece]:
    """JMS has an int, AMQP a uint: the same 32 bits (AMQP-JMS binding, §3.2.1.1)."""
    kind = value_type(sequences.type)
    if kind is ValueType.STRING:  # of column properties, where it was checked
        unsigned = pc.replace_substring_regex(sequences, "^\\+", "")
        sequences, _ = integers(unsigned, _MIN_INT, _MAX_INT)
    elif kind not in _INTEGERS:
        raise SchemaError(f"Column {_GROUP_SEQUENCE} of propertyColumns is not a number.", "JMS 3.1 §3.5.9: cast it.")
    given = mask_of(sequences.is_valid())
    values = sequences.cast(pa.int64()).fill_null(pa.scalar(0, pa.int64())).to_numpy()
    wrong = (values < _MIN_INT) | (values > _MAX_INT)
    rows.refuse_any(wrong, f"has a {_GROUP_SEQUENCE} that is not an int", "JMS 3.1 §3.5.9: use a smaller number.")
    found = numbers(values.astype(np.int32).view(np.uint32), UINT, ">u4")
    return [found if given.all() else pc.if_else(pa.array(given), found, NO_VALUE_SCALAR)]


# --- rows that all have the same names and types, in the same order ---------------------------------

# This is what one producer's rows have. Such a property is one column: its type is looked up once, and each row has the
# same bytes around the values.

_TYPES = {kind.encode(): kind for kind in PROPERTY_TYPES}


def uniform_entries(properties: Properties, names: PropertyNames, stated: StatedTypes | None) -> list[Piece] | None:
    """Keys and values of each row.

    None if the rows differ in names or types, and if a value is null, not valid for its type or needs the full check.
    """
    kinds = None if properties.values.null_count else _kinds(names, stated)
    if kinds is None:
        return None
    if all(kind is ValueType.STRING for kind in kinds):
        return [_strings(properties, names.distinct)]
    pieces: list[Piece] = []
    for place, (name, kind) in enumerate(zip(names.distinct, kinds, strict=True)):
        texts = properties.values.take(pa.array(np.arange(place, len(properties.values), len(kinds))))
        values = sized(texts, STR8) if kind is ValueType.STRING else plain_values(kind, texts.view(pa.string()))
        if values is None:
            return None
        pieces += [sized_bytes(name, STR8), *values]
    return pieces


def _kinds(names: PropertyNames, stated: StatedTypes | None) -> list[ValueType] | None:
    """The type of each name. A type without a property is left to the checks of ``places_of``."""
    if not names.each_row:
        return None
    if stated is None:
        return [ValueType.STRING] * len(names.distinct)
    width = repeated_width(stated.entries.bounds, stated.names)
    if not width or repeated_width(stated.entries.bounds, stated.types) != width:
        return None
    first = (texts[:width].to_pylist() for texts in (stated.names, stated.types))
    types = {name: _TYPES[kind] for name, kind in zip(*first, strict=True) if kind in _TYPES and name in names.distinct}
    return [types.get(name, ValueType.STRING) for name in names.distinct] if len(types) == width else None


def _strings(properties: Properties, names: list[bytes]) -> pa.Array:
    """The keys, constructors and sizes of each row are one template, so an entry is two pieces: these and the value."""
    rows, width = properties.entries.rows.count, len(names)
    lengths = lengths_of(properties.values)
    wide = bool(lengths.max() > SMALL)
    sizes = lengths.astype(">u4" if wide else "u1").view(np.uint8).reshape(rows, width, -1)
    parts: list[bytes | Uint8s] = []
    for place, name in enumerate(names):
        parts += [sized_bytes(name, STR8) + bytes((STR8 + WIDE * wide,)), sizes[:, place]]
    ends = np.cumsum([len(part) + sizes.shape[2] for part in parts[::2]])
    bounds = np.zeros(rows * width + 1, np.int32)
    for place, end in enumerate(ends.tolist()):
        bounds[1 + place :: width] = np.arange(end, end + rows * int(ends[-1]), int(ends[-1]))
    heads = binary_array(bounds, side_by_side(parts, rows).reshape(-1))
    return slices_of(join_rows([heads, properties.values]), properties.entries.bounds)
