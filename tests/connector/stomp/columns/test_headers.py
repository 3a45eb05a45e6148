from dataclasses import replace

import numpy as np
import pytest
from plain_decoder import block_of, message

from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.model import BodyType, Destination
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.headers import Headers
from pyspark_jms.stomp.columns.layout import layout_of
from pyspark_jms.stomp.columns.lines import split_lines
from pyspark_jms.stomp.dialects import ARTEMIS

TEXT, BYTES, MAP = range(3)
EVERY = ("priority:4", "timestamp:1", "type:t", "reply-to:x", "spark_jms_types:{}", "p:q")


def headers_of(*frames, dialect=ARTEMIS):
    lines = split_lines(FrameBounds.of(block_of(frames)))
    return Headers(lines, layout_of(lines, dialect), dialect)


def types_of(headers):
    codes, unknown = headers.body_types()
    return codes.tolist(), unknown


def test_columns_have_the_types_of_the_schema():
    for frame in (message(), message(*EVERY)):
        for name, column in headers_of(frame, frame).columns().items():
            assert (name, column.type, len(column)) == (name, ARROW_SCHEMA.field(name).type, 2)


def test_columns_are_those_of_the_dialect():
    dialect = replace(ARTEMIS, message_headers={"JMSMessageID": "JMSMessageID", "id": "@message-id"})
    columns = headers_of(message("JMSMessageID:ID:7", "type:t"), dialect=dialect).columns()
    assert {name: column.to_pylist() for name, column in columns.items()} == {
        "JMSMessageID": ["ID:7"],
        "property_types": [None],
        "properties": [[("type", "t")]],
    }


def test_of_two_headers_for_one_column_the_dialects_first_counts():
    dialect = replace(ARTEMIS, message_headers={"JMSType": "JMSType", "type": "JMSType"})
    frames = [message("type:b", "JMSType:a"), message("type:b"), message("JMSType:a"), message()]
    assert headers_of(*frames, dialect=dialect).text("JMSType").to_pylist() == ["a", "b", "a", None]
    assert [headers_of(frame, dialect=dialect).text("JMSType").to_pylist() for frame in frames] == [
        *(["a"], ["b"], ["a"], [None])
    ]


def test_a_dialect_without_stable_ids_has_no_delivery_id():
    headers = headers_of(message("message-id:1,2"), dialect=replace(ARTEMIS, stable_id_separator=None))
    assert headers.delivery_id(Destination.parse("queue://q")).to_pylist() == [None]


@pytest.mark.parametrize(("source", "expected"), [("queue://q", "queue://q"), ("topic://t.>", "topic://d")])
def test_where_a_message_was_read_from(source, expected):
    assert headers_of(message("destination:d")).read_from(Destination.parse(source)).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (("subscription:1", "content-length:1", "a:1"), True),
        (("subscription:1", "a:1", "content-length:1"), False),
        (("subscription:1", "content-length:1", "content-length:1"), True),
        (("subscription:1", "a:1"), False),
        ((), False),
    ],
)
def test_bytes_by_the_position_of_content_length(headers, expected):
    assert types_of(headers_of(message(*headers))) == ([BYTES if expected else TEXT], {})
    mixed = headers_of(message("a:1"), message(*headers), message("content-length:1", "a:1"))
    assert types_of(mixed) == ([TEXT, BYTES if expected else TEXT, BYTES], {})


def test_a_marker_says_the_body_type_whatever_the_frame_says():
    frames = [message("content-length:1", f"spark_jms_body:{kind.value}", "a:1") for kind in BodyType]
    for some in (frames, *([frame] for frame in frames)):
        headers = headers_of(*some)
        codes, unknown = types_of(headers)
        assert codes == [frames.index(frame) for frame in some]
        assert unknown == {}
        assert headers.columns()["properties"].to_pylist() == [[("a", "1")]] * len(some)


