"""Frames with more headers than can be read in columns."""

import pytest
from plain_decoder import block_of, message

from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.header_count import with_few_headers
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ

QUEUE = Destination.parse("queue://orders")
OWN = ("message-id:ID\\ca,1", "priority:7", "timestamp:1795242783276")
SMALL = message(*OWN, "n:1", body="small")


def frame(count, *more, body="the body"):
    """A frame with so many headers, the broker's among those of its producer."""
    of_producer = [f"p{number}:v" for number in range(count - len(OWN) - len(more))]
    return message(*of_producer[:3], *OWN, *more, *of_producer[3:], body=body)


def read(frames, limit, dialect=ARTEMIS):
    batch = decode(
        block_of(frames), dialect=dialect, source=QUEUE, first_sequence=0, body_type="auto", max_elements=limit
    )
    batch.validate(full=True)
    return batch.to_pylist()


@pytest.mark.parametrize("dialect", [ARTEMIS, CLASSIC, RABBITMQ], ids=lambda dialect: dialect.name)
def test_a_message_with_too_many_headers_is_a_row_with_its_frame(dialect):
    many = frame(21)
    first, row, fits = read([SMALL, many, frame(20)], 20, dialect)
    assert row["body_error"] == "the message has more headers than maxMessageElements (20)"
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
    (row,) = read([many], 20)
    assert "maxMessageElements" in row["body_error"]
    assert row["bytes"] == many[: -len(b"\0\n")]


def test_frames_with_few_headers_stay_as_they_are():
    """They are not copied. A long value is one header."""
    frames = FrameBounds.of(block_of([SMALL, message(*OWN, "long:" + "x" * 1000)]))
    assert with_few_headers(frames, ARTEMIS, 20) == (frames, {})


def test_a_marker_of_a_body_does_not_hide_the_reason():
    """The body of such a frame is not read."""
    (row,) = read([frame(21, "spark_jms_body:map", 'spark_jms_types:{"p1"\\c"int"}', body="no map")], 20)
    assert row["body_error"] == "the message has more headers than maxMessageElements (20)"
    assert row["property_types"] is None
