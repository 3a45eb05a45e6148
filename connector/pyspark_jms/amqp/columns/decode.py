"""A block of whole AMQP 1.0 messages → one RecordBatch of the schema. Refuses to know sockets and Spark."""

import pyarrow as pa

from pyspark_jms.amqp.columns.one_message import Reading, read_message
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import BodyChoice

__all__ = ["decode"]


def decode(
    block: MessageBlock,
    *,
    dialect: Dialect,
    source: Destination,
    first_sequence: int,
    body_type: BodyChoice,
) -> pa.RecordBatch:
    """Decode the bare messages of a block (AMQP 1.0 §3.2), whose index has the ends only.

    A message that cannot be read becomes a row whose ``body_error`` says why; none raises.
    """
    reading = Reading(dialect=dialect, source=source, body_type=body_type)
    rows = [{"sequence": first_sequence + row} | read_message(block.message(row), reading) for row in range(len(block))]
    return pa.RecordBatch.from_pylist(rows, schema=ARROW_SCHEMA)
