"""Columns of option ``propertyColumns`` → properties with a JMS type, as the texts that Java writes."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.java_numbers import java_text
from pyspark_jms.columns.property_types import PROPERTY_COLUMN, PROPERTY_TYPES
from pyspark_jms.columns.ragged import Piece, to_binary
from pyspark_jms.columns.rows import Rows
from pyspark_jms.jms.model import ValueType

__all__ = ["TypedColumn", "typed_columns"]

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


def typed_columns(rows: Rows) -> dict[str, TypedColumn]:
    """The typed columns by property name. A column that is null in all of these rows is left out."""
    found = {}
    for key in rows.columns:
        array = rows.column(key) if key.startswith(PROPERTY_COLUMN) else None
        if array is not None:
            found[key.removeprefix(PROPERTY_COLUMN)] = TypedColumn(PROPERTY_TYPES[array.type], _texts(array))
    return found


def _texts(array: pa.Array) -> pa.Array:
    if pa.types.is_floating(array.type):
        return java_text(array)
    if pa.types.is_boolean(array.type):
        return pc.if_else(array, pa.scalar(b"true", pa.binary()), pa.scalar(b"false", pa.binary()))
    return to_binary(array if PROPERTY_TYPES[array.type] is ValueType.STRING else array.cast(pa.string()))
