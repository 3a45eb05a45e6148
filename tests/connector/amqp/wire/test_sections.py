"""Sections of messages, and what identifies a message."""

import hashlib
import uuid

import pytest
from amqp_messages import (
    NULL,
    Messages,
    application_properties,
    binary,
    int_,
    list_,
    map_,
    properties,
    section,
    string,
    symbol,
    text_message,
    timestamp,
    uint,
    ulong,
)

from pyspark_jms.amqp.wire.sections import (
    FOOTER,
    HEADER,
    LISTS,
    MAPS,
    MalformedMessageError,
    count_of,
    delivery_count,
    elements,
    fingerprint,
    sections,
    stable_id,
    time_ms,
)
from pyspark_jms.jms.headers import PropertiesField

ID, CREATED = uuid.UUID(int=7), PropertiesField.CREATION_TIME


def test_sections_are_found_by_their_sizes():
    """Code, value and end of each, in the order of the bytes."""
    message = section(0x70, list_()) + section(0x77, string("hello"))
    assert list(sections(message)) == [(0x70, 3, 6), (0x77, 9, len(message))]


@pytest.mark.parametrize(
    "descriptor", [b"\0\x53\x70", b"\0\x80" + bytes(7) + b"\x70", b"\0" + symbol("amqp:header:list")]
)
def test_a_descriptor_may_be_a_code_or_a_symbol(descriptor):
    """AMQP 1.0 §3.2 defines both for each section."""
    assert [found.code for found in sections(descriptor + list_() + section(FOOTER, map_([])))] == [HEADER, FOOTER]


@pytest.mark.parametrize(
    "message",
    [
        b"\0",
        b"\0\x53",
        b"\0\x53\x70",
        b"\x53\x70\x45",
        section(0x70, b"\xc0\x05\x01\x41"),
        section(0x79, NULL),
        section(0x6F, NULL),
        section(0x77, b"\x01"),
        section(0x77, b"\xb1\0\0"),
        section(0x70, b"\x45") * 2,
        section(0x72, map_([])) + section(0x70, b"\x45"),
        section(0x77, NULL) * 2,
        section(0x75, binary(b"")) + section(0x77, NULL),
        b"\0" * 50,
        b"\0" + symbol("amqp:unknown:list") + b"\x45",
    ],
)
def test_other_bytes_are_malformed(message):
    with pytest.raises(MalformedMessageError):
        list(sections(message))


def test_elements_must_fill_their_list():
    assert list(elements(list_(int_(1), string("a")), 0, LISTS)) == [3, 5]
    assert list(elements(b"\x45", 0, LISTS)) == []
    for wrong in (b"\xc0\x02\x02\x40", b"\xc0\x03\x01\x40\x40", b"\xd0\0\0\0\x04\x7f\xff\xff\xff", b"\xc0\x00"):
        with pytest.raises(MalformedMessageError):
            list(elements(wrong, 0, LISTS))
    with pytest.raises(MalformedMessageError):
        list(elements(list_(), 0, MAPS))
    assert stable_id(section(0x73, b"\xc0\x05\x09" + string("ab"))) is None, "the list states nine elements"


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (string("ID:1"), b"ID:1"),
        (string("é"), "ID:AMQP_NO_PREFIX:é".encode()),
        (ulong(7), b"ID:AMQP_ULONG:7"),
        (b"\x44", b"ID:AMQP_ULONG:0"),
        (ulong(2**63), b"ID:AMQP_ULONG:9223372036854775808"),
        (b"\x98" + ID.bytes, f"ID:AMQP_UUID:{ID}".encode()),
        (binary(b"\xab\x01"), b"ID:AMQP_BINARY:AB01"),
        (string(""), None),
        (NULL, None),
        (b"\xa1\x01\xff", None),
        (int_(1), None),
    ],
)
def test_stable_id_is_the_message_id_of_jms(encoded, expected):
    assert stable_id(properties(message_id=encoded, to=string("q"))) == expected


def test_the_fingerprint_ignores_the_header_section():
    """A redelivered message has another delivery-count, and no header before its first delivery."""
    body = text_message()[len(section(0x70, list_(b"\x41"))) :]
    again = section(0x70, list_(b"\x41", NULL, NULL, NULL, uint(1))) + body
    assert fingerprint(text_message()) == fingerprint(again) == fingerprint(memoryview(body))
    assert fingerprint(body) == hashlib.sha256(body).digest()[:16]
    assert fingerprint(body[:-1]) != fingerprint(body)


def test_creation_time_and_delivery_count():
    message = section(0x70, list_(NULL, NULL, NULL, NULL, uint(300))) + properties(creation_time=timestamp(-5))
    assert (time_ms(message, CREATED), delivery_count(message)) == (-5, 300)
    message = section(0x70, list_(NULL, NULL, NULL, NULL, string("no"))) + properties(creation_time=string("no"))
    assert (time_ms(message, CREATED), delivery_count(message)) == (None, 0)
    assert (time_ms(b"", CREATED), delivery_count(b"\0"), stable_id(b"\0\x53")) == (None, 0, None)
    assert time_ms(application_properties(a=NULL) + section(0x77, NULL), CREATED) is None


def test_damaged_messages_have_an_identity_too():
    messages = Messages(1, 0.05)
    for _ in range(2000):
        message = messages.damaged()
        assert (len(fingerprint(message)), stable_id(message) is not None) == (16, bool(stable_id(message)))
        time_ms(message, CREATED)
        delivery_count(message)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (list_(), 0),
        (list_(int_(1), int_(2)), 2),
        (list_(int_(1), int_(2), wide=True), 2),
        (map_([(string("a"), NULL)]), 2),
        (string("abc"), 0),
        (b"\xd0\0\0\0\x04\xff\xff\xff\xff", 0),
    ],
    ids=["empty", "narrow", "wide", "map", "no list", "more than bytes"],
)
def test_a_list_states_the_number_of_its_elements(value, count):
    """A number that the bytes cannot bear out is left to ``elements``, which raises."""
    assert count_of(value, 0) == count
