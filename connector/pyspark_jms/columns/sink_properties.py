"""Columns ``properties`` and ``property_types``, and those of option ``propertyColumns`` → the properties of all rows.

The properties stand one after the other, with their names, their JMS types and the texts that Java writes, and each is
checked. Does not know protocols.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.arrays import (
    Int64s,
    Mask,
    Offsets,
    Piece,
    bytes_of,
    first_not_utf8,
    mask_of,
    offsets_of,
    to_binary,
)
from pyspark_jms.columns.rows import Entries, Rows, compact
from pyspark_jms.columns.schema import PROPERTY_COLUMN, VALUE_TYPES
from pyspark_jms.columns.value_texts import java_text, jms_types, misfits
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.rules import PROPERTY_TYPES, property_value_problem, sent_name_problem
from pyspark_jms.sentences import with_article

__all__ = [
    "Properties",
    "PropertyNames",
    "StatedTypes",
    "TypedColumn",
    "check_column_name",
    "check_names",
    "distinct_names",
    "places_of",
    "properties_of",
    "property_values",
    "repeated_width",
    "stated_types",
    "typed_columns",
]

_GROUP_SEQUENCE = b"JMSXGroupSeq"


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of all rows, one after the other; names and values as binary."""

    entries: Entries
    names: pa.Array
    values: pa.Array


def properties_of(rows: Rows) -> Properties | None:
    return _entries_of(rows, "properties", "a property")


def _entries_of(rows: Rows, column: str, what: str) -> Properties | None:
    """Read a column of maps. ``what`` is the name of an entry in errors. Returns None if no row has an entry."""
    maps = rows.column(column)
    if maps is None:
        return None
    maps = compact(maps)
    bounds = offsets_of(maps)
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    names, values = (to_binary(child.slice(start, length)) for child in (maps.keys, maps.items))
    return Properties(Entries(rows, bounds - start, what, names), names, values) if length else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyNames:
    """The names of all properties, so that each distinct name is checked once and not once a row."""

    distinct: list[bytes]
    each_row: bool
    """Whether every row has all of them, in this order."""
    codes: Callable[[], Int64s]
    """The index in ``distinct`` of each property's name."""


def distinct_names(properties: Properties) -> PropertyNames:
    width = repeated_width(properties.entries.bounds, properties.names)
    if width:
        rows = properties.entries.rows.count
        distinct = properties.names[:width].to_pylist()
        return PropertyNames(distinct=distinct, each_row=True, codes=lambda: np.tile(np.arange(width), rows))
    encoded = properties.names.dictionary_encode()
    return PropertyNames(distinct=encoded.dictionary.to_pylist(), each_row=False, codes=encoded.indices.to_numpy)


def repeated_width(bounds: Offsets, texts: pa.Array) -> int:
    """The number of entries of each row if all rows have the first row's texts, as one producer's do; else 0.

    Row i has the entries of ``texts``, a binary array without nulls, from ``bounds[i]`` to ``bounds[i + 1]``.
    """
    width = int(bounds[1])
    if not width or (np.diff(bounds) != width).any():
        return 0
    lengths, data = np.diff(offsets_of(texts)), bytes_of(texts)
    if (lengths[width:] != lengths[:-width]).any():
        return 0
    row_bytes = int(lengths[:width].sum())
    return width if (data[row_bytes:] == data[: len(data) - row_bytes]).all() else 0


def check_names(
    properties: Properties, names: PropertyNames, dialect: BrokerDialect, columns: Collection[str] = ()
) -> None:
    """Refuse names that JMS or the broker reserve, a group sequence that is not an int, and values that are not UTF-8.

    ``columns``: names of properties that come from columns of their own.
    """
    judged = ((code, _problem(name, dialect, columns)) for code, name in enumerate(names.distinct))
    problems = {code: problem for code, problem in judged if problem}
    if problems:
        codes = names.codes()
        remedy = "Rename it, or use the column with that meaning."
        properties.entries.refuse_any(np.isin(codes, list(problems)), lambda index: problems[int(codes[index])], remedy)
    if _GROUP_SEQUENCE in names.distinct:
        _check_group_sequence(properties, np.flatnonzero(names.codes() == names.distinct.index(_GROUP_SEQUENCE)))
    wrong = first_not_utf8(properties.values)
    if wrong is not None:
        properties.entries.refuse(wrong, "its value is not UTF-8", "Encode it, in base64 for example.")


