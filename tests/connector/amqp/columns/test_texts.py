"""Types and texts of values of every constructor."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import Messages, int_, string, ulong
from plain_amqp import take, typed

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.compound_cursor import Field
from pyspark_jms.amqp.columns.flattened_entries import flatten
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.columns.texts import NUMBER, element_types, texts_of


def laid_out(values):
    """One value in each row."""
    ends = np.cumsum([len(value) for value in values])
    reader = ByteReader(pa.py_buffer(b"".join(values) + bytes(16)))
    found = reader.values(ends - [len(value) for value in values], ends)
    return reader, flatten([Field(np.arange(len(values)), *found[:3])], [0], len(values))


@pytest.mark.parametrize("count", [1, 2000])
def test_every_value_of_jms(count):
    makes = Messages(3)
    values = [makes.value(element=True) for _ in range(count)]
    reader, flat = laid_out(values)
    wanted = [typed(take(value)[0], element=True) for value in values]
    refusals = Refusals()
    found = [*zip(element_types(flat).to_pylist(), texts_of(reader, flat, refusals).to_pylist(), strict=True)]
    refused = set(refusals.rows().tolist())
    assert all(values[row] == ulong(2**63) for row in refused)
    for row in set(range(count)) - refused:
        assert found[row] == wanted[row]


def test_numbers_that_are_not_in_the_block():
    reader, flat = laid_out([string("a"), int_(5)])
    counts = Field(np.arange(2), NUMBER, np.array([7, 8]), np.array([7, 8]))
    both = flatten([Field(np.arange(2), flat.code, flat.start, flat.stop), counts], [0, 1], 2)
    assert texts_of(reader, both, Refusals()).to_pylist() == ["a", "7", "5", "8"]
    assert element_types(both).to_pylist() == ["string", "int", "int", "int"]


def test_no_values():
    assert texts_of(ByteReader(pa.py_buffer(b"")), flatten([], [], 3), Refusals()).to_pylist() == []


def test_values_that_jms_does_not_have_are_refused_all_at_once():
    reader, flat = laid_out(
        [b"\xa1\x01\xff", string("a"), b"\x56\x02", b"\x73\x00\x00\xd8\x00", b"\x73\x00\x01\x00\x00"]
    )
    refusals = Refusals()
    texts = texts_of(reader, flat, refusals)
    texts.validate(full=True)
    assert (refusals.rows().tolist(), texts.to_pylist()[1]) == ([0, 2, 3, 4], "a")
