"""One message at a time: reasons and bodies. ``test_decode`` compares the rows with those of the vectorised decoder."""

import struct

import pytest
from amqp_messages import (
    NULL,
    application_properties,
    binary,
    block_of,
    int_,
    list_,
    map_,
    properties,
    section,
    string,
    symbol,
    text_message,
    timestamp,
    ubyte,
    uint,
    ulong,
)

from pyspark_jms.amqp.columns.decode import decode
from pyspark_jms.amqp.columns.one_message import (
    BlockContext,
    BodyFacts,
    read_body,
    read_message,
)
from pyspark_jms.amqp.columns.one_value import UnreadableValueError
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.amqp.wire.sections import sections
from pyspark_jms.jms.model import Destination
from pyspark_jms.sentences import MAX_FAULTS_SHOWN

SOURCE = Destination.parse("queue://orders")
CONTEXT = BlockContext(dialect=ARTEMIS, source=SOURCE, body_type="auto")
UUID = b"\x98" + bytes(16)
ARRAY = b"\xe0\x03\x01\x50\x01"
GOOD = (string("good"), string("x"))
BAD = b"\x56\x02"
"""A boolean that is neither true nor false."""


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\0\x53\x70", "the message is malformed: a value is cut off"),
        (section(0x73, list_(*[int_(1)] * 14)), "the message is malformed: a section has too many fields"),
        (properties(creation_time=ubyte(1)), "creation-time is not a timestamp"),
        (application_properties(u=BAD), "property 'u' is not a boolean"),
        (section(0x74, map_([(string("a"), int_(1)), (string("my secret"), BAD)])), "property number 2 is not a bool"),
        (section(0x74, map_([(string("x" * 61), BAD)])), "property number 1 is not a boolean"),
        (section(0x77, ARRAY), "the body is of a type that JMS does not have"),
        (section(0x70, list_(UUID)) + section(0x77, ARRAY), "durable is not a boolean; the body is of a type that JMS"),
    ],
)
def test_reasons(message, reason):
    """The row has the whole message, to be read by other means."""
    row = read_message(message, CONTEXT)
    assert row["body_error"].startswith(reason)
    assert (row["bytes"], row.get("text")) == (message, None)