def _problem(data: bytes, dialect: BrokerDialect, columns: Collection[str]) -> str | None:
    try:
        name = data.decode()
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    if dialect.left_out(name):
        return None
    if name in columns:
        return "it is a column of propertyColumns too"
    problem = dialect.name_problem(name) or sent_name_problem(name)
    return problem and f"its name {problem}"


def check_column_name(name: str, dialect: BrokerDialect) -> None:
    """Refuse a name of option propertyColumns that the broker reserves, or sets itself."""
    problem = "is a property that the broker sets" if dialect.left_out(name) else dialect.name_problem(name)
    if problem:
        raise SchemaError(f"The name of column {name} of propertyColumns {problem}.", "Rename it.")


def _check_group_sequence(properties: Properties, at: Int64s) -> None:
    """JMS 3.1 §3.5.9: JMSXGroupSeq is an int, and brokers read it as an int whatever type the row gives."""
    wrong = np.zeros(len(properties.names), np.bool_)
    texts = properties.values.take(pa.array(at)).view(pa.string())
    wrong[at] = misfits(pa.repeat(pa.scalar(ValueType.INT.value), len(at)), texts)
    properties.entries.refuse_any(wrong, "its value is not an int", "JMS 3.1 §3.5.9: use a whole number.")


# --- column property_types --------------------------------------------------------------------------

_TYPES = tuple(kind.value for kind in ValueType if kind in PROPERTY_TYPES)
_KNOWN = pa.array([kind.encode() for kind in _TYPES], pa.binary())
_REMEDY = f"The type of a property is one of {', '.join(_TYPES)}."


@dataclass(frozen=True, slots=True)
class StatedTypes:
    """The types of all rows, one after the other, as binary; none is null."""

    entries: Entries
    names: pa.Array
    types: pa.Array
    given: pa.Array
    """The types as the rows state them, which may be those of AMQP."""

    def only(self, mask: Mask) -> "StatedTypes":
        entries, kept = self.entries.only(mask), pa.array(mask)
        return StatedTypes(entries, *(texts.filter(kept) for texts in (self.names, self.types, self.given)))


def stated_types(rows: Rows) -> StatedTypes | None:
    found = _entries_of(rows, "property_types", "a type for the property")
    if found is None:
        return None
    stated = StatedTypes(found.entries, found.names, jms_types(found.values, of_elements=False), found.values)
    if found.values.null_count:
        stated = stated.only(mask_of(found.values.is_valid()))
    return stated if len(stated.names) else None


def places_of(stated: StatedTypes, properties: Properties | None, columns: Mapping[str, ValueType]) -> pa.Array:
    """The position of each type's property; null for a type of a typed column.

    Refuses an unknown type, a type without a property, and a value that is not valid for its type. ``columns``: the
    type of each property that comes from a column of its own.
    """
    unknown = ~mask_of(pc.is_in(stated.types, value_set=_KNOWN))
    stated.entries.refuse_any(unknown, "JMS has no such type of properties", _REMEDY)
    of_columns = _of_columns(stated, columns)
    places = _places(stated, properties)
    missing = (places < 0) & ~of_columns
    stated.entries.refuse_any(missing, "the row has no such property", "Leave it out, or add the property.")
    found = pa.array(places, mask=places < 0)
    if properties is not None:
        _check_values(stated, properties.values.take(found))
    return found


def _of_columns(stated: StatedTypes, columns: Mapping[str, ValueType]) -> Mask:
    """Which entries are about typed columns. Their types must be those of the columns."""
    found = np.zeros(len(stated.names), np.bool_)
    for name, kind in columns.items():
        own = mask_of(pc.equal(stated.names, pa.scalar(name.encode(), pa.binary())))
        other = own & ~mask_of(pc.equal(stated.types, pa.scalar(kind.encode(), pa.binary())))
        stated.entries.refuse_any(other, f"the column of that name is {with_article(kind)}", "Leave it out.")
        found |= own
    return found


