"""Columns of option ``propertyColumns`` → properties with a JMS type, as the texts that Java writes."""

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.java_numbers import java_text
from pyspark_jms.columns.property_types import PROPERTY_COLUMN, PROPERTY_TYPES
from pyspark_jms.columns.ragged import Piece, mask_of, to_binary
from pyspark_jms.columns.rows import Rows
from pyspark_jms.jms.model import ValueType

__all__ = ["TypedColumn", "property_values", "typed_columns"]

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
    kind = pa.timestamp("ms", tz=array.type.tz)
    rounded = pc.floor_temporal(array, unit="millisecond")
    inexact = pc.not_equal(rounded, array).fill_null(pa.scalar(value=False, type=pa.bool_()))
    fact = f"has in column {name} a time with a part of a millisecond, which no property can have"
    rows.refuse_any(mask_of(inexact), fact, "Truncate it: date_trunc('MILLISECOND', …).")
    return rounded.cast(kind).view(pa.int64())


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
