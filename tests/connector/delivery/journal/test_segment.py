import struct
import zlib
from array import array
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.delivery.journal.segment import Segment, encode, read_head
from pyspark_jms.errors import CorruptJournalError, IllegalStateError, UnsupportedError
from pyspark_jms.stomp.wire.scan import FrameRun

DATA = Path(__file__).parent / "data"
BLOCK = 256 << 10


def segment(messages, first=0, source="queue://orders", dialect="artemis"):
    """Of (id, head, body) each."""
    octets, heads, ends = bytearray(), array("q"), array("q")
    for _, head, body in messages:
        heads.append(len(octets) + len(head))
        octets += head + body
        ends.append(len(octets))
    return Segment(
        source=source,
        dialect=dialect,
        first=first,
        ids=[identifier for identifier, _, _ in messages],
        octets=bytes(octets),
        heads=np.frombuffer(heads, np.int64),
        ends=np.frombuffer(ends, np.int64),
    )


def many(count, size):
    return segment([(b"%d" % n, b"head%d" % n, bytes([n % 251]) * size) for n in range(count)], first=1000)


def written(value):
    return b"".join(bytes(part) for part in encode(value))


def facts(value):
    return (
        value.source,
        value.dialect,
        value.first,
        list(value.ids),
        bytes(value.octets),
        value.heads.tolist(),
        value.ends.tolist(),
    )


MESSAGES = st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=30), st.binary(max_size=60)), min_size=1)


@given(MESSAGES, st.integers(0, 2**62), st.text(max_size=20), st.sampled_from(["artemis", "classic"]))
def test_what_was_written_is_read(messages, first, source, dialect):
    value = segment(messages, first, source.encode("utf-8", "replace").decode(), dialect)
    head = read_head(written(value), "a")
    assert facts(head.segment()) == facts(value)
    assert (head.last, head.octets, head.digest) == (value.last, len(value.octets), encode(value).digest)


@given(MESSAGES, st.data())
def test_a_stretch_is_that_part_and_nothing_else(messages, data):
    value = segment(messages, 500)
    first = data.draw(st.integers(500, value.last))
    last = data.draw(st.integers(first, value.last))
    part = segment(messages[first - 500 : last - 500] or [(b"", b"", b"")], first)
    for stretch in (value.stretch(first, last), read_head(written(value), "a").stretch(first, last)):
        assert (stretch.source, stretch.dialect, stretch.first, len(stretch)) == (
            value.source,
            value.dialect,
            first,
            last - first,
        )
        assert bytes(stretch.octets) == part.octets
        assert stretch.heads.tolist() == part.heads.tolist()[: last - first]
        assert stretch.ends.tolist() == part.ends.tolist()[: last - first]


def test_the_bytes_are_neither_copied_when_written_nor_when_read():
    value = many(10, 1000)
    assert encode(value).octets is value.octets
    assert np.shares_memory(
        np.frombuffer(value.stretch(1002, 1005).octets, np.uint8), np.frombuffer(value.octets, np.uint8)
    )
    data = written(value)
    octets = read_head(data, "a").stretch(1002, 1005).octets
    assert np.shares_memory(np.frombuffer(octets, np.uint8), np.frombuffer(data, np.uint8))


def test_a_part_of_a_run_becomes_a_segment():
    run = FrameRun(bytearray(b"aabbbbcccccc"), array("q", [1, 4, 9]), array("q", [2, 6, 12]), [b"1", b"2", b"3"])
    value = Segment.of_run(
        run,
        1,
        3,
        source="queue://q",
        dialect="artemis",
        first=7,
        ids=[b"2", b"3"],
    )
    assert facts(value)[4:] == (b"bbbbcccccc", [2, 7], [4, 10])
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
    head = read_head(altered, "/j/segment-1")
    with pytest.raises(CorruptJournalError, match="/j/segment-1"):
        head.segment()
    with pytest.raises(CorruptJournalError, match="/j/segment-1"):
        head.stretch(1000, 1007)
    untouched = (1006, 1007) if at < HEAD + BLOCK else (1000, 1002)
    assert len(head.stretch(*untouched)) == untouched[1] - untouched[0]


def test_zeroed_tail_is_found():
    with pytest.raises(CorruptJournalError):
        read_head(WHOLE[:-5000] + bytes(5000), "a").verify()


def test_an_unknown_format_is_refused_by_its_number():
    front = struct.pack("<8sI", b"JMSSEGM\n", 2)
    newer = front + struct.pack("<I", zlib.crc32(front)) + b"whatever format 2 may say" * 10
    with pytest.raises(UnsupportedError, match=r"Segment /j/segment-1 is of format 2; .* up to 1"):
        read_head(newer, "/j/segment-1")


# --- what is not written -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"ids": [b"1"]},
        {"ends": np.array([5, 99])},
        {"ends": np.array([9, 5])},
        {"heads": np.array([7, 8])},
        {"octets": b"too short"},
        {"first": -1},
        {"ids": [], "heads": np.array([], np.int64), "ends": np.array([], np.int64), "octets": b""},
    ],
    ids=",".join,
)
def test_a_segment_that_contradicts_itself_is_not_written(change):
    good = {
        "source": "queue://q",
        "dialect": "artemis",
        "first": 0,
        "ids": [b"1", b"2"],
        "octets": b"abcdefghij",
        "heads": np.array([2, 7]),
        "ends": np.array([5, 10]),
    }
    encode(Segment(**good))
    with pytest.raises(IllegalStateError):
        encode(Segment(**(good | change)))


def test_sequences_that_are_not_there():
    value = many(3, 10)
    for first, last in [(999, 1001), (1000, 1004), (1002, 1001)]:
        with pytest.raises(IllegalStateError, match=r"\[1000, 1003\)"):
            value.stretch(first, last)
        with pytest.raises(IllegalStateError, match=r"\[1000, 1003\)"):
            read_head(written(value), "a").stretch(first, last)


def test_no_payload_in_a_repr():
    value = segment([(b"id", b"head", b"SECRET")])
    for shown in (value, value.stretch(0, 1), read_head(written(value), "a")):
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
