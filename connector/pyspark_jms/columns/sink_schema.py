"""The names and types of a DataFrame's columns, checked.

Unknown columns and wrong types are refused. There are no arrays here: Spark also plans a write, in a process of its
own, see ``columns.schema``.
"""

from collections.abc import Callable, Sequence
from difflib import get_close_matches

import pyarrow as pa

from pyspark_jms.columns.schema import BY_LOWER_NAME, IGNORED_BY_SINK, SINK_ONLY
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import is_left_out, property_name_problem

__all__ = [
    "EVERY_OTHER",
    "PROPERTY_COLUMN",
    "VALUE_TYPES",
    "check_columns",
    "column_keys",
    "is_bytes",
    "is_text",
    "value_type",
]

EVERY_OTHER = ("*",)
"""The value of option ``propertyColumns`` for every column that is not of the fixed schema."""

PROPERTY_COLUMN = "properties."
"""The prefix of such a column's key in ``Rows.columns``; no column of the schema begins with it."""

VALUE_TYPES: dict[pa.DataType, ValueType] = {
    pa.bool_(): ValueType.BOOLEAN,
    pa.int8(): ValueType.BYTE,
    pa.int16(): ValueType.SHORT,
    pa.int32(): ValueType.INT,
    pa.int64(): ValueType.LONG,
    pa.float32(): ValueType.FLOAT,
    pa.float64(): ValueType.DOUBLE,
    pa.string(): ValueType.STRING,
    pa.large_string(): ValueType.STRING,
}


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
_TIMESTAMP: _Accepts = ("timestamp", _is_instant)
_MILLISECONDS: _Accepts = ("tinyint, smallint, int or bigint, in milliseconds", pa.types.is_signed_integer)
_PROPERTIES: _Accepts = ("map<string,string>", _is_text_map)

_ACCEPTS: dict[str, _Accepts] = {
    "destination": _STRING,
    "JMSCorrelationID": _STRING,
    "JMSType": _STRING,
    "JMSReplyTo": _STRING,
    "JMSDeliveryMode": _INTEGER,
    "JMSPriority": _INTEGER,
    "JMSExpiration": _TIMESTAMP,
    "JMSDeliveryTime": _TIMESTAMP,
    "time_to_live": _MILLISECONDS,
    "delivery_delay": _MILLISECONDS,
    "properties": _PROPERTIES,
    "property_types": _PROPERTIES,
    "body_type": _STRING,
    "text": _STRING,
    "bytes": ("binary", is_bytes),
    "map": ("map<string,struct<type:string,value:string>>", _is_typed_map),
    "stream": ("array<struct<type:string,value:string>>", _is_typed_list),
    "content_type": _STRING,
}

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
            _check_type(key, field.type)
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
    problem = property_name_problem(name)
    if problem is not None:
        raise SchemaError(
            f"Column {name!r} cannot be a property (propertyColumns=*): its name {problem}.", "Rename or drop it."
        )
    return PROPERTY_COLUMN + name


def _check_property_type(field: pa.Field) -> None:
    if not pa.types.is_null(field.type) and value_type(field.type) is None:
        raise SchemaError(
            f"Column {field.name} of propertyColumns has the type {_shown(field.type)}, which no JMS property has.",
            "Cast it to boolean, tinyint, smallint, int, bigint, float, double, string, timestamp or decimal.",
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


def _check_type(name: str, found: pa.DataType) -> None:
    wanted, accepts = _ACCEPTS[name]
    if not pa.types.is_null(found) and not accepts(found):
        shown = _shown(found)
        raise SchemaError(f"Column {name} has the type {shown}; the jms sink takes {wanted}.", _remedy(found, wanted))


def _shown(found: pa.DataType) -> str:
    """Arrow's name of a type, except for TIMESTAMP_NTZ: in Arrow's name only the missing time zone shows it."""
    return "timestamp_ntz" if pa.types.is_timestamp(found) and found.tz is None else str(found)


def _remedy(found: pa.DataType, wanted: str) -> str:
    if pa.types.is_timestamp(found) and wanted == _TIMESTAMP[0]:
        return "Cast it to timestamp: Spark then takes it for a time in the session's time zone."
    return f"Cast it to {wanted}."
