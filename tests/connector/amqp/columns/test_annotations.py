"""Annotations of messages that have different ones."""

import numpy as np
import pyarrow as pa
from amqp_messages import annotations, block_of, byte, int_, long, map_, section, string, symbol

from pyspark_jms.amqp.columns.annotations import ABSENT, Annotations
from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.fields import BYTE
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.columns.walk import walk
from pyspark_jms.blocks.block import positions_of


def annotated(messages):
    block = block_of(messages)
    ends = positions_of(block.ends)
    reader = ByteReader(pa.py_buffer(block.data)).padded()
    entries = walk(reader, np.concatenate(([0], ends))[:-1], ends).annotations
    return Annotations(reader, entries, len(messages), Refusals())


def test_a_number_for_each_row():
    """Absent, of another type and out of range are the same for an index."""
    rows = [
        annotations(jms_dest=byte(1), ingress_time=long(1)),
        annotations(ingress_time=long(1), jms_dest=byte(3)),
        annotations(jms_dest=string("queue")),
        annotations(jms_dest=byte(9)),
        section(0x77, int_(1)),
    ]
    found = annotated(rows)
    assert found.small("x-opt-jms-dest", BYTE, range(4)).tolist() == [1, 3, -1, -1, -1]
    assert found.numbers("x-opt-jms-dest", BYTE).tolist() == [1, 3, ABSENT, 9, ABSENT]
    assert found.numbers("x-opt-delivery-time", BYTE).tolist() == [ABSENT] * 5


def test_the_last_of_two_counts():
    twice = section(0x72, map_([(symbol("x-opt-jms-dest"), byte(0)), (symbol("x-opt-jms-dest"), byte(2))]))
    assert annotated([twice]).small("x-opt-jms-dest", BYTE, range(4)).tolist() == [2]
