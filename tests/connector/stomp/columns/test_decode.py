"""Frames as Artemis 2.44 and 2.55 wrote them, and whole rows against the plain decoder."""

import datetime as dt
import math
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import plain_decoder
import pyarrow as pa
import pytest
from column_types import wanted_of
from element_limit import limit_elements
from generated import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_decoder import block_of, message

from pyspark_jms.columns.envelope import open_envelopes
from pyspark_jms.columns.schema import ARROW_SCHEMA, COLUMNS, WantedColumns
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, BodyType, Destination
from pyspark_jms.stomp.columns import decode as decode_module
from pyspark_jms.stomp.columns import headers as headers_module
from pyspark_jms.stomp.columns.decode import (
    decode,
    detect_body_types,
    force_body_type,
    lost_bodies,
    read_bodies,
    read_xml,
)
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.headers import Headers, HeaderTexts, layout_of
from pyspark_jms.stomp.columns.lines import split_lines
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC

QUEUE = Destination.parse("queue://orders")
TOPIC = Destination.parse("topic://prices.#")
ANYCAST = "destination-type:ANYCAST"
FROM_STOMP = message(
    *("subscription:1", "content-length:2", "message-id:27,31", "destination:q1", "expires:0", "redelivered:false"),
    *("priority:4", "persistent:true", "timestamp:1795242783276", ANYCAST, "receipt:r2", ANYCAST, "ack:27,31"),
    body="m0",
)
FROM_JAVA = message(
    *("subscription:1", "message-id:1,2147483700", "destination:q1", "correlation-id:c-1", "expires:1795242800000"),
    *("redelivered:true", "priority:9", "persistent:true", r"reply-to:queue\c//rq", "timestamp:1795242783276"),
    *("type:order", "JMSXUserID:bob", ANYCAST, r"url:http\c//x/?a=1", "n:-3", "none:", "flag:true"),
    *("_AMQ_GROUP_ID:g1", "_AMQ_GROUP_SEQUENCE:3", "_AMQ_SCHED_DELIVERY:1795242790000", "__AMQ_CID:7f", "ack:1,2"),
    *("content-length:13",),
    body="Grüße, 世界"[:9],
)


def read(frames, *, source=QUEUE, body_type="auto", first_sequence=0):
    """The rows, after Arrow itself has found nothing wrong with them."""
    batch = decode(block_of(frames), dialect=ARTEMIS, source=source, first_sequence=first_sequence, body_type=body_type)
    batch.validate(full=True)
    assert batch.schema == ARROW_SCHEMA
    assert open_envelopes(batch, body_type).equals(batch), "the decoder has opened them, and what it left stays"
    return batch.to_pylist()


def plain(frames, *, source=QUEUE, body_type="auto", first_sequence=0):
    return plain_decoder.rows(
        frames, dialect=ARTEMIS, source=source, first_sequence=first_sequence, body_type=body_type
    )


