"""Entries step by step → entries row by row."""

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.compound_cursor import Field
from pyspark_jms.amqp.columns.flattened_entries import flatten, repeated


def field(rows, code, start):
    return Field(np.array(rows), code, np.array(start), np.array(start) + 1)


def test_rows_with_the_same_entries():
    flat = flatten([field([0, 1], 0x40, [0, 10]), field([0, 1], 0x41, [5, 15])], [7, 8], 2)
    assert (flat.offsets.tolist(), flat.start.tolist(), flat.stop.tolist()) == (
        [0, 2, 4],
        [0, 5, 10, 15],
        [1, 6, 11, 16],
    )
    assert (list(flat.code), list(flat.name), flat.constructors()) == ([0x40, 0x41], [7, 8], {0x40, 0x41})
    assert [flat.places_of(*codes).tolist() for codes in ([0x41], [0x41, 0x40], [0x42])] == [[1, 3], [0, 1, 2, 3], []]
    assert flat.pick_each(pa.array(list("abcdefghi")), flat.name).to_pylist() == ["h", "i", "h", "i"]
    assert flat.row_of_each().tolist() == [0, 0, 1, 1]


def test_rows_with_different_entries():
    flat = flatten([field([0, 2], np.array([1, 2]), [0, 20]), field([2], 3, [21])], [0, np.array([1])], 3)
    assert (flat.offsets.tolist(), flat.start.tolist()) == ([0, 1, 1, 3], [0, 20, 21])
    assert (flat.code.tolist(), flat.name.tolist()) == ([1, 2, 3], [0, 0, 1])
    assert (flat.constructors(), flat.places_of(3, 1).tolist()) == ({1, 2, 3}, [0, 2])
    assert flat.pick_each(pa.array(["a", "b"]), flat.name).to_pylist() == ["a", "a", "b"]


def test_no_entries():
    flat = flatten([], [], 2)
    assert (len(flat), flat.offsets.tolist(), flat.rows_with_a_name_twice(0).tolist()) == (0, [0, 0, 0], [])


def test_a_name_twice():
    every, some = field([0, 1], 1, [0, 10]), field([1], 1, [11])
    assert flatten([every, every], [0, 0], 2).rows_with_a_name_twice(1).tolist() == [0, 1]
    assert flatten([every, every], [0, 1], 2).rows_with_a_name_twice(2).tolist() == []
    assert flatten([every, some], [0, 0], 2).rows_with_a_name_twice(1).tolist() == [1]


def test_repeated():
    for times in range(6):
        assert repeated(pa.array(["a", "b"]), times).to_pylist() == ["a", "b"] * times
