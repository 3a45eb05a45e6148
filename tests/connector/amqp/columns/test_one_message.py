"""One message at a time: reasons, and rows that are the plain decoder's."""

import pytest
from amqp_messages import (
    Messages,
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
    ubyte,
)
from plain_amqp import EPOCH, row_of

from pyspark_jms.amqp.columns.decode import decode
from pyspark_jms.amqp.columns.one_message import BlockContext, delivery_id, read_message
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.jms.model import Destination
from pyspark_jms.sentences import MAX_FAULTS_SHOWN

SOURCE = Destination.parse("queue://orders")
CONTEXT = BlockContext(dialect=ARTEMIS, source=SOURCE, body_type="auto")
UUID = b"\x98" + bytes(16)
ARRAY = b"\xe0\x03\x01\x50\x01"
GOOD = (string("good"), string("x"))
BAD = b"\x56\x02"
"""A boolean that is neither true nor false."""


def test_rows_are_those_of_the_plain_decoder():
    messages = Messages(5, 0.05)
    for _ in range(1000):
        message = messages.damaged()
        found, wanted = read_message(message, CONTEXT), row_of(message, ARTEMIS, SOURCE)
        assert bool(found.pop("body_error", None)) == bool(wanted.pop("body_error", None))
        for name, value in wanted.items():
            assert _plain(name, found.get(name)) == value, (name, message)


def _plain(name, value):
    if name in {"JMSTimestamp", "JMSExpiration", "JMSDeliveryTime"} and value is not None:
        return EPOCH + type(EPOCH - EPOCH)(microseconds=value)
    if value is None or name not in {"properties", "property_types", "map", "stream"}:
        return value
    if name == "stream":
        return [_typed(each) for each in value]
    return {key: _typed(each) if name == "map" else each for key, each in value}


def _typed(element):
    return dict(zip(("type", "value"), element, strict=True))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\0\x53\x70", "the message is malformed: a value is cut off"),
        (section(0x73, list_(*[int_(1)] * 14)), "the message is malformed: a section has too many fields"),
        (section(0x70, list_(string("x"))), "durable is not a boolean"),
        (properties(message_id=int_(1)), "message-id is not a string, ulong, uuid or binary"),
        (properties(creation_time=ubyte(1)), "creation-time is not a timestamp"),
        (properties(subject=b"\xa1\x01\xff"), "subject is not valid UTF-8"),
        (application_properties(u=BAD), "property 'u' is not a boolean"),
        (section(0x74, map_([(string("n"), int_(1))] * 2)), "property 'n' is there twice"),
        (section(0x74, map_([(string("a"), int_(1)), (string("my secret"), BAD)])), "property number 2 is not a bool"),
        (section(0x74, map_([(string("x" * 61), BAD)])), "property number 1 is not a boolean"),
        (section(0x74, map_([(int_(1), int_(1))])), "the name of a property is not a string"),
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
        row = decode(
            block_of([faulty + body, *others]),
            dialect=ARTEMIS, source=SOURCE, first_sequence=0, body_type="auto",
        ).to_pylist()[0]  # fmt: skip
        assert row["body_error"] == reason
        assert {name: row[name] for name in expected} == expected
        assert row["bytes"] == (b"hi" if expected["body_type"] == "bytes" else faulty + body)
        assert dict(row["properties"]).get("good", "x") == "x"
        assert ("good" in dict(row["properties"])) == (b"good" in faulty)


def test_what_can_be_read_is_read():
    message = text_message() + b""
    row = read_message(message[: message.rindex(b"\0\x53\x77")] + section(0x77, ARRAY), CONTEXT)
    assert (row["JMSMessageID"], dict(row["properties"])["customer"]) == ("ID:1", "C1")


def test_reasons_have_a_limit_and_no_values():
    secret = {f"n{i}": b"\xa1\x07secret\xff" for i in range(20)}
    reason = read_message(application_properties(**secret), CONTEXT)["body_error"]
    assert (reason.count(";"), reason.endswith("; and more")) == (MAX_FAULTS_SHOWN, True)
    assert "secret" not in reason


def test_delivery_id():
    assert delivery_id(CONTEXT, "ID:1", b"") == "orders/ID:1"
    assert delivery_id(CONTEXT, None, b"x").startswith("orders/~")
    assert delivery_id(CONTEXT, "", b"x") == delivery_id(CONTEXT, None, b"x")