def utc(milliseconds):
    return dt.datetime.fromtimestamp(milliseconds // 1000, dt.UTC) + dt.timedelta(milliseconds=milliseconds % 1000)


def test_a_message_sent_over_stomp():
    (row,) = read([FROM_STOMP], first_sequence=41)
    assert row == dict.fromkeys(COLUMNS) | {
        "sequence": 41,
        "JMSDestination": "queue://orders",
        "JMSTimestamp": utc(1795242783276),
        "JMSDeliveryMode": 2,
        "JMSPriority": 4,
        "JMSRedelivered": False,
        "properties": [],
        "body_type": "bytes",
        "bytes": b"m0",
        "delivery_id": "orders/31",
    }


def test_a_java_text_message_with_every_header():
    (row,) = read([FROM_JAVA])
    assert row == dict.fromkeys(COLUMNS) | {
        "sequence": 0,
        "JMSDestination": "queue://orders",
        "JMSTimestamp": utc(1795242783276),
        "JMSCorrelationID": "c-1",
        "JMSType": "order",
        "JMSReplyTo": "queue://rq",
        "JMSDeliveryMode": 2,
        "JMSPriority": 9,
        "JMSExpiration": utc(1795242800000),
        "JMSDeliveryTime": utc(1795242790000),
        "JMSRedelivered": True,
        "properties": [
            ("JMSXUserID", "bob"),
            ("url", "http://x/?a=1"),
            ("n", "-3"),
            ("none", ""),
            ("flag", "true"),
            ("JMSXGroupID", "g1"),
            ("JMSXGroupSeq", "3"),
        ],
        "body_type": "text",
        "text": "Grüße, 世界",
        "delivery_id": "orders/2147483700",
    }


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (("subscription:1", "message-id:1,2", "ack:1,2", "content-length:3"), "abc", ("text", "abc", None)),
        (("subscription:1", "message-id:1,2", "ack:1,2"), "", ("text", "", None)),
        (("subscription:1", "content-length:2", "message-id:1,2"), b"\0\xff", ("bytes", None, b"\0\xff")),
        (("subscription:1", "content-length:4", "message-id:1,2"), bytes(4), ("bytes", None, bytes(4))),
        (("subscription:1", "message-id:1,2", "content-length:0", "ack:1,2"), b"", ("bytes", None, b"")),
        (("subscription:1", "message-id:1,2", "content-length:3"), "a\0b", ("text", "a\0b", None)),
        (("subscription:1", "message-id:1,2", "content-length:7"), "\0\nMESSA", ("text", "\0\nMESSA", None)),
    ],
)
def test_bodies_as_artemis_writes_them(headers, body, expected):
    (row,) = read([message(*headers, body=body)])
    assert (row["body_type"], row["text"], row["bytes"]) == expected
    assert row["body_error"] is None


