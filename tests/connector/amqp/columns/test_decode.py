"""Messages as brokers and clients write them, and whole rows against those of the reader of one message."""

import datetime as dt
import os
import random
import subprocess
import sys
from array import array
from dataclasses import replace
from pathlib import Path

import amqp_messages
import pyarrow as pa
import pytest
from amqp_messages import (
    FALSE,
    NOW_MS,
    NULL,
    TRUE,
    Messages,
    annotations,
    application_properties,
    binary,
    block_of,
    byte,
    int_,
    list_,
    long,
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
    walked,
)
from column_types import wanted_of
from element_limit import limit_elements
from rhea_messages import RHEA

from pyspark_jms.amqp.columns import decode as module
from pyspark_jms.amqp.columns import walk
from pyspark_jms.amqp.columns.decode import columns_of, decode
from pyspark_jms.amqp.columns.entries import MARKERS
from pyspark_jms.amqp.columns.one_message import BlockContext, read_message
from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, CLASSIC
from pyspark_jms.amqp.wire.sections import fingerprint
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.arrays import stacked
from pyspark_jms.columns.schema import ARROW_SCHEMA, COLUMNS, WantedColumns
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import TYPES_MARKER, Destination

QUEUE = Destination.parse("queue://orders")
SOURCES = [QUEUE, Destination.parse("topic://a.>"), Destination.parse("queue://a,b")]


def read(messages, *, dialect=ARTEMIS, source=QUEUE, body_type="auto", first_sequence=0):
    block = block_of(messages)
    return rows_in(decode(block, dialect=dialect, source=source, first_sequence=first_sequence, body_type=body_type))


def rows_in(batch):
    assert batch.schema == ARROW_SCHEMA
    batch.validate(full=True)
    return [{name: _as_dict(value) for name, value in row.items()} for row in batch.to_pylist()]


def _as_dict(value):
    """A map as a dict; its keys must differ."""
    if not isinstance(value, list) or not value or not isinstance(value[0], tuple):
        return value
    assert len(dict(value)) == len(value)
    return dict(value)


def check(messages, *, dialect=ARTEMIS, source=QUEUE, body_type="auto", first_sequence=0):
    """The decoder gives the rows of the reader of one message."""
    how = {"dialect": dialect, "source": source, "body_type": body_type}
    context = BlockContext(**how)
    wanted = [read_message(message, context) | {"sequence": n} for n, message in enumerate(messages, first_sequence)]
    found = read(messages, **how, first_sequence=first_sequence)
    assert found == rows_in(pa.RecordBatch.from_pylist(wanted, schema=ARROW_SCHEMA))
    return found


def test_a_message_of_artemis():
    """Layout and values as Artemis 2.55 sends a TextMessage of a CORE client."""
    message = b"".join(
        [
            section(0x70, list_(TRUE, ubyte(9), NULL, NULL, uint(2))),
            annotations(jms_dest=byte(0), jms_reply_to=byte(3), jms_msg_type=byte(5), delivery_time=long(NOW_MS + 2)),
            properties(
                message_id=string("ID:1"),
                user_id=binary(b"bob"),
                to=string("orders"),
                subject=string("order"),
                reply_to=string("answers"),
                correlation_id=string("c-1"),
                absolute_expiry_time=timestamp(NOW_MS + 1),
                creation_time=timestamp(NOW_MS),
                group_id=string("g"),
                group_sequence=uint(2**32 - 1),
            ),
            application_properties(url=string("http://x"), n=int_(-3), none=NULL, JMSXDeliveryCount=NULL),
            section(0x77, string("Grüße")),
        ]
    )
    (row,) = check([message])
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=NOW_MS)
    assert row == dict.fromkeys(COLUMNS) | {
        "sequence": 0,
        "JMSMessageID": "ID:1",
        "JMSDestination": "queue://orders",
        "JMSTimestamp": moment,
        "JMSCorrelationID": "c-1",
        "JMSType": "order",
        "JMSReplyTo": "temp-topic://answers",
        "JMSDeliveryMode": 2,
        "JMSPriority": 9,
        "JMSExpiration": moment + dt.timedelta(milliseconds=1),
        "JMSDeliveryTime": moment + dt.timedelta(milliseconds=2),
        "JMSRedelivered": True,
        "properties": {
            "url": "http://x",
            "n": "-3",
            "none": None,
            "JMSXDeliveryCount": "3",
            "JMSXGroupID": "g",
            "JMSXGroupSeq": "-1",
            "JMSXUserID": "bob",
        },
        "property_types": {
            "url": "string",
            "n": "int",
            "none": "string",
            "JMSXDeliveryCount": "int",
            "JMSXGroupID": "string",
            "JMSXGroupSeq": "int",
            "JMSXUserID": "string",
        },
        "body_type": "text",
        "text": "Grüße",
        "delivery_id": "orders/ID:1",
    }


