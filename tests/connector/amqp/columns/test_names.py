"""Keys of maps as numbers."""

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.compound_cursor import Entry, Field
from pyspark_jms.amqp.columns.names import names_of
from pyspark_jms.amqp.columns.refusals import Refusals

READER = ByteReader(pa.py_buffer(b"abcab\xff"))
FIELD = Field(np.array([0, 1, 2]), 0x40, np.zeros(3, np.int64), np.zeros(3, np.int64))


def entry(starts, stops):
    return Entry(FIELD, None, np.array(starts), np.array(stops))


def test_each_name_has_one_number():
    names = names_of(READER, [Entry(FIELD, b"ab"), entry([0, 1, 3], [2, 3, 5])], Refusals())
    assert names.texts().to_pylist() == ["ab", "bc"]
    assert (names.codes[0], names.codes[1].tolist()) == (0, [0, 1, 0])
    assert (names.number("new"), len(names)) == (2, 3)


def test_names_that_are_not_utf8_are_refused_all_at_once():
    """They have another name instead."""
    refusals = Refusals()
    names = names_of(READER, [entry([0, 4, 0], [1, 6, 1]), entry([0, 0, 5], [1, 1, 6])], refusals)
    assert refusals.rows().tolist() == [1, 2]
    assert [names.texts().take(pa.array(codes)).to_pylist() for codes in names.codes] == [
        ["a", "", "a"],
        ["a", "a", ""],
    ]
    names = names_of(READER, [Entry(FIELD, b"\xff")], refusals)
    assert (refusals.rows().tolist(), names.texts().to_pylist(), names.codes) == ([0, 1, 2], [""], [0])
