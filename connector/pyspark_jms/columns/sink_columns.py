"""The columns of a DataFrame → the columns of the sink, with their names and types checked. Does not know protocols."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import Int64s, offsets_of
from pyspark_jms.columns.schema import IGNORED_BY_SINK
from pyspark_jms.columns.sink_schema import check_columns, column_keys, is_bytes, is_text

__all__ = ["row_ends", "sink_columns"]

_ELEMENT_BYTES = 40
"""The approximate size of an element of a map or a stream in JSON, without its texts."""


def sink_columns(batch: pa.RecordBatch, property_columns: Sequence[str] = ()) -> dict[str, pa.Array]:
    """The columns of a batch by the sink's names. Ignored columns and columns of nulls are left out."""
    check_columns(batch.schema, property_columns)
    named = zip(column_keys(batch.schema.names, property_columns), batch.columns, strict=True)
    return {
        name: array
        for name, array in named
        if name is not None and name not in IGNORED_BY_SINK and array.null_count < len(array)
    }


def row_ends(columns: Mapping[str, pa.Array], count: int) -> Int64s:
    """The position of each row's end if the unescaped bytes of all its columns stood one after the other.

    Bytes under a null count, though they are not sent: so this is an estimate to divide batches by, and not the size
    of a message.
    """
    ends = np.zeros(count + 1, np.int64)
    for array in columns.values():
        if pa.types.is_map(array.type) or pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            ends += _entry_ends(array)
        elif is_text(array.type) or is_bytes(array.type):
            ends += offsets_of(array)
    return ends


def _entry_ends(lists: pa.Array) -> Int64s:
    """The same for a map or a list. Typed values count with what JSON adds to each of them."""
    bounds = offsets_of(lists).astype(np.int64)
    parts = [lists.keys, lists.items] if pa.types.is_map(lists.type) else [lists.values]
    typed = pa.types.is_struct(parts[-1].type)
    ends = bounds * (_ELEMENT_BYTES if typed else 0)
    for text in parts[:-1] + (parts[-1].flatten() if typed else parts[-1:]):
        ends += offsets_of(text)[bounds]
    return ends
