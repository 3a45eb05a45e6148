import re
from dataclasses import replace

import plain_encoder
import pyarrow as pa
import pytest
from drawn_rows import COLUMN_VALUES, NASTY, anything, batch_of, rows_of_anything, rows_of_columns, without_nul
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sink_rows import DESTINATION

from pyspark_jms.columns import row_parts
from pyspark_jms.columns.arrays import join_rows
from pyspark_jms.columns.row_parts import sink_columns
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.errors import JMSError, MessageFormatError, MessageTooLargeError, UnsupportedError
from pyspark_jms.stomp.columns.encode import body_of, encode
from pyspark_jms.stomp.dialects import ARTEMIS, RABBITMQ

NOW_MS = 1_760_000_000_000


def encoded(batch, **changed):
    arguments = {
        "dialect": ARTEMIS,
        "destination": DESTINATION,
        "transaction": None,
        "now_ms": NOW_MS,
        "max_frame_bytes": 1 << 20,
    }
    return [bytes(block.data) for block in encode(batch, **arguments | changed)]


def frames_of(rows, **changed):
    return plain_encoder.read_frames(b"".join(encoded(batch_of(rows), **changed)))


# --- against the plain encoder ----------------------------------------------------------------------

own_names = st.text("ab_$é雪\0\x1b\u200b", max_size=6).map("p".__add__)  # identifiers, ignorable characters and all
VALUES = COLUMN_VALUES | {"JMSReplyTo": anything | st.builds("queue://{}".format, anything), "content_type": anything}
ROWS = rows_of_columns(VALUES, own_names | st.sampled_from(["JMSXGroupID", "JMSXUserID", "ack"]), {"text": without_nul})


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    ROWS,
    st.tuples(st.integers(0, 9), st.integers(0, 3)),
    st.sampled_from([1, 600, 1 << 24]),
    st.none() | anything,
)
def test_agrees_with_the_plain_encoder(drawn, padding, buffer_bytes, transaction):
    columns, rows = drawn
    before, after = padding
    whole = batch_of([*rows[:1] * before, *rows, *rows[:1] * after], columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_parts, "BUFFER_BYTES", buffer_bytes)
        buffers = encoded(whole.slice(before, len(rows)), transaction=transaction)
    found = [frame for buffer in buffers for frame in plain_encoder.read_frames(buffer)]
    wanted = [plain_encoder.expected_frame(row, transaction=transaction, now_ms=NOW_MS) for row in rows]
    assert found == wanted


@given(rows_of_anything(own_names))
@example([{"text": "a\0SEND\ndestination:x\n\nforged"}])
@example([{"properties": [("content-length", "1")], "text": "abc"}])
@example([{"properties": [("a\n\n\0SEND\ndestination", "x")]}])
@example([{"destination": "q\ndestination-type:MULTICAST"}])
def test_nothing_a_row_holds_can_add_a_header_or_a_frame(rows):
    """Each row becomes its one frame, or is refused with an error that has a code and names the row."""
    try:
        found = frames_of(rows)
    except JMSError as error:
        assert re.search(r"[Rr]ow \d+ of the task", str(error))  # noqa: PT017  some rows are fine, so no raises()
        return
    assert found == [plain_encoder.expected_frame(row, now_ms=NOW_MS) for row in rows]


# --- buffers ----------------------------------------------------------------------------------------


def test_a_batch_without_columns_the_sink_reads_sends_empty_texts():
    assert frames_of([{"sequence": 1}, {"sequence": 2}]) == [plain_encoder.expected_frame({})] * 2


# --- limits -----------------------------------------------------------------------------------------


def test_a_frame_of_exactly_the_limit_is_sent_and_one_more_byte_refused():
    rows = [{"text": "a"}, {"text": "x" * 1000, "JMSType": ":" * 10}]
    size = len(encoded(batch_of(rows[1:]))[0])
    assert len(frames_of(rows, max_frame_bytes=size)) == 2
    with pytest.raises(MessageTooLargeError, match=rf"Row 8 .*\b{size} bytes.*\b{size - 1}\b"):
        encoded(batch_of(rows), max_frame_bytes=size - 1, first_row=7)


