import mmap
from array import array

import pytest
from plain_decoder import block_of, message

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.stomp.columns.frames import FrameBounds

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