@pytest.mark.parametrize(
    ("extra", "column", "value"),
    [
        ("timestamp:0", "JMSTimestamp", None),
        ("timestamp:253402300799999", "JMSTimestamp", utc(253402300799999)),
        ("timestamp:253402300800000", "JMSTimestamp", None),
        ("timestamp:-62135596800000", "JMSTimestamp", dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
        ("timestamp:-62135596800001", "JMSTimestamp", None),
        ("expires:9223372036854775807", "JMSExpiration", None),
        ("expires:" + "9" * 5000, "JMSExpiration", None),
        ("timestamp:0000000000000000000000000007", "JMSTimestamp", utc(7)),
        ("priority:-2147483648", "JMSPriority", -(2**31)),
        ("priority:10", "JMSPriority", 9),
        ("priority:2147483648", "JMSPriority", None),
        ("persistent:TRUE", "JMSDeliveryMode", 2),
        ("persistent:false", "JMSDeliveryMode", 1),
        ("x:y", "JMSDeliveryMode", 1),
        ("redelivered:True", "JMSRedelivered", True),
        ("content-type:application/json", "content_type", "application/json"),
        ("correlation-id:", "JMSCorrelationID", ""),
        (r"reply-to:topic\c//rt", "JMSReplyTo", "topic://rt"),
        (r"reply-to:temp-queue\c//8a-b", "JMSReplyTo", "temp-queue://8a-b"),
        (r"reply-to:temp-topic\c//t", "JMSReplyTo", "temp-topic://t"),
        ("reply-to:literal/name", "JMSReplyTo", "queue://literal/name"),
        ("reply-to:", "JMSReplyTo", None),
        (r"reply-to:queue\c//", "JMSReplyTo", None),
        (r"message-id:1\c2,3,4", "delivery_id", "orders/3,4"),
        ("message-id:17", "delivery_id", "orders/17"),
        ("message-id:17,", "delivery_id", None),
        ("message-id:", "delivery_id", None),
    ],
)
def test_one_header(extra, column, value):
    frame = message("subscription:1", extra)
    (row,) = read([frame])
    assert row[column] == value
    assert row["body_error"] is None
    assert read([FROM_STOMP, frame, FROM_JAVA])[1] == row | {"sequence": 1}


def test_what_the_producer_set_under_a_header_name_is_a_property():
    names = ("timestamp", "priority", "message-id", "subscription", "redelivered", "persistent", "expires", "type")
    brokers = [f"{name}:1" for name in names]
    (row,) = read([message(*brokers, *(f"{name}:mine" for name in names), *(f"{name}:third" for name in names))])
    assert row["properties"] == [(name, "mine") for name in names]
    assert (row["JMSTimestamp"], row["JMSPriority"], row["JMSType"]) == (utc(1), 1, "1")
    assert row["body_error"] is None


def test_plumbing_is_neither_column_nor_property():
    ignored = [f"{name}:x" for name in sorted(ARTEMIS.ignored_headers - {BODY_MARKER, TYPES_MARKER})]
    assert read([message("destination:q", *ignored, *ignored)])[0]["properties"] == []


@pytest.mark.parametrize("others", [[], ["b:1"]], ids=["one layout", "any mix"])
def test_what_artemis_adds_to_a_message_of_an_amqp_client_is_no_property(others):
    added = ["JMS_AMQP_MA_x-opt-jms-dest:0", "JMS_AMQP_NATIVE:true", "NATIVE_MESSAGE_ID:ID\\c1"]
    kept = ["NATIVE_MESSAGE_ID2:x", "JMS_AMQP:x", "a:1"]
    frames = [message(*added, *kept), message(*added, *others, *kept)]
    shown = [[tuple(line.split(":")) for line in lines] for lines in (kept, others + kept)]
    assert [row["properties"] for row in read(frames)] == shown


def test_all_that_is_wrong_with_a_message_is_told_in_order():
    frame = message(
        *(rb"a\tb:1", b"no colon", b"caf\xe9:\xff", b"timestamp:soon", b"priority:", rb"both\x:" + b"\xc3"),
        body=b"\xff",
    )
    (row,) = read([frame])
    assert row["body_error"] == (
        r"header number 1 holds an escape that STOMP 1.2 does not define; header line 2 has no colon; "
        r"header number 3 is not valid UTF-8; header number 6 holds an escape that STOMP 1.2 does not define; "
        r"header number 6 is not valid UTF-8; header 'timestamp' is not a number; header 'priority' is not a number; "
        "text is not valid UTF-8"
    )
    assert row["properties"] == [(r"a\tb", "1"), ("caf�", "�"), (r"both\x", "�")]
    assert (row["JMSTimestamp"], row["JMSPriority"], row["bytes"]) == (None, None, b"\xff")
    assert read([FROM_JAVA, frame, FROM_STOMP])[1] == row | {"sequence": 1}


@pytest.mark.parametrize("count", [9, 10, 11, 30])
@pytest.mark.parametrize("lines", [["z"], [r"a:\x"], [b"a:\xff"], ["z", r"a:\x", b"a:\xff", "timestamp:x"]])
def test_of_many_faults_only_some_are_told(lines, count):
    frames = [FROM_STOMP, message(*lines * count), message(*lines), FROM_JAVA]
    assert read(frames) == plain(frames)
    assert (read(frames)[1]["body_error"].count("; ") == 10) == (count * len(lines) > 10)


# --- envelopes ----------------------------------------------------------------------------------

MAP_BODY = '{"map":[{"name":"n","type":"int","value":"3"},{"name":"x","type":"bytes","value":"AAEC"}]}'
STREAM_BODY = '{"stream":[{"type":"char","value":"x"},{"type":"string"}]}'


def from_java(kind, body, *more):
    """As a Java producer's envelope comes: a TextMessage with a property."""
    lines = ("subscription:1", "message-id:1,2", f"{BODY_MARKER}:{kind}", *more, "a:1", "ack:1,2")
    return message(*lines, f"content-length:{len(body)}", body=body)


@pytest.mark.parametrize(
    ("kind", "body", "given"),
    [
        ("map", MAP_BODY, {"map": [("n", {"type": "int", "value": "3"}), ("x", {"type": "bytes", "value": "AAEC"})]}),
        ("stream", STREAM_BODY, {"stream": [{"type": "char", "value": "x"}, {"type": "string", "value": None}]}),
        ("object", b"\xac\xed\0\5", {"bytes": b"\xac\xed\0\5"}),
        ("message", b"", {}),
        ("text", "t", {"text": "t"}),
        ("bytes", b"\xff", {"bytes": b"\xff"}),
    ],
)
def test_an_envelope_is_read_as_what_is_in_it(kind, body, given):
    frame = from_java(kind, body)
    (row,) = read([frame])
    bodies = {name: row[name] for name in ("text", "bytes", "map", "stream") if row[name] is not None}
    assert (row["body_type"], bodies, row["body_error"]) == (kind, given, None)
    assert row["properties"] == [("a", "1")]
    assert read([FROM_JAVA, frame, FROM_STOMP])[1] == row | {"sequence": 1}


@pytest.mark.parametrize(
    ("kind", "body", "body_type", "reason"),
    [
        ("map", "{", "map", "body is not the JSON of a map"),
        ("map", STREAM_BODY, "map", "body is not the JSON of a map"),
        ("stream", b"\xff", "stream", "text is not valid UTF-8"),
        ("map", MAP_BODY.replace("3", "x"), "map", "element 1 of the map is not of type int"),
        ("message", "x", "message", "a message without a body has one"),
        ("record", "x", "text", "property 'spark_jms_body' does not name a body type"),
    ],
)
def test_an_envelope_that_cannot_be_read_is_raw_bytes_and_a_reason(kind, body, body_type, reason):
    frame = from_java(kind, body)
    (row,) = read([frame])
    assert (row["body_type"], row["body_error"]) == (body_type, reason)
    assert row["bytes"] == (body if isinstance(body, bytes) else body.encode())
    assert (row["text"], row["map"], row["stream"]) == (None, None, None)
    assert read([FROM_JAVA, frame, FROM_STOMP])[1] == row | {"sequence": 1}


@pytest.mark.parametrize("body_type", ["auto", "text", "bytes"])
def test_a_large_body_that_the_broker_lost_is_told(body_type):
    lost, whole = (
        message("_AMQ_LARGE_SIZE:400585", "content-length:1", body="\0"),
        message("_AMQ_LARGE_SIZE:7", body="a"),
    )
    rows = read([FROM_STOMP, lost, whole], body_type=body_type)
    assert [row["body_error"] for row in rows] == [
        None,
        "the broker did not send the body: it is neither text nor bytes",
        None,
    ]
    assert (rows[1]["text"], rows[1]["bytes"]) == (None, b"\0")
    assert rows == plain([FROM_STOMP, lost, whole], body_type=body_type)


@pytest.mark.parametrize("body_type", ["text", "bytes"])
def test_the_option_is_above_the_marker_which_stays_a_property(body_type):
    body = "{" + MAP_BODY
    rows = read([from_java("map", body), FROM_STOMP, from_java("x", body)], body_type=body_type)
    expected = body if body_type == "text" else body.encode()
    for row, kind in ((rows[0], "map"), (rows[2], "x")):
        assert (row["body_type"], row[body_type], row["map"], row["body_error"]) == (body_type, expected, None, None)
        assert row["properties"] == [(BODY_MARKER, kind), ("a", "1")]


def test_types_of_properties_are_a_column_and_bad_ones_stay_a_property():
    good, bad = r'spark_jms_types:{"a"\c"int"}', r'spark_jms_types:{"a"\c"Integer"}'
    rows = read([from_java("map", MAP_BODY, good), from_java("map", MAP_BODY, bad), FROM_JAVA])
    assert [row["property_types"] for row in rows] == [[("a", "int")], None, None]
    assert [row["properties"] for row in rows[:2]] == [[("a", "1")], [(TYPES_MARKER, '{"a":"Integer"}'), ("a", "1")]]
    assert [row["body_error"] for row in rows] == [None] * 3


def test_nothing_to_decode():
    assert read([]) == []


def test_a_column_that_would_not_fit_is_refused():
    source = Destination(QUEUE.kind, "q" * 10_000_000)
    with pytest.raises(IllegalStateError, match="Arrow"):
        read([FROM_JAVA] * 250, source=source)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind_stay_as_they_are(kind):
    block = block_of([FROM_JAVA, FROM_STOMP])
    given = kind(block.data)
    batch = decode(replace(block, data=given), dialect=ARTEMIS, source=QUEUE, first_sequence=0, body_type="auto")
    assert bytes(given) == block.data
    if kind is bytearray:
        given[:] = bytes(len(given) + 1)  # the batch neither shares them nor keeps them from growing
    assert batch.to_pylist() == plain([FROM_JAVA, FROM_STOMP])


# --- against the plain decoder -------------------------------------------------------------------

ODD = [
    "\\",
    "\\c",
    "\\n",
    "\\r",
    "\\\\",
    "\\x",
    ":",
    "*",
    "\x1a",
    "\r",
    "\0",
    "é",
    "世",
    " ",
    "a",
    "7",
    "-",
    "0",
    "true",
    ",",
]
NAMES = st.one_of(
    st.sampled_from(
        [*ARTEMIS.message_headers, *sorted(ARTEMIS.ignored_headers), *ARTEMIS.property_names, "JMSXGroupID", "a", "b"]
    ),
    st.lists(st.sampled_from(ODD), max_size=4).map("".join),
)
MARKS = [
    *(kind.value.encode() for kind in BodyType),
    *(b"Map", b"{}", rb'{"a"\c"int","b"\c"string"}', rb'{"a"\c"char"}', rb'{"a"\c"int","a"\c"int"}', b"[]"),
]
VALUES = st.one_of(
    st.sampled_from(MARKS),
    st.lists(st.sampled_from(ODD), max_size=6).map(lambda parts: "".join(parts).encode()),
    st.integers(-(2**70), 2**70).map(lambda number: str(number).encode()),
    st.sampled_from(
        [b"queue\\c//a", b"topic\\c//b", b"temp-queue\\c//c", b"1,2", b"true", b"\xff", b"\xc3", b"\xe4\xb8"]
    ),
)
HEADERS = st.lists(
    st.one_of(
        st.tuples(NAMES, VALUES).map(lambda pair: pair[0].encode() + b":" + pair[1]),
        st.sampled_from([b"no colon", b"\xff", b"caf\xe9:1", b"\r", b"\\", b"x\\:y"]),
    ),
    max_size=12,
)
BODIES = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20).map(lambda text: text.encode(errors="replace")),
    st.sampled_from([b"\n\n", b"\0\nMESSAGE\n\n\0\n", b"\xc3", b"\xa9"]),
    st.sampled_from([MAP_BODY.encode(), STREAM_BODY.encode(), b'{"map":[]}', b'{"map":[{"name":"\\u0000"}]}']),
)
FRAMES = st.one_of(
    st.builds(lambda headers, body: message(*headers, body=body), HEADERS, BODIES),
    st.builds(
        lambda kind, body, headers: from_java(kind, body, *headers),
        st.sampled_from([*BodyType, "Map"]),
        BODIES.filter(lambda body: b"\n\n" not in body),
        HEADERS,
    ),
)
ONE_LAYOUT = st.builds(
    lambda names, values, bodies: [
        message(*(name.encode() + b":" + value for name, value in zip(names, row, strict=False)), body=body)
        for row, body in zip(values, bodies, strict=False)
    ],
    st.lists(NAMES, min_size=1, max_size=8),
    st.lists(st.lists(VALUES, min_size=8, max_size=8), min_size=1, max_size=6),
    st.lists(BODIES, min_size=6, max_size=6),
)
HOW = {"source": st.sampled_from([QUEUE, TOPIC]), "body_type": st.sampled_from(["auto", "text", "bytes"])}


