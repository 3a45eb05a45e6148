"""A block of whole AMQP 1.0 messages → one RecordBatch of the schema.

Each step works on all messages at once. What it does not take is read one message at a time.
Does not know sockets and Spark.
"""

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader, TooNearTheEndError
from pyspark_jms.amqp.columns.one_message import Reading, read_message
from pyspark_jms.amqp.columns.refusals import RefusedRowsError
from pyspark_jms.amqp.columns.rows import columns_of
from pyspark_jms.amqp.columns.walk import Parts, walk
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.blocks.block import MessageBlock, positions_of
from pyspark_jms.columns.cut import Ints, require_offsets
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import BodyChoice

__all__ = ["decode"]

_ROW_PREFIX = len("queue://") + len("/~") + 32
"""The most that JMSDestination, JMSReplyTo and delivery_id add to a name, in bytes."""

_SEQUENCE = ARROW_SCHEMA.get_field_index("sequence")


def decode(
    block: MessageBlock,
    *,
    dialect: Dialect,
    source: Destination,
    first_sequence: int,
    body_type: BodyChoice,
) -> pa.RecordBatch:
    """Decode the bare messages of a block (AMQP 1.0 §3.2), of whose index only ``ends`` is used.

    An index that leaves the block is an ``IllegalStateError``. A message that cannot be read becomes a row whose
    ``body_error`` states the reason, with the message in ``bytes``; none raises.
    """
    rows = len(block)
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=ARROW_SCHEMA)
    buffer = pa.py_buffer(block.data)
    require_offsets(buffer.size + rows * (len(source.name.encode()) + _ROW_PREFIX))
    begins, ends = _bounds(block, buffer.size)
    reading = Reading(dialect=dialect, source=source, body_type=body_type)
    reader, parts = _walked(ByteReader(buffer), begins, ends)
    columns, parts = _columns(reader, parts, reading)
    batch = _mixed(block, columns, parts, reading)
    sequence = pa.array(np.arange(first_sequence, first_sequence + rows, dtype=np.int64))
    return batch.set_column(_SEQUENCE, ARROW_SCHEMA.field(_SEQUENCE), sequence)


def _bounds(block: MessageBlock, size: int) -> tuple[Ints, Ints]:
    ends = positions_of(block.ends)
    begins = np.concatenate(([0], ends))[:-1]
    if ends[-1] != size or (begins > ends).any():
        raise IllegalStateError(
            "The index of a block does not fit its bytes.", "This is a fault of pyspark-jms: report it."
        )
    return begins, ends


def _walked(reader: ByteReader, begins: Ints, ends: Ints) -> tuple[ByteReader, Parts]:
    try:
        return reader, walk(reader, begins, ends)
    except TooNearTheEndError:
        reader = reader.padded()
        return reader, walk(reader, begins, ends)


def _columns(reader: ByteReader, parts: Parts, reading: Reading) -> tuple[dict[str, pa.Array], Parts]:
    """The columns of the rows that are left when no row is refused, and these rows."""
    while len(parts):
        try:
            return columns_of(reader, parts, reading), parts
        except TooNearTheEndError:
            reader = reader.padded()
        except RefusedRowsError as refused:
            good = np.ones(len(parts), np.bool_)
            good[refused.rows] = False
            parts = parts.only(good)
    return {}, parts


def _mixed(block: MessageBlock, columns: dict[str, pa.Array], parts: Parts, reading: Reading) -> pa.RecordBatch:
    """The rows of ``columns``, with the other messages between them."""
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(len(parts), field.type) for field in ARROW_SCHEMA
    ]
    fast = pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)
    missing = np.ones(len(block), np.bool_)
    missing[parts.numbers] = False
    others = np.flatnonzero(missing)
    if not len(others):
        return fast
    read = [read_message(block.message(row), reading) for row in others.tolist()]
    slow = pa.RecordBatch.from_pylist(read, schema=ARROW_SCHEMA)
    return _merged(fast, slow, others)


def _merged(fast: pa.RecordBatch, slow: pa.RecordBatch, places: Ints) -> pa.RecordBatch:
    """The rows of both; ``places``: those of the slow ones in the result."""
    pieces, before = [], 0
    for number, begin in enumerate((places - np.arange(len(places))).tolist()):
        if begin > before:
            pieces.append(fast.slice(before, begin - before))
            before = begin
        pieces.append(slow.slice(number, 1))
    pieces.append(fast.slice(before))
    return pa.concat_batches(pieces)
