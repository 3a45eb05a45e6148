"""The schema that a user gives to a read → the columns that are asked for, with their names and types checked.

A name of the fixed schema is that column. Any other name is a *property column*: the property of that name, read as the
given type. No arrays: Spark also plans a read, in a process of its own, see ``columns.schema``.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NotRequired, TypedDict

import pyarrow as pa

from pyspark_jms.columns.schema import ARROW_SCHEMA, BY_LOWER_NAME, DDL_TYPES, SINK_ONLY, TIMESTAMP
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, Destination
from pyspark_jms.jms.rules import JMSX_PROPERTIES
from pyspark_jms.jms.subscription import BodyChoice

__all__ = ["COLUMN_TYPES", "DecodeOptions", "ReadColumns", "WantedColumns", "property_keys", "read_columns"]

_PLAIN_TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    TIMESTAMP: "timestamp",
}
COLUMN_TYPES: tuple[str, ...] = (*_PLAIN_TYPES.values(), "decimal")
"""The types of property columns, as Spark SQL names them."""

_JMSX_BY_LOWER_NAME = {name.lower(): name for name in JMSX_PROPERTIES}
_IN_THE_MAP = "Column properties has every property as text."


_NEEDS_ALL = frozenset({"bytes", "body_error"})
"""Columns that depend on every part of a message: whether there is a fault, and the bytes of a message with a fault."""


def property_keys(name: str) -> tuple[str, str]:
    """The columns of a property in decoded rows: its text and its type, as in the maps of the fixed schema."""
    return f"properties.{name}", f"property_types.{name}"


@dataclass(frozen=True, slots=True)
class WantedColumns:
    """What a decoder makes of messages, instead of all columns of the fixed schema."""

    fixed: frozenset[str]
    properties: tuple[str, ...]
    schema: pa.Schema
    """``fixed`` in the order of the fixed schema, then the two columns of each property."""

    @classmethod
    def of(cls, fixed: Collection[str], properties: Sequence[str]) -> "WantedColumns":
        fields = [field for field in ARROW_SCHEMA if field.name in fixed]
        keys = [key for name in properties for key in property_keys(name)]
        return cls(frozenset(fixed), tuple(properties), pa.schema([*fields, *((key, pa.string()) for key in keys)]))


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """The columns of a read, in the user's order."""

    schema: pa.Schema
    """The columns with the names that the user gave them."""

    fixed: tuple[str | None, ...]
    """By column, its name in the fixed schema. None: a property column."""

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the property columns."""
        return tuple(name for name, fixed in zip(self.schema.names, self.fixed, strict=True) if fixed is None)

    def wanted(self, more: Collection[str] = ()) -> WantedColumns | None:
        """What must be decoded of each message, with ``more`` columns of the fixed schema. None: everything.

        A ``body_error`` of ``more`` has the faults of what is decoded, not those of the whole message.
        """
        own = {name for name in self.fixed if name is not None}
        fixed = own | set(more)
        if own & _NEEDS_ALL or {BODY_MARKER, TYPES_MARKER} & set(self.properties):
            return None
        return WantedColumns.of(fixed, self.properties)


def read_columns(fields: Sequence[pa.Field], shown: Sequence[str]) -> ReadColumns | None:
    """Return the columns that are asked for; None if these are all columns of the fixed schema, in its order.

    ``shown``: the types of the fields as Spark SQL names them. Raises ``SchemaError`` for the first column that a read
    cannot have.
    """
    schema = pa.schema(fields)
    if schema.equals(ARROW_SCHEMA):
        return None
    if not fields:
        raise SchemaError("The schema has no column.", "Name a column, or leave out schema() to read all columns.")
    fixed: list[str | None] = []
    seen: dict[str, str] = {}
    for field, spelled in zip(fields, shown, strict=True):
        column = BY_LOWER_NAME.get(field.name.lower())
        if column is None:
            _check_property(field, spelled)
        elif field.type != ARROW_SCHEMA.field(column).type:
            raise _wrong_type(column, spelled)
        if not field.nullable:
            raise SchemaError(
                f"Column {field.name} is declared NOT NULL, but a message may have no value for it.", "Remove NOT NULL."
            )
        key = column or field.name
        if key in seen:
            raise SchemaError(f"The columns {seen[key]!r} and {field.name!r} are the same column.", "Remove one.")
        seen[key] = field.name
        fixed.append(column)
    return ReadColumns(schema, tuple(fixed))


def _wrong_type(column: str, shown: str) -> SchemaError:
    wanted = DDL_TYPES[column]
    if shown.replace(" ", "") == wanted:
        return SchemaError(f"Column {column} forbids a null inside of its values.", "Leave out schema(), or allow it.")
    return SchemaError(
        f"Column {column} has the type {wanted}, and the schema asks for {shown}.",
        f"Declare it as `{column}` {wanted}, and cast it in the query.",
    )


def _check_property(field: pa.Field, shown: str) -> None:
    name = field.name
    if not name:
        raise SchemaError("A column of the schema has no name.", "Name a column or a property.")
    if name.lower() in SINK_ONLY:
        raise SchemaError(
            f"Column {name} is a column of the sink, and messages that are read do not have it.",
            f"Leave it out. {_IN_THE_MAP}",
        )
    if (near := _misspelled(name)) is not None:
        raise SchemaError(
            f"The jms source has no column {name!r}; the nearest is {near}.",
            f"Names that begin with JMS are columns, or properties that JMS defines. {_IN_THE_MAP}",
        )
    if field.type not in _PLAIN_TYPES and not pa.types.is_decimal128(field.type):
        raise SchemaError(
            f"Column {name} is not of the fixed schema, so it is a property, and the source reads no property as"
            f" {shown}.",
            f"Declare one of {', '.join(COLUMN_TYPES)}. {_IN_THE_MAP}",
        )


def _misspelled(name: str) -> str | None:
    """The nearest name of JMS if no property can have this name; else None.

    JMS 3.1 §3.8.1.1 and §3.5.9: names that begin with JMS are headers, JMSX… properties that JMS defines, and JMS_…
    properties of a provider. A name of JMS in other case would never have a value.
    """
    if name in JMSX_PROPERTIES or name.startswith("JMS_"):
        return None
    if name.lower() in _JMSX_BY_LOWER_NAME:
        return _JMSX_BY_LOWER_NAME[name.lower()]
    if not name.startswith("JMS"):
        return None
    known = BY_LOWER_NAME | _JMSX_BY_LOWER_NAME
    return known[get_close_matches(name.lower(), known, n=1, cutoff=0.0)[0]]


class DecodeOptions(TypedDict):
    """How the messages of a block become rows."""

    source: Destination
    first_sequence: int
    body_type: BodyChoice
    wanted: NotRequired[WantedColumns | None]
    """The columns to decode. The result has these, or all columns of the schema."""