@settings(max_examples=examples(100))
@given(frames=st.lists(FRAMES, max_size=8), first=st.integers(0, 2**62), **HOW)
def test_any_mix_of_frames_reads_as_the_plain_decoder_reads_it(frames, first, source, body_type):
    how = {"source": source, "body_type": body_type, "first_sequence": first}
    assert read(frames, **how) == plain(frames, **how)


@settings(max_examples=examples(100))
@given(frames=ONE_LAYOUT, **HOW)
def test_frames_of_one_layout_read_as_the_plain_decoder_reads_them(frames, source, body_type):
    how = {"source": source, "body_type": body_type}
    assert read(frames, **how) == plain(frames, **how)
    assert read([*frames, FROM_JAVA], **how)[:-1] == plain(frames, **how)


# --- some columns ------------------------------------------------------------------------------------

FIXED = st.sets(st.sampled_from([name for name in ARROW_SCHEMA.names if name not in {"bytes", "body_error"}]))
PROPERTIES = st.lists(
    st.one_of(st.sampled_from(["a", "b", "n", "JMSXGroupID", "url", "none"]), NAMES), unique=True
).map(
    lambda names: [name for name in names if name not in {BODY_MARKER, TYPES_MARKER}]  # they need all columns
)


@settings(max_examples=examples(100))
@given(
    frames=st.one_of(st.lists(FRAMES, max_size=6), ONE_LAYOUT, st.just([FROM_JAVA] * 3)),
    fixed=FIXED,
    names=PROPERTIES,
    **HOW,
)
@example([from_java("map", MAP_BODY), from_java("stream", STREAM_BODY)], {"map"}, ["a"], QUEUE, "auto")
@example([from_java("map", MAP_BODY), from_java("stream", STREAM_BODY)], {"stream", "text"}, [], QUEUE, "auto")
def test_wanted_columns_are_those_of_a_read_of_all(frames, fixed, names, source, body_type):
    """Of every message, also of one with faults."""
    wanted = WantedColumns.of(fixed, names)
    how = {"dialect": ARTEMIS, "source": source, "first_sequence": 5, "body_type": body_type}
    batch = decode(block_of(frames), **how, wanted=wanted)
    assert batch.schema == wanted.schema
    if not batch.num_columns:
        return
    batch.validate(full=True)
    full = decode(block_of(frames), **how).to_pylist()
    assert batch.to_pylist() == [wanted_of(row, fixed, names) for row in full]


