import struct
import zlib
from array import array
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.segment import Segment, encode, read_head
from pyspark_jms.errors import CorruptJournalError, IllegalStateError, UnsupportedError

DATA = Path(__file__).parent / "data"
BLOCK = 256 << 10


def segment(messages, first=0, source="queue://orders", dialect="artemis"):
    """Of (id, head, body) each."""
    block = MessageBlock(ids=[identifier for identifier, _, _ in messages])
    for _, head, body in messages:
        block.heads.append(len(block.data) + len(head))
        block.data += head + body
        block.ends.append(len(block.data))
    return Segment(source=source, dialect=dialect, first=first, block=block)


def many(count, size):
    return segment([(b"%d" % n, b"head%d" % n, bytes([n % 251]) * size) for n in range(count)], first=1000)


def written(value):
    return b"".join(bytes(part) for part in encode(value))


def facts(value):
    block = value.block
    return value.source, value.dialect, value.first, value.ids, bytes(block.data), list(block.heads), list(block.ends)


MESSAGES = st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=30), st.binary(max_size=60)), min_size=1)


@given(MESSAGES, st.integers(0, 2**62), st.text(max_size=20), st.sampled_from(["artemis", "classic"]))
def test_what_was_written_is_read(messages, first, source, dialect):
    value = segment(messages, first, source.encode("utf-8", "replace").decode(), dialect)
    reader = read_head(written(value), "a")
    assert facts(reader.segment()) == facts(value)
    assert (len(reader), reader.last, reader.digest) == (len(value), value.last, encode(value).digest)


@given(MESSAGES, st.data())
def test_a_part_is_that_part_and_nothing_else(messages, data):
    value = segment(messages, 500)
    first = data.draw(st.integers(500, value.last))
    last = data.draw(st.integers(first, value.last))
    part = segment(messages[first - 500 : last - 500]).block
    block = read_head(written(value), "a").block(first, last)
    assert (len(block), bytes(block.data), block.heads, block.ends) == (last - first, part.data, part.heads, part.ends)


def test_the_bytes_are_neither_copied_when_written_nor_when_read():
    value = many(10, 1000)
    assert encode(value).data is value.block.data
    data = written(value)
    part = read_head(data, "a").block(1002, 1005).data
    assert np.shares_memory(np.frombuffer(part, np.uint8), np.frombuffer(data, np.uint8))


def test_a_part_of_a_block_becomes_a_segment():
    block = segment([(b"1", b"a", b"a"), (b"2", b"bb", b"bb"), (b"3", b"ccc", b"ccc")]).block.slice(1, 3)
    block.ids = [b"2", b"3"]
    value = Segment(source="queue://q", dialect="artemis", first=7, block=block)
    assert facts(value)[3:] == ([b"2", b"3"], b"bbbbcccccc", [2, 7], [4, 10])
    assert facts(read_head(written(value), "a").segment()) == facts(value)


# --- what is not as it was written -------------------------------------------------------------

WHOLE = written(many(7, 60_000))  # 420 KB: two blocks
HEAD = len(encode(many(7, 60_000)).head)
BOUNDS = {
    "empty": 0,
    "magic": 8,
    "format": 12,
    "same in every format": 16,
    "digest": 48,
    "counts": 72,
    "fields": 88,
    "head but one": HEAD - 1,
    "head": HEAD,
    "first block": HEAD + BLOCK,
    "all but one": len(WHOLE) - 1,
}


@pytest.mark.parametrize("size", BOUNDS.values(), ids=BOUNDS.keys())
def test_a_truncated_segment_is_named(size):
    with pytest.raises(CorruptJournalError, match=r"\[JMS_JOURNAL_CORRUPT\] Segment /j/segment-1 "):
        read_head(WHOLE[:size], "/j/segment-1")


@pytest.mark.parametrize("more", [b"\0", b"\n", WHOLE], ids=["NUL", "LF", "twice"])
def test_an_extended_segment_is_named(more):
    with pytest.raises(CorruptJournalError, match="/j/segment-1"):
        read_head(WHOLE + more, "/j/segment-1")


def test_any_altered_byte_of_the_head_is_found():
    for at in range(HEAD):
        for mask in (1, 0x80):
            altered = bytearray(WHOLE)
            altered[at] ^= mask
            with pytest.raises(CorruptJournalError, match="/j/segment-1"):
                read_head(altered, "/j/segment-1")


@pytest.mark.parametrize("at", [HEAD, HEAD + BLOCK - 1, HEAD + BLOCK, len(WHOLE) - 1])
def test_an_altered_byte_of_a_message_is_found_when_it_is_asked_for(at):
    altered = bytearray(WHOLE)
    altered[at] ^= 4
    reader = read_head(altered, "/j/segment-1")
    with pytest.raises(CorruptJournalError, match="/j/segment-1"):
        reader.segment()
    with pytest.raises(CorruptJournalError, match="/j/segment-1"):
        reader.block(1000, 1007)
    untouched = (1006, 1007) if at < HEAD + BLOCK else (1000, 1002)
    assert len(reader.block(*untouched)) == untouched[1] - untouched[0]


def test_an_unknown_format_is_refused_by_its_number():
    front = struct.pack("<8sI", b"JMSSEGM\n", 2)
    newer = front + struct.pack("<I", zlib.crc32(front)) + b"whatever format 2 may say" * 10
    with pytest.raises(UnsupportedError, match=r"/j/segment-1 .*format 2\b.*\b1\b"):
        read_head(newer, "/j/segment-1")


# --- what is not written -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"ids": [b"1"]},
        {"ids": [b"1", None]},
        {"ends": array("q", [5, 99])},
        {"ends": array("q", [9, 5])},
        {"heads": array("q", [7, 8])},
        {"heads": array("q")},
        {"data": b"too short"},
        {"ids": [], "heads": array("q"), "ends": array("q"), "data": b""},
    ],
    ids=",".join,
)
def test_a_segment_that_contradicts_itself_is_not_written(change):
    good = MessageBlock(b"abcdefghij", array("q", [2, 7]), array("q", [5, 10]), [b"1", b"2"])
    facts = {"source": "queue://q", "dialect": "artemis", "first": 0}
    encode(Segment(**facts, block=good))
    with pytest.raises(IllegalStateError):
        encode(Segment(**facts, block=replace(good, **change)))
    with pytest.raises(IllegalStateError):
        encode(Segment(**facts | {"first": -1}, block=good))


def test_sequences_that_are_not_there():
    value = many(3, 10)
    for first, last in [(999, 1001), (1000, 1004), (1002, 1001)]:
        with pytest.raises(IllegalStateError, match=r"\[1000, 1003\)"):
            read_head(written(value), "a").block(first, last)


def test_no_payload_in_a_repr():
    value = segment([(b"id", b"head", b"SECRET")])
    for shown in (value, read_head(written(value), "a")):
        assert "SECRET" not in repr(shown)
        assert "queue://orders" in repr(shown)


# --- every released format stays readable ------------------------------------------------------


def test_golden_segment_of_format_1():
    data = (DATA / "journal-1" / f"segment-{7:019d}").read_bytes()
    value = read_head(data, "golden").segment()
    assert facts(value) == (
        "queue://orders",
        "artemis",
        7,
        [b"11", b"12"],
        b"MESSAGE\nmessage-id:s-11\n\nfour\0\nMESSAGE\nmessage-id:s-12\n\nfive\0\n",
        [23, 54],
        [31, 62],
    )
    assert written(value) == data
