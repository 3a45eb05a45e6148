from decimal import Decimal

import pyarrow as pa
import pytest

from pyspark_jms.columns.property_types import PROPERTY_COLUMN
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.typed_columns import property_values, typed_columns
from pyspark_jms.errors import MessageFormatError
from pyspark_jms.jms.model import ValueType


def test_a_column_has_the_texts_that_java_renders_and_its_nulls():
    columns = {
        PROPERTY_COLUMN + "share": pa.array([1e10, None], pa.float64()),
        PROPERTY_COLUMN + "paid": pa.array([True, False]),
        PROPERTY_COLUMN + "none": pa.nulls(2, pa.int64()),
        "text": pa.array(["a", "b"]),
    }
    found = typed_columns(Rows(columns=columns, first=0, count=2))
    assert {name: (column.kind, column.texts.to_pylist()) for name, column in found.items()} == {
        "share": (ValueType.DOUBLE, [b"1.0E10", None]),
        "paid": (ValueType.BOOLEAN, [b"true", b"false"]),
    }
    assert found["paid"].where_given(b"x") == b"x"
    assert found["share"].where_given(b"x").to_pylist() == [b"x", b""]


def test_a_timestamp_is_a_long_of_milliseconds_and_a_decimal_its_text():
    columns = {
        PROPERTY_COLUMN + "at": pa.array([-1_000, None, 1_760_000_000_123_000], pa.timestamp("us", tz="Asia/Tokyo")),
        PROPERTY_COLUMN + "price": pa.array([Decimal("7.50"), Decimal("-0.01"), None], pa.decimal128(9, 2)),
        "JMSExpiration": pa.array([1, 2, 3], pa.timestamp("us", tz="UTC")),
    }
    rows = Rows(columns=columns, first=0, count=3)
    found = typed_columns(property_values(rows))
    assert {name: (column.kind, column.texts.to_pylist()) for name, column in found.items()} == {
        "at": (ValueType.LONG, [b"-1", None, b"1760000000123"]),
        "price": (ValueType.STRING, [b"7.50", b"-0.01", None]),
    }
    assert property_values(rows).columns["JMSExpiration"] is columns["JMSExpiration"]


def test_a_time_that_milliseconds_do_not_hold_is_refused():
    at = pa.array([1_000, 1_001], pa.timestamp("us", tz="UTC"))
    with pytest.raises(MessageFormatError, match=r"Row 6 of the task has in column at a time with a part of a milli"):
        property_values(Rows(columns={PROPERTY_COLUMN + "at": at}, first=5, count=2))
