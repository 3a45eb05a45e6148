"""The body of one message: its type, and what makes it unreadable."""

import pytest
from amqp_messages import NULL, binary, int_, list_, map_, section, string, symbol

from pyspark_jms.amqp.columns.one_body import BodyFacts, is_text_type, read_body
from pyspark_jms.amqp.columns.one_value import Unreadable
from pyspark_jms.amqp.wire.sections import sections

OBJECT = "application/x-java-serialized-object"
TEXT, DATA = section(0x77, string("hi")), section(0x75, binary(b"hi"))
MAP, LIST = section(0x77, map_([(string("k"), int_(1))])), section(0x77, list_(int_(1)))
NONE, NO_BODY = section(0x77, NULL), b""
ONE = ("int", "1")


def body(message, annotation=None, content_type=None, choice="auto"):
    found = [(section_.code, section_.value) for section_ in sections(message)]
    read = read_body(message, BodyFacts(found, annotation, content_type, choice))
    return read.pop("body_type"), *read.values()


@pytest.mark.parametrize(
    ("message", "annotation", "content_type", "expected"),
    [
        (TEXT, None, None, ("text", "hi")),
        (TEXT, 5, None, ("text", "hi")),
        (section(0x77, string("")), 5, None, ("text", "")),
        (NONE, 5, None, ("text", None)),
        (NONE, None, None, ("text", None)),
        (DATA, None, None, ("bytes", b"hi")),
        (DATA * 2, None, "application/octet-stream", ("bytes", b"hihi")),
        (DATA, None, OBJECT, ("object", b"hi")),
        (DATA, 1, None, ("object", b"hi")),
        (DATA, None, "text/plain", ("text", "hi")),
        (DATA, 5, None, ("text", "hi")),
        (NO_BODY, 3, None, ("bytes", b"")),
        (section(0x77, binary(b"x")), None, None, ("bytes", b"x")),
        (MAP, None, None, ("map", [("k", ONE)])),
        (NO_BODY, 2, None, ("map", [])),
        (LIST, None, None, ("stream", [ONE])),
        (section(0x76, list_(int_(1))) * 2, 4, None, ("stream", [ONE, ONE])),
        (NO_BODY, None, None, ("message",)),
        (NONE, 0, None, ("message",)),
        (TEXT, 9, None, ("text", "hi")),
    ],
)
def test_bodies(message, annotation, content_type, expected):
    assert body(message, annotation, content_type) == expected


@pytest.mark.parametrize(
    ("message", "choice", "expected"),
    [
        (TEXT, "bytes", ("bytes", b"hi")),
        (DATA, "text", ("text", "hi")),
        (NONE, "text", ("text", None)),
        (NO_BODY, "bytes", ("bytes", b"")),
    ],
)
def test_forced_types(message, choice, expected):
    """Whatever the message says."""
    assert body(message, 4, OBJECT, choice) == expected


@pytest.mark.parametrize(
    ("message", "annotation", "reason"),
    [
        (TEXT, 3, "is not that of bytes"),
        (MAP, 5, "is not that of a text"),
        (MAP, 4, "is not that of a stream"),
        (TEXT, 0, "is not that of a message"),
        (section(0x77, int_(1)), None, "is of a type that JMS does not have"),
        (section(0x75, string("a")), None, "has a section of the wrong type"),
        (section(0x75, binary(b"\xff")), 5, "is not valid UTF-8"),
        (section(0x77, map_([(string("k"), int_(1))] * 2)), None, "is a map that has a key twice"),
        (section(0x77, b"\xc1\x03\x01\xa1\x00"), None, "is a map that has a key without a value"),
        (section(0x77, map_([(symbol("k"), NULL)])), None, "cannot be read: a key of the map is not a string"),
        (section(0x77, list_(b"\x56\x02")), None, "cannot be read: an element of the stream is not a boolean"),
        (section(0x77, b"\xc0\x03\x02\x40\x01"), None, "is malformed: 0x01 is not a constructor"),
    ],
)
def test_unreadable_bodies(message, annotation, reason):
    with pytest.raises(Unreadable, match=reason):
        body(message, annotation)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/plain", True),
        ("text/plain; charset=UTF-8", True),
        ('text/plain;charset="us-ascii"', True),
        ("text/plain; charset=utf-16", False),
        ("application/json", True),
        ("application/soap+xml", True),
        ("APPLICATION/XML", True),
        ("application/octet-stream", False),
        ("image/png", False),
        ("text", False),
    ],
)
def test_is_text_type(content_type, expected):
    assert is_text_type(content_type) is expected
