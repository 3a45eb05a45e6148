"""Ids of every type, against the spelling of the reader of one id."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import NULL, binary, string, ulong, variable

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.ids import ids
from pyspark_jms.amqp.columns.inside import Field
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.wire.sections import id_text

UUID = b"\x98" + bytes(range(0x90, 0xA0))
VALUES = [
    string("ID:1"),
    string(""),
    string("x" * 300),
    ulong(7),
    b"\x44",
    ulong(2**64 - 1),
    UUID,
    binary(b"\x01\xab"),
    variable(0xA0, b""),
    variable(0xA0, bytes(range(256)) * 2),
]


def column(values, rows=None):
    ends = np.cumsum([len(value) for value in values])
    reader = ByteReader(pa.py_buffer(b"".join(values) + bytes(16)))
    found = reader.values(ends - [len(value) for value in values], ends)
    every, refusals = np.arange(len(values)) if rows is None else np.array(rows), Refusals()
    texts = ids(reader, Field(every, *found[:3]), int(every.max()) + 2, refusals)
    texts.validate(full=True)
    return texts.to_pylist()[:-1], refusals.rows().tolist()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: hex(value[0]))
def test_a_block_of_one_type(value):
    assert column([value] * 3) == ([id_text(value, 0)] * 3, [])


def test_every_type_in_one_block():
    values = [*VALUES, NULL, *reversed(VALUES)]
    assert column(values) == ([id_text(value, 0) for value in values], [])


def test_rows_without_the_field():
    assert column([UUID, string("a"), NULL], [0, 2, 3]) == ([id_text(UUID, 0), None, "a", None], [])


@pytest.mark.parametrize("wrong", [b"\x41", b"\xa1\x01\xff"])
def test_what_is_no_id_is_refused(wrong):
    for right in (UUID, string("a")):
        found, refused = column([right, wrong, right])
        assert (found[::2], refused) == ([id_text(right, 0)] * 2, [1])
