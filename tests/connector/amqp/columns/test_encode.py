"""Whole messages: what the source's two readers find in them."""

import re

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import NULL, entries_in, parts_of, symbol, values_in
from drawn_rows import COLUMN_VALUES, batch_of, names, rows_of_anything, rows_of_columns
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from plain_amqp_rows import expected_row, time_to_live
from sink_rows import DESTINATION, rows_of

from pyspark_jms.amqp.columns.decode import decode
from pyspark_jms.amqp.columns.encode import body, content_types, encode
from pyspark_jms.amqp.columns.one_message import BlockContext, read_message
from pyspark_jms.amqp.columns.one_value import number, string
from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, CLASSIC
from pyspark_jms.columns import row_parts
from pyspark_jms.columns.arrays import join_rows
from pyspark_jms.columns.row_parts import good_rows
from pyspark_jms.columns.rows import BODY_TYPES, body_types
from pyspark_jms.columns.schema import ARROW_SCHEMA, TYPED_VALUE
from pyspark_jms.errors import InvalidDestinationError, JMSError, MessageFormatError, MessageTooLargeError
from pyspark_jms.jms.model import Destination

NOW_MS = 1_760_000_000_000
PREFIX = "ID:task-"
SOURCE = Destination.parse("queue://read")


def blocks_of(batch, **changed):
    arguments = {
        "dialect": ARTEMIS,
        "destination": DESTINATION,
        "property_columns": (),
        "now_ms": NOW_MS,
        "message_id_prefix": PREFIX,
        "max_message_bytes": 1 << 20,
    }
    return encode(batch, **arguments | changed)


def messages_of(rows, **changed):
    return [block.message(index) for block in blocks_of(batch_of(rows), **changed) for index in range(len(block))]


def plainly_read(message, dialect=ARTEMIS):
    """What the reader of one message finds. JMSDestination is where the message is sent."""
    row = read_message(message, BlockContext(dialect=dialect, source=SOURCE, body_type="auto"))
    row |= {"JMSDestination": sent_to(message, dialect)}
    return _comparable(pa.RecordBatch.from_pylist([row], schema=ARROW_SCHEMA).to_pylist()[0])


def sent_to(message, dialect):
    parts = parts_of(message)
    kind = ("queue", "topic", "temp-queue", "temp-topic")[dict(entries_in(parts[0x72]))[symbol("x-opt-jms-dest")][1]]
    address = string(values_in(parts[0x73])[2], 0)
    return f"{kind}://{address.removeprefix(dialect.send.address_prefixes.get(kind, ''))}"


def read(blocks, dialect=ARTEMIS):
    batches = [decode(block, dialect=dialect, source=SOURCE, first_sequence=0, body_type="auto") for block in blocks]
    return [_comparable(row) for batch in batches for row in batch.to_pylist()]


def all_of_source(rows):
    return [row | {"JMSDestination": str(SOURCE)} for row in rows]


def _comparable(row):
    found = {
        name: value for name, value in row.items() if value is not None and name not in {"sequence", "delivery_id"}
    }
    for name in {"properties", "property_types", "map"} & found.keys():
        found[name] = dict(found[name])
    return found


# --- against the plain readers -------------------------------------------------------------------------

own_names = st.text("ab_$é雪", max_size=6).map("p".__add__)
VALUES = COLUMN_VALUES | {
    "JMSReplyTo": st.builds(str.__add__, st.sampled_from(["", "queue://", "topic://", "temp-queue://"]), names),
    "content_type": st.sampled_from(["image/png", "text/plain", "", "application/json", "x/y;z=1"]),
}
ROWS = rows_of_columns(VALUES, own_names | st.sampled_from(["JMSXGroupID", "JMSXUserID", "destination"]))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    ROWS,
    st.tuples(st.integers(0, 9), st.integers(0, 3)),
    st.sampled_from([1, 600, 1 << 24]),
    st.sampled_from([ARTEMIS, AMQP, CLASSIC]),
)
def test_two_readers_find_what_the_rows_hold(drawn, padding, buffer_bytes, dialect):
    columns, rows = drawn
    assume(dialect is not CLASSIC or "destination" not in columns)  # Classic has rules for names
    before, after = padding
    whole = batch_of([*rows[:1] * before, *rows, *rows[:1] * after], columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_parts, "BUFFER_BYTES", buffer_bytes)
        blocks = blocks_of(whole.slice(before, len(rows)), first_row=5, dialect=dialect)
    messages = [block.message(index) for block in blocks for index in range(len(block))]
    given = {"now_ms": NOW_MS, "prefix": PREFIX, "states_bytes": dialect.send.states_bytes}
    wanted = [expected_row(row, number, **given) for number, row in enumerate(rows, 5)]
    for row in [] if dialect.send.takes_message_ids else wanted:
        del row["JMSMessageID"]
        for column in ("properties", "property_types"):
            row[column].pop("destination", None)  # without an id, it is a header that a STOMP client has sent
    assert [plainly_read(message, dialect) for message in messages] == wanted
    assert read(blocks, dialect) == all_of_source(wanted)
    assert [header_ttl(message) for message in messages] == [time_to_live(row, NOW_MS) for row in rows]


