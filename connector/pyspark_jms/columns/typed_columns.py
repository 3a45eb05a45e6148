"""Columns of ``propertyColumns`` → properties with a JMS type, as the texts that Java renders."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.java_numbers import java_text
from pyspark_jms.columns.ragged import Piece, to_binary
from pyspark_jms.columns.rows import Rows
from pyspark_jms.jms.model import ValueType

__all__ = ["PROPERTY_COLUMN", "TypedColumn", "typed_columns", "value_type"]

PROPERTY_COLUMN = "properties."
"""What the key of such a column begins with among the columns of ``Rows``: no column of the schema does."""

_TYPES: dict[pa.DataType, ValueType] = {
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
_NOTHING = pa.scalar(b"", pa.binary())


@dataclass(frozen=True, slots=True)
class TypedColumn:
    kind: ValueType
    texts: pa.Array
    """Binary; a null is no property."""

    def said(self, pair: bytes) -> Piece:
        """``pair`` for each row that has the property."""
        if not self.texts.null_count:
            return pair
        return pc.if_else(self.texts.is_valid(), pa.scalar(pair, pa.binary()), _NOTHING)


def value_type(found: pa.DataType) -> ValueType | None:
    """The type of a property that is a column of this type."""
    return _TYPES.get(found)


def typed_columns(rows: Rows) -> dict[str, TypedColumn]:
    """By the name of the property. A column that is null in all of these rows is left out."""
    found = {}
    for key in rows.columns:
        array = rows.column(key) if key.startswith(PROPERTY_COLUMN) else None
        if array is not None:
            found[key.removeprefix(PROPERTY_COLUMN)] = TypedColumn(_TYPES[array.type], _texts(array))
    return found


def _texts(array: pa.Array) -> pa.Array:
    if pa.types.is_floating(array.type):
        return java_text(array)
    if pa.types.is_boolean(array.type):
        return pc.if_else(array, pa.scalar(b"true", pa.binary()), pa.scalar(b"false", pa.binary()))
    return to_binary(array if _TYPES[array.type] is ValueType.STRING else array.cast(pa.string()))