def test_what_is_not_wanted_is_not_read(monkeypatch):
    for module, name in ((decode_module, "read_bodies"), (headers_module, "with_properties")):
        monkeypatch.setattr(module, name, None)
    wanted = WantedColumns.of({"JMSType", "JMSPriority"}, ["n"])
    how = {"dialect": ARTEMIS, "source": QUEUE, "first_sequence": 0, "body_type": "auto"}
    batch = decode(block_of([FROM_JAVA, FROM_STOMP]), **how, wanted=wanted)
    assert batch.column("properties.n").to_pylist() == ["-3", None]


@settings(max_examples=examples(200))
@given(data=st.data())
def test_a_wrong_index_is_refused_or_harmless(data):
    block = block_of([FROM_JAVA, FROM_STOMP, FROM_JAVA])
    for index in (block.heads, block.ends):
        for at in data.draw(st.lists(st.integers(0, 2), max_size=2)):
            index[at] = data.draw(st.one_of(st.integers(-3, len(block.data) + 3), st.integers(-(2**63), 2**63 - 1)))
    try:
        batch = decode(block, dialect=ARTEMIS, source=QUEUE, first_sequence=0, body_type="auto")
    except IllegalStateError:
        return
    batch.validate(full=True)


def test_mutated_bytes_never_end_the_process(examples):
    """In a process of its own: a segmentation fault must be seen as a failure."""
    command = [sys.executable, __file__, str(examples(1500))]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240, env=_environment())
    assert (done.returncode, done.stdout.strip()) == (0, f"{examples(1500)} inputs"), done.stderr[-2000:]