def test_a_message_of_a_stomp_client_has_no_headers_of_its_frame():
    """Artemis makes properties of them, and gives the message no id: the fingerprint identifies it."""
    given = {
        "destination": string("orders"),
        "receipt": string("r"),
        "_AMQ_CONTENT_TYPE": string("x"),
        "n": string("1"),
    }
    message = properties(to=string("orders")) + application_properties(**given) + section(0x77, string("hi"))
    (row,) = check([message])
    assert row["properties"] == {"n": "1", "JMSXDeliveryCount": "1"}
    assert row["delivery_id"].startswith("orders/~")
    (row,) = check([properties(message_id=string("1")) + application_properties(**given)])
    assert list(row["properties"]) == ["destination", "receipt", "n", "JMSXDeliveryCount"]


def test_classic_names_destinations_by_prefixes():
    message = properties(to=string("queue://orders"), reply_to=string("temp-topic://t")) + section(0x77, string("hi"))
    (row,) = check([message], dialect=CLASSIC, source=SOURCES[1])
    assert (row["JMSDestination"], row["JMSReplyTo"]) == (str(SOURCES[1]), "temp-topic://t")


@pytest.mark.parametrize(
    ("kind", "body", "compressed", "size", "whole"),
    [
        (3, section(0x75, binary(b"ab")), TRUE, long(2), True),
        (3, section(0x75, binary(b"ab")), TRUE, long(300_000), False),
        (3, section(0x75, binary(b"abcd")), TRUE, long(2), False),
        (3, section(0x75, binary(b"a")) * 2, TRUE, long(2), True),
        (3, section(0x75, binary(b"ab")), TRUE, NULL, False),
        (3, section(0x75, binary(b"ab")), FALSE, long(300_000), True),
        (1, section(0x75, binary(b"\xac\xed")), TRUE, long(6), True),
        (5, section(0x77, string("ab")), TRUE, long(9), True),
        (2, section(0x77, map_([(string("k"), int_(5))])), TRUE, long(9), True),
        (4, section(0x77, list_(int_(5))), TRUE, long(9), True),
    ],
)
@pytest.mark.parametrize("body_type", ["auto", "text"])
def test_a_compressed_body_that_the_broker_has_cut_is_an_error(kind, body, compressed, size, whole, body_type):
    sizes = application_properties(_AMQ_LARGE_COMPRESSED=compressed, _AMQ_LARGE_SIZE=size, n=int_(1))
    message = annotations(jms_msg_type=byte(kind)) + properties(message_id=string("1")) + sizes + body
    row, *_ = check([message, text_message(), text_message()], body_type=body_type)
    if body_type == "auto" or not whole:
        assert (row["body_error"] is None) == whole
    assert whole or "was compressed by its producer and is not whole" in row["body_error"]
    assert row["properties"] == {"n": "1", "JMSXDeliveryCount": "1"}


