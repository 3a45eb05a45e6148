"""A RecordBatch of the sink → parts of some megabytes, and the check of what each row became.

Does not know protocols.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.blocks.fit import cuts
from pyspark_jms.columns.ragged import Int64s, first_true, offsets_of
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_columns import row_ends, sink_columns
from pyspark_jms.columns.typed_columns import property_values
from pyspark_jms.errors import MessageTooLargeError

__all__ = ["block_of", "check_sizes", "parts_of"]

_FIXED_BYTES = 512
"""The approximate size of a message beyond the bytes of its columns: names, numbers, the destination's type."""


def parts_of(
    batch: pa.RecordBatch,
    *,
    property_columns: Sequence[str],
    first_row: int,
    numbers: Int64s | None,
    part_bytes: int,
    max_row_bytes: int,
) -> Iterator[Rows]:
    """Rows of about ``part_bytes``, at least one. A row of more than ``max_row_bytes`` is refused before it is copied.

    ``first_row`` is the number of the first row in the task, or ``numbers`` has each row's.
    """
    columns = sink_columns(batch, property_columns)
    ends = row_ends(columns, batch.num_rows)
    sizes = np.diff(ends) + _FIXED_BYTES
    bounds = [0, *cuts(np.cumsum(sizes), part_bytes), batch.num_rows] if batch.num_rows else []
    for start, stop in pairwise(bounds):
        part = {name: array.slice(start, stop - start) for name, array in columns.items()}
        own = None if numbers is None else numbers[start:stop]
        rows = Rows(columns=part, first=first_row + start, count=stop - start, numbers=own)
        check_sizes(rows, ends[stop : stop + 1] - ends[start], max_row_bytes)  # only a row alone can reach it
        yield property_values(rows)


def check_sizes(rows: Rows, sizes: Int64s, limit: int) -> None:
    index = first_true(sizes > limit)
    if index is not None:
        error = MessageTooLargeError(
            f"{rows.label(index)} makes a message of {sizes[index]} bytes; the limit is {limit}.",
            "Send a smaller body, split it into several rows, or raise maxMessageBytes if the broker takes it.",
        )
        rows.fail(sizes > limit, error)


def block_of(rows: Rows, messages: pa.Array, limit: int) -> MessageBlock:
    """The messages of these rows, a binary array, as a block. A larger one than ``limit`` is refused."""
    offsets = offsets_of(messages)
    check_sizes(rows, np.diff(offsets), limit)
    data = memoryview(messages.buffers()[2])[offsets[0] : offsets[-1]]
    return MessageBlock(data, ends=index_of((offsets[1:] - offsets[0]).astype(np.int64)))
