"""RecordBatches of one schema → one: their rows one after the other, or those of one in the places of another.

Does not know what the columns mean.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.strings import Ints

__all__ = ["merged", "stacked"]

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
