"""What Spark hands over in, the sink's columns out: one name and one Arrow type each, a slice at a time.

Refuses unknown columns and types that are not the column's own; knows no header and no frame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.encode_octets import Int64s, Mask, mask_of, offsets_of, to_binary
from pyspark_jms.columns.schema import COLUMNS, IGNORED_BY_SINK, SINK_ONLY
from pyspark_jms.errors import MessageFormatError, SchemaError

__all__ = ["Rows", "check_columns", "row_ends", "sink_columns"]


def _is_text(found: pa.DataType) -> bool:
    return found in {pa.string(), pa.large_string()}


def _is_octets(found: pa.DataType) -> bool:
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
    "bytes": ("binary", _is_octets),
    "map": ("map<string,struct<type:string,value:string>>", _is_typed_map),
    "stream": ("array<struct<type:string,value:string>>", _is_typed_list),
    "content_type": _STRING,
}
_BY_LOWER_NAME = {name.lower(): name for name in (*COLUMNS, *SINK_ONLY)}


def check_columns(schema: pa.Schema) -> None:
    """Raise ``SchemaError`` for a column the sink does not know, in any case, or of another type."""
    seen: dict[str, str] = {}
    for field in schema:
        name = _known(field.name)
        if name in seen:
            raise SchemaError(
                f"The columns {seen[name]!r} and {field.name!r} are the same column {name}.",
                "Drop or rename one of them.",
            )
        seen[name] = field.name
        if name not in IGNORED_BY_SINK:
            _check_type(name, field.type)


def _known(found: str) -> str:
    try:
        return _BY_LOWER_NAME[found.lower()]
    except KeyError:
        near = get_close_matches(found.lower(), _BY_LOWER_NAME, n=1, cutoff=0.0)[0]
        raise SchemaError(
            f"The jms sink has no column {found!r}; the nearest is {_BY_LOWER_NAME[near]}.",
            f"Rename or drop it, or put it into properties. Columns: {', '.join(_BY_LOWER_NAME.values())}.",
        ) from None


def _check_type(name: str, found: pa.DataType) -> None:
    wanted, accepts = _ACCEPTS[name]
    if not pa.types.is_null(found) and not accepts(found):
        raise SchemaError(f"Column {name} has the type {found}; the jms sink takes {wanted}.", f"Cast it to {wanted}.")


def sink_columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The batch's checked columns by their own name; what is ignored or all null is left out."""
    check_columns(batch.schema)
    named = ((_BY_LOWER_NAME[name.lower()], batch.column(i)) for i, name in enumerate(batch.schema.names))
    return {name: array for name, array in named if name not in IGNORED_BY_SINK and array.null_count < len(array)}


def row_ends(columns: Mapping[str, pa.Array], count: int) -> Int64s:
    """Where each row would end if its columns' octets stood one after the other, unescaped.

    Octets hidden under a null count here, though no frame will carry them: good to cut by, not to judge by.
    """
    ends = np.zeros(count + 1, np.int64)
    for name, array in columns.items():
        if name == "properties":
            bounds = offsets_of(array)
            ends += offsets_of(array.keys)[bounds]
            ends += offsets_of(array.items)[bounds]
        elif _is_text(array.type) or _is_octets(array.type):
            ends += offsets_of(array)
    return ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A run of rows: its columns as ``sink_columns`` names them, and its place in the task for error messages."""

    columns: Mapping[str, pa.Array]
    first: int
    count: int

    def text(self, name: str) -> pa.Array | None:
        """A string or binary column with 32-bit offsets, as binary; None when absent or all null."""
        array = self._column(name)
        return None if array is None else to_binary(array)

    def integers(self, name: str) -> tuple[Int64s, Mask] | None:
        """Values (0 where null) and where they are given; a timestamp in milliseconds since the epoch."""
        array = self._column(name)
        if array is None:
            return None
        given = mask_of(array.is_valid())
        unit = array.type.unit if pa.types.is_timestamp(array.type) else None
        values = array.view(pa.int64()) if unit else array.cast(pa.int64())
        return _milliseconds(values.fill_null(0).to_numpy(), unit), given

    def properties(self) -> pa.MapArray | None:
        return self._column("properties")

    def given(self, name: str) -> Mask | None:
        """Where a column of any type is not null; None when that is nowhere."""
        array = self._column(name)
        return None if array is None else mask_of(array.is_valid())

    def _column(self, name: str) -> pa.Array | None:
        array = self.columns.get(name)
        return None if array is None or array.null_count == len(array) else array

    def label(self, index: int) -> str:
        return f"Row {self.first + index} of the task"

    def refuse(self, index: int, fact: str, remedy: str) -> NoReturn:
        raise MessageFormatError(f"{self.label(index)} {fact}.", remedy)

    def refuse_any(self, wrong: Mask, fact: str, remedy: str) -> None:
        """Refuse the first row for which ``wrong`` holds, if there is one."""
        if wrong.any():
            self.refuse(int(wrong.argmax()), fact, remedy)


_PER_MILLISECOND = {"us": 1_000, "ns": 1_000_000}
_MOST_SECONDS = np.iinfo(np.int64).max // 1_000


def _milliseconds(values: Int64s, unit: str | None) -> Int64s:
    if unit == "s":
        return np.clip(values, -_MOST_SECONDS, _MOST_SECONDS) * 1_000
    return values // _PER_MILLISECOND.get(unit or "", 1)
