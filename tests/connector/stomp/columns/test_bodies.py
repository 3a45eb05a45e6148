"""The types of bodies, and their columns."""

import math

import numpy as np
import pyarrow as pa
import pytest
from element_limit import limit_elements
from plain_decoder import block_of, message

from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.model import BodyType
from pyspark_jms.stomp.columns.bodies import detect_body_types, force_body_type, lost_bodies, read_bodies, read_xml
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.headers import Headers, HeaderTexts, layout_of
from pyspark_jms.stomp.columns.lines import split_lines
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC

TYPES = [kind.value for kind in BodyType]
MAP = '{"map":[{"name":"n","type":"int","value":"3"}]}'
STREAM = '{"stream":[{"type":"char","value":"x"}]}'
THREE, X = {"type": "int", "value": "3"}, {"type": "char", "value": "x"}


def read(*bodies, types, unread=()):
    """Rows of the body columns, and the error of a row."""
    frames = FrameBounds.of(block_of([message("a:1", body=body) for body in bodies]))
    found = read_bodies(frames, np.array([TYPES.index(kind) for kind in types]), dict(unread))
    for name, column in found.columns.items():
        column.validate(full=True)
        assert (column.type, len(column)) == (ARROW_SCHEMA.field(name).type, len(bodies))
    rows = zip(*(column.to_pylist() for column in found.columns.values()), strict=True)
    given = [{name: value for name, value in zip(found.columns, row, strict=True) if value is not None} for row in rows]
    return given, {row: reason for row, _, reason in found.faults}


@pytest.mark.parametrize(
    ("kind", "body", "column", "value"),
    [
        ("text", "a", "text", "a"),
        ("bytes", "a", "bytes", b"a"),
        ("object", b"\xac\xed\0\5", "bytes", b"\xac\xed\0\5"),
        ("object", b"", "bytes", b""),
        ("map", MAP, "map", [("n", THREE)]),
        ("stream", STREAM, "stream", [X]),
        ("map", '{"map":[]}', "map", []),
        ("stream", '{"stream":[]}', "stream", []),
    ],
)
def test_a_body_is_in_the_column_of_its_type(kind, body, column, value):
    expected = {"body_type": kind, column: value}
    assert read(body, types=[kind]) == ([expected], {})
    assert read(body, body, types=[kind] * 2) == ([expected] * 2, {})
    assert read("x", body, b"y", types=["text", kind, "bytes"])[0][1] == expected


def test_a_message_without_a_body():
    assert read("", types=["message"]) == ([{"body_type": "message"}], {})
    rows, faults = read("", "x", types=["message", "message"])
    assert rows == [{"body_type": "message"}, {"body_type": "message", "bytes": b"x"}]
    assert faults == {1: "a message without a body has one"}


def test_a_body_that_is_not_what_it_should_be_is_raw_bytes_and_a_reason():
    bodies = [MAP, b"{", STREAM, b"\xff", b"\xff", STREAM, MAP]
    rows, faults = read(*bodies, types=["map", "map", "map", "map", "stream", "stream", "stream"])
    assert [row["body_type"] for row in rows] == ["map"] * 4 + ["stream"] * 3
    assert [row.get("bytes") for row in rows] == [None, b"{", STREAM.encode(), b"\xff", b"\xff", None, MAP.encode()]
    assert (rows[0]["map"], rows[5]["stream"]) == ([("n", THREE)], [X])
    assert faults == {
        1: "body is not the JSON of a map",
        2: "body is not the JSON of a map",
        3: "text is not valid UTF-8",
        4: "text is not valid UTF-8",
        6: "body is not the JSON of a stream",
    }


def test_what_is_not_to_be_read_is_raw_bytes():
    rows, faults = read("a", b"b", "c", types=["text", "bytes", "text"], unread={0: "why", 1: "why not"})
    assert rows == [
        {"body_type": "text", "bytes": b"a"},
        {"body_type": "bytes", "bytes": b"b"},
        {"body_type": "text", "text": "c"},
    ]
    assert faults == {0: "why", 1: "why not"}


def test_only_the_text_that_is_not_utf8_stays_raw():
    rows, faults = read(b"\xff", "ok", b"\xff", b"x\xc3", types=["text", "text", "bytes", "text"])
    assert rows == [
        {"body_type": "text", "bytes": b"\xff"},
        {"body_type": "text", "text": "ok"},
        {"body_type": "bytes", "bytes": b"\xff"},
        {"body_type": "text", "bytes": b"x\xc3"},
    ]
    assert faults == {0: "text is not valid UTF-8", 3: "text is not valid UTF-8"}


def test_neighbours_do_not_complete_each_other():
    first, second = "世".encode()[:1], "世".encode()[1:]
    assert [row["bytes"] for row in read(first, second, types=["text", "text"])[0]] == [first, second]


TEXT, BYTES, MAP_TYPE, STREAM_TYPE, OBJECT = range(5)


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


