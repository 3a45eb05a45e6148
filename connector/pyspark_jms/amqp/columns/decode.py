"""A block of whole AMQP 1.0 messages → one RecordBatch of the schema.

Each step works on all messages at once. What it does not take is read one message at a time.
Does not know sockets and Spark.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader, TooNearTheEndError
from pyspark_jms.amqp.columns.one_message import BlockContext, read_message
from pyspark_jms.amqp.columns.properties import MARKERS, EnvelopedError
from pyspark_jms.amqp.columns.rows import MorePartsNeededError, columns_of, needed_parts
from pyspark_jms.amqp.columns.walk import TooManyAtOnceError, walk
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.blocks.block import MessageBlock, positions_of
from pyspark_jms.columns.batches import merged, stacked
from pyspark_jms.columns.read_columns import WantedColumns, property_keys
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.columns.strings import Ints, require_offsets
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import BodyChoice

__all__ = ["decode"]

_ROW_PREFIX = len("queue://") + len("/~") + 32
"""The most that JMSDestination, JMSReplyTo and delivery_id add to a name, in bytes."""

_BYTES_AT_ONCE = 1 << 18


def decode(
    block: MessageBlock,
    *,
    dialect: Dialect,
    source: Destination,
    first_sequence: int,
    body_type: BodyChoice,
    wanted: WantedColumns | None = None,
) -> pa.RecordBatch:
    """Decode the bare messages of a block (AMQP 1.0 §3.2), of whose index only ``ends`` is used.

    An index that leaves the block is an ``IllegalStateError``. A message that cannot be read becomes a row whose
    ``body_error`` states the reason, with the message in ``bytes``; none raises. ``wanted``: the columns of the rows;
    the rows have all columns if one of them is in an envelope, which is opened later.
    """
    context = BlockContext(dialect=dialect, source=source, body_type=body_type, wanted=wanted)
    if not len(block):
        return pa.RecordBatch.from_pylist([], schema=context.schema)
    try:
        return _decoded(block, context, first_sequence)
    except EnvelopedError:
        return _decoded(block, replace(context, wanted=None), first_sequence)


def _decoded(block: MessageBlock, context: BlockContext, first_sequence: int) -> pa.RecordBatch:
    rows = len(block)
    buffer = pa.py_buffer(block.data)
    require_offsets(buffer.size + rows * (len(context.source.name.encode()) + _ROW_PREFIX))
    begins, ends = _bounds(block, buffer.size)
    batch = stacked(list(_pieces(block, ByteReader(buffer), begins, ends, context)))
    place = context.schema.get_field_index("sequence")
    if place < 0:
        return batch
    sequence = pa.array(np.arange(first_sequence, first_sequence + rows, dtype=np.int64))
    return batch.set_column(place, ARROW_SCHEMA.field("sequence"), sequence)


def _pieces(
    block: MessageBlock, reader: ByteReader, begins: Ints, ends: Ints, context: BlockContext
) -> Iterator[pa.RecordBatch]:
    """The rows of all messages, in as few batches as the number of their elements allows."""
    pending = [(0, len(begins))]
    while pending:
        first, last = pending.pop()
        try:
            fast, numbers = _read(reader, begins[first:last], ends[first:last], context)
        except TooNearTheEndError:
            reader = reader.padded()
            pending.append((first, last))
        except TooManyAtOnceError:
            middle = (first + last) // 2
            pending += [(middle, last), (first, middle)]
        else:
            yield _with_others(fast, numbers, block, first, context)


def _bounds(block: MessageBlock, size: int) -> tuple[Ints, Ints]:
    ends = positions_of(block.ends)
    begins = np.concatenate(([0], ends))[:-1]
    if ends[-1] != size or (begins > ends).any():
        raise IllegalStateError(
            "The index of a block does not fit its bytes.", "This is a fault of pyspark-jms: report it."
        )
    return begins, ends


def _read(reader: ByteReader, begins: Ints, ends: Ints, context: BlockContext) -> tuple[pa.RecordBatch, Ints]:
    """The rows of the messages that can be read all at once, and by message, the number of its row; -1: it has none."""
    numbers = np.full(len(begins), -1, np.int64)
    needed = needed_parts(context.wanted, reader.raw[begins[0] : ends[0]])
    parts = walk(reader, begins, ends, needed)
    if not len(parts):
        return pa.RecordBatch.from_pylist([], schema=context.schema), numbers
    try:
        columns, refused = columns_of(reader, parts, context)
    except MorePartsNeededError:
        parts = walk(reader, begins, ends)
        columns, refused = columns_of(reader, parts, context)
    numbers[parts.numbers] = np.arange(len(parts))
    numbers[parts.numbers[refused]] = -1
    arrays = [columns[f.name] if f.name in columns else pa.nulls(len(parts), f.type) for f in context.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=context.schema), numbers


def _with_others(
    fast: pa.RecordBatch, numbers: Ints, block: MessageBlock, first: int, context: BlockContext
) -> pa.RecordBatch:
    """One row for each message from ``first`` on: that of ``fast``, or else what the reader of one message reads."""
    others = np.flatnonzero(numbers < 0)
    if not len(others):
        return fast
    return merged(fast, numbers, stacked(list(_one_by_one(block, (first + others).tolist(), context))))


def _one_by_one(block: MessageBlock, rows: list[int], context: BlockContext) -> Iterator[pa.RecordBatch]:
    """The rows of some messages. Those of ``_BYTES_AT_ONCE`` are Python objects at the same time."""
    read, size = [], 0
    for row in rows:
        message = block.message(row)
        read.append(_row(message, context))
        size += len(message)
        if size >= _BYTES_AT_ONCE or row == rows[-1]:
            yield pa.RecordBatch.from_pylist(read, schema=context.schema)
            read, size = [], 0


def _row(message: bytes, context: BlockContext) -> dict[str, Any]:
    row = read_message(message, context)
    if context.wanted is None:
        return row
    texts, types = (dict(row.get(name) or ()) for name in ("properties", "property_types"))
    if MARKERS & texts.keys():
        raise EnvelopedError
    for name in context.wanted.properties:
        text, kind = property_keys(name)
        row |= {text: texts.get(name), kind: types.get(name)}
    return row