def header_ttl(message):
    (ttl,) = values_in(parts_of(message)[0x70])[2:3] or [NULL]
    return None if ttl == NULL else number(ttl, 0, b"\x70")


@given(rows_of_anything(own_names))
def test_a_row_of_anything_is_one_message_or_is_refused(rows):
    try:
        messages = messages_of(rows)
    except JMSError as error:
        assert re.search(r"[Rr]ow \d+ of the task", str(error))  # noqa: PT017  some rows are fine, so no raises()
        return
    wanted = [
        expected_row(row, number, now_ms=NOW_MS, prefix=PREFIX, states_bytes=False) for number, row in enumerate(rows)
    ]
    assert [plainly_read(message) for message in messages] == wanted


@pytest.mark.parametrize("row", [{"body_type": "message"}, {"body_type": "text"}], ids=str)
def test_equal_messages_without_a_varying_part_are_one_each(row):
    first, second = messages_of([row, row], dialect=CLASSIC)
    assert first == second
    assert plainly_read(first, CLASSIC)["body_type"] == row["body_type"]


def test_classic_gets_addresses_with_their_kind():
    rows = [{"destination": "topic://t", "JMSReplyTo": "temp-queue://ID:1"}, {"JMSReplyTo": "r"}]
    messages = messages_of(rows, dialect=CLASSIC)
    assert b"\xa1\x09topic://t" in messages[0]
    assert b"\xa1\x11temp-queue://ID:1" in messages[0]
    assert b"\xa1\x0fqueue://default" in messages[1]


def test_numbers_of_rows_end_the_message_ids():
    messages = messages_of([{"text": "a"}, {"text": "b"}], numbers=np.array([7, 1234]))
    assert [plainly_read(message)["JMSMessageID"] for message in messages] == [
        "ID:task-000000000007",
        "ID:task-000000001234",
    ]


def test_a_row_that_was_read_can_be_written():
    first = blocks_of(batch_of([{"text": "a", "properties": [("a", "1")], "property_types": [("a", "int")]}]))
    batch = decode(first[0], dialect=ARTEMIS, source=SOURCE, first_sequence=0, body_type="auto")
    assert read(blocks_of(batch)) == read(first)


# --- typed columns -------------------------------------------------------------------------------------


def test_typed_columns_are_properties_of_their_types():
    columns = {
        "flag": (pa.array([True, False]), "boolean", ["true", "false"]),
        "b": (pa.array([-1, 2], pa.int8()), "byte", ["-1", "2"]),
        "s": (pa.array([-300, 2], pa.int16()), "short", ["-300", "2"]),
        "i": (pa.array([-70000, None], pa.int32()), "int", ["-70000", None]),
        "l": (pa.array([2**40, 0], pa.int64()), "long", [str(2**40), "0"]),
        "f": (pa.array([1.5, None], pa.float32()), "float", ["1.5", None]),
        "d": (pa.array([0.1, -0.0]), "double", ["0.1", "-0.0"]),
        "t": (pa.array(["é", None]), "string", ["é", None]),
        "u": (pa.array([None, "x"], pa.large_string()), "string", [None, "x"]),
    }
    batch = pa.record_batch({name: array for name, (array, _, _) in columns.items()})
    (block,) = blocks_of(batch, property_columns=[*columns])
    found = [plainly_read(block.message(index)) for index in range(2)]
    for index, row in enumerate(found):
        wanted = {name: texts[index] for name, (_, _, texts) in columns.items() if texts[index] is not None}
        assert row["properties"] == wanted | {"JMSXDeliveryCount": "1"}
        assert row["property_types"] == {name: columns[name][1] for name in wanted} | {"JMSXDeliveryCount": "int"}
    assert read([block]) == all_of_source(found)