def _places(stated: StatedTypes, properties: Properties | None) -> Int64s:
    """The position of each type's property; -1 if the row has no such property."""
    if properties is None:
        return np.full(len(stated.names), -1)
    if np.array_equal(stated.entries.bounds, properties.entries.bounds) and _same_texts(stated.names, properties.names):
        return np.arange(len(stated.names))
    encoded = pa.concat_arrays([properties.names, stated.names]).dictionary_encode()
    codes, kinds = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    there = codes[: len(properties.names)] + kinds * properties.entries.owners_of_all()
    wanted = codes[len(properties.names) :] + kinds * stated.entries.owners_of_all()
    order = np.argsort(there, kind="stable")
    at = np.minimum(np.searchsorted(there[order], wanted), len(there) - 1)
    return np.where(there[order][at] == wanted, order[at], -1)


def _same_texts(one: pa.Array, other: pa.Array) -> bool:
    lengths = np.array_equal(np.diff(offsets_of(one)), np.diff(offsets_of(other)))
    return lengths and np.array_equal(bytes_of(one), bytes_of(other))


def _check_values(stated: StatedTypes, values: pa.Array) -> None:
    def fact(index: int) -> str:
        problem = property_value_problem(stated.types[index].as_py().decode(), values[index].as_py().decode())
        return f"its value {problem or 'is not of that type'}"

    wrong = misfits(stated.types.view(pa.string()), values.view(pa.string()))
    replace(stated.entries, kind="a property").refuse_any(wrong, fact, "Correct the value or its type.")


# --- option propertyColumns -------------------------------------------------------------------------

_NOTHING = pa.scalar(b"", pa.binary())


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A property of all rows: its JMS type, and its value in each row."""

    kind: ValueType
    texts: pa.Array
    """Binary; a row with a null does not have the property."""

    def where_given(self, text: bytes) -> Piece:
        """``text`` for each row that has the property, nothing for the others."""
        if not self.texts.null_count:
            return text
        return pc.if_else(self.texts.is_valid(), pa.scalar(text, pa.binary()), _NOTHING)


def property_values(rows: Rows) -> Rows:
    """The rows with values of JMS types: a timestamp as a long of milliseconds, a decimal as a string."""
    changed = {}
    for key, array in rows.columns.items():
        if not key.startswith(PROPERTY_COLUMN):
            continue
        if pa.types.is_timestamp(array.type):
            changed[key] = _milliseconds(rows, key.removeprefix(PROPERTY_COLUMN), array)
        elif pa.types.is_decimal(array.type):
            changed[key] = array.cast(pa.string())
    return replace(rows, columns={**rows.columns, **changed}) if changed else rows


def _milliseconds(rows: Rows, name: str, array: pa.Array) -> pa.Array:
    # Spark labels the column with the session's zone. A kernel that looks at it fails for a zone that Arrow does not
    # know (GMT+02:00, PST, or an image without zone data) and in an hour that the zone has twice.
    instants = array.view(pa.int64()).view(pa.timestamp(array.type.unit))
    rounded = pc.floor_temporal(instants, unit="millisecond")
    inexact = pc.not_equal(rounded, instants).fill_null(pa.scalar(value=False, type=pa.bool_()))
    fact = f"has in column {name} a time with a part of a millisecond, which no property can have"
    rows.refuse_any(mask_of(inexact), fact, "Truncate it: date_trunc('MILLISECOND', …).")
    return rounded.cast(pa.timestamp("ms")).view(pa.int64())


def typed_columns(rows: Rows) -> dict[str, TypedColumn]:
    """The typed columns by property name. A column that is null in all of these rows is left out."""
    found = {}
    for key in rows.columns:
        array = rows.column(key) if key.startswith(PROPERTY_COLUMN) else None
        if array is not None:
            found[key.removeprefix(PROPERTY_COLUMN)] = TypedColumn(VALUE_TYPES[array.type], _texts(array))
    return found


def _texts(array: pa.Array) -> pa.Array:
    if pa.types.is_floating(array.type):
        return java_text(array)
    if pa.types.is_boolean(array.type):
        return pc.if_else(array, pa.scalar(b"true", pa.binary()), pa.scalar(b"false", pa.binary()))
    return to_binary(array if VALUE_TYPES[array.type] is ValueType.STRING else array.cast(pa.string()))