@pytest.mark.parametrize(
    ("ttl", "created", "expiry", "expected"),
    [
        (uint(1000), timestamp(NOW_MS), NULL, NOW_MS + 1000),
        (uint(2**32 - 1), timestamp(NOW_MS), NULL, NOW_MS + 2**32 - 1),
        (uint(1000), timestamp(NOW_MS), timestamp(NOW_MS + 7), NOW_MS + 7),
        (uint(1000), timestamp(NOW_MS), timestamp(0), NOW_MS + 1000),
        (uint(0), timestamp(NOW_MS), NULL, None),
        (uint(1000), NULL, NULL, None),
        (uint(1000), timestamp(0), NULL, None),
        (uint(1000), timestamp(2**63 - 1), NULL, None),
        (uint(1000), timestamp(NOW_MS), timestamp(2**63 - 1), None),
    ],
)
def test_a_time_to_live_counts_from_the_creation_time(ttl, created, expiry, expected):
    """proton, rhea and Azure's clients send no absolute-expiry-time. In a block of its own, and among others."""
    message = section(0x70, list_(NULL, NULL, ttl)) + properties(creation_time=created, absolute_expiry_time=expiry)
    for others in ([], [text_message(), properties(message_id=string("1"))]):
        found = check([message, *others])[0]["JMSExpiration"]
        assert found == (expected and dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=expected))


@pytest.mark.parametrize("count", [1, 50])
def test_properties_and_elements_that_jms_does_not_have_leave_the_body_readable(count):
    """Rhea sends every whole number that is not negative as uint; .NET sends Guid and DateTime."""
    values = {"uint": uint(7), "ulong": ulong(2**40), "uuid": b"\x98" + bytes(16), "timestamp": timestamp(NOW_MS)}
    values |= {"symbol": symbol("s"), "binary": binary(b"a"), "decimal64": b"\x84" + bytes(8), "list": list_(int_(1))}
    values |= {"char": b"\x73\0\0\0A", "ubyte": ubyte(1), "ushort": b"\x60\0\1"}
    message = application_properties(**values) + section(0x77, string("hi"))
    row = check([message, text_message()] * count)[0]
    assert (row["text"], row["body_error"]) == ("hi", None)
    assert row["property_types"] == {name: name for name in values} | {"JMSXDeliveryCount": "int"}
    assert (row["properties"]["list"], row["properties"]["uint"], row["properties"]["binary"]) == (None, "7", "YQ==")
    stream = section(0x77, list_(*values.values()))
    map_body = section(0x77, map_([(string(name), value) for name, value in values.items()]))
    for row in check([stream, map_body, text_message()] * count)[:2]:
        assert row["body_error"] is None
        elements = row["stream"] or list(row["map"].values())
        types = ["long", "long", "string", "long", "string", "bytes", "string", "list", "char", "short", "int"]
        assert [element["type"] for element in elements] == types


def test_the_usual_messages_are_not_read_one_by_one(monkeypatch):
    """The columns are what makes the decoder fast."""
    monkeypatch.setattr(module, "read_message", None)
    usual = {"u": uint(7), "l": ulong(7), "id": b"\x98" + bytes(16), "t": timestamp(1), "s": symbol("s")}
    message = application_properties(**usual) + section(0x77, list_(*usual.values()))
    for messages in ([message] * 50, [text_message(f"hello {i}") for i in range(50)]):
        assert len(read(messages)) == 50


def test_no_messages():
    assert read([]) == []


@pytest.mark.parametrize("ends", [[5], [7], [4, 2, 6], [-1, 6]])
def test_an_index_that_does_not_fit_is_refused(ends):
    """Arrow would read beyond the block."""
    block = MessageBlock(b"\0\x53\x77\xa1\x01x", ends=array("q", ends))
    with pytest.raises(IllegalStateError):
        decode(block, dialect=AMQP, source=QUEUE, first_sequence=0, body_type="auto")


