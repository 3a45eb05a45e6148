"""Properties of rows: the producer's, those of JMS, and those that are ignored."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import NULL, application_properties, binary, block_of, int_, properties, string, uint, ulong

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Refusals
from pyspark_jms.amqp.columns.properties import property_columns
from pyspark_jms.amqp.columns.walk import walk
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.blocks.block import positions_of


def columns(messages, from_stomp=None, counts=None):
    found, refused = with_refused(messages, from_stomp, counts)
    assert not refused
    return found


def with_refused(messages, from_stomp=None, counts=None):
    rows, block = len(messages), block_of(messages)
    ends = positions_of(block.ends)
    reader = ByteReader(pa.py_buffer(block.data)).padded()
    parts = walk(reader, np.concatenate(([0], ends))[:-1], ends)
    stomp = np.array([False] * rows if from_stomp is None else from_stomp)
    earlier, refusals = np.array(counts or [0] * rows), Refusals()
    found = property_columns(reader, parts, refusals, ARTEMIS, from_stomp=stomp, delivery_counts=earlier)
    for column in found.values():
        column.validate(full=True)
    columns_found = [[dict(row) for row in found[name].to_pylist()] for name in ("properties", "property_types")]
    return columns_found, refusals.rows().tolist()


def test_types_come_from_the_constructors():
    (values,), (types,) = columns([application_properties(a=int_(1), b=NULL, c=string("x"))])
    assert values == {"a": "1", "b": None, "c": "x", "JMSXDeliveryCount": "1"}
    assert types == {"a": "int", "b": "string", "c": "string", "JMSXDeliveryCount": "int"}


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


def test_the_group_and_the_user_are_properties():
    given = properties(group_id=string("g"), group_sequence=uint(2**31), user_id=binary(b"bob"))
    (values, none), (types, _) = columns([given, properties(group_sequence=NULL)])
    assert values == {"JMSXDeliveryCount": "1", "JMSXGroupID": "g", "JMSXGroupSeq": "-2147483648", "JMSXUserID": "bob"}
    assert (types["JMSXGroupSeq"], types["JMSXUserID"], none) == ("int", "string", {"JMSXDeliveryCount": "1"})
    (values,), _ = columns([properties(group_id=string("g"), group_sequence=uint(0))])
    assert values["JMSXGroupSeq"] == "0"


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
