"""Ids of every type, against the spelling of the reader of one id."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import NULL, binary, string, ulong, variable

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.compound_cursor import Field
from pyspark_jms.amqp.columns.ids import ids
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.wire.sections import id_text

UUID = b"\x98" + bytes(range(0x90, 0xA0))
VALUES = [
    string("ID:1"),
    string(""),
    string("x" * 300),
    string("ID:AMQP_UUID:1"),
    string("ID:AMQP_NO_PREFIX:"),
    string("ID:AMQP_OTHER:1"),
    ulong(7),
    b"\x44",
    ulong(2**64 - 1),
    UUID,
    binary(b"\x01\xab"),
    variable(0xA0, b""),
    variable(0xA0, bytes(range(256)) * 2),
]


@pytest.fixture(params=[True, False], ids=["message-id", "correlation-id"])
def of_messages(request):
    return request.param


def column(values, of_messages, rows=None):
    ends = np.cumsum([len(value) for value in values])
    reader = ByteReader(pa.py_buffer(b"".join(values) + bytes(16)))
    found = reader.values(ends - [len(value) for value in values], ends)
    every, refusals = np.arange(len(values)) if rows is None else np.array(rows), Refusals()
    texts = ids(reader, Field(every, *found[:3]), int(every.max()) + 2, refusals, of_messages=of_messages)
    texts.validate(full=True)
    return texts.to_pylist()[:-1], refusals.rows().tolist()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: hex(value[0]))
def test_a_block_of_one_type(value, of_messages):
    assert column([value] * 3, of_messages) == ([id_text(value, 0, of_message=of_messages)] * 3, [])


def test_every_type_in_one_block(of_messages):
    values = [*VALUES, NULL, *reversed(VALUES)]
    assert column(values, of_messages) == ([id_text(value, 0, of_message=of_messages) for value in values], [])


def test_rows_without_the_field(of_messages):
    uuid = id_text(UUID, 0, of_message=of_messages)
    assert column([UUID, string("ID:a"), NULL], of_messages, [0, 2, 3]) == ([uuid, None, "ID:a", None], [])


@pytest.mark.parametrize("wrong", [b"\x41", b"\xa1\x01\xff"])
def test_what_is_no_id_is_refused(wrong, of_messages):
    for right in (UUID, string("a")):
        found, refused = column([right, wrong, right], of_messages)
        assert (found[::2], refused) == ([id_text(right, 0, of_message=of_messages)] * 2, [1])


@pytest.mark.parametrize(
    ("value", "of_message", "of_correlation"),
    [
        (string("a"), "ID:AMQP_NO_PREFIX:a", "a"),
        (string("ID:a"), "ID:a", "ID:a"),
        (string("ID:AMQP_ULONG:1"), "ID:AMQP_STRING:ID:AMQP_ULONG:1", "ID:AMQP_STRING:ID:AMQP_ULONG:1"),
        (ulong(1), "ID:AMQP_ULONG:1", "ID:AMQP_ULONG:1"),
    ],
)
def test_ids_are_spelled_as_the_binding_says(value, of_message, of_correlation):
    assert column([value, NULL], of_messages=True) == ([of_message, None], [])
    assert column([value, NULL], of_messages=False) == ([of_correlation, None], [])
