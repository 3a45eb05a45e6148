import numpy as np
import pytest
from plain_decoder import block_of, message

from pyspark_jms.jms.model import BodyType
from pyspark_jms.stomp.columns.body_types import detect_body_types, force_body_type, lost_bodies
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.header_texts import HeaderTexts
from pyspark_jms.stomp.columns.headers import Headers
from pyspark_jms.stomp.columns.layout import layout_of
from pyspark_jms.stomp.columns.lines import split_lines
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC

TEXT, BYTES, MAP, STREAM, OBJECT = range(5)


def headers_of(*frames, dialect=ARTEMIS):
    lines = split_lines(FrameBounds.of(block_of(frames)))
    return HeaderTexts(lines, layout_of(lines, dialect))


def types_of(headers, dialect=ARTEMIS):
    types = detect_body_types(headers, dialect)
    return types.codes.tolist(), types.unread


def properties_of(headers, types):
    return Headers(headers, ARTEMIS, types.unread_markers).columns()["properties"].to_pylist()


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


def test_a_marker_overrides_the_rule_of_the_dialect():
    frames = [message("content-length:1", f"spark_jms_body:{kind.value}", "a:1") for kind in BodyType]
    for some in (frames, *([frame] for frame in frames)):
        headers = headers_of(*some)
        codes, unknown = types_of(headers)
        assert codes == [frames.index(frame) for frame in some]
        assert unknown == {}
        assert properties_of(headers, detect_body_types(headers, ARTEMIS)) == [[("a", "1")]] * len(some)


@pytest.mark.parametrize("value", ["", "Map", "MAP", "maps", " map", "json", "\\u0000"])
def test_a_marker_that_does_not_name_a_body_type_stays_a_property(value):
    reason = "property 'spark_jms_body' does not name a body type"
    odd = message("content-length:1", "a:1", f"spark_jms_body:{value}", "b:2")
    good = message("spark_jms_body:map", "c:3")
    headers = headers_of(good, odd, message("d:4"), odd)
    assert types_of(headers) == ([MAP, BYTES, TEXT, BYTES], {1: reason, 3: reason})
    pairs = [("a", "1"), ("spark_jms_body", value), ("b", "2")]
    assert properties_of(headers, detect_body_types(headers, ARTEMIS)) == [[("c", "3")], pairs, [("d", "4")], pairs]
    alone = headers_of(odd, odd)
    assert types_of(alone) == ([BYTES] * 2, {0: reason, 1: reason})
    assert properties_of(alone, detect_body_types(alone, ARTEMIS)) == [pairs, pairs]


def test_a_marker_that_is_not_read_stays_a_property():
    frames = [message("spark_jms_body:map", "a:1"), message("a:1"), message("a:1", "spark_jms_body:x")]
    for some in (frames, frames[:1], frames[1:2]):
        headers = headers_of(*some)
        types = force_body_type(headers, "bytes")
        assert (types.codes.tolist(), types.unread, types.transformed) == ([BYTES] * len(some), {}, None)
        expected = [[("spark_jms_body", "map"), ("a", "1")], [("a", "1")], [("a", "1"), ("spark_jms_body", "x")]]
        assert properties_of(headers, types) == [expected[frames.index(frame)] for frame in some]


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
    reason = "the broker did not send the body: it is neither text nor bytes"
    frame = message(f"_AMQ_LARGE_SIZE:{stored}")
    assert lost_bodies(headers_of(frame), ARTEMIS, np.array([size])) == ({0: reason} if lost else {})
    three = headers_of(message("a:1"), frame, message("_AMQ_LARGE_SIZE:20"))
    assert lost_bodies(three, ARTEMIS, np.array([0, size, 20])) == ({1: reason} if lost else {})
    assert properties_of(three, detect_body_types(three, ARTEMIS)) == [[("a", "1")], [], []]


def test_what_classic_has_transformed():
    frames = [message("transformation:jms-map-xml"), message("transformation:jms-object-xml"), message("a:1")]
    types = detect_body_types(headers_of(*frames, dialect=CLASSIC), CLASSIC)
    assert types.codes.tolist() == [MAP, OBJECT, TEXT]
    assert types.transformed.tolist() == [True, False, False]
    assert types.unread == {1: "the broker turned the object into XML"}


def test_the_first_marker_of_a_frame_counts():
    lines = ["spark_jms_body:x", "spark_jms_body:map"]
    assert types_of(headers_of(message(*lines), message("a:1")))[0] == [TEXT, TEXT]