def _environment():
    return {"PYTHONPATH": str(Path(plain_decoder.__file__).parent), "PATH": ""}


def mutated(random_, data):
    """A few bytes flipped, dropped, doubled or put in, mostly those that mean something."""
    data = bytearray(data)
    for _ in range(random_.randint(1, 12)):
        at = random_.randrange(len(data))
        match random_.randrange(4):
            case 0:
                data[at] = random_.choice(b"\n\0:\\\r\xffc0M")
            case 1:
                data[at] = random_.randrange(256)
            case 2:
                del data[at : at + random_.randint(1, 9)]
            case _:
                data[at:at] = data[at : at + random_.randint(1, 30)]
    return bytes(data)


KINDS = [
    FROM_JAVA,
    FROM_STOMP,
    from_java("map", MAP_BODY, r'spark_jms_types:{"a"\c"int"}'),
    from_java("stream", STREAM_BODY),
    from_java("object", b"\xac\xed\0\5"),
]


def fuzz(times):
    for seed in range(times):
        random_ = random.Random(seed)
        base = [random_.choice(KINDS) for _ in range(random_.randint(1, 6))]
        frames = plain_decoder.frames_in(mutated(random_, b"".join(base)))
        assert read(frames) == plain(frames), seed
        block = block_of(frames)
        block.data = mutated(random_, block.data) if frames else b""
        try:
            decode(block, dialect=ARTEMIS, source=QUEUE, first_sequence=0, body_type="auto").validate(full=True)
        except IllegalStateError:
            continue
    print(f"{times} inputs")  # noqa: T201 - read by the test


