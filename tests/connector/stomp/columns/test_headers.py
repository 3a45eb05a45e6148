import datetime as dt
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from generated import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_decoder import block_of, message

from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.decode import detect_body_types
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.headers import (
    Headers,
    HeaderTexts,
    by_names,
    by_template,
    destinations,
    layout_of,
    stable_ids,
    times,
    truths,
    with_properties,
)
from pyspark_jms.stomp.columns.lines import split_lines
from pyspark_jms.stomp.dialects import ARTEMIS


def texts_of(*frames, dialect=ARTEMIS):
    lines = split_lines(FrameBounds.of(block_of(frames)))
    return HeaderTexts(lines, layout_of(lines, dialect))


def headers_of(*frames, dialect=ARTEMIS):
    texts = texts_of(*frames, dialect=dialect)
    return Headers(texts, dialect, detect_body_types(texts, dialect).unread_markers)


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


def test_what_is_no_number_is_a_fault_of_its_row():
    headers = headers_of(message("priority:1"), message("priority:high", "timestamp:now"))
    headers.columns()
    reported = sorted((row, place, reason) for row, place, reason in headers.faults)
    assert [(row, reason) for row, _, reason in reported] == [
        (1, "header 'timestamp' is not a number"),
        (1, "header 'priority' is not a number"),
    ]


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


# --- layouts ----------------------------------------------------------------------------------------

NAMES = ["subscription", "ack", "content-length", "destination", "type", "_AMQ_GROUP_ID", "JMSXGroupID", "a", "b", "世"]


def lines_of(*frames):
    return split_lines(FrameBounds.of(block_of(frames)))


def described(lines, layout):
    """Roles by the line they were given, properties by frame."""
    keys = layout.property_keys.to_pylist()
    offsets = layout.property_offsets.tolist()
    pairs = list(zip(keys, layout.property_lines.tolist(), strict=True))
    properties = [dict(pairs[a:b]) for a, b in pairwise(offsets)]
    assert sum(map(len, properties)) == len(keys)
    return {role: line.tolist() for role, line in layout.roles.items()}, properties


def both(*frames):
    """What the two ways say, which must be the same where the first one says anything."""
    lines = lines_of(*frames)
    any_mix = described(lines, by_names(lines, ARTEMIS))
    template = by_template(lines, ARTEMIS)
    assert template is None or described(lines, template) == any_mix
    return any_mix, template is not None


def test_one_layout():
    (roles, properties), templated = both(message("ack:a", "x:1", "ack:b"), message("ack:c", "x:2", "ack:d"))
    assert templated
    assert roles == {"@ack": [2, 5]}
    assert properties == [{"ack": 0, "x": 1}, {"ack": 3, "x": 4}]


@pytest.mark.parametrize(
    "other",
    [
        message("ab:1"),
        message("a:1", "b:1", "c:1"),
        message("a:1", "c:1"),
        message("b:1", "a:1"),
        message("a:1", "bb:1"),
    ],
)
def test_another_name_anywhere_is_another_layout(other):
    frame = message("a:1", "b:1")
    for frames in ([other, frame], [frame, other], [frame, other, frame]):
        assert both(*frames)[1] is False


def test_names_that_differ_by_where_they_end_are_not_taken_for_one_layout():
    assert both(message("ab:1", "c:1"), message("a:1", "bc:1"))[1] is False


def test_another_name_in_the_middle_is_another_layout():
    """First, second and last frame are looked at before all the others."""
    frame = message("a:1", "name:1", "long-name-of-a-property:1")
    for other in ("a:1", "name:1", "long-name-of_a-property:1"), ("b:1", "name:1", "long-name-of-a-property:1"):
        assert both(frame, frame, message(*other), frame)[1] is False
        assert both(*[frame] * 4)[1] is True


def test_frames_without_headers():
    assert both(message(), message())[0] == ({}, [{}, {}])


