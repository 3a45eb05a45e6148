"""Positions that move on, with and without the bytes that were read before."""

import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.amqp.columns.byte_reader import STRIP, ByteReader, TooNearTheEndError
from pyspark_jms.amqp.columns.cached_cursor import CachedCursor

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
