"""Cursors in lists and maps of different lengths."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import NULL, TRUE, binary, int_, list_, map_, section, string, symbol, text_message, walked

from pyspark_jms.amqp.columns.byte_reader import LIST_CODES, MAP_CODES, ByteReader, CachedCursor
from pyspark_jms.amqp.columns.walk import NO_BODY, CompoundCursor, elements_of, entries_of
from pyspark_jms.amqp.wire.constructors import STR8, STR32


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


def test_the_parts_of_a_message():
    _, parts = walked([text_message("hello")])
    assert (len(parts.header), len(parts.annotations), len(parts.application_properties)) == (1, 2, 3)
    assert parts.body_section.tolist() == [0x77]
    assert (parts.body.stop - parts.body.start).tolist() == [5]
    assert parts.begins.tolist() == [len(section(0x70, list_(TRUE)))]


def test_a_message_without_a_body():
    _, parts = walked([section(0x70, list_()), b""])
    assert (parts.body.code.tolist(), parts.body_section.tolist()) == ([NO_BODY, NO_BODY], [0, 0])


@pytest.mark.parametrize(
    "message",
    [
        section(0x78, map_([])),
        section(0x75, binary(b"a")) * 2,
        section(0x77, NULL) + b"\0",
        section(0x77, b""),
        section(0x70, list_(*[NULL] * 6)),
        section(0x77, NULL) + section(0x70, list_()),
        b"\0\x80" + bytes(7) + b"\x77\x40",
    ],
)
def test_other_messages_are_left_out(message):
    """The numbers of the others stay theirs."""
    _, parts = walked([text_message(), message, text_message("x")])
    assert parts.numbers.tolist() == [0, 2]
    assert [entry.field.rows.tolist() for entry in parts.application_properties] == [[0, 1]] * 3


def test_parts_of_some_rows():
    _, parts = walked([text_message("a"), section(0x77, string("b")), text_message("c")])
    some = parts.only(np.array([False, True, True]))
    assert (some.numbers.tolist(), some.body.rows.tolist()) == ([1, 2], [0, 1])
    assert [field.rows.tolist() for field in some.header] == [[1]]
    assert parts.only(np.array([True] * 3)) is parts


def test_entries_and_elements_of_bodies():
    values = [map_([(string("k"), int_(1))]), list_(int_(1))]
    reader = ByteReader(pa.py_buffer(values[0] + values[1] + bytes(136)))
    at, ends = np.array([0, len(values[0])]), np.cumsum([len(value) for value in values])
    entries, bad = entries_of(reader, at[:1], ends[:1])
    assert ([entry.key for entry in entries], bad.tolist()) == ([b"k"], [False])
    elements, bad = elements_of(reader, at[1:], ends[1:])
    assert (len(elements), bad.tolist()) == (1, [False])
    entries, bad = entries_of(reader, at, ends)
    assert ([entry.field.rows.tolist() for entry in entries], bad.tolist()) == ([[0]], [False, True])