# --- blocks and limits ---------------------------------------------------------------------------------


def test_a_message_of_exactly_the_limit_is_sent_and_one_more_byte_refused():
    rows = [{"text": "a"}, {"text": "x" * 1000}]
    size = len(messages_of(rows)[1])
    assert len(messages_of(rows, max_message_bytes=size)) == 2
    with pytest.raises(MessageTooLargeError, match=rf"Row 8 .*\b{size} bytes.*\b{size - 1}\b"):
        messages_of(rows, max_message_bytes=size - 1, first_row=7)


# --- refused rows --------------------------------------------------------------------------------------

BAD = [
    ({"text": "a", "bytes": b"b"}, MessageFormatError, "has more than one body"),
    ({"body_type": "tuple"}, MessageFormatError, "has an unknown body_type"),
    ({"properties": [("_AMQ_GROUP_SEQUENCE", "1")]}, MessageFormatError, "has a prefix that artemis reserves"),
    ({"properties": [("JMSPriority", "1")]}, MessageFormatError, "begins with JMS"),
    ({"properties": [("spark_jms_types", "{}")]}, MessageFormatError, "begins with spark_jms_"),
    ({"properties": [("JMSXGroupSeq", "x")]}, MessageFormatError, "its value is not an int"),
    (
        {"properties": [("a", "x")], "property_types": [("a", "int")]},
        MessageFormatError,
        "'a': its value is not an int",
    ),
    ({"properties": [("a", "x")], "property_types": [("b", "int")]}, MessageFormatError, "has no such property"),
    ({"map": [("a", {"type": "int", "value": "x"})]}, MessageFormatError, "map item 'a': its value is not an int"),
    ({"stream": [{"type": None, "value": "x"}]}, MessageFormatError, "stream element 0: it has a value but no type"),
    ({"destination": "ftp://x"}, InvalidDestinationError, "is neither queue://NAME"),
    ({"destination": "activemq.management"}, InvalidDestinationError, "is reserved for management"),
    ({"destination": "pyspark-jms.commits"}, InvalidDestinationError, "this connector's own queues"),
    ({"JMSReplyTo": "topic://"}, MessageFormatError, "has a JMSReplyTo without a name"),
    ({"content_type": "é/x"}, MessageFormatError, "has a content_type that is not ASCII"),
    ({"time_to_live": -1}, MessageFormatError, "has a negative time_to_live"),
    ({"JMSDeliveryMode": 3}, MessageFormatError, "JMSDeliveryMode that is not 1 or 2"),
]


@pytest.mark.parametrize(("row", "error", "fact"), BAD, ids=[fact for _, _, fact in BAD])
def test_a_row_that_cannot_be_sent_is_named_and_the_others_can_be(row, error, fact):
    rows = [{"text": "a"}, {"text": "b"} if "text" in row else {}, row, {"text": "c"}, row]
    with pytest.raises(error, match=f"(?i)row 12 .*{fact}"):
        messages_of(rows, first_row=10)
    batch, bad = good_rows(batch_of(rows), 10, lambda part, numbers: blocks_of(part, numbers=numbers))
    assert (batch.num_rows, sum(kind.count for kind in bad)) == (3, 2)


# --- bodies and content types ------------------------------------------------------------------------

OBJECT = b"application/x-java-serialized-object"
NO_BODY = b"application/x-jms-message"
BYTES = b"application/octet-stream"


def joined(pieces, rows):
    if all(isinstance(piece, bytes) for piece in pieces):
        return [b"".join(pieces)] * rows.count
    return join_rows(pieces).to_pylist()


def bodies(rows, **options):
    return joined(body(rows, body_types(rows), **options), rows)


def value(kind, text):
    return {"type": kind, "value": text}


