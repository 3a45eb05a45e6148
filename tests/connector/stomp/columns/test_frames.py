import mmap
from array import array

import pytest
from element_limit import limit_elements
from plain_decoder import block_of, message

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.columns.frames import FrameBounds, with_few_headers
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ

FRAMES = [message("a:1", body="x"), message(body="\n\n"), message("a:2")]
BLOCK = block_of(FRAMES)
BYTES, HEADS, ENDS = BLOCK.data, BLOCK.heads, BLOCK.ends


def test_an_index_that_fits():
    bounds = FrameBounds.of(BLOCK)
    assert len(bounds) == 3
    assert [BYTES[a:b] for a, b in zip(bounds.starts, bounds.ends, strict=True)] == FRAMES
    assert [BYTES[a:b] for a, b in zip(bounds.body_starts, bounds.body_ends, strict=True)] == [b"x", b"\n\n", b""]


def test_no_frames():
    assert len(FrameBounds.of(MessageBlock())) == 0


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("which", ["heads", "ends"])
@pytest.mark.parametrize("value", [-1, 0, 1, 7, len(BYTES), len(BYTES) + 1, 1 << 31, (1 << 63) - 1, -(1 << 63)])
def test_one_wrong_position_is_refused(which, at, value):
    heads, ends = HEADS[:], ENDS[:]
    index = heads if which == "heads" else ends
    index[at] = value if index[at] != value else value - 1
    with pytest.raises(IllegalStateError, match="does not fit"):
        FrameBounds.of(MessageBlock(BYTES, heads, ends))


@pytest.mark.parametrize("which", ["heads", "ends"])
@pytest.mark.parametrize("by", [-2, -1, 1, 2])
@pytest.mark.parametrize("at", [0, 2])
def test_a_position_beside_the_right_one_is_refused(which, at, by):
    heads, ends = HEADS[:], ENDS[:]
    (heads if which == "heads" else ends)[at] += by
    with pytest.raises(IllegalStateError, match="does not fit"):
        FrameBounds.of(MessageBlock(BYTES, heads, ends))


@pytest.mark.parametrize(
    ("data", "heads", "ends"),
    [
        (BYTES, HEADS, ENDS[:2]),
        (BYTES, HEADS[:2], ENDS[:2]),
        (BYTES[:-1], HEADS, ENDS),
        (BYTES + b"\n", HEADS, ENDS),
        (b"\n", array("q"), array("q")),
        (b"", HEADS, ENDS),
        (BYTES.replace(b"MESSAGE", b"RECEIPT"), HEADS, ENDS),
        (BYTES.replace(b"\0", b" "), HEADS, ENDS),
        (BYTES.replace(b"\0\n", b"\0 "), HEADS, ENDS),
        (b"MESSAGE\n\n\0\n"[:9], array("q", [7]), array("q", [9])),
    ],
)
def test_bytes_that_are_not_what_the_index_says(data, heads, ends):
    with pytest.raises(IllegalStateError, match="does not fit"):
        FrameBounds.of(MessageBlock(data, heads, ends))


def test_more_bytes_than_one_batch_can_hold():
    with mmap.mmap(-1, 1 << 31) as huge, pytest.raises(IllegalStateError, match="do not fit"):
        FrameBounds.of(MessageBlock(huge, array("q"), array("q")))


QUEUE = Destination.parse("queue://orders")
OWN = ("message-id:ID\\ca,1", "priority:7", "timestamp:1795242783276")
SMALL = message(*OWN, "n:1", body="small")


def frame(count, *more, body="the body"):
    """A frame with so many headers, the broker's among those of its producer."""
    of_producer = [f"p{number}:v" for number in range(count - len(OWN) - len(more))]
    return message(*of_producer[:3], *OWN, *more, *of_producer[3:], body=body)


@pytest.fixture(autouse=True)
def _limit(monkeypatch):
    limit_elements(monkeypatch, 20)


def read(frames, dialect=ARTEMIS):
    batch = decode(block_of(frames), dialect=dialect, source=QUEUE, first_sequence=0, body_type="auto")
    batch.validate(full=True)
    return batch.to_pylist()


@pytest.mark.parametrize("dialect", [ARTEMIS, CLASSIC, RABBITMQ], ids=lambda dialect: dialect.name)
def test_a_message_with_too_many_headers_is_a_row_with_its_frame(dialect):
    many = frame(21)
    first, row, fits = read([SMALL, many, frame(20)], dialect)
    assert row["body_error"] == "the message has more than 20 headers"
    assert row["bytes"] == many[: -len(b"\0\n")]
    assert row["properties"] == []
    assert (row["map"], row["stream"], row["text"]) == (None, None, None)
    assert [other["body_error"] for other in (first, fits)] == [None, None]
    for column in ("JMSPriority", "JMSTimestamp", "JMSMessageID", "JMSDestination", "delivery_id"):
        assert row[column] == fits[column] == first[column], column


@pytest.mark.parametrize("lines", [["a:"], ["a"], [""], ["priority:1"], ["\\c:1"], ["a:1", "b:2"]])
def test_headers_of_any_kind_are_counted(lines):
    """Without a value, without a colon, without a name, of one name, with escapes."""
    many = message(*OWN, *(lines * 30), body=b"\0\n\n\0") if lines != [""] else message(*OWN, *[":"] * 30)
    (row,) = read([many])
    assert "more than 20 headers" in row["body_error"]
    assert row["bytes"] == many[: -len(b"\0\n")]


def test_frames_with_few_headers_stay_as_they_are():
    """They are not copied. A long value is one header."""
    frames = FrameBounds.of(block_of([SMALL, message(*OWN, "long:" + "x" * 1000)]))
    assert with_few_headers(frames, ARTEMIS) == (frames, {})


def test_a_marker_of_a_body_does_not_hide_the_reason():
    """The body of such a frame is not read."""
    (row,) = read([frame(21, "spark_jms_body:map", 'spark_jms_types:{"p1"\\c"int"}', body="no map")])
    assert row["body_error"] == "the message has more than 20 headers"
    assert row["property_types"] is None
