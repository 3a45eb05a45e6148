import pyarrow as pa
import pytest

from pyspark_jms.columns.schema import ARROW_SCHEMA, SINK_ONLY, TYPED_VALUE
from pyspark_jms.columns.sink_schema import EVERY_OTHER, check_columns, column_keys, value_type
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.model import ValueType


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
        check_columns(schema(**{name: pa.timestamp("us")}))
    with pytest.raises(SchemaError, match="Column Until of propertyColumns has the type timestamp_ntz"):
        check_columns(schema(Until=pa.timestamp("us")), ["until"])


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
    names = ["Text", "price", "Price", "JMSXGroupID", "JMSXDeliveryCount", "NATIVE_MESSAGE_ID", "delivery_id"]
    every = schema(**dict.fromkeys(names, pa.string()))
    check_columns(every, EVERY_OTHER)
    own = [f"properties.{name}" for name in names[1:4]]
    assert column_keys(every.names, EVERY_OTHER) == ["text", *own, None, None, "delivery_id"]
    check_columns(schema(text=pa.string()), EVERY_OTHER)
    for name, reason in (("order-id", "is not a Java identifier"), ("JMSPrio", "begins with JMS"), ("", "is empty")):
        with pytest.raises(
            SchemaError, match=rf"Column '{name}' cannot be a property \(propertyColumns=\*\).*{reason}"
        ):
            check_columns(schema(**{name: pa.string()}), EVERY_OTHER)
    with pytest.raises(SchemaError, match="Column day of propertyColumns"):
        check_columns(schema(day=pa.date32()), EVERY_OTHER)
    with pytest.raises(SchemaError, match="'text' and 'Text' are the same"):
        check_columns(schema(text=pa.string(), Text=pa.string()), EVERY_OTHER)
