"""Fields, names, annotations, ids and destinations."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import (
    FALSE,
    NULL,
    TRUE,
    annotations,
    binary,
    byte,
    int_,
    long,
    map_,
    section,
    string,
    symbol,
    ubyte,
    uint,
    ulong,
    variable,
    walked,
)

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Refusals
from pyspark_jms.amqp.columns.headers import (
    ABSENT,
    BOOLEAN,
    BYTE,
    UBYTE,
    UINT,
    Annotations,
    destination_of,
    field_at,
    ids,
    is_pattern,
    names_of,
    numbers,
    reply_to_of,
    times,
)
from pyspark_jms.amqp.columns.headers import string as string_column
from pyspark_jms.amqp.columns.walk import Entry, Field
from pyspark_jms.amqp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.amqp.wire.sections import id_text
from pyspark_jms.jms.headers import Annotation
from pyspark_jms.jms.model import Destination


def laid_out(values, rows=None):
    ends = np.cumsum([len(value) for value in values])
    at = ends - [len(value) for value in values]
    reader = ByteReader(pa.py_buffer(b"".join(values) + bytes(16)))
    found = reader.values(at, ends)
    return reader, Field(np.arange(len(values)) if rows is None else np.array(rows), *found[:3])


def test_strings_and_nulls():
    reader, field = laid_out([string("a"), NULL, string("x" * 300)], [0, 2, 3])
    assert string_column(reader, field, 5, Refusals()).to_pylist() == ["a", None, None, "x" * 300, None]
    assert string_column(reader, None, 2, Refusals()).to_pylist() == [None, None]


@pytest.mark.parametrize("text", ["same", "x" * 100])
def test_strings_that_are_all_the_same(text):
    reader, field = laid_out([string(text)] * 3)
    assert string_column(reader, field, 3, Refusals()).to_pylist() == [text] * 3


@pytest.mark.parametrize("wrong", [uint(5), b"\xa1\x01\xff"])
def test_other_values_and_other_bytes_are_refused(wrong):
    for values, rows in (([string("a"), wrong], [1]), ([wrong, wrong], [0, 1])):
        reader, field = laid_out(values)
        refusals = Refusals()
        column = string_column(reader, field, 2, refusals)
        column.validate(full=True)
        assert refusals.rows().tolist() == rows
        assert column.to_pylist() == ["a" if row not in rows else None for row in range(2)]


@pytest.mark.parametrize(
    ("values", "codes", "expected"),
    [
        ([uint(0), uint(7), uint(2**32 - 1), NULL], UINT, [0, 7, 2**32 - 1, -9]),
        ([TRUE, FALSE, b"\x56\x01", b"\x56\x00"], BOOLEAN, [1, 0, 1, 0]),
        ([ubyte(255)] * 2, UBYTE, [255, 255]),
    ],
)
def test_numbers(values, codes, expected):
    reader, field = laid_out(values)
    assert numbers(reader, field, len(values) + 1, codes, absent=-9, refusals=Refusals()).tolist() == [*expected, -9]


@pytest.mark.parametrize("wrong", [string("a"), b"\x56\x02"])
def test_what_is_no_number_is_refused_or_absent(wrong):
    reader, field = laid_out([TRUE, wrong])
    refusals = Refusals()
    assert numbers(reader, field, 2, BOOLEAN, absent=-1, refusals=refusals).tolist() == [1, -1]
    assert refusals.rows().tolist() == [1]
    assert numbers(reader, field, 2, BOOLEAN, absent=-1, refusals=None).tolist() == [1, -1]


def test_times_have_the_years_of_spark():
    moment = dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC)
    assert times(np.array([1])).to_pylist() == [moment]
    assert times(np.array([0, 1, 253_402_300_800_000, -(2**63)])).to_pylist() == [None, moment, None, None]


def test_a_field_that_no_row_has_is_none():
    _, field = laid_out([NULL, NULL])
    assert field_at([field], 0) is None
    assert field_at([], 3) is None
    _, field = laid_out([NULL, TRUE])
    assert field_at([field], 0) is field


READER = ByteReader(pa.py_buffer(b"abcab\xff"))
FIELD = Field(np.array([0, 1, 2]), 0x40, np.zeros(3, np.int64), np.zeros(3, np.int64))


def entry(starts, stops):
    return Entry(FIELD, None, np.array(starts), np.array(stops))


def test_each_name_has_one_number():
    names = names_of(READER, [Entry(FIELD, b"ab"), entry([0, 1, 3], [2, 3, 5])], Refusals())
    assert names.texts().to_pylist() == ["ab", "bc"]
    assert (names.codes[0], names.codes[1].tolist()) == (0, [0, 1, 0])
    assert (names.number("new"), len(names)) == (2, 3)


def test_names_that_are_not_utf8_are_refused_all_at_once():
    """They have another name instead."""
    refusals = Refusals()
    names = names_of(READER, [entry([0, 4, 0], [1, 6, 1]), entry([0, 0, 5], [1, 1, 6])], refusals)
    assert refusals.rows().tolist() == [1, 2]
    assert [names.texts().take(pa.array(codes)).to_pylist() for codes in names.codes] == [
        ["a", "", "a"],
        ["a", "a", ""],
    ]
    names = names_of(READER, [Entry(FIELD, b"\xff")], refusals)
    assert (refusals.rows().tolist(), names.texts().to_pylist(), names.codes) == ([0, 1, 2], [""], [0])


def annotated(messages):
    reader, parts = walked(messages)
    return Annotations(reader, parts.annotations, len(messages), Refusals())


def test_a_number_for_each_row():
    """Absent, of another type and out of range are the same for an index."""
    rows = [
        annotations(jms_dest=byte(1), ingress_time=long(1)),
        annotations(ingress_time=long(1), jms_dest=byte(3)),
        annotations(jms_dest=string("queue")),
        annotations(jms_dest=byte(9)),
        section(0x77, int_(1)),
    ]
    found = annotated(rows)
    assert found.small(Annotation.DESTINATION, BYTE, range(4)).tolist() == [1, 3, -1, -1, -1]
    assert found.numbers(Annotation.DESTINATION, BYTE).tolist() == [1, 3, ABSENT, 9, ABSENT]
    assert found.numbers("x-opt-delivery-time", BYTE).tolist() == [ABSENT] * 5


def test_the_last_of_two_counts():
    twice = section(0x72, map_([(symbol("x-opt-jms-dest"), byte(0)), (symbol("x-opt-jms-dest"), byte(2))]))
    assert annotated([twice]).small(Annotation.DESTINATION, BYTE, range(4)).tolist() == [2]


UUID = b"\x98" + bytes(range(0x90, 0xA0))
VALUES = [
    string("ID:1"),
    string(""),
    string("x" * 300),
    string("ID:AMQP_UUID:1"),
    string("ID:AMQP_NO_PREFIX:"),
    string("ID:AMQP_OTHER:1"),
    ulong(7),
    b"\x44",
    ulong(2**64 - 1),
    UUID,
    binary(b"\x01\xab"),
    variable(0xA0, b""),
    variable(0xA0, bytes(range(256)) * 2),
]


@pytest.fixture(params=[True, False], ids=["message-id", "correlation-id"])
def of_messages(request):
    return request.param


def column(values, of_messages, rows=None):
    ends = np.cumsum([len(value) for value in values])
    reader = ByteReader(pa.py_buffer(b"".join(values) + bytes(16)))
    found = reader.values(ends - [len(value) for value in values], ends)
    every, refusals = np.arange(len(values)) if rows is None else np.array(rows), Refusals()
    texts = ids(reader, Field(every, *found[:3]), int(every.max()) + 2, refusals, of_messages=of_messages)
    texts.validate(full=True)
    return texts.to_pylist()[:-1], refusals.rows().tolist()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: hex(value[0]))
def test_a_block_of_one_type(value, of_messages):
    assert column([value] * 3, of_messages) == ([id_text(value, 0, of_message=of_messages)] * 3, [])


def test_every_type_in_one_block(of_messages):
    values = [*VALUES, NULL, *reversed(VALUES)]
    assert column(values, of_messages) == ([id_text(value, 0, of_message=of_messages) for value in values], [])


def test_rows_without_the_field(of_messages):
    uuid = id_text(UUID, 0, of_message=of_messages)
    assert column([UUID, string("ID:a"), NULL], of_messages, [0, 2, 3]) == ([uuid, None, "ID:a", None], [])


@pytest.mark.parametrize("wrong", [b"\x41", b"\xa1\x01\xff"])
def test_what_is_no_id_is_refused(wrong, of_messages):
    for right in (UUID, string("a")):
        found, refused = column([right, wrong, right], of_messages)
        assert (found[::2], refused) == ([id_text(right, 0, of_message=of_messages)] * 2, [1])


@pytest.mark.parametrize(
    ("value", "of_message", "of_correlation"),
    [
        (string("a"), "ID:AMQP_NO_PREFIX:a", "a"),
        (string("ID:a"), "ID:a", "ID:a"),
        (string("ID:AMQP_ULONG:1"), "ID:AMQP_STRING:ID:AMQP_ULONG:1", "ID:AMQP_STRING:ID:AMQP_ULONG:1"),
        (ulong(1), "ID:AMQP_ULONG:1", "ID:AMQP_ULONG:1"),
    ],
)
def test_ids_are_spelled_as_the_binding_says(value, of_message, of_correlation):
    assert column([value, NULL], of_messages=True) == ([of_message, None], [])
    assert column([value, NULL], of_messages=False) == ([of_correlation, None], [])


@pytest.mark.parametrize(
    ("to", "kind", "source", "expected"),
    [
        ("orders", 0, "queue://other", "queue://other"),
        ("t", 3, "topic://t", "temp-topic://t"),
        ("t", 3, "queue://t", "queue://t"),
        ("temp-queue://q", None, "queue://q", "temp-queue://q"),
        ("orders", None, "queue://other", "queue://other"),
        (None, 0, "queue://other", "queue://other"),
        ("", 1, "queue://other", "queue://other"),
        ("topic://t", None, "queue://other", "queue://other"),
        ("a.b", None, "topic://a.*", "topic://a.b"),
        ("a.b", 0, "topic://a.*", "topic://a.b"),
        ("b.b", 1, "topic://a.*", "topic://a.*"),
        ("a", None, "queue://a,b", "queue://a"),
    ],
)
def test_destination(to, kind, source, expected):
    assert destination_of(to, kind, Destination.parse(source), CLASSIC) == expected


@pytest.mark.parametrize(
    ("reply_to", "kind", "expected"),
    [
        (None, 0, None),
        ("", None, None),
        ("a", None, "queue://a"),
        ("a", 1, "topic://a"),
        ("temp-topic://a", None, "temp-topic://a"),
        ("temp-queue://a", 2, "temp-queue://a"),
    ],
)
def test_reply_to(reply_to, kind, expected):
    assert reply_to_of(reply_to, kind, CLASSIC) == expected


def test_without_prefixes_a_name_is_the_whole_address():
    assert reply_to_of("queue://q", 0, ARTEMIS) == "queue://queue://q"


@pytest.mark.parametrize(
    ("reply_to", "kind", "expected"),
    [
        ("/queues/orders", None, "queue://orders"),
        ("/queues/a%20b%2Fc", 0, "queue://a b/c"),
        ("/queues/%2Fqueues%2Fx", 0, "queue:///queues/%2Fqueues%2Fx"),
        ("/exchanges/amq.topic/orders.de", None, "topic://orders.de"),
        ("/exchanges/x/k", None, "topic:///exchanges/x/k"),
        ("/queues/%ff", None, "queue:///queues/%ff"),
    ],
)
def test_an_address_of_rabbitmq_becomes_the_name_that_is_sent_to_it_again(reply_to, kind, expected):
    found = Destination.parse(reply_to_of(reply_to, kind, RABBITMQ))
    assert str(found) == expected
    assert RABBITMQ.send.address(found.word, found.name) == reply_to


@pytest.mark.parametrize(("name", "expected"), [("a", False), ("a.>", True), ("a,b", True), ("a.#", True), ("*", True)])
def test_is_pattern(name, expected):
    assert is_pattern(Destination.parse(f"queue://{name}")) is expected