# --- the broker's opinion ---------------------------------------------------------------------------


@pytest.mark.broker
def test_artemis_reads_each_frame_as_one_message(broker, queue):
    """Names, values and bodies of every kind arrive as they were, NUL in headers included, and nothing besides."""
    from rawstomp import RawStomp

    rows = [
        {"destination": queue, "JMSType": nasty, "JMSCorrelationID": nasty, "properties": [("p\0é", nasty)]}
        | ({"bytes": nasty.encode()} if i % 2 else {"text": nasty.replace("\0", "")})
        for i, nasty in enumerate(NASTY)
    ]
    with RawStomp(broker) as client:
        client.request("BEGIN", [("transaction", "t")])
        for buffer in encoded(batch_of(rows), transaction="t"):
            client.write(buffer)
        client.request("COMMIT", [("transaction", "t")])
        found = client.read(queue, wanted=len(rows)) + client.read(queue, quiet=0.5)
    assert len(found) == len(rows)
    for message, row, nasty in zip(found, rows, NASTY, strict=True):
        assert message.body == (row["bytes"] if "bytes" in row else row["text"].encode())
        wanted = {"type": nasty, "correlation-id": nasty, "p\0é": nasty, "persistent": "true"}
        assert wanted.items() <= message.headers.items()


# --- bodies -----------------------------------------------------------------------------------------

ELEMENT = {"type": "int", "value": "1"}
MAP, STREAM, OBJECT, MESSAGE = (f"\nspark_jms_body:{kind}".encode() for kind in ("map", "stream", "object", "message"))
UNTYPED = replace(ARTEMIS, envelopes=False)


def bodies_of(*rows, dialect=ARTEMIS):
    names = ["sequence", *{name for row in rows for name in row}]
    batch = pa.record_batch(
        {name: pa.array([row.get(name) for row in rows], ARROW_SCHEMA.field(name).type) for name in names}
    )
    lines, body = body_of(Rows(columns=sink_columns(batch), first=3, count=len(rows)), dialect)
    return [tuple(entry.split(b"|", 1)) for entry in join_rows([*lines, b"|", body]).to_pylist()]


BYTES, TEXT = b"\nspark_jms_body:bytes", b"\nspark_jms_body:text"
BINARY = "application/octet-stream"


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([{"text": "a"}], [b""]),
        ([{"bytes": b"a"}], [b"\ncontent-length:1" + BYTES]),
        ([{"text": "a", "content_type": "text/plain"}, {"text": "b"}], [b"", b""]),
        ([{"text": "a", "content_type": BINARY}, {"text": "b"}], [TEXT, b""]),
        ([{"text": "a"}, {"bytes": b"b"}, {}], [b"", b"\ncontent-length:1" + BYTES, MESSAGE]),
        ([{"bytes": b"a", "content_type": BINARY}, {"bytes": b"b"}], [b"\ncontent-length:1" + BYTES] * 2),
    ],
)
def test_where_text_and_bytes_are_one_bytes_say_so_and_so_does_a_text_that_would_pass_for_them(rows, lines):
    assert [line for line, _ in bodies_of(*rows, dialect=RABBITMQ)] == lines


