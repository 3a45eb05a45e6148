"""The columns of ``format("jms")``: of the fixed schema, of a read, and of a write, with their names and types checked.

A read asks for columns of the fixed schema and for *property columns*. A write gives any subset of the columns that the
sink takes. There are no arrays here: pyarrow imports pandas, in 0.3 s of CPU, to make the first array of a process, and
processes of Spark that only plan a read or a write need no arrays.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NotRequired, TypedDict

import pyarrow as pa

from pyspark_jms.columns.origins import Origin
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.headers import HEADERS
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER
from pyspark_jms.jms.rules import JMSX_PROPERTIES, is_left_out, sent_name_problem
from pyspark_jms.jms.subscription import BodyChoice

__all__ = [
    "ARROW_SCHEMA",
    "BODY_COLUMNS",
    "BY_LOWER_NAME",
    "COLUMNS",
    "DDL",
    "EVERY_OTHER",
    "FIRST_MS",
    "IGNORED_BY_SINK",
    "LAST_MS",
    "NATIVE_TYPES",
    "PROPERTY_COLUMN",
    "PROPERTY_MAPS",
    "SINK_ONLY",
    "SPARK_TYPES",
    "TIMESTAMP",
    "TYPED_VALUE",
    "TYPE_NAME",
    "VALUE_TYPES",
    "DecodeOptions",
    "ReadColumns",
    "WantedColumns",
    "check_columns",
    "column_keys",
    "is_bytes",
    "is_text",
    "property_keys",
    "read_columns",
    "value_type",
]

# --- the fixed schema -------------------------------------------------------------------------------

# Each column has a type in Spark's DDL and in Arrow. They stand side by side, because Spark compares them field by
# field (``to_arrow_schema(…, timezone="UTC")``). What ``timestamp`` means depends on spark.sql.timestampType.

TYPED_VALUE = pa.struct([pa.field("type", pa.string()), pa.field("value", pa.string())])
"""One element of a MapMessage or StreamMessage: its JMS type, and its JMS string rendering."""

TIMESTAMP = pa.timestamp("us", tz="UTC")

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: the range of timestamps in Spark SQL and of ``datetime`` in Python."""

_ARROW = {"string": pa.string(), "int": pa.int32(), "timestamp_ltz": TIMESTAMP, "boolean": pa.bool_()}
_HEADERS = [(header.name, header.type.ddl, _ARROW[header.type.ddl]) for header in HEADERS]

_COLUMNS: tuple[tuple[str, str, pa.DataType], ...] = (
    ("sequence", "bigint", pa.int64()),
    *_HEADERS[:-1],
    ("properties", "map<string,string>", pa.map_(pa.string(), pa.string())),
    ("property_types", "map<string,string>", pa.map_(pa.string(), pa.string())),
    ("body_type", "string", pa.string()),
    ("text", "string", pa.string()),
    ("bytes", "binary", pa.binary()),
    ("map", "map<string,struct<type:string,value:string>>", pa.map_(pa.string(), TYPED_VALUE)),
    ("stream", "array<struct<type:string,value:string>>", pa.list_(TYPED_VALUE)),
    *_HEADERS[-1:],
    ("body_error", "string", pa.string()),
    ("delivery_id", "string", pa.string()),
)

COLUMNS: tuple[str, ...] = tuple(name for name, _, _ in _COLUMNS)
BY_LOWER_NAME: dict[str, str] = {name.lower(): name for name in COLUMNS}
"""The columns as Spark finds them, in upper or lower case."""

BODY_COLUMNS = frozenset({"body_type", "text", "bytes", "map", "stream"})
PROPERTY_MAPS = frozenset({"properties", "property_types"})
DDL_TYPES: dict[str, str] = {name: ddl for name, ddl, _ in _COLUMNS}
DDL: str = ", ".join(f"`{name}` {ddl}" for name, ddl in DDL_TYPES.items())
ARROW_SCHEMA: pa.Schema = pa.schema([pa.field(name, arrow) for name, _, arrow in _COLUMNS])

SINK_ONLY: tuple[str, ...] = ("destination", "time_to_live", "delivery_delay")
"""Columns of the sink that the source does not have: the destination, and two durations in milliseconds."""

IGNORED_BY_SINK: frozenset[str] = frozenset(
    {"sequence", "delivery_id", *(header.name for header in HEADERS if not header.sent)}
)
"""Columns that the provider sets on send (JMS 3.1 §3.4), or that mean nothing to a consumer."""


# --- the columns of a read --------------------------------------------------------------------------

# A name of the fixed schema is that column. Any other name is a property column: the property of that name, read as the
# given type.

