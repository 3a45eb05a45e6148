"""Fields of sections as columns."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import FALSE, NULL, TRUE, string, ubyte, uint

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.compound_cursor import Field
from pyspark_jms.amqp.columns.fields import BOOLEAN, UBYTE, UINT, field_at, numbers, times
from pyspark_jms.amqp.columns.fields import string as string_column
from pyspark_jms.amqp.columns.refusals import Refusals


def laid_out(values, rows=None):
    ends = np.cumsum([len(value) for value in values])
    at = ends - [len(value) for value in values]
    reader = ByteReader(pa.py_buffer(b"".join(values) + bytes(16)))
    found = reader.values(at, ends)
    return reader, Field(np.arange(len(values)) if rows is None else np.array(rows), *found[:3])


def test_strings_and_nulls():
    reader, field = laid_out([string("a"), NULL, string("x" * 300)], [0, 2, 3])
    assert string_column(reader, field, 5, Refusals()).to_pylist() == ["a", None, None, "x" * 300, None]
    assert string_column(reader, None, 2, Refusals()).to_pylist() == [None, None]


@pytest.mark.parametrize("text", ["same", "x" * 100])
def test_strings_that_are_all_the_same(text):
    reader, field = laid_out([string(text)] * 3)
    assert string_column(reader, field, 3, Refusals()).to_pylist() == [text] * 3


@pytest.mark.parametrize("wrong", [uint(5), b"\xa1\x01\xff"])
def test_other_values_and_other_bytes_are_refused(wrong):
    for values, rows in (([string("a"), wrong], [1]), ([wrong, wrong], [0, 1])):
        reader, field = laid_out(values)
        refusals = Refusals()
        column = string_column(reader, field, 2, refusals)
        column.validate(full=True)
        assert refusals.rows().tolist() == rows
        assert column.to_pylist() == ["a" if row not in rows else None for row in range(2)]


@pytest.mark.parametrize(
    ("values", "codes", "expected"),
    [
        ([uint(0), uint(7), uint(2**32 - 1), NULL], UINT, [0, 7, 2**32 - 1, -9]),
        ([TRUE, FALSE, b"\x56\x01", b"\x56\x00"], BOOLEAN, [1, 0, 1, 0]),
        ([ubyte(255)] * 2, UBYTE, [255, 255]),
    ],
)
def test_numbers(values, codes, expected):
    reader, field = laid_out(values)
    assert numbers(reader, field, len(values) + 1, codes, absent=-9, refusals=Refusals()).tolist() == [*expected, -9]


@pytest.mark.parametrize("wrong", [string("a"), b"\x56\x02"])
def test_what_is_no_number_is_refused_or_absent(wrong):
    reader, field = laid_out([TRUE, wrong])
    refusals = Refusals()
    assert numbers(reader, field, 2, BOOLEAN, absent=-1, refusals=refusals).tolist() == [1, -1]
    assert refusals.rows().tolist() == [1]
    assert numbers(reader, field, 2, BOOLEAN, absent=-1, refusals=None).tolist() == [1, -1]


def test_times_have_the_years_of_spark():
    moment = dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC)
    assert times(np.array([1])).to_pylist() == [moment]
    assert times(np.array([0, 1, 253_402_300_800_000, -(2**63)])).to_pylist() == [None, moment, None, None]


def test_a_field_that_no_row_has_is_none():
    _, field = laid_out([NULL, NULL])
    assert field_at([field], 0) is None
    assert field_at([], 3) is None
    _, field = laid_out([NULL, TRUE])
    assert field_at([field], 0) is field
