from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.delivery.backlog import Backlog


def backlog(*blocks):
    """Of blocks of messages with these lengths."""
    made = Backlog()
    for lengths in blocks:
        made.add(np.cumsum(lengths, dtype=np.int64))
    return made


def take(made, max_messages=None, max_bytes=None):
    return made.take(max_messages=max_messages, max_bytes=max_bytes).tolist()


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
