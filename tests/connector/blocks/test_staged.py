import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.block import MessageBlock, index_of, positions_of
from pyspark_jms.blocks.staged import STAGED_BYTES, pack, pieces_of, unpack


def block_of(messages):
    ends, at = [], 0
    for message in messages:
        at += len(message)
        ends.append(at)
    import numpy as np

    return MessageBlock(b"".join(messages), ends=index_of(np.array(ends, np.int64)))


messages = st.lists(st.binary(max_size=40), min_size=1, max_size=20)


@given(messages, st.data())
def test_a_staged_block_is_the_block_that_was_moved(messages, data):
    block = block_of(messages)
    first = data.draw(st.integers(0, len(messages) - 1))
    last = data.draw(st.integers(first + 1, len(messages)))
    staged = unpack(b"".join(pack(block, first, last, source="queue://ä", dialect="artemis")))
    assert (staged.source, staged.dialect) == ("queue://ä", "artemis")
    assert [staged.messages.message(index) for index in range(len(staged))] == messages[first:last]
    assert list(positions_of(staged.messages.ends)) == list(positions_of(block.slice(first, last).ends))


@given(messages, st.data())
def test_bytes_that_are_cut_or_longer_are_refused(messages, data):
    packed = b"".join(pack(block_of(messages), 0, len(messages), source="queue://q", dialect="a"))
    cut = data.draw(st.integers(0, len(packed) - 1))
    for wrong in (packed[:cut], packed + b"x"):
        with pytest.raises(ValueError, match=r"block|bytes|size"):
            unpack(wrong)


@given(st.lists(st.integers(0, 2 * STAGED_BYTES), min_size=1, max_size=60))
def test_pieces_are_all_messages_in_order_below_the_size(sizes):
    block = block_of([b"x" * size for size in sizes])
    pieces = pieces_of(block)
    assert [number for first, last in pieces for number in range(first, last)] == list(range(len(sizes)))
    for first, last in pieces:
        assert last - first == 1 or sum(sizes[first:last]) <= STAGED_BYTES


def test_many_small_messages_are_several_pieces():
    pieces = pieces_of(block_of([b"x"] * 10_000))
    assert [last - first for first, last in pieces] == [4_000, 4_000, 2_000]