MAPS = pa.array([[("a", value("int", "1")), ("b", None)], []], pa.map_(pa.string(), TYPED_VALUE))
STREAMS = pa.array([[value("boolean", "true"), value("string", None)], []], pa.list_(TYPED_VALUE))


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ({"text": ["é", ""]}, ["005377 a102c3a9", "005377 a100"]),
        ({"body_type": ["text", "text"], "text": ["a", None]}, ["005377 a10161", "005377 40"]),
        ({"body_type": ["text"]}, ["005377 40"]),
        ({"bytes": [b"\0", b""]}, ["005375 a00100", "005375 a000"]),
        ({"body_type": ["bytes", "bytes"], "bytes": [None, b"x"]}, ["005375 a000", "005375 a00178"]),
        ({"body_type": ["object", "object"], "bytes": [b"\xac", None]}, ["005375 a001ac", "005375 a005 aced000570"]),
        ({"JMSType": ["a", "b"]}, ["", ""]),
        ({"map": MAPS}, ["005377 d1 00000010 00000004 a10161 7100000001 a10162 40", "005377 d1 00000004 00000000"]),
        ({"stream": STREAMS}, ["005377 d0 00000006 00000002 41 40", "005377 d0 00000004 00000000"]),
    ],
)
def test_the_section_of_a_body(columns, wanted):
    """A null object is the serialized null."""
    assert bodies(rows_of(**columns)) == list(map(bytes.fromhex, wanted))


def test_a_message_without_a_body_is_a_null_where_the_broker_demands_a_section():
    found = bodies(rows_of(body_type=["message", "text"], text=[None, "x"]), needs_section=True)
    assert found == [b"\0\x53\x77\x40", b"\0\x53\x77\xa1\x01x"]
    assert bodies(rows_of(JMSType=["a"]), needs_section=True) == [b"\0\x53\x77\x40"]


def test_bodies_of_all_types_keep_their_order():
    kinds = ["text", "map", "message", "bytes", "text", "object", "stream", "bytes"]
    rows = rows_of(
        body_type=kinds,
        text=["a", None, None, None, "b", None, None, None],
        bytes=[None, None, None, b"c", None, b"d", None, b"e"],
    )
    assert bodies(rows) == [
        b"\0\x53\x77\xa1\x01a",
        bytes.fromhex("005377d1 00000004 00000000"),
        b"",
        b"\0\x53\x75\xa0\x01c",
        b"\0\x53\x77\xa1\x01b",
        b"\0\x53\x75\xa0\x01d",
        bytes.fromhex("005377d0 00000004 00000000"),
        b"\0\x53\x75\xa0\x01e",
    ]


def test_a_text_that_is_not_utf8_is_refused():
    with pytest.raises(MessageFormatError, match=r"Row 11 .* text .*UTF-8"):
        bodies(rows_of(text=pa.array([b"a", b"\xff"]).view(pa.string())))


# --- content type --------------------------------------------------------------------------------------


def test_a_body_of_bytes_or_none_has_a_content_type():
    rows = rows_of(text=["a"] * 4)
    codes = np.array([BODY_TYPES.index(kind) for kind in ("text", "bytes", "object", "message")])
    assert joined(content_types(rows, codes), rows) == [
        b"\x40",
        b"\xa3\x18" + BYTES,
        b"\xa3\x24" + OBJECT,
        b"\xa3\x19" + NO_BODY,
    ]
    assert joined(content_types(rows, codes, states_bytes=False), rows)[1] == b"\x40"


@pytest.mark.parametrize(
    ("kind", "given", "sent"),
    [
        ("text", b"text/xml", b"text/xml"),
        ("bytes", b"image/png", b"image/png"),
        ("bytes", b"", b""),
        ("bytes", b"TEXT/plain; charset=latin1", BYTES),
        ("bytes", b"application/vnd.x+json", BYTES),
        ("bytes", OBJECT, BYTES),
        ("bytes", None, BYTES),
        ("object", b"image/png", OBJECT),
        ("map", b"image/png", None),
        ("message", b"image/png", NO_BODY),
    ],
)
def test_the_column_counts_where_the_body_allows_it(kind, given, sent):
    rows = rows_of(content_type=pa.array([given, b"x/y"]).view(pa.string()))
    codes = np.full(2, BODY_TYPES.index(kind))
    found = joined(content_types(rows, codes), rows)[0]
    assert found == (b"\x40" if sent is None else bytes([0xA3, len(sent)]) + sent)
    assert (
        given is not None
        or kind != "bytes"
        or joined(content_types(rows, codes, states_bytes=False), rows)[0] == b"\x40"
    )


def test_a_content_type_is_ascii():
    rows = rows_of(content_type=["a/b", "é", None, "é"])
    with pytest.raises(MessageFormatError, match=r"Row 11 .*content_type .*ASCII"):
        content_types(rows, np.zeros(4, np.int64))
