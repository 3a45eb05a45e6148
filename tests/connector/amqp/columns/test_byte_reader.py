"""Constructors and sizes at many positions: the same ends as one value at a time."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import Messages, int_, list_, map_, string

from pyspark_jms.amqp.columns.byte_reader import (
    LIST_CODES,
    MAP_CODES,
    STRIP,
    ByteReader,
    CachedCursor,
    Refusals,
    TooNearTheEndError,
    pick,
)
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


DATA = np.random.default_rng(1).integers(0, 256, 1000).astype(np.uint8).tobytes()
READER = ByteReader(pa.py_buffer(DATA))
MOST = STRIP - 8
"""The bytes of a strip that ``constant`` looks at."""


def words_at(places):
    return [int.from_bytes(DATA[place : place + 8], "little", signed=True) for place in places]


def test_words_at_every_step():
    """Steps of all rows alike, longer than a strip too, and of each row its own; near the end of the block."""
    heads, places = CachedCursor(READER, np.array([0, 300, 650])), np.array([0, 300, 650])
    for step in (1, 7, STRIP - 8, 3, 5, 100, None, 2, 40):
        assert heads.words().tolist() == words_at(places)
        assert heads.words(20).tolist() == words_at(places + 20)
        assert heads.ahead(9).tolist() == (places + 9).tolist()
        places = places + (np.array([3, 1, 4]) if step is None else step)
        if step is None:
            heads.move(places)
        else:
            heads.step(step)
    assert heads.at.tolist() == places.tolist()


def test_words_far_ahead():
    heads = CachedCursor(READER, np.array([0, 10]))
    for ahead in (STRIP - 8, STRIP - 7, 3 * STRIP, 0):
        assert heads.words(ahead).tolist() == words_at([ahead, ahead + 10])


def test_some_of_the_rows():
    heads = CachedCursor(READER, np.array([0, 10, 20]))
    heads.words()
    heads.keep(np.array([True, False, True]))
    assert (len(heads), heads.words().tolist()) == (2, words_at([0, 20]))


def test_the_end_of_the_block():
    assert CachedCursor(READER, np.array([990])).words().tolist() == words_at([990])
    with pytest.raises(TooNearTheEndError):
        CachedCursor(READER, np.array([995])).words()


@pytest.mark.parametrize("rows", [1, 2, 64, 65, 200])
def test_bytes_that_all_rows_have(rows):
    """One byte differs, in the last row: only what holds it is not constant."""
    each = bytearray(range(120)) * rows
    different = len(each) - 120 + 20
    each[different] += rows > 1
    reader = ByteReader(pa.py_buffer(bytes(each) + bytes(STRIP)))
    heads = CachedCursor(reader, np.arange(rows) * 120)
    assert heads.constant(20) == bytes(range(20))
    assert heads.constant(21) == (bytes(range(21)) if rows == 1 else None)
    heads.step(21)
    assert heads.constant(MOST - 21) == bytes(range(21, MOST))
    assert heads.constant(MOST) == bytes(range(21, MOST + 21))
    assert heads.constant(MOST + 1) is None


def test_what_is_covered_can_be_stepped_over():
    """A word can be read after it, without a check that the block has so many bytes."""
    heads = CachedCursor(READER, np.array([0, 1000 - STRIP]))
    assert not heads.covers(0)
    heads.words()
    assert (heads.covers(MOST), heads.covers(MOST + 1)) == (True, False)
    heads.step(MOST)
    assert heads.words().tolist() == words_at([MOST, 1000 - 8])


def test_near_the_end_of_the_block_nothing_is_known_to_be_constant():
    assert CachedCursor(READER, np.array([0, 1000 - STRIP + 1])).constant(1) is None


def test_each_refused_row_is_there_once():
    refusals, rows = Refusals(), np.array([3, 4])
    refusals.add(rows[:0])
    refusals.add_where(rows, np.array([False, False]))
    assert refusals.rows().tolist() == []
    refusals.add_where(rows, np.array([False, True]))
    refusals.add_where(rows, np.bool_(True))
    refusals.add(np.array([1]))
    assert refusals.rows().tolist() == [1, 3, 4]
