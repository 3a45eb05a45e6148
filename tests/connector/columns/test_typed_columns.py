import pyarrow as pa

from pyspark_jms.columns.property_types import PROPERTY_COLUMN
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.typed_columns import typed_columns
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
