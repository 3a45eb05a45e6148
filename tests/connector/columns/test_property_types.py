import pyarrow as pa

from pyspark_jms.columns.property_types import value_type
from pyspark_jms.jms.model import ValueType


def test_every_type_of_a_property_has_its_column():
    assert {value_type(kind) for kind in (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(),
                                          pa.float64(), pa.string())} == set(ValueType) - {"char", "bytes"}  # fmt: skip
    assert value_type(pa.decimal128(10, 2)) is ValueType.STRING
    assert value_type(pa.timestamp("us", tz="UTC")) is ValueType.LONG
    assert {value_type(kind) for kind in (pa.timestamp("us"), pa.date32(), pa.binary())} == {None}