def test_a_role_that_some_frames_lack():
    (roles, properties), _ = both(message("type:a"), message("x:1"), message("x:2", "type:b", "type:c"))
    assert roles == {"JMSType": [0, -1, 3]}
    assert properties == [{}, {"x": 1}, {"x": 2, "type": 4}]


def test_a_name_of_its_own_for_every_property():
    """So many names that a table of frames and names would be mostly empty."""
    frames = [message(*(f"p{i}.{j}:x" for j in range(5)), f"p{i}.0:again") for i in range(200)]
    (_, properties), _ = both(*frames)
    assert properties == [{f"p{i}.{j}": 6 * i + j for j in range(5)} for i in range(200)]


@settings(max_examples=examples(200))
@given(st.lists(st.lists(st.sampled_from(NAMES), max_size=8), min_size=1, max_size=6), st.booleans())
def test_both_ways_say_the_same(layouts, alike):
    layouts = layouts[:1] * len(layouts) if alike else layouts
    frames = [message(*(f"{name}:{i}" for i, name in enumerate(names))) for names in layouts]
    (roles, _), templated = both(*frames)
    assert templated or not alike or not layouts[0]
    values = lines_of(*frames).values(np.arange(sum(map(len, layouts)))).to_pylist()
    for number, names in enumerate(layouts):
        line = roles.get("JMSType", [-1] * len(layouts))[number]
        assert (values[line] if line >= 0 else None) == (str(names.index("type")) if "type" in names else None)


def test_more_lines_as_properties_stand_in_their_place():
    lines = lines_of(message("a:1", "receipt:1", "b:2"), message(), message("receipt:3"), message("b:4", "receipt:5"))
    layout = by_names(lines, ARTEMIS)
    assert with_properties(layout, lines, np.array([], np.int64)) is layout
    more = with_properties(layout, lines, np.array([5, 1]))
    assert described(lines, more)[1] == [{"a": 0, "receipt": 1, "b": 2}, {}, {}, {"b": 4, "receipt": 5}]
    assert list(described(lines, more)[1][0]) == ["a", "receipt", "b"]


def test_more_lines_between_the_same_two_keep_their_order():
    lines = lines_of(message("a:1", "receipt:1", "transaction:2", "b:2"))
    more = with_properties(by_names(lines, ARTEMIS), lines, np.array([2, 1]))
    assert list(described(lines, more)[1][0].items()) == [("a", 0), ("receipt", 1), ("transaction", 2), ("b", 3)]


@pytest.mark.parametrize("other", [message("x:5", "ack:e", "y:6"), message("x:1", "ack:a", "y:3", "z:4", "ack:b")])
def test_a_layout_of_some_properties_has_no_others(other):
    lines = lines_of(*[message("x:1", "ack:a", "y:3", "z:4", "ack:b")] * 2, other)
    for names in ([], ["y"], ["z", "absent"], ["x", "y", "z"]):
        layout = layout_of(lines, ARTEMIS, names)
        whole = by_names(lines, ARTEMIS)
        assert set(layout.property_keys.to_pylist()) == set(names) - {"absent"}
        for name in names:
            assert layout.lines_of(name).tolist() == whole.lines_of(name).tolist()
    assert whole.lines_of("absent").tolist() == [-1] * 3
    assert lines.values(whole.lines_of("y")).to_pylist()[:2] == ["3", "3"]


def test_one_header_in_all_frames():
    headers = texts_of(message("a:1", "type:t"), message("a:1"), message("type:u"))
    assert len(headers) == 3
    assert headers.line("JMSType").tolist() == [1, -1, 3]
    assert headers.text("JMSType").to_pylist() == ["t", None, "u"]
    assert headers.equals("JMSType", "u").tolist() == [False, False, True]
    assert headers.equals("JMSType", None).tolist() == [False] * 3


def test_a_header_that_no_frame_has():
    headers = texts_of(message("a:1"), message())
    assert headers.line("JMSType").tolist() == [-1, -1]
    assert headers.text("JMSType").to_pylist() == [None, None]
    assert headers.equals("JMSType", "").tolist() == [False, False]
