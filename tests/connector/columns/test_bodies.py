import numpy as np
from plain_decoder import message, segment

from pyspark_jms.columns.bodies import read_bodies
from pyspark_jms.columns.decode_frames import Frames


def read(*bodies, is_bytes):
    frames = Frames.checked(*segment([message("a:1", body=body) for body in bodies]))
    read_ = read_bodies(frames, is_bytes=np.array(is_bytes))
    for column in (read_.body_type, read_.text, read_.octets):
        column.validate(full=True)
    columns = (read_.body_type.to_pylist(), read_.text.to_pylist(), read_.octets.to_pylist())
    return list(zip(*columns, strict=True)), [(row, reason) for row, _, reason in read_.faults]


def test_text_and_bytes_side_by_side():
    rows, faults = read("a\0世", b"\0\xff", "", b"", is_bytes=[False, True, False, True])
    assert rows == [("text", "a\0世", None), ("bytes", None, b"\0\xff"), ("text", "", None), ("bytes", None, b"")]
    assert faults == []


def test_all_of_one_kind():
    assert read("a", "b", is_bytes=[False, False])[0] == [("text", "a", None), ("text", "b", None)]
    assert read("a", "b", is_bytes=[True, True])[0] == [("bytes", None, b"a"), ("bytes", None, b"b")]


def test_only_the_text_that_is_not_utf8_stays_raw():
    rows, faults = read(b"\xff", "ok", b"\xff", b"x\xc3", is_bytes=[False, False, True, False])
    assert rows == [
        ("text", None, b"\xff"),
        ("text", "ok", None),
        ("bytes", None, b"\xff"),
        ("text", None, b"x\xc3"),
    ]
    assert faults == [(0, "text is not valid UTF-8"), (3, "text is not valid UTF-8")]


def test_neighbours_do_not_complete_each_other():
    first, second = "世".encode()[:1], "世".encode()[1:]
    assert [text for _, text, _ in read(first, second, is_bytes=[False, False])[0]] == [None, None]
