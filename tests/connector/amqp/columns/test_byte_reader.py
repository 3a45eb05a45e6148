"""Constructors and sizes at many positions: the same ends as one value at a time."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import Messages, int_, list_, map_, string

from pyspark_jms.amqp.columns.byte_reader import LIST_CODES, MAP_CODES, ByteReader, TooNearTheEndError, pick
from pyspark_jms.amqp.wire.sections import MalformedMessageError, skip


def laid_out(values):
    """The values one after the other with zeros after them, their positions, and the end of each."""
    ends = np.cumsum([len(value) for value in values])
    return ByteReader(pa.py_buffer(b"".join(values) + bytes(136))), ends - [len(value) for value in values], ends


@pytest.mark.parametrize("limit", [0, -1])
def test_values_end_where_one_value_at_a_time_does(limit):
    makes = Messages(1, 0.2)
    values = [value for value in (makes.value(element=True) for _ in range(500)) if value[0]]
    reader, at, ends = laid_out(values)
    found = reader.values(at, ends + limit)
    for value, place, stop, bad in zip(values, at, found.stop, found.bad, strict=True):
        try:
            assert skip(value, 0, len(value) + limit) == stop - place
            assert not bad
        except MalformedMessageError:
            assert bad


@pytest.mark.parametrize("value", [int_(5), string("abc"), string("x" * 300), b"\x40", b"\x98" + bytes(16)])
def test_values_of_one_constructor(value):
    """One number for them all; the same positions as in a mixture."""
    reader, at, ends = laid_out([value, value])
    found = reader.values(at, ends)
    assert found.code == value[0]
    assert (found.stop.tolist(), found.bad.tolist()) == (ends.tolist(), [False, False])
    assert reader.values(at, ends - 1).bad.all()
    mixed = reader.values(np.append(at, ends[-1:]), np.append(ends, ends[-1:]))  # a zero byte is no constructor
    assert (mixed.start[:2].tolist(), mixed.stop[:2].tolist()) == (found.start.tolist(), found.stop.tolist())
    assert mixed.bad.tolist() == [False, False, True]


def test_lists_and_maps():
    values = [list_(int_(1), int_(2)), b"\x45", list_(int_(3), wide=True), map_([(string("k"), int_(1))]), int_(7)]
    reader, at, ends = laid_out(values)
    found = reader.compounds(at, ends, LIST_CODES)
    assert found.bad.tolist() == [False, False, False, True, True]
    assert (found.counts[:3].tolist(), found.end[:3].tolist()) == ([2, 0, 1], ends[:3].tolist())
    assert reader.compounds(at, ends, MAP_CODES).bad.tolist() == [True, True, True, False, True]


@pytest.mark.parametrize(
    "value", [b"\xc0\x01\x05", b"\xd0\0\0\0\x04\xff\xff\xff\xff", b"\xc0\x00", b"\xd0\0\0\0\x02\0\0\0\0"]
)
def test_a_count_or_size_that_cannot_be_true_is_bad(value):
    reader, at, ends = laid_out([value])
    assert reader.compounds(at, ends, LIST_CODES).bad.all()


def test_a_word_beyond_the_block_needs_padding():
    reader = ByteReader(pa.py_buffer(b"12345678"))
    assert reader.words(np.array([0])).tolist() == [int.from_bytes(b"12345678", "little")]
    with pytest.raises(TooNearTheEndError):
        reader.words(np.array([1]))
    assert reader.padded().words(np.array([7])).tolist() == [ord("8")]


def test_steps_are_known_where_all_values_are_equally_long():
    for values, step in (([string("ab")] * 2, 4), ([string("ab"), string("c")], None), ([int_(1), b"\x40"], None)):
        reader, at, ends = laid_out(values)
        assert reader.values(at, ends).step == step


def test_numbers_are_big_endian():
    reader, _, _ = laid_out([b"\x71\xff\xff\xff\xfe"])
    assert reader.numbers(0x71, np.array([1])).tolist() == [-2]


def test_pick():
    assert pick(5, np.array([True])) == 5
    assert pick(np.array([1, 2]), np.array([False, True])).tolist() == [2]
