import datetime as dt

import pyarrow as pa
import pytest

from pyspark_jms.columns.encode_columns import Rows, check_columns, row_ends, sink_columns
from pyspark_jms.columns.schema import ARROW_SCHEMA, IGNORED_BY_SINK, SINK_ONLY, TYPED_VALUE
from pyspark_jms.errors import MessageFormatError, SchemaError

TEXT_MAP = pa.map_(pa.string(), pa.string())


def schema(**columns):
    return pa.schema(list(columns.items()))


def rows_of(first=0, **columns):
    batch = pa.record_batch(columns)
    return Rows(columns=sink_columns(batch), first=first, count=batch.num_rows)


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
        ("JMSExpiration", pa.timestamp("ns")),
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


@pytest.mark.parametrize(
    ("name", "nearest"), [("texts", "text"), ("JMSPrio", "JMSPriority"), ("dest", "destination"), ("", "")]
)
def test_an_unknown_column_is_named_with_the_nearest(name, nearest):
    with pytest.raises(SchemaError, match=f"no column '{name}'; the nearest is {nearest}"):
        check_columns(schema(**{name: pa.string()}))


def test_two_spellings_of_one_column_are_refused():
    with pytest.raises(SchemaError, match="'text' and 'Text' are the same"):
        check_columns(schema(text=pa.string(), Text=pa.string()))


def test_columns_come_under_their_own_name_without_the_ignored_and_the_empty():
    batch = pa.record_batch(
        {"TEXT": pa.array(["a"]), "jmsType": pa.array([None], pa.string()), "bytes": pa.nulls(1)}
        | {name: pa.array(["x"]) for name in IGNORED_BY_SINK}
    )
    assert {name: array.to_pylist() for name, array in sink_columns(batch).items()} == {"text": ["a"]}


@pytest.mark.parametrize(
    ("unit", "value", "milliseconds"),
    [
        ("s", 2, 2000),
        ("ms", 2, 2),
        ("us", 2999, 2),
        ("ns", 2_999_999, 2),
        ("us", -1, -1),
        ("s", 2**62, 2**63 - 1 - 807),
    ],
)
def test_instants_are_whole_milliseconds(unit, value, milliseconds):
    array = pa.array([value, None, 0], pa.int64()).cast(pa.timestamp(unit, tz="UTC"))
    values, given = rows_of(JMSExpiration=array).integers("JMSExpiration")
    assert (values.tolist(), given.tolist()) == ([milliseconds, 0, 0], [True, False, True])


def test_a_time_zone_does_not_move_an_instant():
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5)))
    for zone in ("UTC", "Asia/Karachi"):
        array = pa.array([moment], pa.timestamp("us", tz=zone))
        assert rows_of(JMSExpiration=array).integers("JMSExpiration")[0].tolist() == [moment.timestamp() * 1000]


def test_integers_of_any_width():
    for width in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        values, given = rows_of(JMSPriority=pa.array([None, 7], width)).integers("JMSPriority")
        assert (values.tolist(), given.tolist()) == ([0, 7], [False, True])


def test_an_absent_column_is_none():
    rows = rows_of(text=pa.array(["a"]))
    assert rows.text("JMSType") is None
    assert rows.integers("JMSPriority") is None
    assert rows.given("map") is None
    assert rows.properties() is None


def test_a_column_that_is_null_in_this_run_is_none():
    batch = pa.record_batch({"JMSType": pa.array(["a", None])})
    columns = {name: array.slice(1) for name, array in sink_columns(batch).items()}
    assert Rows(columns=columns, first=1, count=1).text("JMSType") is None


def test_row_ends_count_what_can_come_into_a_frame():
    columns = {
        "text": pa.array(["skipped", "ab", None, "é"])[1:],
        "bytes": pa.array([b"abc", None, b""], pa.large_binary()),
        "properties": pa.array([[("x" * 9, "y")], [("k", "v"), ("k2", None)], None, []], TEXT_MAP)[1:],
        "JMSPriority": pa.array([1, 2, 3]),
    }
    assert row_ends(columns, 3).tolist() == [9 + 7 + 1, *[17 + n for n in (2 + 3 + 4, 9, 9 + 2)]]


def test_errors_name_the_row_in_the_task():
    rows = rows_of(first=40, text=pa.array(["a", "b"]))
    with pytest.raises(MessageFormatError, match=r"^\[JMS_MESSAGE_FORMAT\] Row 41 of the task is odd\. Do it\.$"):
        rows.refuse(1, "is odd", "Do it.")
