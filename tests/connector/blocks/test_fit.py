from array import array
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.fit import cuts, fit

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
    bounds = [0, *cuts(array("q", accumulate(sizes)), room), len(sizes)]
    assert bounds == sorted(bounds)
    for first, last in pairwise(bounds):
        assert sum(sizes[first:last]) <= room or last == first + 1
        assert last == len(sizes) or sum(sizes[first : last + 1]) > room


def test_nothing_is_not_cut():
    assert cuts(array("q"), 5) == []
