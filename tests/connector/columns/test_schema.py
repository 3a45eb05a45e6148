"""The fixed schema is what Spark makes of its DDL; the columns of reads and of writes, checked."""

import pickle

import pyarrow as pa
import pytest

from pyspark_jms.columns.schema import (
    ARROW_SCHEMA,
    COLUMN_TYPES,
    COLUMNS,
    DDL,
    DDL_TYPES,
    EVERY_OTHER,
    IGNORED_BY_SINK,
    SINK_ONLY,
    TYPE_NAME,
    TYPED_VALUE,
    check_columns,
    column_keys,
    read_columns,
    value_type,
)
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER


def test_the_arrow_schema_is_what_spark_makes_of_the_ddl(spark):
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    spark_schema = StructType.fromDDL(DDL)
    assert spark_schema.fieldNames() == list(COLUMNS)
    assert to_arrow_schema(spark_schema, timezone="UTC") == ARROW_SCHEMA


def test_the_sink_ignores_columns_that_exist_and_adds_others():
    assert not IGNORED_BY_SINK - set(COLUMNS)
    assert not set(SINK_ONLY) & set(COLUMNS)


# --- the columns of a read --------------------------------------------------------------------------

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


# --- the columns of a write -------------------------------------------------------------------------


def test_every_type_of_a_property_has_its_column():
    assert {value_type(kind) for kind in (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(),
                                          pa.float64(), pa.string())} == set(ValueType) - {"char", "bytes"}  # fmt: skip
    assert value_type(pa.decimal128(10, 2)) is ValueType.STRING
    assert value_type(pa.timestamp("us", tz="UTC")) is ValueType.LONG
    assert {value_type(kind) for kind in (pa.timestamp("us"), pa.date32(), pa.binary())} == {None}


TEXT_MAP = pa.map_(pa.string(), pa.string())


def schema(**columns):
    return pa.schema(list(columns.items()))


def test_the_source_s_own_schema_is_taken():
    check_columns(ARROW_SCHEMA)


def test_the_columns_only_the_sink_has_are_taken():
    check_columns(schema(destination=pa.string(), time_to_live=pa.int64(), delivery_delay=pa.int32()))
    assert len(SINK_ONLY) == 3


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("text", pa.string()),
        ("TEXT", pa.large_string()),
        ("jmstype", pa.string()),
        ("Bytes", pa.large_binary()),
        ("JMSPriority", pa.int8()),
        ("JMSDeliveryMode", pa.int64()),
        ("JMSExpiration", pa.timestamp("ns", tz="UTC")),
        ("JMSDeliveryTime", pa.timestamp("s", tz="Europe/Berlin")),
        ("properties", TEXT_MAP),
        ("properties", pa.map_(pa.large_string(), pa.large_string())),
        ("map", pa.map_(pa.string(), TYPED_VALUE)),
        ("stream", pa.list_(TYPED_VALUE)),
        ("text", pa.null()),  # Spark's void, of a literal NULL
        ("sequence", pa.string()),  # ignored, so of any type
    ],
)
def test_takes_what_spark_hands_over(name, found):
    check_columns(schema(**{name: found}))


@pytest.mark.parametrize(
    ("name", "found", "wanted"),
    [
        ("text", pa.binary(), "string"),
        ("bytes", pa.string(), "binary"),
        ("JMSPriority", pa.string(), "int"),
        ("JMSPriority", pa.float64(), "int"),
        ("JMSExpiration", pa.int64(), "timestamp"),
        ("JMSExpiration", pa.date32(), "timestamp"),
        ("time_to_live", pa.duration("us"), "in milliseconds"),
        ("delivery_delay", pa.timestamp("us", tz="UTC"), "in milliseconds"),
        ("properties", pa.map_(pa.string(), pa.int32()), "map<string,string>"),
        ("properties", pa.list_(pa.string()), "map<string,string>"),
        ("map", TEXT_MAP, "map<string,struct<type:string,value:string>>"),
        ("stream", pa.list_(pa.string()), "array<struct<type:string,value:string>>"),
        ("stream", pa.list_(pa.struct([("type", pa.string()), ("value", pa.int32())])), "array<struct"),
    ],
)
def test_a_wrong_type_is_named_with_the_right_one(name, found, wanted):
    with pytest.raises(SchemaError) as caught:
        check_columns(schema(**{name: found}))
    assert all(part in str(caught.value) for part in ("[JMS_SCHEMA]", name, str(found), wanted))


