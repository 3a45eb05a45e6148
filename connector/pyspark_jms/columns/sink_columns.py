"""The columns of a DataFrame → the columns of the sink, with their names and types checked.

Refuses unknown columns and wrong types. Does not know protocols.
"""

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import Int64s, offsets_of
from pyspark_jms.columns.schema import COLUMNS, IGNORED_BY_SINK, SINK_ONLY
from pyspark_jms.columns.typed_columns import PROPERTY_COLUMN, value_type
from pyspark_jms.errors import SchemaError

__all__ = ["check_columns", "row_ends", "sink_columns"]


def _is_text(found: pa.DataType) -> bool:
    return found in {pa.string(), pa.large_string()}


def _is_bytes(found: pa.DataType) -> bool:
    return found in {pa.binary(), pa.large_binary()}


def _is_text_map(found: pa.DataType) -> bool:
    return pa.types.is_map(found) and _is_text(found.key_type) and _is_text(found.item_type)


def _is_typed(found: pa.DataType) -> bool:
    """The element of a map or a stream: struct<type:string, value:string>."""
    if not pa.types.is_struct(found) or found.num_fields != 2:  # noqa: PLR2004
        return False
    return {found.field(i).name for i in range(2)} == {"type", "value"} and all(
        _is_text(found.field(i).type) for i in range(2)
    )


def _is_typed_map(found: pa.DataType) -> bool:
    return pa.types.is_map(found) and _is_text(found.key_type) and _is_typed(found.item_type)


def _is_typed_list(found: pa.DataType) -> bool:
    return (pa.types.is_list(found) or pa.types.is_large_list(found)) and _is_typed(found.value_type)


_Accepts = tuple[str, Callable[[pa.DataType], bool]]
_STRING: _Accepts = ("string", _is_text)
_INTEGER: _Accepts = ("tinyint, smallint, int or bigint", pa.types.is_signed_integer)
_TIMESTAMP: _Accepts = ("timestamp", pa.types.is_timestamp)
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
    "time_to_live": _INTEGER,
    "delivery_delay": _INTEGER,
    "properties": _PROPERTIES,
    "property_types": _PROPERTIES,
    "body_type": _STRING,
    "text": _STRING,
    "bytes": ("binary", _is_bytes),
    "map": ("map<string,struct<type:string,value:string>>", _is_typed_map),
    "stream": ("array<struct<type:string,value:string>>", _is_typed_list),
    "content_type": _STRING,
}
_ELEMENT_BYTES = 40
"""The approximate size of an element of a map or a stream in JSON, without its texts."""

_BY_LOWER_NAME = {name.lower(): name for name in (*COLUMNS, *SINK_ONLY)}


def check_columns(schema: pa.Schema, property_columns: Collection[str] = ()) -> None:
    """Raise ``SchemaError`` for an unknown column or a wrong type. Upper and lower case are the same.

    ``property_columns``: names of columns that are properties, and nothing else; each must exist.
    """
    own = _own_names(property_columns)
    seen: dict[str, str] = {}
    for field in schema:
        name = own.get(field.name.lower()) or _known(field.name)
        if name in seen:
            raise SchemaError(
                f"The columns {seen[name]!r} and {field.name!r} are the same column {name}.",
                "Drop or rename one of them.",
            )
        seen[name] = field.name
        if field.name.lower() in own:
            _check_property_type(field)
        elif name not in IGNORED_BY_SINK:
            _check_type(name, field.type)
    missing = [name.removeprefix(PROPERTY_COLUMN) for name in own.values() if name not in seen]
    if missing:
        raise SchemaError(
            f"Option propertyColumns names {missing[0]!r}, but the DataFrame has no such column.",
            f"Columns: {', '.join(schema.names)}.",
        )


def _own_names(property_columns: Collection[str]) -> dict[str, str]:
    """Lower-case name of a column → its key in ``Rows.columns``, with the name as the option has it."""
    return {name.lower(): PROPERTY_COLUMN + name for name in property_columns}


def _check_property_type(field: pa.Field) -> None:
    if not pa.types.is_null(field.type) and value_type(field.type) is None:
        raise SchemaError(
            f"Column {field.name} of propertyColumns has the type {field.type}, which no JMS property has.",
            "Cast it to boolean, tinyint, smallint, int, bigint, float, double or string.",
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
        raise SchemaError(f"Column {name} has the type {found}; the jms sink takes {wanted}.", f"Cast it to {wanted}.")


def sink_columns(batch: pa.RecordBatch, property_columns: Collection[str] = ()) -> dict[str, pa.Array]:
    """The columns of a batch by the sink's names. Ignored columns and columns of nulls are left out."""
    check_columns(batch.schema, property_columns)
    names = _BY_LOWER_NAME | _own_names(property_columns)
    named = ((names[name.lower()], batch.column(i)) for i, name in enumerate(batch.schema.names))
    return {name: array for name, array in named if name not in IGNORED_BY_SINK and array.null_count < len(array)}


def row_ends(columns: Mapping[str, pa.Array], count: int) -> Int64s:
    """The position of each row's end if the unescaped bytes of all its columns stood one after the other.

    Bytes under a null count, though they are not sent: so this is an estimate to divide batches by, and not the size
    of a message.
    """
    ends = np.zeros(count + 1, np.int64)
    for array in columns.values():
        if pa.types.is_map(array.type) or pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            ends += _entry_ends(array)
        elif _is_text(array.type) or _is_bytes(array.type):
            ends += offsets_of(array)
    return ends


def _entry_ends(lists: pa.Array) -> Int64s:
    """The same for a map or a list. Typed values count with what JSON adds to each of them."""
    bounds = offsets_of(lists).astype(np.int64)
    parts = [lists.keys, lists.items] if pa.types.is_map(lists.type) else [lists.values]
    typed = pa.types.is_struct(parts[-1].type)
    ends = bounds * (_ELEMENT_BYTES if typed else 0)
    for text in parts[:-1] + (parts[-1].flatten() if typed else parts[-1:]):
        ends += offsets_of(text)[bounds]
    return ends
