"""The parts of whole messages."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import NULL, TRUE, binary, block_of, int_, list_, map_, section, string, text_message

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.walk import NO_BODY, elements_of, entries_of, walk
from pyspark_jms.blocks.block import positions_of


def walked(messages):
    block = block_of(messages)
    ends = positions_of(block.ends)
    reader = ByteReader(pa.py_buffer(block.data)).padded()
    return reader, walk(reader, np.concatenate(([0], ends))[:-1], ends)


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
