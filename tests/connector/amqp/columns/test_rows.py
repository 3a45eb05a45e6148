"""The columns that come from single fields; whole rows are compared with the plain decoder in ``test_decode``."""

import numpy as np
import pyarrow as pa
from amqp_messages import annotations, block_of, byte, list_, properties, section, string, text_message, ubyte

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.one_message import BlockContext
from pyspark_jms.amqp.columns.rows import columns_of
from pyspark_jms.amqp.columns.walk import walk
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.amqp.wire.sections import fingerprint
from pyspark_jms.blocks.block import positions_of
from pyspark_jms.columns.schema import COLUMNS
from pyspark_jms.jms.model import Destination

CONTEXT = BlockContext(dialect=ARTEMIS, source=Destination.parse("queue://orders"), body_type="auto")


def columns(messages):
    block = block_of(messages)
    ends = positions_of(block.ends)
    reader = ByteReader(pa.py_buffer(block.data)).padded()
    return columns_of(reader, walk(reader, np.concatenate(([0], ends))[:-1], ends), CONTEXT)


def test_every_column_but_the_sequence():
    assert {*columns([text_message()])[0], "sequence"} == set(COLUMNS)


def test_destinations_of_different_kinds():
    names = [("a", 0), ("b", 1), ("a", 1), ("a", 0)]
    messages = [annotations(jms_dest=byte(kind)) + properties(to=string(name)) for name, kind in names]
    expected = ["queue://a", "topic://b", "topic://a", "queue://a"]
    assert columns(messages)[0]["JMSDestination"].to_pylist() == expected
    assert columns(messages[:1] * 3)[0]["JMSDestination"].to_pylist() == expected[:1] * 3


def test_delivery_ids_without_a_message_id():
    """The fingerprint leaves the header section out."""
    bare = properties(to=string("q"))
    messages = [section(0x70, list_(b"\x41")) + bare, bare, text_message(), properties(message_id=string(""))]
    found = columns(messages)[0]["delivery_id"].to_pylist()
    assert found[0] == found[1] == f"orders/~{fingerprint(bare).hex()}"
    assert found[2:] == ["orders/ID:1", f"orders/~{fingerprint(messages[3]).hex()}"]


def test_refused_rows_of_all_columns_are_found_in_one_round():
    wrong = [section(0x70, list_(ubyte(1))), properties(subject=ubyte(1)), section(0x77, ubyte(1)), text_message()]
    found, refused = columns(wrong)
    assert refused.tolist() == [0, 1, 2]
    assert found["text"].to_pylist()[3] == "hello"