@pytest.mark.parametrize("name", ["JMSExpiration", "JMSDeliveryTime"])
def test_a_time_without_a_time_zone_is_no_instant(name):
    with pytest.raises(SchemaError, match=f"Column {name} has the type timestamp_ntz;.* session's time zone"):
        check_columns(pa.schema([pa.field(name, pa.timestamp("us"), metadata={TYPE_NAME: "timestamp_ntz"})]))


@pytest.mark.parametrize(
    ("name", "nearest"), [("texts", "text"), ("JMSPrio", "JMSPriority"), ("dest", "destination"), ("", "")]
)
def test_an_unknown_column_is_named_with_the_nearest(name, nearest):
    with pytest.raises(SchemaError, match=f"no column '{name}'; the nearest is {nearest}"):
        check_columns(schema(**{name: pa.string()}))


def test_two_spellings_of_one_column_are_refused():
    with pytest.raises(SchemaError, match="'text' and 'Text' are the same"):
        check_columns(schema(text=pa.string(), Text=pa.string()))


@pytest.mark.parametrize(
    "found",
    [
        *(
            pa.bool_(),
            pa.int8(),
            pa.int16(),
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.string(),
            pa.null(),
        ),
        *(pa.decimal128(10, 2), pa.timestamp("us", tz="UTC")),
    ],
)
def test_a_column_of_a_property_has_a_type_of_jms(found):
    check_columns(schema(text=pa.string(), Price=found), ["price"])
    with pytest.raises(SchemaError, match=r"no column 'Price'.*propertyColumns"):
        check_columns(schema(text=pa.string(), Price=found))


@pytest.mark.parametrize(
    "found", [pa.decimal256(40, 2), pa.date32(), pa.timestamp("us"), pa.binary(), pa.list_(pa.int32()), TEXT_MAP]
)
def test_another_type_is_to_be_cast(found):
    with pytest.raises(SchemaError, match=r"Column Price of propertyColumns .*boolean, tinyint"):
        check_columns(schema(Price=found), ["Price"])


def test_a_column_that_an_option_names_must_be_there():
    with pytest.raises(SchemaError, match=r"propertyColumns .*'price'.*: text"):
        check_columns(schema(text=pa.string()), ["price"])
    with pytest.raises(SchemaError, match="'Price' and 'PRICE'"):
        check_columns(schema(Price=pa.int32(), PRICE=pa.int32()), ["price"])


def test_every_other_column_is_a_property():
    names = ["Text", "price", "Price", "a-b", "JMSXGroupID", "JMSXDeliveryCount", "NATIVE_MESSAGE_ID", "delivery_id"]
    every = schema(**dict.fromkeys(names, pa.string()))
    check_columns(every, EVERY_OTHER)
    own = [f"properties.{name}" for name in names[1:5]]
    assert column_keys(every.names, EVERY_OTHER) == ["text", *own, None, None, "delivery_id"]
    check_columns(schema(text=pa.string()), EVERY_OTHER)
    for name, reason in (("JMSPrio", "begins with JMS"), ("", "is empty")):
        with pytest.raises(
            SchemaError, match=rf"Column '{name}' cannot be a property \(propertyColumns=\*\).*{reason}"
        ):
            check_columns(schema(**{name: pa.string()}), EVERY_OTHER)
    with pytest.raises(SchemaError, match="Column day of propertyColumns"):
        check_columns(schema(day=pa.date32()), EVERY_OTHER)
    with pytest.raises(SchemaError, match="'text' and 'Text' are the same"):
        check_columns(schema(text=pa.string(), Text=pa.string()), EVERY_OTHER)
