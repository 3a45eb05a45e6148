import pickle
from array import array
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.block import MessageBlock, PartitionSlice, fit, index_of, part_starts, positions_of

MESSAGES = st.lists(st.tuples(st.binary(max_size=5), st.binary(max_size=9)), max_size=8)


def block_of(messages):
    """Of (head, rest) each."""
    block = MessageBlock(ids=[b"%d" % n for n in range(len(messages))])
    for head, rest in messages:
        block.heads.append(len(block.data) + len(head))
        block.data += head + rest
        block.ends.append(len(block.data))
    return block


def reported(block):
    return len(block), bytes(block.data), list(block.heads), list(block.ends)


@given(MESSAGES, st.data())
def test_a_slice_is_a_block_of_those_messages(messages, data):
    block = block_of(messages)
    first = data.draw(st.integers(0, len(messages)))
    last = data.draw(st.integers(first, len(messages)))
    assert reported(block.slice(first, last)) == reported(block_of(messages[first:last]))


@given(MESSAGES)
def test_messages_one_by_one(messages):
    block = block_of(messages)
    assert [block.message(index) for index in range(len(block))] == [head + rest for head, rest in messages]
    assert [block.start(index) for index in range(len(block))] == [0, *block.ends][: len(block)]


def test_a_slice_shares_the_bytes_and_has_no_ids():
    block = block_of([(b"a", b"bc"), (b"de", b"f")])
    part = block.slice(1, 2)
    assert np.shares_memory(np.frombuffer(part.data, np.uint8), np.frombuffer(block.data, np.uint8))
    assert part.ids == []


def test_a_protocol_may_leave_out_the_heads():
    block = MessageBlock(b"abcd", ends=array("q", [1, 4]))
    assert reported(block.slice(1, 2)) == (1, b"bcd", [], [3])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_travels_with_what_it_shows_and_no_more(kind):
    whole = MessageBlock(kind(b"secret" * 1000 + b"abc"), array("q", [1, 6001]), array("q", [6000, 6003]), [b"1", None])
    assert reported(pickle.loads(pickle.dumps(whole))) == reported(whole)
    assert pickle.loads(pickle.dumps(whole)).ids == [b"1", None]
    part = pickle.dumps(whole.slice(1, 2))
    assert b"secret" not in part
    assert reported(pickle.loads(part)) == (1, b"abc", [1], [3])


def test_grows_and_is_at_hand():
    block = MessageBlock()
    assert reported(block) == (0, b"", [], [])
    block.data += b"abc"
    block.ends.append(3)
    assert (len(block), block.message(0)) == (1, b"abc")
    assert block.load() is block


def test_no_payload_in_a_repr():
    assert repr(block_of([(b"SECRET", b"")])) == "MessageBlock(messages=1, bytes=6)"


def test_an_index_as_an_array_of_numpy_and_back():
    index = array("q", [-1, 5, 2**62])
    assert positions_of(index).tolist() == [-1, 5, 2**62]
    assert index_of(positions_of(index)) == index
    assert index_of(positions_of(array("q"))) == array("q")


ENDS = array("q", [10, 12, 15, 115])
SIZES = st.lists(st.integers(0, 50), max_size=12)


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        ({}, 4),
        ({"size": 9}, 0),
        ({"size": 9, "at_least_one": True}, 1),
        ({"size": 12}, 2),
        ({"size": 114}, 3),
        ({"size": 115}, 4),
        ({"size": -1}, 0),
        ({"first": 1, "size": 5}, 2),
        ({"first": 1, "last": 2, "size": 99}, 1),
        ({"first": 3, "size": 99, "at_least_one": True}, 1),
        ({"first": 2, "last": 2, "at_least_one": True}, 0),
        ({"messages": 3}, 3),
        ({"messages": 3, "size": 12}, 2),
        ({"messages": 0}, 0),
        ({"messages": -1}, 0),
        ({"messages": 9, "first": 2}, 2),
    ],
)
@pytest.mark.parametrize("kind", [lambda ends: ends, np.array], ids=["array", "numpy"])
def test_how_many_fit(limits, fits, kind):
    found = fit(kind(ENDS), **limits)
    assert (found, type(found)) == (fits, int)


@given(SIZES, st.integers(0, 120), st.data())
def test_fits_as_many_as_a_sum_says(sizes, room, data):
    first = data.draw(st.integers(0, len(sizes)))
    last = data.draw(st.integers(first, len(sizes)))
    most = sum(total <= room for total in accumulate(sizes[first:last]))
    ends = array("q", accumulate(sizes))
    assert fit(ends, first, last, size=room) == most
    assert fit(ends, first, last, size=room, at_least_one=True) == max(most, min(1, last - first))


@given(SIZES, st.integers(1, 120))
def test_parts_are_as_large_as_may_be(sizes, room):
    bounds = [0, *part_starts(array("q", accumulate(sizes)), room), len(sizes)]
    assert bounds == sorted(bounds)
    for first, last in pairwise(bounds):
        assert sum(sizes[first:last]) <= room or last == first + 1
        assert last == len(sizes) or sum(sizes[first : last + 1]) > room


def test_nothing_is_not_cut():
    assert part_starts(array("q"), 5) == []


BLOCK = MessageBlock(b"onetwo", array("q", [1, 4]), array("q", [3, 6]))


class Elsewhere:
    """A place of two messages that are not at hand."""

    def __len__(self):
        return 2

    def load(self):
        return BLOCK


def test_its_messages_may_be_elsewhere():
    part = PartitionSlice("queue://q", "artemis", 7, Elsewhere())
    assert len(part) == 2
    assert part.load() == PartitionSlice("queue://q", "artemis", 7, BLOCK)


def test_travels_and_shows_no_payload():
    part = PartitionSlice("queue://q", "artemis", 7, BLOCK.slice(1, 2))
    assert "two" not in repr(part)
    assert pickle.loads(pickle.dumps(part)).place.message(0) == b"two"
