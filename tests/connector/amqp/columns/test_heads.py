"""Positions that move on, with and without the bytes that were read before."""

import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.amqp.columns.byte_reader import STRIP, ByteReader, TooNearTheEndError
from pyspark_jms.amqp.columns.heads import Heads

DATA = np.random.default_rng(1).integers(0, 256, 1000).astype(np.uint8).tobytes()
READER = ByteReader(pa.py_buffer(DATA))


def words_at(places):
    return [int.from_bytes(DATA[place : place + 8], "little", signed=True) for place in places]


def test_words_at_every_step():
    """Steps of all rows alike, longer than a strip too, and of each row its own; near the end of the block."""
    heads, places = Heads(READER, np.array([0, 300, 650])), np.array([0, 300, 650])
    for step in (1, 7, STRIP - 8, 3, 5, 100, None, 2, 40):
        assert heads.words().tolist() == words_at(places)
        assert heads.words(20).tolist() == words_at(places + 20)
        places = places + (np.array([3, 1, 4]) if step is None else step)
        heads.move(places, step)
    assert heads.at.tolist() == places.tolist()


def test_words_far_ahead():
    heads = Heads(READER, np.array([0, 10]))
    for ahead in (STRIP - 8, STRIP - 7, 3 * STRIP, 0):
        assert heads.words(ahead).tolist() == words_at([ahead, ahead + 10])


def test_some_of_the_rows():
    heads = Heads(READER, np.array([0, 10, 20]))
    heads.words()
    heads.keep(np.array([True, False, True]))
    assert (len(heads), heads.words().tolist()) == (2, words_at([0, 20]))


def test_the_end_of_the_block():
    assert Heads(READER, np.array([990])).words().tolist() == words_at([990])
    with pytest.raises(TooNearTheEndError):
        Heads(READER, np.array([995])).words()


@pytest.mark.parametrize("rows", [1, 2, 64, 65, 200])
def test_bytes_that_all_rows_have(rows):
    """One byte differs, in the last row: only what holds it is not constant."""
    each = bytearray(range(80)) * rows
    different = len(each) - 80 + 20
    each[different] += rows > 1
    reader = ByteReader(pa.py_buffer(bytes(each) + bytes(STRIP)))
    heads = Heads(reader, np.arange(rows) * 80)
    assert heads.constant(20) == bytes(range(20))
    assert heads.constant(21) == (bytes(range(21)) if rows == 1 else None)
    heads.move(heads.at + 21, 21)
    assert heads.constant(STRIP - 21) == bytes(range(21, STRIP))
    assert heads.constant(STRIP - 10) == bytes(range(21, STRIP + 11))
    assert heads.constant(STRIP + 1) is None


def test_near_the_end_of_the_block_nothing_is_known_to_be_constant():
    assert Heads(READER, np.array([0, 1000 - STRIP + 1])).constant(1) is None
