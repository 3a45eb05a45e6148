import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.block import MessageBlock, index_of, positions_of
from pyspark_jms.blocks.staged import (
    STAGED_BYTES,
    compress,
    compressed_share,
    decompress,
    pack,
    pack_all,
    pieces_of,
    unpack,
)


@given(st.binary(max_size=300), st.integers(1, 300))
def test_what_was_compressed_comes_back(data, times):
    assert decompress(compress(memoryview(data * times)), len(data) * times) == data * times


@given(st.binary(min_size=1, max_size=300), st.data())
def test_a_frame_that_is_cut_or_longer_or_of_another_size_is_refused(data, draw):
    frame = compress(data)
    cut = draw.draw(st.integers(0, len(frame) - 1))
    for wrong, size in (
        (frame[:cut], len(data)),
        (frame + b"x", len(data)),
        (frame + frame, len(data)),
        (frame, len(data) - 1),
        (frame, len(data) + 1),
    ):
        with pytest.raises(ValueError, match="frame"):
            decompress(wrong, size)


def test_the_share_tells_what_is_worth_it():
    assert compressed_share(b"customer=1;" * 1_000) < 0.1
    assert 0.99 < compressed_share(os.urandom(10_000)) < 1.01
    assert compressed_share(b"") == 1.0


def test_no_bytes_are_no_frame():
    assert decompress(compress(b""), 0) == b""
    with pytest.raises(ValueError, match="frame"):
        decompress(b"", 0)


def block_of(messages):
    ends, at = [], 0
    for message in messages:
        at += len(message)
        ends.append(at)
    import numpy as np

    return MessageBlock(b"".join(messages), ends=index_of(np.array(ends, np.int64)))


messages = st.lists(st.binary(max_size=40), min_size=1, max_size=20)


@given(messages, st.data(), st.booleans())
def test_a_staged_block_is_the_block_that_was_moved(messages, data, compressed):
    block = block_of(messages)
    first = data.draw(st.integers(0, len(messages) - 1))
    last = data.draw(st.integers(first + 1, len(messages)))
    packed = pack(block, first, last, source="queue://ä", dialect="artemis", compressed=compressed)
    staged = unpack(b"".join(packed))
    assert (staged.source, staged.dialect) == ("queue://ä", "artemis")
    assert [staged.messages.message(index) for index in range(len(staged))] == messages[first:last]
    assert list(positions_of(staged.messages.ends)) == list(positions_of(block.slice(first, last).ends))


@given(messages, st.data(), st.booleans())
def test_bytes_that_are_cut_or_longer_are_refused(messages, data, compressed):
    block = block_of(messages)
    packed = b"".join(pack(block, 0, len(messages), source="queue://q", dialect="a", compressed=compressed))
    cut = data.draw(st.integers(0, len(packed) - 1))
    for wrong in (packed[:cut], packed + b"x"):
        with pytest.raises(ValueError, match=r"block|bytes|size|frame"):
            unpack(wrong)


@given(st.lists(st.integers(0, 2 * STAGED_BYTES), min_size=1, max_size=60))
def test_pieces_are_all_messages_in_order_below_the_size(sizes):
    block = block_of([b"x" * size for size in sizes])
    pieces = pieces_of(block, STAGED_BYTES)
    assert [number for first, last in pieces for number in range(first, last)] == list(range(len(sizes)))
    for first, last in pieces:
        assert last - first == 1 or sum(sizes[first:last]) <= STAGED_BYTES


def test_many_small_messages_are_several_pieces():
    pieces = pieces_of(block_of([b"x"] * 10_000), STAGED_BYTES)
    assert [last - first for first, last in pieces] == [4_000, 4_000, 2_000]


def staged(block):
    """Bytes of each staged block, and the messages of all as they come back."""
    packed = list(pack_all(block, source="queue://q", dialect="a"))
    assert [number for first, last, _ in packed for number in range(first, last)] == list(range(len(block)))
    blocks = [unpack(b"".join(pieces)).messages for _, _, pieces in packed]
    return [len(data) for _, _, (_, data) in packed], [each.message(at) for each in blocks for at in range(len(each))]


def order(number):
    """1 KB of a text that LZ4 halves."""
    numbers = random.Random(number)
    return "".join(
        f'{{"article": {numbers.randrange(10**7)}, "amount": {numbers.random():.4f}}}, ' for _ in range(25)
    ).encode()


def test_messages_with_much_in_common_are_fewer_blocks():
    messages = [order(number) for number in range(1_000)]
    sizes, found = staged(block_of(messages))
    assert found == messages
    assert max(sizes) <= STAGED_BYTES
    assert sum(sizes) < 0.6 * sum(map(len, messages))
    assert len(sizes) < 0.7 * sum(map(len, messages)) / STAGED_BYTES


def test_messages_that_cannot_be_compressed_are_staged_as_they_are():
    messages = [os.urandom(1_000) for _ in range(200)]
    block = block_of(messages)
    packed = list(pack_all(block, source="queue://q", dialect="a"))
    assert [bytes(data) for _, _, (_, data) in packed] == [
        block.data[block.start(first) : block.start(last)] for first, last, _ in packed
    ]
    assert staged(block)[1] == messages


def test_the_first_messages_may_promise_too_much():
    messages = [b"x" * 1_000] * 80 + [os.urandom(1_000) for _ in range(500)] + [b"y" * 1_000] * 400
    sizes, found = staged(block_of(messages))
    assert found == messages
    assert max(sizes) <= STAGED_BYTES


@pytest.mark.parametrize("size", [90_000, 300_000, 5_000_000])
def test_a_large_message_between_small_ones(size):
    for large in (os.urandom(size), b"x" * size):
        messages = [b"x" * 1_000] * 80 + [large] + [b"x" * 1_000] * 80
        assert staged(block_of(messages))[1] == messages


def test_a_compressed_block_has_a_limit():
    messages = [b"x" * 1_000] * 1_000
    packed = b"".join(pack(block_of(messages), 0, 1_000, source="queue://q", dialect="a", compressed=True))
    with pytest.raises(ValueError, match="larger than such a block may be"):
        unpack(packed)


@pytest.mark.parametrize(
    "stored",
    [
        b"jms1\0\0\0\2\0\x09\0\7queue://qartemis\0\0\0\x50\0\0\0\x50" + b"one " * 20 + b"two " * 20,
        bytes.fromhex(
            "6a6d7332000000020009000771756575653a2f2f71617274656d6973000000500000005004224d18604082"
            "150000004f6f6e65200400393f74776f040035502074776f2000000000"
        ),
    ],
    ids=["plain", "compressed"],
)
def test_what_an_earlier_release_left_is_read(stored):
    staged = unpack(stored)
    assert (staged.source, staged.dialect, len(staged)) == ("queue://q", "artemis", 2)
    assert [staged.messages.message(index) for index in range(2)] == [b"one " * 20, b"two " * 20]
