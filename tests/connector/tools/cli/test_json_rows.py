import json

import pyarrow as pa
import pytest

from pyspark_jms.columns.schema import ARROW_SCHEMA, check_columns
from pyspark_jms.errors import MessageFormatError, SchemaError
from pyspark_jms.tools.cli.json_rows import batches_of, json_of, read_lines, row_of


def _element(kind, value):
    return {"type": kind, "value": value}


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (True, ("boolean", "true")),
        (5, ("int", "5")),
        (-(1 << 31), ("long", str(-(1 << 31)))),
        ((1 << 31) - 1, ("int", "2147483647")),
        (1 << 31, ("long", "2147483648")),
        (1e10, ("double", "1.0E10")),
        ("x", ("string", "x")),
        (None, ("string", None)),
        ({"type": "short", "value": 3}, ("short", "3")),
        ({"type": "bytes", "value": "AA=="}, ("bytes", "AA==")),
        ({"type": "char"}, ("char", None)),
    ],
)
def test_plain_json_values_have_jms_types(value, typed):
    row = row_of({"map": {"k": value}, "stream": [value]}, "It")
    assert row == {"map": [("k", _element(*typed))], "stream": [_element(*typed)]}


def test_types_of_properties_are_those_of_json_or_of_the_line():
    assert row_of({"properties": {"a": "x"}}, "It") == {"properties": [("a", "x")]}
    given = {"properties": {"a": 1, "b": "2", "c": "x"}, "property_types": {"b": "int"}}
    assert row_of(given, "It") == {
        "properties": [("a", "1"), ("b", "2"), ("c", "x")],
        "property_types": [("a", "int"), ("b", "int")],
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "Line 1 is not JSON: "),
        ("[]", "Line 1 is not a JSON object."),
        ('{"text": 5}', "its text is not a text."),
        ('{"bytes": "a"}', "its bytes is not base64."),
        ('{"JMSPriority": "4"}', "its JMSPriority is not an integer of 64 bits."),
        ('{"jmspriority": true}', "its JMSPriority is not an integer"),
        ('{"JMSRedelivered": 1}', "its JMSRedelivered is neither true nor false."),
        ('{"JMSExpiration": "tomorrow"}', "its JMSExpiration is not a time in ISO 8601."),
        ('{"JMSExpiration": "2026-01-01T00:00:00"}', "its JMSExpiration has no offset from UTC"),
        ('{"map": []}', "its map is not a JSON object."),
        ('{"stream": {}}', "its stream is not a JSON array."),
        ('{"properties": {"a": [1]}}', "its properties has a value that is neither"),
        ('{"properties": {"a": 9223372036854775808}}', "its properties has an integer of more than 64 bits."),
        ('{"destination": "queue://q"}', "Line 1 names a destination, and --queue or --topic is given."),
    ],
)
def test_a_wrong_line_is_named(line, problem):
    with pytest.raises(MessageFormatError) as refused:
        list(read_lines([line], has_default=True))
    assert problem in str(refused.value)


def test_blank_lines_count_and_make_no_row():
    assert list(read_lines(["\n", '{"text": "a"}\n'], has_default=True)) == [{"text": "a"}]
    with pytest.raises(MessageFormatError, match="Line 3 names no destination"):
        list(read_lines(["\n", "\n", '{"text": "a"}'], has_default=False))


def test_batches_have_the_columns_of_their_rows():
    rows = ({"text": str(n)} if n < 1_500 else {"text": str(n), "JMSType": "t"} for n in range(2_100))
    batches = list(batches_of(rows, has_default=True))
    assert [batch.num_rows for batch in batches] == [1_000, 1_000, 100]
    assert [batch.schema.names for batch in batches] == [["text"], ["text", "JMSType"], ["text", "JMSType"]]
    (routed,) = batches_of(iter([{"text": "x", "destination": "queue://q"}]), has_default=False)
    assert routed.schema.names == ["text", "destination"]


def test_an_unknown_column_is_refused_by_the_sink_with_the_nearest_name():
    (batch,) = batches_of(iter([row_of({"txt": "x"}, "It")]), has_default=True)
    with pytest.raises(SchemaError, match=r"no column 'txt'; the nearest is text"):
        check_columns(batch.schema)


def test_a_number_that_is_too_large_for_its_column_is_refused():
    with pytest.raises(MessageFormatError, match="A JMSPriority is out of range"):
        list(batches_of(iter([{"JMSPriority": 1 << 40}]), has_default=True))


def test_every_column_of_the_source_can_be_read_again():
    row = {
        "sequence": 1, "JMSMessageID": "ID:1", "JMSDestination": "queue://q", "JMSTimestamp": 1_700_000_000_000_000,
        "JMSCorrelationID": "c", "JMSType": "t", "JMSReplyTo": "queue://r", "JMSDeliveryMode": 2, "JMSPriority": 4,
        "JMSExpiration": 1_700_000_000_000_001, "JMSDeliveryTime": 1, "JMSRedelivered": True,
        "properties": [("a", "1")], "property_types": [("a", "int")], "body_type": "map", "text": "x", "bytes": b"\0",
        "map": [("k", _element("int", "1"))], "stream": [_element("char", "c"), _element("string", None)],
        "content_type": "x/y", "body_error": "e", "delivery_id": "q/1",
    }  # fmt: skip
    batch = pa.RecordBatch.from_pylist([row], ARROW_SCHEMA)
    line = json.dumps(json_of(batch.to_pylist()[0]))
    (again,) = batches_of(read_lines([line], has_default=True), has_default=True)
    assert again.select(ARROW_SCHEMA.names).cast(ARROW_SCHEMA).to_pylist() == batch.to_pylist()