if __name__ == "__main__":
    fuzz(int(sys.argv[1]))


# --- the columns of bodies -------------------------------------------------------------------------

TYPES = [kind.value for kind in BodyType]
MAP = '{"map":[{"name":"n","type":"int","value":"3"}]}'
STREAM = '{"stream":[{"type":"char","value":"x"}]}'
THREE, X = {"type": "int", "value": "3"}, {"type": "char", "value": "x"}


def read_bodies_of(*bodies, types, unread=()):
    """Rows of the body columns, and the error of a row."""
    frames = FrameBounds.of(block_of([message("a:1", body=body) for body in bodies]))
    found, faults = read_bodies(frames, np.array([TYPES.index(kind) for kind in types]), dict(unread))
    for name, column in found.items():
        column.validate(full=True)
        assert (column.type, len(column)) == (ARROW_SCHEMA.field(name).type, len(bodies))
    rows = zip(*(column.to_pylist() for column in found.values()), strict=True)
    given = [{name: value for name, value in zip(found, row, strict=True) if value is not None} for row in rows]
    return given, {row: reason for row, _, reason in faults}


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
    assert read_bodies_of(body, types=[kind]) == ([expected], {})
    assert read_bodies_of(body, body, types=[kind] * 2) == ([expected] * 2, {})
    assert read_bodies_of("x", body, b"y", types=["text", kind, "bytes"])[0][1] == expected


def test_a_message_without_a_body():
    assert read_bodies_of("", types=["message"]) == ([{"body_type": "message"}], {})
    rows, faults = read_bodies_of("", "x", types=["message", "message"])
    assert rows == [{"body_type": "message"}, {"body_type": "message", "bytes": b"x"}]
    assert faults == {1: "a message without a body has one"}


def test_a_body_that_is_not_what_it_should_be_is_raw_bytes_and_a_reason():
    bodies = [MAP, b"{", STREAM, b"\xff", b"\xff", STREAM, MAP]
    rows, faults = read_bodies_of(*bodies, types=["map", "map", "map", "map", "stream", "stream", "stream"])
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
    rows, faults = read_bodies_of("a", b"b", "c", types=["text", "bytes", "text"], unread={0: "why", 1: "why not"})
    assert rows == [
        {"body_type": "text", "bytes": b"a"},
        {"body_type": "bytes", "bytes": b"b"},
        {"body_type": "text", "text": "c"},
    ]
    assert faults == {0: "why", 1: "why not"}


def test_only_the_text_that_is_not_utf8_stays_raw():
    rows, faults = read_bodies_of(b"\xff", "ok", b"\xff", b"x\xc3", types=["text", "text", "bytes", "text"])
    assert rows == [
        {"body_type": "text", "bytes": b"\xff"},
        {"body_type": "text", "text": "ok"},
        {"body_type": "bytes", "bytes": b"\xff"},
        {"body_type": "text", "bytes": b"x\xc3"},
    ]
    assert faults == {0: "text is not valid UTF-8", 3: "text is not valid UTF-8"}


def test_neighbours_do_not_complete_each_other():
    first, second = "世".encode()[:1], "世".encode()[1:]
    assert [row["bytes"] for row in read_bodies_of(first, second, types=["text", "text"])[0]] == [first, second]


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