SPARK_TYPES: dict[ValueType, str] = {
    ValueType.BOOLEAN: "boolean",
    ValueType.BYTE: "tinyint",
    ValueType.SHORT: "smallint",
    ValueType.INT: "int",
    ValueType.LONG: "bigint",
    ValueType.FLOAT: "float",
    ValueType.DOUBLE: "double",
    ValueType.STRING: "string",
    ValueType.CHAR: "string",
    ValueType.BYTES: "binary",
}

NATIVE_TYPES: dict[ValueType, pa.DataType] = {
    ValueType.BOOLEAN: pa.bool_(),
    ValueType.BYTE: pa.int8(),
    ValueType.SHORT: pa.int16(),
    ValueType.INT: pa.int32(),
    ValueType.LONG: pa.int64(),
    ValueType.FLOAT: pa.float32(),
    ValueType.DOUBLE: pa.float64(),
    ValueType.STRING: pa.string(),
}
"""JMS type of a property → the Arrow type of its values."""

_PLAIN_TYPES = {found: SPARK_TYPES[kind] for kind, found in NATIVE_TYPES.items()} | {TIMESTAMP: "timestamp_ltz"}
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
    """By column, its name in the fixed schema, or None for a property column."""

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the property columns."""
        return tuple(name for name, fixed in zip(self.schema.names, self.fixed, strict=True) if fixed is None)

    def wanted(self, more: Collection[str] = ()) -> WantedColumns | None:
        """Return what must be decoded of each message, with ``more`` columns of the fixed schema, or None for
        everything.

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

    source: Origin
    first_sequence: int
    body_type: BodyChoice
    wanted: NotRequired[WantedColumns | None]
    """The columns to decode. The result has these, or all columns of the schema."""


# --- the columns of a write -------------------------------------------------------------------------

EVERY_OTHER = ("*",)
"""The value of option ``propertyColumns`` for every column that is not of the fixed schema."""

PROPERTY_COLUMN = "properties."
"""The prefix of such a column's key in ``Rows.columns``; no column of the schema begins with it."""

VALUE_TYPES = {found: kind for kind, found in NATIVE_TYPES.items()} | {pa.large_string(): ValueType.STRING}


def value_type(found: pa.DataType) -> ValueType | None:
    """The JMS type of a property from a column of this type: a timestamp is sent in milliseconds, a decimal as text."""
    if pa.types.is_timestamp(found) and found.tz is not None:
        return ValueType.LONG
    return ValueType.STRING if pa.types.is_decimal128(found) else VALUE_TYPES.get(found)


def is_text(found: pa.DataType) -> bool:
    return found in {pa.string(), pa.large_string()}


def is_bytes(found: pa.DataType) -> bool:
    return found in {pa.binary(), pa.large_binary()}


def _is_text_map(found: pa.DataType) -> bool:
    return pa.types.is_map(found) and is_text(found.key_type) and is_text(found.item_type)


def _is_typed(found: pa.DataType) -> bool:
    """The element of a map or a stream: struct<type:string, value:string>."""
    if not pa.types.is_struct(found) or found.num_fields != 2:  # noqa: PLR2004
        return False
    return {found.field(i).name for i in range(2)} == {"type", "value"} and all(
        is_text(found.field(i).type) for i in range(2)
    )


def _is_typed_map(found: pa.DataType) -> bool:
    return pa.types.is_map(found) and is_text(found.key_type) and _is_typed(found.item_type)


def _is_typed_list(found: pa.DataType) -> bool:
    return (pa.types.is_list(found) or pa.types.is_large_list(found)) and _is_typed(found.value_type)


def _is_instant(found: pa.DataType) -> bool:
    """Spark gives each timestamp a time zone. A TIMESTAMP_NTZ has none, so it names no instant."""
    return pa.types.is_timestamp(found) and found.tz is not None


_Accepts = tuple[str, Callable[[pa.DataType], bool]]
_STRING: _Accepts = ("string", is_text)
_INTEGER: _Accepts = ("tinyint, smallint, int or bigint", pa.types.is_signed_integer)
_TIMESTAMP: _Accepts = ("timestamp_ltz", _is_instant)
_MILLISECONDS: _Accepts = ("tinyint, smallint, int or bigint, in milliseconds", pa.types.is_signed_integer)
_PROPERTIES: _Accepts = ("map<string,string>", _is_text_map)

