"""Arrow types of columns → JMS types of properties (option ``propertyColumns``). No arrays: see ``columns.schema``."""

import pyarrow as pa

from pyspark_jms.jms.model import ValueType

__all__ = ["EVERY_OTHER", "PROPERTY_COLUMN", "PROPERTY_TYPES", "value_type"]

EVERY_OTHER = ("*",)
"""The value of option ``propertyColumns`` for every column that is not of the fixed schema."""

PROPERTY_COLUMN = "properties."
"""The prefix of such a column's key in ``Rows.columns``; no column of the schema begins with it."""

PROPERTY_TYPES: dict[pa.DataType, ValueType] = {
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
    return ValueType.STRING if pa.types.is_decimal128(found) else PROPERTY_TYPES.get(found)