@pytest.mark.parametrize("value", ["", "Map", "MAP", "maps", " map", "json", "\\u0000"])
def test_a_marker_that_names_no_body_type_stays_a_property(value):
    told = "property 'spark_jms_body' names no body type"
    odd = message("content-length:1", "a:1", f"spark_jms_body:{value}", "b:2")
    good = message("spark_jms_body:map", "c:3")
    headers = headers_of(good, odd, message("d:4"), odd)
    assert types_of(headers) == ([MAP, BYTES, TEXT, BYTES], {1: told, 3: told})
    pairs = [("a", "1"), ("spark_jms_body", value), ("b", "2")]
    assert headers.columns()["properties"].to_pylist() == [[("c", "3")], pairs, [("d", "4")], pairs]
    alone = headers_of(odd, odd)
    assert types_of(alone) == ([BYTES] * 2, {0: told, 1: told})
    assert alone.columns()["properties"].to_pylist() == [pairs, pairs]


def test_a_marker_that_nobody_asks_for_stays_a_property():
    frames = [message("spark_jms_body:map", "a:1"), message("a:1"), message("a:1", "spark_jms_body:x")]
    for some in (frames, frames[:1], frames[1:2]):
        headers = headers_of(*some)
        headers.leave_body_markers()
        expected = [[("spark_jms_body", "map"), ("a", "1")], [("a", "1")], [("a", "1"), ("spark_jms_body", "x")]]
        assert headers.columns()["properties"].to_pylist() == [expected[frames.index(frame)] for frame in some]


def test_types_of_properties():
    frames = [message('spark_jms_types:{"a"\\c"int"}', "a:1"), message("a:2"), message("a:3", "spark_jms_types:int")]
    columns = headers_of(*frames).columns()
    assert columns["property_types"].to_pylist() == [[("a", "int")], None, None]
    assert columns["properties"].to_pylist() == [[("a", "1")], [("a", "2")], [("a", "3"), ("spark_jms_types", "int")]]


@pytest.mark.parametrize(
    ("stored", "size", "lost"),
    [
        ("400005", 200_000, False),
        ("400006", 200_000, True),
        ("204800", 204_800, False),
        ("400016", 0, True),
        ("400585", 49, True),
        ("5", 0, False),
        ("0", 0, False),
        ("-7", 0, False),
        ("x", 0, False),
        ("", 0, False),
        (str(2**62 - 1), 1000, True),
        (str(2**62), 1000, False),
        ("9" * 500, 1000, False),
    ],
)
def test_a_large_body_that_is_less_than_half_of_what_is_stored_is_lost(stored, size, lost):
    told = "the broker did not send the body: it is neither text nor bytes"
    frame = message(f"_AMQ_LARGE_SIZE:{stored}")
    assert headers_of(frame).lost_bodies(np.array([size])) == ({0: told} if lost else {})
    three = headers_of(message("a:1"), frame, message("_AMQ_LARGE_SIZE:20"))
    assert three.lost_bodies(np.array([0, size, 20])) == ({1: told} if lost else {})
    assert three.columns()["properties"].to_pylist() == [[("a", "1")], [], []]


def test_of_a_markers_lines_the_first_counts():
    lines = ["spark_jms_types:{}", "spark_jms_body:x", "spark_jms_types:x", "spark_jms_body:map"]
    headers = headers_of(message(*lines), message("a:1"))
    assert types_of(headers)[0] == [TEXT, TEXT]
    columns = headers.columns()
    assert columns["properties"].to_pylist() == [[("spark_jms_body", "x")], [("a", "1")]]
    assert columns["property_types"].to_pylist() == [[], None]


def test_what_is_no_number_is_a_fault_of_its_row():
    headers = headers_of(message("priority:1"), message("priority:high", "timestamp:now"))
    headers.columns()
    told = sorted((row, place, reason) for row, place, reason in headers.faults)
    assert [(row, reason) for row, _, reason in told] == [
        (1, "header 'timestamp' is not a number"),
        (1, "header 'priority' is not a number"),
    ]


def test_properties_are_never_null():
    assert headers_of(message(), message("a:")).columns()["properties"].to_pylist() == [[], [("a", "")]]
    assert np.array_equal(headers_of(message()).columns()["properties"].offsets.to_numpy(), [0, 0])
