"""The schema that a user gives to a read, checked."""

import pickle

import pyarrow as pa
import pytest

from pyspark_jms.columns.read_columns import COLUMN_TYPES, read_columns
from pyspark_jms.columns.schema import ARROW_SCHEMA, DDL_TYPES
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER

TIMESTAMP = ARROW_SCHEMA.field("JMSTimestamp").type


def columns(*fields):
    """Each field: a ``pa.Field``, or its name and type."""
    made = [field if isinstance(field, pa.Field) else pa.field(*field) for field in fields]
    return read_columns(made, [str(field.type) for field in made])


def test_the_whole_schema_asks_for_nothing_special():
    assert columns(*ARROW_SCHEMA) is None


def test_names_of_the_fixed_schema_are_its_columns_in_any_case_and_order():
    found = columns(("jmstype", pa.string()), ("TEXT", pa.string()), ("sequence", pa.int64()))
    assert found.fixed == ("JMSType", "text", "sequence")
    assert found.schema.names == ["jmstype", "TEXT", "sequence"]
    assert found.properties == ()


@pytest.mark.parametrize("field", list(ARROW_SCHEMA), ids=lambda field: field.name)
def test_a_column_has_one_type(field):
    assert columns(field).fixed == (field.name,)
    other = pa.int16() if field.type != pa.int16() else pa.string()
    with pytest.raises(SchemaError) as caught:
        columns((field.name, other))
    assert f"has the type {DDL_TYPES[field.name]}, and the schema asks for int16" in str(caught.value)
    assert f"`{field.name}` {DDL_TYPES[field.name]}" in caught.value.remedy


def test_a_map_without_nulls_is_no_column():
    strict = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))
    with pytest.raises(SchemaError, match="forbids a null"):
        read_columns([pa.field("properties", strict)], ["map<string,string>"])


def test_any_other_name_is_a_property_of_the_given_type():
    types = [pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()]
    types += [TIMESTAMP, pa.decimal128(38, 10)]
    assert len(types) == len(COLUMN_TYPES)
    found = columns(*((f"p{n}", kind) for n, kind in enumerate(types)))
    assert found.properties == tuple(f"p{n}" for n in range(len(types)))
    for name in (
        "orderId",
        "order-id",
        "JMS_IBM_Format",
        "JMSXGroupID",
        "JMSXDeliveryCount",
        "jmsOrder",
        "Überweisung",
    ):
        assert columns((name, pa.string())).properties == (name,)
    assert columns(("region", pa.string()), ("Region", pa.string())).properties == ("region", "Region")


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.date32(),
        pa.timestamp("us"),
        pa.duration("us"),
        pa.list_(pa.string()),
        pa.struct([("a", pa.string())]),
        pa.map_(pa.string(), pa.string()),
        pa.null(),
    ],
    ids=str,
)
def test_other_types_are_no_property(kind):
    with pytest.raises(SchemaError, match=r"reads no property as .*Declare one of boolean, .* decimal\."):
        columns(("orderId", kind))


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("JMSTyp", "'JMSTyp'; the nearest is JMSType"),
        ("JMSXGroupId", "'JMSXGroupId'; the nearest is JMSXGroupID"),
        ("jmsxgroupid", "the nearest is JMSXGroupID"),
        ("JMSXOther", "the nearest is JMS"),
        ("destination", "is a column of the sink"),
        ("Time_To_Live", "is a column of the sink"),
        ("", "has no name"),
    ],
)
def test_names_that_no_message_has_are_refused(name, fact):
    with pytest.raises(SchemaError, match=fact):
        columns((name, pa.string()))


def test_not_null_twice_the_same_and_nothing_are_refused():
    for field in (pa.field("text", pa.string(), nullable=False), pa.field("n", pa.int32(), nullable=False)):
        with pytest.raises(SchemaError, match=r"NOT NULL.*Remove NOT NULL"):
            columns(field)
    with pytest.raises(SchemaError, match="'text' and 'Text' are the same column"):
        columns(("text", pa.string()), ("Text", pa.string()))
    with pytest.raises(SchemaError, match="'n' and 'n' are the same column"):
        columns(("n", pa.string()), ("n", pa.int32()))
    with pytest.raises(SchemaError, match="The schema has no column"):
        columns()


def test_what_is_wanted_of_each_message():
    found = columns(("N", pa.int32()), ("Text", pa.string()), ("region", pa.string())).wanted({"sequence"})
    assert (found.fixed, found.properties) == ({"text", "sequence"}, ("N", "region"))
    pieces = ["properties.N", "property_types.N", "properties.region", "property_types.region"]
    assert found.schema.names == ["sequence", "text", *pieces]
    assert found.schema.field("sequence").type == pa.int64()


@pytest.mark.parametrize("name", ["bytes", "body_error", BODY_MARKER, TYPES_MARKER])
def test_some_columns_need_the_whole_message(name):
    kind = pa.binary() if name == "bytes" else pa.string()
    assert columns(("text", pa.string()), (name, kind)).wanted() is None


def test_columns_travel_to_executors():
    found = columns(("n", pa.int32()), ("text", pa.string()))
    assert pickle.loads(pickle.dumps(found)) == found
