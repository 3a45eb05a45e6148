"""Cursors in lists and maps of different lengths."""

import numpy as np
import pyarrow as pa
from amqp_messages import NULL, int_, list_, map_, string, symbol

from pyspark_jms.amqp.columns.byte_reader import LIST_CODES, MAP_CODES, STR8, STR32, ByteReader
from pyspark_jms.amqp.columns.cached_cursor import CachedCursor
from pyspark_jms.amqp.columns.compound_cursor import CompoundCursor


def inside(values, codes):
    ends = np.cumsum([len(value) for value in values])
    at = ends - [len(value) for value in values]
    reader, bad = ByteReader(pa.py_buffer(b"".join(values) + bytes(136))), np.zeros(len(values), np.bool_)
    found = reader.compounds(at, ends, codes)
    return CompoundCursor(reader, bad, np.arange(len(values)), found, CachedCursor(reader, found.first)), bad


def test_elements_step_by_step():
    cursors, bad = inside([list_(int_(1), NULL), list_(), list_(string("a"))], LIST_CODES)
    assert [entry.field.rows.tolist() for entry in cursors.elements()] == [[0, 2], [0]]
    assert not bad.any()


def test_a_list_that_does_not_end_with_its_elements_is_bad():
    longer, cut = b"\xc0\x04\x01" + NULL * 3, b"\xc0\x03\x01\xa1\x05"
    cursors, bad = inside([longer, list_(int_(1)), cut, int_(1)], LIST_CODES)
    list(cursors.elements())
    assert bad.tolist() == [True, False, True, True]


def test_a_value_that_ends_beyond_the_block_is_bad():
    """All rows have the same first bytes, and the value is longer than what was read."""
    cursors, bad = inside([b"\xc0\x03\x02\xa1\xf0"] * 3, LIST_CODES)
    assert [len(entry.field.rows) for entry in cursors.elements()] == []
    assert bad.all()


def test_a_value_that_ends_beyond_its_list_is_bad():
    """It is short, and so the bytes after the list are read before this is seen."""
    for count in (1, 2):
        cursors, bad = inside([b"\xc0\x03" + bytes([count]) + b"\xa1\x05" + bytes(5), list_(NULL)], LIST_CODES)
        list(cursors.elements())
        assert bad.tolist() == [True, False]
        cursors, bad = inside([b"\xc0\x03" + bytes([count]) + b"\xa1\x05"] * 3, LIST_CODES)
        list(cursors.elements())
        assert bad.all()


def test_a_key_that_all_rows_have_is_one_key():
    long_key = "customer-number"
    cursors, _ = inside([map_([(string(long_key), int_(i)), (string(f"k{i}"), NULL)]) for i in range(3)], MAP_CODES)
    first, second = cursors.entries((STR8, STR32))
    assert (first.key, second.key) == (long_key.encode(), None)
    assert (second.key_stop - second.key_start).tolist() == [2, 2, 2]


def test_keys_of_other_types_and_keys_without_values_are_bad():
    odd = b"\xc1\x02\x01\x40"
    rows = [map_([(symbol("s"), NULL)]), map_([(string("s"), NULL)]), odd, map_([(string("x" * 256), NULL)])]
    cursors, bad = inside(rows, MAP_CODES)
    assert [entry.field.rows.tolist() for entry in cursors.entries((STR8, STR32))] == [[1, 3]]
    assert bad.tolist() == [True, False, True, False]


def test_few_rows_with_many_elements_are_left_to_the_other_reader():
    """Or one row of 100,000 elements would take 100,000 steps."""
    cursors, bad = inside([list_(*[NULL] * 100), list_(NULL)], LIST_CODES)
    assert len(list(cursors.elements())) == 32
    assert bad.tolist() == [True, False]
