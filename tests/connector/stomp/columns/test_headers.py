import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from plain_decoder import block_of, message

from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.bodies import detect_body_types
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.headers import Headers, destinations, stable_ids, times, truths
from pyspark_jms.stomp.columns.layout import HeaderTexts, layout_of
from pyspark_jms.stomp.columns.lines import split_lines
from pyspark_jms.stomp.dialects import ARTEMIS

EVERY = ("priority:4", "timestamp:1", "type:t", "reply-to:x", "spark_jms_types:{}", "p:q")


def headers_of(*frames, dialect=ARTEMIS):
    lines = split_lines(FrameBounds.of(block_of(frames)))
    texts = HeaderTexts(lines, layout_of(lines, dialect))
    return Headers(texts, dialect, detect_body_types(texts, dialect).unread_markers)


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
    assert headers_of(*frames, dialect=dialect).columns()["JMSType"].to_pylist() == ["a", "b", "a", None]
    assert [headers_of(frame, dialect=dialect).columns()["JMSType"].to_pylist() for frame in frames] == [
        *(["a"], ["b"], ["a"], [None])
    ]


def test_a_dialect_without_stable_ids_has_no_delivery_id():
    headers = headers_of(message("message-id:1,2"), dialect=replace(ARTEMIS, stable_id_separator=None))
    assert headers.delivery_id(Destination.parse("queue://q")).to_pylist() == [None]


@pytest.mark.parametrize(("source", "expected"), [("queue://q", "queue://q"), ("topic://t.>", "topic://d")])
def test_where_a_message_was_read_from(source, expected):
    assert headers_of(message("destination:d")).read_from(Destination.parse(source)).to_pylist() == [expected]


def test_types_of_properties():
    frames = [message('spark_jms_types:{"a"\\c"int"}', "a:1"), message("a:2"), message("a:3", "spark_jms_types:int")]
    columns = headers_of(*frames).columns()
    assert columns["property_types"].to_pylist() == [[("a", "int")], None, None]
    assert columns["properties"].to_pylist() == [[("a", "1")], [("a", "2")], [("a", "3"), ("spark_jms_types", "int")]]


def test_of_a_markers_lines_the_first_counts():
    lines = ["spark_jms_types:{}", "spark_jms_body:x", "spark_jms_types:x", "spark_jms_body:map"]
    columns = headers_of(message(*lines), message("a:1")).columns()
    assert columns["properties"].to_pylist() == [[("spark_jms_body", "x")], [("a", "1")]]
    assert columns["property_types"].to_pylist() == [[], None]


def test_what_is_no_number_is_a_fault_of_its_row():
    headers = headers_of(message("priority:1"), message("priority:high", "timestamp:now"))
    headers.columns()
    reported = sorted((row, place, reason) for row, place, reason in headers.faults)
    assert [(row, reason) for row, _, reason in reported] == [
        (1, "header 'timestamp' is not a number"),
        (1, "header 'priority' is not a number"),
    ]


def test_properties_are_never_null():
    assert headers_of(message(), message("a:")).columns()["properties"].to_pylist() == [[], [("a", "")]]
    assert np.array_equal(headers_of(message()).columns()["properties"].offsets.to_numpy(), [0, 0])


def strings(*values):
    return pa.array(values, pa.string())


def test_times():
    moments, wrong = times(strings("0", "1", "253402300799999", "253402300800000", None, "soon"))
    assert moments.type == pa.timestamp("us", tz="UTC")
    assert moments.to_pylist() == [
        None,
        dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC),
        None,
        None,
        None,
    ]
    assert wrong == [5]


def test_only_true_is_true():
    texts = strings("true", "TRUE", "True", "false", "1", "", "truex", None)
    assert truths(texts).to_pylist() == [True, True, True, False, False, False, False, False]


def test_destinations():
    prefixes = {"queue://": "queue://", "temp-queue://": "queue://", "/topic/": "topic://"}
    texts = strings("queue://a", "temp-queue://b", "/topic/c", "/topic/", "d", "", "世://e", None)
    assert destinations(texts, prefixes).to_pylist() == [
        *("queue://a", "queue://b", "topic://c", None),
        *("queue://d", None, "queue://世://e", None),
    ]


def test_of_two_prefixes_the_dialects_first_counts():
    assert destinations(strings("/a/b"), {"/a/": "topic://", "/a": "queue://"}).to_pylist() == ["topic://b"]
    assert destinations(strings("/a/b"), {"/a": "queue://", "/a/": "topic://"}).to_pylist() == ["queue:///b"]


def test_stable_ids():
    ids = strings("1,2", "a,b,c", ",7", "8", "9,", "", None, "x世,y世")
    expected = ["q/2", "q/b,c", "q/7", "q/8", None, None, None, "q/y世"]
    assert stable_ids(ids, ",", "q").to_pylist() == expected
    assert stable_ids(strings("1::2", "1:2"), "::", "世").to_pylist() == ["世/2", "世/1:2"]
