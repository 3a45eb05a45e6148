"""A block of whole AMQP 1.0 messages → one RecordBatch of the schema.

Each step works on all messages at once. What it does not take is read one message at a time.
Does not know sockets and Spark.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader, TooNearTheEndError
from pyspark_jms.amqp.columns.one_message import BlockContext, read_message
from pyspark_jms.amqp.columns.properties import MARKERS, EnvelopedError
from pyspark_jms.amqp.columns.rows import columns_of
from pyspark_jms.amqp.columns.walk import TooManyAtOnceError, walk
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.blocks.block import MessageBlock, positions_of
from pyspark_jms.columns.read_columns import WantedColumns, property_keys
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.columns.strings import Ints, require_offsets
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import MAX_ELEMENTS, BodyChoice

__all__ = [
    "decode",
    "merged",
    "stacked",
]

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
    max_elements: int = MAX_ELEMENTS,
    wanted: WantedColumns | None = None,
) -> pa.RecordBatch:
    """Decode the bare messages of a block (AMQP 1.0 §3.2), of whose index only ``ends`` is used.

    An index that leaves the block is an ``IllegalStateError``. A message that cannot be read becomes a row whose
    ``body_error`` states the reason, with the message in ``bytes``; none raises. ``wanted``: the columns of the rows;
    the rows have all columns if one of them is in an envelope, which is opened later.
    """
    context = BlockContext(
        dialect=dialect, source=source, body_type=body_type, max_elements=max_elements, wanted=wanted
    )
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
    parts = walk(reader, begins, ends, context.max_elements)
    if not len(parts):
        return pa.RecordBatch.from_pylist([], schema=context.schema), numbers
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


# --- the rows of two readers ------------------------------------------------------------------------

_BYTES_OF_A_SLICE = 4096
"""So many bytes are copied by ``take`` in the time that one more slice costs."""


def merged(most: pa.RecordBatch, numbers: Ints, others: pa.RecordBatch) -> pa.RecordBatch:
    """``numbers``: by row of the result, the number of the row in ``most``; -1: the next row of ``others``."""
    if not len(most):
        return others
    missing = np.flatnonzero(numbers < 0)
    places = numbers.copy()
    places[missing] = np.arange(len(most), len(most) + len(missing))
    turns = (np.diff(places) != 1) | (places[1:] == len(most))
    begins = np.concatenate(([0], np.flatnonzero(turns) + 1))
    sizes = np.diff(begins, append=len(places))
    runs = list(zip(places[begins].tolist(), sizes.tolist(), strict=True))
    # If ``most`` has all rows, a row of ``others`` replaces the one of that number; some columns may be equal.
    in_place = pa.array(missing) if len(most) == len(numbers) else None

    def column(first: pa.Array, second: pa.Array) -> pa.Array:
        if in_place is not None:
            if first.take(in_place).equals(second):
                return first
            if second.null_count == len(second) and not (first.type.num_fields or first.offset):
                return _without(first, missing)
        return _column(first, second, pa.array(places), runs)

    columns = [column(first, second) for first, second in zip(most.columns, others.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=most.schema)


def _without(column: pa.Array, missing: Ints) -> pa.Array:
    """Null at some places of a column that is no slice. The values stay where they are: a text is not copied."""
    valid = np.array(column.is_valid())
    valid[missing] = False
    _, *values = column.buffers()
    return pa.Array.from_buffers(column.type, len(column), [pa.array(valid).buffers()[1], *values])


def _column(first: pa.Array, second: pa.Array, places: pa.Array, runs: Sequence[tuple[int, int]]) -> pa.Array:
    """The values at ``places``, counted through both columns."""
    if first.nbytes + second.nbytes < _BYTES_OF_A_SLICE * len(runs):
        return pa.concat_arrays([first, second]).take(places)
    split = len(first)
    return pa.concat_arrays(
        [first.slice(begin, size) if begin < split else second.slice(begin - split, size) for begin, size in runs]
    )


def stacked(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of all batches. The list is emptied: what has been copied is freed, column by column."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    columns = [list(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]
    batches.clear()
    columns.reverse()
    return pa.RecordBatch.from_arrays([_joined(columns.pop()) for _ in schema], schema=schema)


def _joined(parts: list[pa.Array]) -> pa.Array:
    """The arrays as one. The list is emptied: of a nested type, only one child is there twice at a time."""
    kind = parts[0].type
    if not kind.num_fields:
        whole = pa.concat_arrays(parts)
        parts.clear()
        return whole
    absent = pa.array(np.concatenate([np.asarray(part.is_null()) for part in parts]))
    if pa.types.is_struct(kind):
        children = [list(fields) for fields in zip(*(part.flatten() for part in parts), strict=True)]
        parts.clear()
        children.reverse()
        fields = [_joined(children.pop()) for _ in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=absent)
    offsets = pa.array(_offsets(parts))
    children = [list(each) for each in zip(*(_children(part) for part in parts), strict=True)]
    parts.clear()
    children.reverse()
    whole = [_joined(children.pop()) for _ in range(len(children))]
    made = pa.MapArray if pa.types.is_map(kind) else pa.ListArray
    return made.from_arrays(offsets, *whole, kind, mask=absent)


def _offsets(parts: Sequence[Any]) -> Ints:
    lengths = [np.diff(np.asarray(part.offsets)) for part in parts]
    return np.concatenate([np.zeros(1, np.int32), np.cumsum(np.concatenate(lengths), dtype=np.int32)])


def _children(part: Any) -> tuple[pa.Array, ...]:
    """The elements of lists, or the keys and the items of maps, of an array that may be a slice."""
    begin, end = (part.offsets[place].as_py() for place in (0, -1))
    every = (part.keys, part.items) if pa.types.is_map(part.type) else (part.values,)
    return tuple(child.slice(begin, end - begin) for child in every)
