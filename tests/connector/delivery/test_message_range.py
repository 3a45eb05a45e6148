from collections import deque
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_broker import numbers, run

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.delivery.message_range import Backlog, Batch, Bounds, MessageRange
from pyspark_jms.delivery.states import MessageState


def test_a_range_knows_its_part_of_the_block():
    range_ = MessageRange(3, run(1, 4, 5, 6), 1, 3)
    assert (len(range_), range_.size, numbers(range_.messages().data)) == (2, 20, [5, 6])
    assert range_.ids == [b"1,5", b"1,6"]
    assert MessageRange(3, run(1, 4, 5, 6), 0, 1).messages().data == run(1, 4).data


def test_an_id_that_is_written_into_the_block_is_the_ranges():
    range_ = MessageRange(3, run(1, 4, 5, 6), 1, 3)
    range_.block.ids[2] = b"2,6"
    assert range_.split(1)[1].ids == [b"2,6"]


@pytest.mark.parametrize(("size", "messages", "fits"), [(9, None, 1), (19, None, 1), (20, None, 2), (99, 1, 1)])
def test_fits_its_own_messages_and_no_others(size, messages, fits):
    assert MessageRange(3, run(1, 4, 5, 6, 7), 1, 3).fit(size=size, messages=messages, at_least_one=True) == fits


def test_what_is_split_stays_in_the_same_state():
    one, two = MessageRange(3, run(1, 4, 5, 6), 1, 3, MessageState.OFFERED).split(1)
    assert (one.first, one.last, two.first, two.last) == (1, 2, 2, 3)
    assert (one.subscription, two.subscription) == (3, 3)
    assert one.state is two.state is MessageState.OFFERED
    assert MessageRange(0, run(1, 4), 0, 1).state is MessageState.RECEIVED


def test_a_batch_is_its_ranges():
    range_ = MessageRange(0, run(1, 4, 5), 0, 2)
    assert Batch(10, 12, (range_,)).ranges == (range_,)


def test_a_message_that_moved_is_another_subscription_s():
    range_ = MessageRange(0, run(1, 4, 5, 6), 1, 3)
    assert (list(range_.of_subscription(0)), list(range_.of_subscription(2))) == ([1, 2], [])
    range_.bind(2, b"9,6", 2)
    assert (list(range_.of_subscription(0)), list(range_.of_subscription(2)), range_.own_ids) == ([1], [2], [b"1,5"])
    range_.bind(2, b"1,7", 0)
    assert (list(range_.of_subscription(0)), list(range_.of_subscription(2)), range_.own_ids) == (
        [1, 2],
        [],
        [b"1,5", b"1,7"],
    )


# --- what waits for a batch --------------------------------------------------------------------------


def backlog(*blocks):
    """Of blocks of messages with these lengths."""
    made = Backlog()
    for lengths in blocks:
        block = MessageBlock(ends=index_of(np.cumsum(lengths, dtype=np.int64)))
        made.add(MessageRange(0, block, 0, len(block)))
    return made


def take(made, max_messages=None, max_bytes=None):
    sizes = [
        range_.block.ends[at] - range_.block.start(at)
        for range_ in made.take(Bounds(max_messages, max_bytes))
        for at in range(range_.first, range_.last)
    ]
    return list(accumulate(sizes))


def test_nothing_waits():
    made = backlog([])
    assert (made.messages, made.size, take(made), take(made, 5, 5)) == (0, 0, [], [])


def test_blocks_are_one_after_the_other():
    made = backlog([3, 4], [5], [6, 7])
    assert (made.messages, made.size) == (5, 25)
    assert take(made, max_messages=4) == [3, 7, 12, 18]
    assert (made.messages, made.size) == (1, 7)
    assert take(made) == [7]


@pytest.mark.parametrize(("most", "taken"), [(1, [10]), (10, [10]), (11, [10]), (12, [10, 12]), (99, [10, 12, 15])])
def test_the_first_fits_always(most, taken):
    assert take(backlog([10, 2], [3]), max_bytes=most) == taken


@given(
    st.lists(st.lists(st.integers(1, 50), max_size=8), max_size=8),
    st.lists(st.tuples(st.none() | st.integers(1, 9), st.none() | st.integers(1, 120)), max_size=20),
)
def test_takes_what_a_list_of_lengths_would_give(blocks, limits):
    made, waiting = backlog(*blocks), [length for lengths in blocks for length in lengths]
    for max_messages, max_bytes in limits:
        ends = list(accumulate(waiting))
        fits = len(ends) if max_messages is None else min(len(ends), max_messages)
        if max_bytes is not None:
            fits = min(fits, sum(end <= max_bytes for end in ends))
        fits = max(fits, min(1, len(ends)))
        assert take(made, max_messages, max_bytes) == ends[:fits]
        waiting = waiting[fits:]
        assert (made.messages, made.size) == (len(waiting), sum(waiting))


def test_bounds_go_on_with_the_next_queue_and_end_at_what_they_leave_out():
    bounds, one, two = Bounds(4, None), deque([MessageRange(0, run(1, 4, 5), 0, 2)]), deque()
    assert ([len(each) for each in bounds.take(one)], bounds.take(two), bounds.messages) == ([2], [], 2)
    two.append(MessageRange(1, run(2, 4, 5, 6), 0, 3))
    assert ([len(each) for each in bounds.take(two)], bounds.is_used_up, len(two[0])) == ([2], True, 1)
    assert Bounds(None, 5, at_least_one=False).take(two) == [], "the first one is too large"


def test_what_is_forgotten_does_not_wait():
    made = Backlog()
    for subscription in (0, 1, 0):
        made.add(MessageRange(subscription, run(1, 4, 5), 0, 2))
    assert ([each.subscription for each in made.forget(0)], made.messages, made.size) == ([0, 0], 2, 20)
    assert [each.subscription for each in made.take(Bounds(None, None))] == [1]