@pytest.mark.parametrize("value", ["", "Map", "MAP_TYPE", "maps", " map", "json", "\\u0000"])
def test_a_marker_that_does_not_name_a_body_type_stays_a_property(value):
    reason = "property 'spark_jms_body' does not name a body type"
    odd = message("content-length:1", "a:1", f"spark_jms_body:{value}", "b:2")
    good = message("spark_jms_body:map", "c:3")
    headers = headers_of(good, odd, message("d:4"), odd)
    assert types_of(headers) == ([MAP_TYPE, BYTES, TEXT, BYTES], {1: reason, 3: reason})
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
    assert types.codes.tolist() == [MAP_TYPE, OBJECT, TEXT]
    assert types.transformed.tolist() == [True, False, False]
    assert types.unread == {1: "the broker turned the object into XML"}


def test_the_first_marker_of_a_frame_counts():
    lines = ["spark_jms_body:x", "spark_jms_body:map"]
    assert types_of(headers_of(message(*lines), message("a:1")))[0] == [TEXT, TEXT]


# As ActiveMQ Classic 6.3.1 wrote it.
SEEN = """<map>
  <entry>
    <string>bb</string>
    <byte-array>AP8=</byte-array>
  </entry>
  <entry>
    <string>k ä&lt;&gt;&amp;:
</string>
    <string>]]&gt; &amp;#0; &quot;&apos; &#x1;&#x1f;&#xd;</string>
  </entry>
  <entry>
    <string>c</string>
    <char>&lt;</char>
  </entry>
  <entry>
    <string>d</string>
    <double>-0.0</double>
  </entry>
  <entry>
    <string>f</string>
    <float>1.6777216E7</float>
  </entry>
  <entry>
    <string>n</string>
    <null/>
  </entry>
  <entry>
    <string>e</string>
    <string></string>
  </entry>
  <entry>
    <string>l</string>
    <long>-9223372036854775808</long>
  </entry>
</map>"""


def read_map(*texts):
    found = read_xml(BodyType.MAP, pa.array([text.encode() for text in texts], pa.binary()))
    return [None if row is None else dict(row) for row in found.column.to_pylist()], found.reasons


def test_what_a_broker_wrote():
    (found,), reasons = read_map(SEEN)
    assert not reasons
    assert {name: (element["type"], element["value"]) for name, element in found.items()} == {
        "bb": ("bytes", "AP8="),
        "k ä<>&:\n": ("string", "]]> &#0; \"' \x01\x1f\r"),
        "c": ("char", "<"),
        "d": ("double", "-0.0"),
        "f": ("float", "1.6777216E7"),
        "n": ("string", None),
        "e": ("string", ""),
        "l": ("long", "-9223372036854775808"),
    }
    assert math.copysign(1, float(found["d"]["value"])) == -1


@pytest.mark.parametrize("empty", ["<map/>", "<map></map>", "<map>\n</map>\n"])
def test_an_empty_map(empty):
    assert read_map(empty) == ([{}], {})


def test_base64_in_lines():
    (found,), _ = read_map("<map><entry><string>b</string><byte-array>AP\n8=\n</byte-array></entry></map>")
    assert found["b"]["value"] == "AP8="


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "<map>",
        "<map>x</map>",
        "<map><entry/></map>",
        "<map><entry><string>a</string></entry></map>",
        "<map><entry><string>a</string><big-int>1</big-int></entry></map>",
        "<map><entry><string>a</string><int>1</long></entry></map>",
        "<map><entry><string>a &nbsp; b</string><int>1</int></entry></map>",
        "<map><entry><string>a & b</string><int>1</int></entry></map>",
        "<map><entry><string>&#0;</string><int>1</int></entry></map>",
        "<map><entry><string>&#xd83d;</string><int>1</int></entry></map>",
        "<map><entry><string>&#x110000;</string><int>1</int></entry></map>",
        '<!DOCTYPE m [<!ENTITY x "y">]><map><entry><string>&x;</string><int>1</int></entry></map>',
    ],
)
def test_what_is_no_map(text):
    assert read_map(text) == ([None], {0: "body is not the XML of a map"})


def test_a_value_that_is_not_of_its_type():
    wrong = "<map><entry><string>a</string><int>1</int></entry><entry><string>b</string><int>1.5</int></entry></map>"
    assert read_map(wrong) == ([None], {0: "element 2 of the map is not of type int"})


def test_bytes_that_are_no_text():
    found = read_xml(BodyType.MAP, pa.array([b"<map>\xff</map>"], pa.binary()))
    assert found.reasons == {0: "text is not valid UTF-8"}


def test_each_text_by_itself():
    good = "<map><entry><string>a</string><boolean>true</boolean></entry></map>"
    found, reasons = read_map(good, "x", "<map/>")
    assert found == [{"a": {"type": "boolean", "value": "true"}}, None, {}]
    assert list(reasons) == [1]


def test_many_entries_take_no_time_by_the_square_of_their_number():
    entries = "".join(f"<entry><string>k{n}</string><int>{n}</int></entry>" for n in range(50_000))
    (found,), _ = read_map(f"<map>{entries}</map>")
    assert len(found) == 50_000


def test_a_map_with_too_many_entries_is_not_read(monkeypatch):
    """Entries of one name count, too."""
    limit_elements(monkeypatch, 10)
    entry = "<entry><string>a</string><int>1</int></entry>"
    found = read_xml(BodyType.MAP, pa.array([f"<map>{entry * 11}</map>", f"<map>{entry * 10}</map>"], pa.binary()))
    assert found.reasons == {0: "the map has more than 10 elements"}
    assert found.column.to_pylist()[1] == [("a", {"type": "int", "value": "1"})]