_OF_HEADERS = {"string": _STRING, "int": _INTEGER, "timestamp_ltz": _TIMESTAMP}
_ACCEPTS: dict[str, _Accepts] = {
    **{header.name: _OF_HEADERS[header.type.ddl] for header in HEADERS if header.sent},
    "destination": _STRING,
    "time_to_live": _MILLISECONDS,
    "delivery_delay": _MILLISECONDS,
    "properties": _PROPERTIES,
    "property_types": _PROPERTIES,
    "body_type": _STRING,
    "body_error": _STRING,
    "text": _STRING,
    "bytes": ("binary", is_bytes),
    "map": ("map<string,struct<type:string,value:string>>", _is_typed_map),
    "stream": ("array<struct<type:string,value:string>>", _is_typed_list),
}

TYPE_NAME = b"spark"
"""The key, in a field's metadata, of Spark's name of its type."""

_BY_LOWER_NAME = BY_LOWER_NAME | {name.lower(): name for name in SINK_ONLY}


def check_columns(schema: pa.Schema, property_columns: Sequence[str] = ()) -> None:
    """Raise ``SchemaError`` for an unknown column or a wrong type. Upper and lower case are the same.

    ``property_columns``: names of columns that are properties, and nothing else; each must exist. ``EVERY_OTHER``: all
    that are not of the fixed schema.
    """
    seen: dict[str, str] = {}
    for field, key in zip(schema, column_keys(schema.names, property_columns), strict=True):
        if key is None:
            continue
        if key in seen:
            raise SchemaError(
                f"The columns {seen[key]!r} and {field.name!r} are the same column {key}.",
                "Drop or rename one of them.",
            )
        seen[key] = field.name
        if key.startswith(PROPERTY_COLUMN):
            _check_property_type(field)
        elif key not in IGNORED_BY_SINK:
            _check_type(key, field)
    if tuple(property_columns) == EVERY_OTHER:
        return
    missing = [name for name in property_columns if PROPERTY_COLUMN + name not in seen]
    if missing:
        raise SchemaError(
            f"Option propertyColumns names {missing[0]!r}, but the DataFrame has no such column.",
            f"Columns: {', '.join(schema.names)}.",
        )


def column_keys(names: Sequence[str], property_columns: Sequence[str] = ()) -> list[str | None]:
    """The key in ``Rows.columns`` of each column; None for a property that a provider sets, which is not sent."""
    if tuple(property_columns) == EVERY_OTHER:
        return [_BY_LOWER_NAME.get(name.lower()) or _property_key(name) for name in names]
    own = {name.lower(): PROPERTY_COLUMN + name for name in property_columns}
    return [own.get(name.lower()) or _known(name) for name in names]


def _property_key(name: str) -> str | None:
    if is_left_out(name, frozenset()):
        return None
    problem = sent_name_problem(name)
    if problem is not None:
        raise SchemaError(
            f"Column {name!r} cannot be a property (propertyColumns=*): its name {problem}.", "Rename or drop it."
        )
    return PROPERTY_COLUMN + name


def _check_property_type(field: pa.Field) -> None:
    if not pa.types.is_null(field.type) and value_type(field.type) is None:
        raise SchemaError(
            f"Column {field.name} of propertyColumns has the type {_shown(field)}, which no JMS property has.",
            "Cast it to boolean, tinyint, smallint, int, bigint, float, double, string, timestamp_ltz or decimal.",
        )


def _known(found: str) -> str:
    try:
        return _BY_LOWER_NAME[found.lower()]
    except KeyError:
        near = get_close_matches(found.lower(), _BY_LOWER_NAME, n=1, cutoff=0.0)[0]
        raise SchemaError(
            f"The jms sink has no column {found!r}; the nearest is {_BY_LOWER_NAME[near]}.",
            "Rename or drop it, put it into properties, or name it in option propertyColumns."
            f" Columns: {', '.join(_BY_LOWER_NAME.values())}.",
        ) from None


def _check_type(name: str, field: pa.Field) -> None:
    wanted, accepts = _ACCEPTS[name]
    found = field.type
    if not pa.types.is_null(found) and not accepts(found):
        shown = _shown(field)
        raise SchemaError(f"Column {name} has the type {shown}; the jms sink takes {wanted}.", _remedy(found, wanted))


def _shown(field: pa.Field) -> str:
    """Return Spark's name of the type: Arrow's of a VARIANT is a struct, and of a TIME time64."""
    return str((field.metadata or {}).get(TYPE_NAME, str(field.type).encode()), "utf-8")


def _remedy(found: pa.DataType, wanted: str) -> str:
    if pa.types.is_timestamp(found) and wanted == _TIMESTAMP[0]:
        return "Cast it to timestamp_ltz: Spark then takes it for a time in the session's time zone."
    return f"Cast it to {wanted}."