@pytest.mark.parametrize(
    ("row", "lines", "body"),
    [
        ({"text": "a"}, b"", b"a"),
        ({"text": ""}, b"", b""),
        ({"text": "é\n\n:\\"}, b"", "é\n\n:\\".encode()),
        ({"bytes": b"a\0b"}, b"\ncontent-length:3", b"a\0b"),
        ({"bytes": b""}, b"\ncontent-length:0", b""),
        ({"bytes": b"\xff" * 12}, b"\ncontent-length:12", b"\xff" * 12),
        ({}, MESSAGE, b""),
        ({"body_type": "text"}, b"", b""),
        ({"body_type": "message"}, MESSAGE, b""),
        ({"body_type": "bytes"}, b"\ncontent-length:0", b""),
        ({"body_type": "text", "text": "a"}, b"", b"a"),
        ({"body_type": "bytes", "bytes": b"\0"}, b"\ncontent-length:1", b"\0"),
        ({"body_type": "text", "text": "a", "bytes": b"b"}, b"", b"a"),
        ({"body_type": "bytes", "text": "a\0", "bytes": b"b"}, b"\ncontent-length:1", b"b"),
        ({"map": [("k", ELEMENT)]}, MAP, b'{"map":[{"name":"k","type":"int","value":"1"}]}'),
        ({"map": []}, MAP, b'{"map":[]}'),
        ({"body_type": "map"}, MAP, b'{"map":[]}'),
        ({"body_type": "map", "map": [], "text": "a\0", "bytes": b"b"}, MAP, b'{"map":[]}'),
        ({"stream": [ELEMENT]}, STREAM, b'{"stream":[{"type":"int","value":"1"}]}'),
        ({"stream": []}, STREAM, b'{"stream":[]}'),
        ({"body_type": "stream", "stream": []}, STREAM, b'{"stream":[]}'),
        ({"body_type": "stream"}, STREAM, b'{"stream":[]}'),
        ({"body_type": "stream", "stream": [], "map": [("", ELEMENT)]}, STREAM, b'{"stream":[]}'),
        ({"body_type": "object", "bytes": b"\xac\xed\0"}, b"\ncontent-length:3" + OBJECT, b"\xac\xed\0"),
        ({"body_type": "object", "bytes": b""}, b"\ncontent-length:0" + OBJECT, b""),
        ({"body_type": "object"}, b"\ncontent-length:0" + OBJECT, b""),
    ],
)
def test_a_body_is_sent_as_its_type(row, lines, body):
    assert bodies_of(row) == [(lines, body)]
    assert bodies_of(row, row) == [(lines, body)] * 2
    neighbours = ({"text": "t"}, {"bytes": b"yy"}, {}, {"map": [("z", ELEMENT)]})
    beside = [
        (b"", b"t"),
        (b"\ncontent-length:2", b"yy"),
        (MESSAGE, b""),
        (MAP, b'{"map":[{"name":"z","type":"int","value":"1"}]}'),
    ]
    assert bodies_of(row, *neighbours) == [(lines, body), *beside]
    assert bodies_of(*neighbours, row) == [*beside, (lines, body)]
    for neighbour, wanted in zip(neighbours, beside, strict=True):
        assert bodies_of(neighbour, row, neighbour) == [wanted, (lines, body), wanted]


@pytest.mark.parametrize("text", ["\0", "a\0b", "é\0"])
def test_nul_ends_a_text_so_it_is_refused(text):
    with pytest.raises(MessageFormatError, match=r"Row 4 .*U\+0000 .*text.*bytes"):
        bodies_of({"text": "a"}, {"text": text})
    with pytest.raises(MessageFormatError, match="Row 4 "):
        bodies_of({"bytes": b"\0"}, {"text": text}, {"body_type": "bytes", "text": "\0", "bytes": b""})


def test_a_text_that_is_not_utf8_is_refused():
    column = pa.array([b"a", "é".encode(), b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(MessageFormatError, match=r"Row 2 .*text .*UTF-8"):
        body_of(Rows(columns={"text": column}, first=0, count=3), ARTEMIS)


def test_a_text_that_is_not_sent_is_not_judged():
    texts = pa.array([b"a", b"\xff\0"], pa.binary()).view(pa.string())
    columns = {"text": texts, "bytes": pa.array([None, b"b"]), "body_type": pa.array(["text", "bytes"])}
    lines, body = body_of(Rows(columns=columns, first=0, count=2), ARTEMIS)
    assert join_rows([*lines, body]).to_pylist() == [b"a", b"\ncontent-length:1b"]


@pytest.mark.parametrize(
    ("row", "body_type"),
    [
        ({"map": [("k", ELEMENT)]}, "map"),
        ({"stream": []}, "stream"),
        ({"body_type": "object", "bytes": b"\xac\xed"}, "object"),
    ],
)
def test_a_broker_without_envelopes_gets_text_and_bytes_only(row, body_type):
    with pytest.raises(UnsupportedError, match=f"Row 4 .*{body_type} body"):
        bodies_of({"text": "a"}, row, dialect=UNTYPED)
    assert bodies_of({"text": "a"}, {}, dialect=UNTYPED) == [(b"", b"a"), (b"", b"")]
