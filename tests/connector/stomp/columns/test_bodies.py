import numpy as np
import pytest
from plain_decoder import block_of, message

from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.model import BodyType
from pyspark_jms.stomp.columns.bodies import read_bodies
from pyspark_jms.stomp.columns.frames import FrameBounds

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


def test_text_and_bytes_side_by_side():
    rows, faults = read("a\0世", b"\0\xff", "", b"", types=["text", "bytes", "text", "bytes"])
    assert rows == [
        {"body_type": "text", "text": "a\0世"},
        {"body_type": "bytes", "bytes": b"\0\xff"},
        {"body_type": "text", "text": ""},
        {"body_type": "bytes", "bytes": b""},
    ]
    assert faults == {}


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


def test_all_six_at_once():
    rows, faults = read("t", b"b", MAP, STREAM, b"o", "", MAP, types=[*TYPES, "map"])
    assert rows == [
        {"body_type": "text", "text": "t"},
        {"body_type": "bytes", "bytes": b"b"},
        {"body_type": "map", "map": [("n", THREE)]},
        {"body_type": "stream", "stream": [X]},
        {"body_type": "object", "bytes": b"o"},
        {"body_type": "message"},
        {"body_type": "map", "map": [("n", THREE)]},
    ]
    assert faults == {}


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