@pytest.mark.parametrize("body_type", ["auto", "text", "bytes"])
@pytest.mark.parametrize("dialect", [ARTEMIS, CLASSIC, AMQP], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_messages_of_jms_clients(examples, dialect, source, body_type):
    found = check(_messages(11, examples(400)), dialect=dialect, source=source, body_type=body_type, first_sequence=7)
    if body_type == "auto":
        assert sum(row["body_error"] is not None for row in found) < len(found) / 10


def _messages(seed, count, *, oddness=0.0, damage=0.0):
    messages, chance = Messages(seed, oddness), random.Random(seed)
    return [messages.damaged() if chance.random() < damage else messages.message() for _ in range(count)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("oddness", "damage"), [(0.003, 0), (0.03, 0), (0.3, 0), (0, 0.02), (0, 1)])
def test_what_jms_does_not_have_and_damaged_messages(examples, seed, oddness, damage):
    """No message raises, and none changes the rows of the others."""
    check(_messages(seed, examples(300), oddness=oddness, damage=damage))


@pytest.mark.parametrize("damaged", [0, 1, 10])
def test_messages_of_one_layout(examples, damaged):
    """What all rows have in common is read once, so each row must be seen not to have it."""
    for seed in range(examples(40)):
        check(Messages(seed).of_one_layout(20, damaged=damaged))


@pytest.mark.parametrize("message", [text_message(), b"", text_message("x" * 300), section(0x77, NULL)])
def test_a_message_cut_anywhere(message):
    """In a block with others, and as the last one of a block."""
    check([message[:end] for end in range(len(message))])
    for end in range(0, len(message), 7):
        check([message, message[:end]])


FIXED = [name for name in COLUMNS if name not in {"bytes", "body_error"}]


@pytest.mark.parametrize("dialect", [ARTEMIS, CLASSIC, AMQP], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(("oddness", "damage"), [(0, 0), (0.03, 0), (0.3, 0.1)])
def test_wanted_columns_are_those_of_a_read_of_all(examples, dialect, oddness, damage):
    """Of a message with a fault, a part that a read of all hides may be there, because the fault is not looked for."""
    for seed in range(examples(16)):
        messages = Messages(seed).of_one_layout(20, damaged=0) if seed % 3 == 0 else None
        messages = messages or _messages(seed, 60, oddness=oddness, damage=damage)
        body_type = ("auto", "auto", "text", "bytes")[seed % 4]
        how = {"dialect": dialect, "source": SOURCES[seed % 3], "first_sequence": 7, "body_type": body_type}
        check_wanted(messages, random.Random(seed), how)


def check_wanted(messages, chance, how):
    full = decode(block_of(messages), **how).to_pylist()
    used = sorted({name for row in full for name, _ in row["properties"] or ()} - MARKERS)
    fixed = set(chance.sample(FIXED, chance.choice([0, 1, 3, len(FIXED)])))
    names = [*chance.sample(used, min(len(used), chance.choice([0, 1, 2, 5]))), "absent"]
    wanted = WantedColumns.of(fixed, names)
    batch = decode(block_of(messages), **how, wanted=wanted)
    if batch.schema.equals(ARROW_SCHEMA):  # an envelope is opened after the selector, from all columns
        assert any(MARKERS & {name for name, _ in row["properties"] or ()} for row in full)
        return
    assert batch.schema == wanted.schema
    batch.validate(full=True)
    for got, row in zip(batch.to_pylist(), full, strict=True):
        whole = wanted_of(row, fixed, names)
        if row["body_error"] is None:
            assert got == whole
        assert all(whole[name] is None or got[name] == whole[name] for name in whole), row


def test_what_is_not_wanted_is_not_read(monkeypatch):
    monkeypatch.setattr(module.PropertyReader, "columns", None)
    monkeypatch.setattr(module, "body_columns", None)
    wanted = WantedColumns.of({"JMSType"}, ["n", "absent"])
    how = {"dialect": ARTEMIS, "source": QUEUE, "first_sequence": 0, "body_type": "auto"}
    messages = [section(0x74, map_([(string("a"), string("x")), (string("n"), int_(i))])) for i in range(3)]
    batch = decode(block_of([*messages, section(0x77, NULL)]), **how, wanted=wanted)
    assert batch.column("properties.n").to_pylist() == ["0", "1", "2", None]
    assert batch.column("property_types.n").to_pylist() == ["int"] * 3 + [None]
    assert batch.column("properties.absent").null_count == 4


PLAIN = section(0x70, list_(TRUE)) + properties(content_type=symbol("text/plain"), subject=string("order"))
ONE = {"dialect": ARTEMIS, "source": QUEUE, "first_sequence": 0, "body_type": "auto"}


@pytest.mark.parametrize(
    "messages",
    [
        [text_message("a", subject=string("order")), PLAIN + section(0x75, binary(b"data"))],
        [PLAIN + section(0x75, binary(b"data")), text_message("a", subject=string("order"))],
        [text_message(f"{n}", subject=string("x" * n)) + application_properties() for n in range(3)],
        [text_message("a"), text_message("spark_jms_types")],
        [text_message("a"), section(0x74, map_([(string("n"), string("spark_jms_body"))])) + section(0x77, NULL)],
        [text_message("a"), section(0x74, b"\xc1\xff\x02\xa1\x01n\x41") + section(0x77, string("b"))],
        [text_message("a", subject=string("s"), reply_to=string("r" * n)) for n in range(4)],
        [section(0x70, list_(TRUE, ubyte(n), NULL, NULL, uint(n))) + section(0x77, string("t")) for n in range(4)],
        [section(0x70, list_(TRUE, ubyte(7))), text_message("a"), section(0x73, list_()) + section(0x77, NULL)],
        [text_message("a")[:end] for end in range(len(text_message("a")))],
    ],
)
@pytest.mark.parametrize("fixed", [{"text", "JMSType", "JMSPriority"}, {"text"}, {"JMSRedelivered"}, {"JMSExpiration"}])
def test_columns_that_need_few_parts(messages, fixed):
    batch = decode(block_of(messages), **ONE, wanted=WantedColumns.of(fixed, []))
    batch.validate(full=True)
    full = decode(block_of(messages), **ONE).to_pylist()
    for got, row in zip(batch.to_pylist(), full, strict=True):
        assert got == {name: row[name] for name in fixed} or row["body_error"] is not None


def test_the_rest_of_a_section_may_have_any_length(monkeypatch):
    monkeypatch.setattr(module, "read_message", None)
    messages = [text_message(str(n), subject=string("s"), reply_to=string("r" * n)) for n in range(9)]
    batch = decode(block_of(messages), **ONE, wanted=WantedColumns.of({"text", "JMSType"}, []))
    assert batch.to_pydict() == {"text": [*"012345678"], "JMSType": ["s"] * 9}


def test_properties_that_are_not_wanted_are_not_walked(monkeypatch):
    walked = []
    entries = walk.CompoundCursor.entries
    monkeypatch.setattr(walk.CompoundCursor, "entries", lambda self, keys: walked.append(keys) or entries(self, keys))
    messages = [text_message(str(n)) for n in range(3)]
    assert decode(block_of(messages), **ONE, wanted=WantedColumns.of({"text"}, [])).to_pydict() == {"text": [*"012"]}
    assert set(walked) == {(0xA3, 0xB3)}, "only the annotations, whose keys are symbols"


def test_an_envelope_is_decoded_whole():
    """Its types are stated in a property, and selectors are compared with the message as the broker has it."""
    message = section(0x74, map_([(string(TYPES_MARKER), string('{"n":"int"}')), (string("n"), string("7"))]))
    for messages in ([message], [text_message(), message], [text_message(), message + b"\0\x53\x78\xc1\x01\0"]):
        for names in ([], ["n"]):
            batch = decode(block_of(messages), **ONE, wanted=WantedColumns.of({"text"}, names))
            assert batch.schema == ARROW_SCHEMA


HOSTILE = {
    "a count of 2**31": section(0x73, b"\xd0\0\0\0\x08\x7f\xff\xff\xff" + b"\x40" * 4),
    "a size of 2**32 - 1": section(0x77, b"\xb1\xff\xff\xff\xff"),
    "nested maps": section(0x77, map_([(string("a"), map_([(string("a"), list_(list_(list_())))]))])),
    "many descriptors": b"\0" * 10_000,
    "many properties": section(0x74, map_([(string(str(i)), NULL) for i in range(5_000)])),
    "a key of 200,000 bytes": section(0x74, map_([(string("k" * 200_000), NULL)])),
    "many sections": section(0x75, binary(b"x")) * 1_000,
    "a symbol as key": section(0x74, map_([(symbol("k"), NULL)])),
}


@pytest.mark.parametrize("message", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_message_among_others(message):
    check([text_message("a"), message, text_message("b")])
    check([message] * 3)


def test_every_row_with_more_properties_than_the_one_before():
    check([section(0x74, map_([(string(f"k{j}"), int_(j)) for j in range(i)])) for i in range(60)])


def test_python_qpid_proton_writes_messages_that_are_read():
    proton = pytest.importorskip("proton")
    bodies = ["text", None, {"a": 1, "b": "x"}, [1, "x", True], b"\x01\x02"]
    messages = []
    for number, body in enumerate(bodies):
        message = proton.Message(body, id=f"ID:{number}", address="orders", subject="s", durable=True, priority=7)
        message.properties = {"s": "text", "d": 1.5, "b": True, "i": proton.int32(-5), "l": 2**40}
        message.delivery_count = number
        messages.append(message.encode())
    rows = check(messages)
    assert [row["body_type"] for row in rows] == ["text", "message", "map", "stream", "bytes"]
    assert {(row["JMSType"], row["JMSDeliveryMode"], row["JMSPriority"]) for row in rows} == {("s", 2, 7)}
    types = {"s": "string", "d": "double", "b": "boolean", "i": "int", "l": "long", "JMSXDeliveryCount": "int"}
    assert rows[0]["property_types"] == types
    assert [row["properties"]["JMSXDeliveryCount"] for row in rows] == ["1", "2", "3", "4", "5"]


# --- messages with very many elements ----------------------------------------------------------------

LIMIT = 20
SMALL = text_message("small")


def pairs(count, make=string):
    return [(make(f"k{number}"), TRUE) for number in range(count)]


def with_elements(count):
    """One message for each place that has entries or elements, all with an id and a time."""
    head = section(0x73, list_(string("ID:1"), *[NULL] * 8, timestamp(NOW_MS)))
    value = section(0x77, string("hi"))
    sequences = b"".join(section(0x76, list_(TRUE)) for _ in range(count))
    return {
        "stream": head + section(0x77, list_(*[TRUE] * count, wide=True)),
        "map": head + section(0x77, map_(pairs(count), wide=True)),
        "sequences": head + sequences,
        "data": head + section(0x75, binary(b"")) * count,
        "properties": head + section(0x74, map_(pairs(count), wide=True)) + value,
        "message annotations": section(0x72, map_(pairs(count, symbol), wide=True)) + head + value,
        "delivery annotations": section(0x71, map_(pairs(count, symbol), wide=True)) + head + value,
        "footer": head + value + section(0x78, map_(pairs(count, symbol), wide=True)),
    }


@pytest.mark.parametrize("beside", [0, 40], ids=["alone", "among others"])
@pytest.mark.parametrize("place", with_elements(1))
def test_a_message_with_too_many_elements_is_a_row_with_its_bytes(place, beside, monkeypatch):
    """Also among so many messages that all are read at once; one element less is read."""
    limit_elements(monkeypatch, LIMIT)
    above, below = with_elements(LIMIT + 1)[place], with_elements(LIMIT)[place]
    block = block_of([below] * beside + [above, below, SMALL])
    batch = decode(block, **ONE)
    batch.validate(full=True)
    *_, row, fits, small = batch.to_pylist()
    assert "more than 20 " in row["body_error"]
    assert row["bytes"] == above
    assert row["JMSMessageID"] == "ID:1"
    assert row["delivery_id"] == "orders/ID:1"
    assert row["JMSTimestamp"] is not None
    assert (row["map"], row["stream"], row["text"], row["body_type"]) == (None, None, None, None)
    assert [fits["body_error"], small["body_error"]] == [None, None]


def test_the_limit_is_100_000():
    messages = [section(0x77, list_(*[TRUE] * count, wide=True)) for count in (100_001, 100_000)]
    above, fits = read(messages)
    assert (above["body_error"], above["bytes"]) == ("the body has more than 100,000 elements", messages[0])
    assert (fits["body_error"], len(fits["stream"])) == (None, 100_000)


def test_nested_values_are_one_element(monkeypatch):
    """A list inside of a list is not decoded, however many elements it has."""
    limit_elements(monkeypatch, LIMIT)
    (row,) = read([section(0x77, list_(list_(*[TRUE] * 500, wide=True), TRUE))])
    assert row["body_error"] is None
    assert row["stream"] == [{"type": "list", "value": None}, {"type": "boolean", "value": "true"}]


MEASURE = """
import sys, tracemalloc
import pyarrow as pa
from amqp_messages import block_of, list_, section
from pyspark_jms.amqp.columns import walk
from pyspark_jms.amqp.columns.decode import decode
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.jms.model import TYPES_MARKER, Destination

walk._MANY_AT_ONCE = 1 << 14  # in proportion to a small block
elements = [bytes([code]) for code in bytes.fromhex(sys.argv[1])]
block = block_of([section(0x77, list_(*elements * (200 // len(elements)), wide=True))] * 1500)
tracemalloc.start()
batch = decode(block, dialect=ARTEMIS, source=Destination.parse("queue://q"), first_sequence=0, body_type="auto")
_, of_python = tracemalloc.get_traced_memory()
assert batch.column("body_error").null_count == len(block)
print((of_python + pa.default_memory_pool().max_memory()) / len(block.data))
"""


@pytest.mark.parametrize(
    "elements", [pytest.param("41", id="alike"), pytest.param("41424340", id="mixed", marks=pytest.mark.deep)]
)
def test_elements_take_40_bytes_of_memory_a_byte(elements):
    """Of the smallest elements, 19 bytes are in the row: the type, the value and their offsets."""
    environment = os.environ | {"PYTHONPATH": str(Path(amqp_messages.__file__).parent)}
    command = [sys.executable, "-c", MEASURE, elements]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert float(found.stdout) < 40


def test_rows_that_are_read_in_pieces_are_those_that_are_read_at_once(monkeypatch):
    """Streams, maps and properties, among them messages that are read one by one."""
    messages = [message for count in range(1, 60) for message in with_elements(count).values()]
    random.Random(5).shuffle(messages)
    at_once = read(messages)
    monkeypatch.setattr(walk, "_MANY_AT_ONCE", 500)
    monkeypatch.setattr(walk, "_FEWEST_BYTES", 100)
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 300)
    pieces = []
    monkeypatch.setattr(module, "stacked", lambda batches: pieces.append(len(batches)) or stacked(batches))
    assert read(messages) == at_once
    assert max(pieces) > 5


# --- rhea --------------------------------------------------------------------------------------------------

UUID = "01234567-89ab-cdef-0123-456789abcdef"
LONG_ONE, INT_NEGATIVE = {"type": "long", "value": "1"}, {"type": "int", "value": "-1"}
RHEA_ROWS = {
    "text": {
        "text": "text",
        "properties": {"n": "7", "big": "4294967296", "neg": "-7", "f": "1.5", "b": "true", "s": "text"},
        "property_types": {"n": "uint", "big": "ulong", "neg": "int", "f": "double", "b": "boolean", "s": "string"},
        "JMSMessageID": "ID:AMQP_NO_PREFIX:r-text",
        "JMSCorrelationID": "c",
        "JMSType": "order",
    },
    "json": {"text": '{"a":1}', "content_type": "application/json", "property_types": {"s": "string"}},
    "bytes": {"bytes": b"\x00\xff", "property_types": {"n": "uint"}},
    "map": {
        "map": [
            ("a", LONG_ONE),
            ("b", {"type": "string", "value": "x"}),
            ("c", {"type": "boolean", "value": "true"}),
            ("d", {"type": "double", "value": "2.5"}),
            ("e", {"type": "string", "value": None}),
        ]
    },
    "list": {
        "stream": [{"type": "string", "value": "a"}, LONG_ONE, INT_NEGATIVE, {"type": "string", "value": None}],
        "body_type": "stream",
    },
    "typed": {
        "text": "text",
        "properties": {"at": "1760000000000", "u": UUID, "y": "sym", "n": "7"},
        "property_types": {"at": "timestamp", "u": "uuid", "y": "symbol", "n": "uint"},
    },
    "uuid": {
        "JMSMessageID": f"ID:AMQP_UUID:{UUID}",
        "JMSCorrelationID": "ID:AMQP_ULONG:7",
        "JMSExpiration": dt.datetime(2025, 10, 9, 8, 54, 20, tzinfo=dt.UTC),
    },
    "number": {"body_type": "text", "text": "5", "body_error": None},
}


@pytest.mark.parametrize("alone", [True, False])
def test_what_rhea_sends_arrives_as_the_page_says(alone):
    """docs/typed-messages.md, "AMQP producers": every whole number that is not negative is a uint."""
    blocks = [[name] for name in RHEA] if alone else [list(RHEA)]
    for names in blocks:
        found = decode(block_of([RHEA[name] for name in names]), **ONE).to_pylist()
        for name, row in zip(names, found, strict=True):
            for column in ("properties", "property_types"):
                row[column] = {each: value for each, value in row[column] if each != "JMSXDeliveryCount"}
            assert {column: row[column] for column in RHEA_ROWS[name]} == RHEA_ROWS[name]


# --- columns of single fields --------------------------------------------------------------------------

CONTEXT = BlockContext(dialect=ARTEMIS, source=QUEUE, body_type="auto")


def columns(messages, source=QUEUE):
    return columns_of(*walked(messages), replace(CONTEXT, source=source))


def test_every_column_but_the_sequence():
    assert {*columns([text_message()])[0], "sequence"} == set(COLUMNS)


def test_destinations_of_different_kinds():
    names = [("a.1", 0), ("b", 1), ("a.1", 2), ("a.1", 0)]
    messages = [annotations(jms_dest=byte(kind)) + properties(to=string(name)) for name, kind in names]
    expected = ["queue://a.1", "queue://a.*", "temp-queue://a.1", "queue://a.1"]
    pattern = Destination.parse("queue://a.*")
    assert columns(messages, source=pattern)[0]["JMSDestination"].to_pylist() == expected
    assert columns(messages[:1] * 3, source=pattern)[0]["JMSDestination"].to_pylist() == expected[:1] * 3


def test_delivery_ids_without_a_message_id():
    """The fingerprint leaves the header section out."""
    bare = properties(to=string("q"))
    messages = [section(0x70, list_(b"\x41")) + bare, bare, text_message(), properties(message_id=string(""))]
    found = columns(messages)[0]["delivery_id"].to_pylist()
    assert found[0] == found[1] == f"orders/~{fingerprint(bare).hex()}"
    assert found[2:] == ["orders/ID:1", f"orders/~{fingerprint(messages[3]).hex()}"]


def test_refused_rows_of_all_columns_are_found_in_one_round():
    wrong = [section(0x70, list_(ubyte(1))), properties(subject=ubyte(1)), section(0x77, ubyte(1)), text_message()]
    found, refused = columns(wrong)
    assert refused.tolist() == [0, 1, 2]
    assert found["text"].to_pylist()[3] == "hello"
