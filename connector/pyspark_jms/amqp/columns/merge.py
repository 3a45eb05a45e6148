"""The rows of two readers → one RecordBatch."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.cut import Ints

__all__ = ["merged"]

_BYTES_OF_A_SLICE = 4096
"""So many bytes are copied by ``take`` in the time that one more slice costs."""


def merged(most: pa.RecordBatch, numbers: Ints, others: pa.RecordBatch) -> pa.RecordBatch:
    """``numbers``: by row of the result, the number of the row in ``most``; -1: the next row of ``others``."""
    missing = np.flatnonzero(numbers < 0)
    places = numbers.copy()
    places[missing] = np.arange(len(most), len(most) + len(missing))
    turns = (np.diff(places) != 1) | (places[1:] == len(most))
    begins = np.concatenate(([0], np.flatnonzero(turns) + 1))
    sizes = np.diff(begins, append=len(places))
    runs = list(zip(places[begins].tolist(), sizes.tolist(), strict=True))
    # A row of ``others`` may have a row in its place in ``most``, of which some columns are right.
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
    if first.nbytes < _BYTES_OF_A_SLICE * len(runs):
        return pa.concat_arrays([first, second]).take(places)
    split = len(first)
    return pa.concat_arrays(
        [first.slice(begin, size) if begin < split else second.slice(begin - split, size) for begin, size in runs]
    )
