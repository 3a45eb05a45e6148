import pyarrow as pa
import pytest

from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_properties import typed_columns
from pyspark_jms.columns.sink_schema import PROPERTY_COLUMN, value_type
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import MessageFormatError, SchemaError
from pyspark_jms.stomp.columns.encode_typed_columns import column_lines
from pyspark_jms.stomp.dialects import ARTEMIS


def rows_of(**columns):
    arrays = {PROPERTY_COLUMN + name: array for name, array in columns.items()}
    return Rows(columns=arrays | {"text": pa.array(["t"] * 3)}, first=5, count=3)


def lines_of(**columns):
    rows = rows_of(**columns)
    found = column_lines(rows, typed_columns(rows), ARTEMIS)
    return [line.decode() for line in join_rows([*found, pa.array([b""] * 3)]).to_pylist()]


@pytest.mark.parametrize(
    ("kind", "values", "type_", "texts"),
    [
        (pa.bool_(), [True, False], "boolean", ["true", "false"]),
        (pa.int8(), [-128, 127], "byte", ["-128", "127"]),
        (pa.int16(), [-32768, 7], "short", ["-32768", "7"]),
        (pa.int32(), [-(2**31), 0], "int", ["-2147483648", "0"]),
        (pa.int64(), [-(2**63), 2**63 - 1], "long", ["-9223372036854775808", "9223372036854775807"]),
        (pa.float32(), [0.1, -0.0], "float", ["0.1", "-0.0"]),
        (pa.float64(), [1e10, float("nan")], "double", ["1.0E10", "NaN"]),
        (pa.string(), ["a:\n", ""], "string", ["a\\c\\n", ""]),
        (pa.large_string(), ["é", "🐘"], "string", ["é", "🐘"]),
    ],
)
def test_a_value_is_written_as_java_does_and_a_null_is_no_property(kind, values, type_, texts):
    wanted = [f"\nname:{texts[0]}", "", f"\nname:{texts[1]}"]
    array = pa.array([None, values[0], None, values[1]], kind)[1:]
    assert lines_of(name=array) == wanted
    assert typed_columns(rows_of(name=array))["name"].kind == type_ == value_type(kind)
    full = pa.array([values[0], values[1], values[0]], kind)
    assert lines_of(name=full) == [wanted[0], wanted[2], wanted[0]]
    assert typed_columns(rows_of(name=pa.nulls(3, kind))) == {}


def test_several_columns_follow_each_other_under_the_broker_s_names():
    found = lines_of(
        b=pa.array([1, None, 3]), a=pa.array(["x", "y", None]), JMSXGroupSeq=pa.array([7, 8, 9], pa.int32())
    )
    assert found == [
        "\nb:1\na:x\n_AMQ_GROUP_SEQUENCE:7",
        "\na:y\n_AMQ_GROUP_SEQUENCE:8",
        "\nb:3\n_AMQ_GROUP_SEQUENCE:9",
    ]


def test_a_text_that_is_not_utf8_is_refused():
    array = pa.array([b"a", b"\xff", b"b"], pa.binary()).view(pa.string())
    with pytest.raises(MessageFormatError, match=r"Row 6 .*column name .*UTF-8"):
        lines_of(name=array)


@pytest.mark.parametrize("name", ["persistent", "receipt", "priority", "_AMQ_ROUTE_TO", "_AMQ_DUPL_ID"])
def test_a_column_with_the_name_of_a_header_is_refused(name):
    with pytest.raises(SchemaError, match=f"JMS_SCHEMA.*column {name} of propertyColumns"):
        lines_of(**{name: pa.array([1, 2, 3])})
