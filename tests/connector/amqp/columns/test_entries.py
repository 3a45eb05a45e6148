"""Entries as columns: properties, the producer's and those of JMS; and the entries of rows, their types and texts."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import (
    Messages,
    application_properties,
    int_,
    properties,
    string,
    ulong,
    walked,
)

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Refusals
from pyspark_jms.amqp.columns.entries import NUMBER, OF_ELEMENTS, PropertyReader, flatten, texts_of, types_of
from pyspark_jms.amqp.columns.one_value import element_text
from pyspark_jms.amqp.columns.walk import Field
from pyspark_jms.amqp.dialects import ARTEMIS


def columns(messages, from_stomp=None, counts=None):
    found, refused = with_refused(messages, from_stomp, counts)
    assert not refused
    return found


def with_refused(messages, from_stomp=None, counts=None):
    rows, (reader, parts) = len(messages), walked(messages)
    stomp = np.array([False] * rows if from_stomp is None else from_stomp)
    earlier, refusals = np.array(counts or [0] * rows), Refusals()
    found = PropertyReader(reader, parts, refusals, ARTEMIS, stomp, earlier).columns()
    for column in found.values():
        column.validate(full=True)
    columns_found = [[dict(row) for row in found[name].to_pylist()] for name in ("properties", "property_types")]
    return columns_found, refusals.rows().tolist()


def test_the_delivery_count_is_one_more_and_fits_an_int():
    values, _ = columns([b"", b""], counts=[3, 2**32 - 1])
    assert [row["JMSXDeliveryCount"] for row in values] == ["4", "2147483647"]


def test_names_that_brokers_add_are_ignored():
    """The headers of a SEND frame in messages of STOMP only; rows with the same and with different names."""
    kept_by_artemis = {"JMS_AMQP_MA_x-opt-a": string("v"), "NATIVE_MESSAGE_ID": string("ID:1")}
    ignored = {"_AMQ_X": int_(1), "JMSXDeliveryCount": int_(9)} | kept_by_artemis
    given = application_properties(**ignored, receipt=string("r"), n=int_(1))
    for others in ([], [application_properties(m=int_(1))]):
        values, _ = columns([given, given, *others], [True, False, *[False] * len(others)])
        assert [list(row) for row in values[:2]] == [["n", "JMSXDeliveryCount"], ["receipt", "n", "JMSXDeliveryCount"]]


@pytest.mark.parametrize(
    "message",
    [
        application_properties(d=b"\x74" + bytes(4)),
        application_properties(u=ulong(2**63)),
        application_properties(JMSXGroupID=string("g")),
        properties(group_id=int_(1)),
        properties(user_id=string("bob")),
        application_properties(a=int_(1)).replace(b"a\x54\x01", b"\xff\x54\x01"),
    ],
)
def test_other_rows_are_refused(message):
    good = application_properties(a=int_(1))
    (values, _), refused = with_refused([good, message, good])
    assert refused == [1]
    assert values[::2] == [{"a": "1", "JMSXDeliveryCount": "1"}] * 2


# --- the entries of all rows ---------------------------------------------------------------------------


def field(rows, code, start):
    return Field(np.array(rows), code, np.array(start), np.array(start) + 1)


def test_rows_with_the_same_entries():
    flat = flatten([field([0, 1], 0x40, [0, 10]), field([0, 1], 0x41, [5, 15])], [7, 8], 2)
    assert (flat.offsets.tolist(), flat.start.tolist(), flat.stop.tolist()) == (
        [0, 2, 4],
        [0, 5, 10, 15],
        [1, 6, 11, 16],
    )
    assert (list(flat.code), list(flat.name), flat.constructors()) == ([0x40, 0x41], [7, 8], {0x40, 0x41})
    assert [flat.places_of(*codes).tolist() for codes in ([0x41], [0x41, 0x40], [0x42])] == [[1, 3], [0, 1, 2, 3], []]
    assert flat.pick_each(pa.array(list("abcdefghi")), flat.name).to_pylist() == ["h", "i", "h", "i"]
    assert flat.row_of_each().tolist() == [0, 0, 1, 1]


def test_rows_with_different_entries():
    flat = flatten([field([0, 2], np.array([1, 2]), [0, 20]), field([2], 3, [21])], [0, np.array([1])], 3)
    assert (flat.offsets.tolist(), flat.start.tolist()) == ([0, 1, 1, 3], [0, 20, 21])
    assert (flat.code.tolist(), flat.name.tolist()) == ([1, 2, 3], [0, 0, 1])
    assert (flat.constructors(), flat.places_of(3, 1).tolist()) == ({1, 2, 3}, [0, 2])
    assert flat.pick_each(pa.array(["a", "b"]), flat.name).to_pylist() == ["a", "a", "b"]


def test_no_entries():
    flat = flatten([], [], 2)
    assert (len(flat), flat.offsets.tolist(), flat.rows_with_a_name_twice(0).tolist()) == (0, [0, 0, 0], [])


def test_a_name_twice():
    every, some = field([0, 1], 1, [0, 10]), field([1], 1, [11])
    assert flatten([every, every], [0, 0], 2).rows_with_a_name_twice(1).tolist() == [0, 1]
    assert flatten([every, every], [0, 1], 2).rows_with_a_name_twice(2).tolist() == []
    assert flatten([every, some], [0, 0], 2).rows_with_a_name_twice(1).tolist() == [1]


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
    wanted = [element_text(value, 0) for value in values]
    refusals = Refusals()
    found = [*zip(types_of(flat, OF_ELEMENTS).to_pylist(), texts_of(reader, flat, refusals).to_pylist(), strict=True)]
    refused = set(refusals.rows().tolist())
    assert all(values[row] == ulong(2**63) for row in refused)
    for row in set(range(count)) - refused:
        assert found[row] == wanted[row]


def test_numbers_that_are_not_in_the_block():
    reader, flat = laid_out([string("a"), int_(5)])
    counts = Field(np.arange(2), NUMBER, np.array([7, 8]), np.array([7, 8]))
    both = flatten([Field(np.arange(2), flat.code, flat.start, flat.stop), counts], [0, 1], 2)
    assert texts_of(reader, both, Refusals()).to_pylist() == ["a", "7", "5", "8"]
    assert types_of(both, OF_ELEMENTS).to_pylist() == ["string", "int", "int", "int"]


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