@pytest.mark.parametrize(
    ("faulty", "reason"),
    [
        (section(0x70, list_(UUID)), "durable is not a boolean"),
        (properties(subject=b"\xa1\x01\xff"), "subject is not valid UTF-8"),
        (properties(message_id=int_(1)), "message-id is not a string, ulong, uuid or binary"),
        (section(0x74, map_([(string("u"), b"\xa1\x01\xff"), GOOD])), "property 'u' is not valid UTF-8"),
        (section(0x74, map_([(b"\xa1\x01\xff", int_(1)), GOOD])), "the name of a property is not valid UTF-8"),
        (section(0x74, map_([(symbol("s"), int_(1)), GOOD])), "the name of a property is not a string"),
        (section(0x74, map_([GOOD, GOOD])), "property 'good' is there twice"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_fault_elsewhere_does_not_hide_the_body(faulty, reason, alone):
    """Every other part of the message is readable, alone and among messages that are decoded at once."""
    bodies = [
        ({"body_type": "text", "text": "hi"}, section(0x77, string("hi"))),
        ({"body_type": "bytes"}, section(0x75, binary(b"hi"))),
        (
            {"body_type": "map", "map": [("k", {"type": "int", "value": "1"})]},
            section(0x77, map_([(string("k"), int_(1))])),
        ),
        ({"body_type": "message"}, b""),
    ]
    for expected, body in bodies:
        others = [] if alone else [text_message()] * 20
        how = {"dialect": ARTEMIS, "source": SOURCE, "first_sequence": 0, "body_type": "auto"}
        row = decode(block_of([faulty + body, *others]), **how).to_pylist()[0]
        assert row["body_error"] == reason
        assert {name: row[name] for name in expected} == expected
        assert row["bytes"] == (b"hi" if expected["body_type"] == "bytes" else faulty + body)
        assert dict(row["properties"]).get("good", "x") == "x"
        assert ("good" in dict(row["properties"])) == (b"good" in faulty)


def test_what_can_be_read_is_read():
    message = text_message()
    row = read_message(message[: message.rindex(b"\0\x53\x77")] + section(0x77, ARRAY), CONTEXT)
    assert (row["JMSMessageID"], dict(row["properties"])["customer"]) == ("ID:1", "C1")


def test_reasons_have_a_limit_and_no_values():
    secret = {f"n{i}": b"\xa1\x07secret\xff" for i in range(20)}
    reason = read_message(application_properties(**secret), CONTEXT)["body_error"]
    assert (reason.count(";"), reason.endswith("; and more")) == (MAX_FAULTS_SHOWN, True)
    assert "secret" not in reason


# --- the body ------------------------------------------------------------------------------------------

OBJECT = "application/x-java-serialized-object"
TEXT, DATA = section(0x77, string("hi")), section(0x75, binary(b"hi"))
MAP, LIST = section(0x77, map_([(string("k"), int_(1))])), section(0x77, list_(int_(1)))
NONE, NO_BODY = section(0x77, NULL), b""
ONE = ("int", "1")


def body(message, annotation=None, content_type=None, choice="auto"):
    found = [(section_.code, section_.value) for section_ in sections(message)]
    faults = []
    read = read_body(message, BodyFacts(found, annotation, content_type, choice), faults)
    assert not faults
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
        (section(0x77, int_(-7)), None, None, ("text", "-7")),
        (section(0x77, int_(-7)), 5, "application/json", ("text", "-7")),
        (section(0x77, uint(2**32 - 1)), None, None, ("text", "4294967295")),
        (section(0x77, ulong(2**64 - 1)), None, None, ("text", "18446744073709551615")),
        (section(0x77, b"\x41"), None, None, ("text", "true")),
        (section(0x77, b"\x56\x00"), None, None, ("text", "false")),
        (section(0x77, timestamp(-1)), None, None, ("text", "-1")),
        (section(0x77, b"\x98" + bytes(16)), None, None, ("text", "00000000-0000-0000-0000-000000000000")),
        (section(0x77, symbol("s")), None, None, ("text", "s")),
        (section(0x77, b"\x73\x00\x01\xf6\x00"), None, None, ("text", "\U0001f600")),
        (section(0x77, b"\x82" + struct.pack(">d", 1.5)), None, None, ("text", "1.5")),
        (section(0x77, b"\x84" + bytes(8)), None, None, ("text", "0E-398")),
        (TEXT, 1, None, ("text", "hi")),
        (MAP, 1, None, ("map", [("k", ONE)])),
        (LIST, 1, None, ("stream", [ONE])),
        (section(0x77, int_(1)), 1, OBJECT, ("text", "1")),
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
        (section(0x77, int_(1)), 2, "is not that of a map"),
        (section(0x77, int_(1)), 3, "is not that of bytes"),
        (section(0x77, b"\x56\x02"), None, "is not a boolean"),
        (section(0x77, b"\xa3\x01\xff"), None, "is not valid UTF-8"),
        (section(0x77, b"\xe0\x03\x01\x50\x01"), None, "is of a type that JMS does not have"),
        (section(0x77, b"\x00\xa3\x01x\x41"), None, "is of a type that JMS does not have"),
        (section(0x75, string("a")), None, "has a section of the wrong type"),
        (section(0x75, binary(b"\xff")), 5, "is not valid UTF-8"),
        (section(0x77, b"\xc1\x03\x01\xa1\x00"), None, "is a map that has a key without a value"),
        (section(0x77, b"\xc0\x03\x02\x40\x01"), None, "is malformed: 0x01 is not a constructor"),
    ],
)
def test_unreadable_bodies(message, annotation, reason):
    with pytest.raises(UnreadableValueError, match=reason):
        body(message, annotation)


@pytest.mark.parametrize(
    ("message", "expected", "faults"),
    [
        (map_([(string("k"), int_(1)), (string("k"), int_(2))]), [("k", ONE)], ["the map has a key twice"]),
        (map_([(symbol("s"), NULL), (string("k"), int_(1))]), [("k", ONE)], ["a key of the map is not a string"]),
        (
            map_([(b"\xa1\x01\xff", NULL), (string("k"), int_(1))]),
            [("k", ONE)],
            ["a key of the map is not valid UTF-8"],
        ),
        (
            map_([(string("u"), b"\xa1\x01\xff"), (string("k"), int_(1))]),
            [("u", ("string", None)), ("k", ONE)],
            ["a value of the map is not valid UTF-8"],
        ),
        (list_(b"\x56\x02", int_(1)), [("boolean", None), ONE], ["an element of the stream is not a boolean"]),
        (
            list_(b"\x73\xff\xff\xff\xff", b"\xa3\x01\xff"),
            [("char", None), ("string", None)],
            ["an element of the stream is not a character", "an element of the stream is not valid UTF-8"],
        ),
    ],
)
def test_a_faulty_element_does_not_hide_the_others(message, expected, faults):
    found, data = [], section(0x77, message)
    sections_ = [(section_.code, section_.value) for section_ in sections(data)]
    read = read_body(data, BodyFacts(sections_, None, None, "auto"), found)
    assert (list(read.values())[1], found) == (expected, faults)
