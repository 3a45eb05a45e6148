"""Rows of the sink → the rows that can be encoded, and the faults of the others. For ``onBadRow=drop`` only.

Each round encodes the remaining rows and removes all rows that have the fault it found. So the number of rounds is the
number of kinds of faults, not of rows. The caller encodes the good rows again. A repeated task keeps the same rows,
because no check depends on the time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import Int64s
from pyspark_jms.columns.rows import WrongRows
from pyspark_jms.errors import JMSError

__all__ = ["BadRows", "good_rows"]

Encode: TypeAlias = Callable[[pa.RecordBatch, Int64s], object]
"""Encodes a batch, given the number of each row in the task, or raises."""


@dataclass(frozen=True, slots=True)
class BadRows:
    """The number of rows with one kind of fault, and the error that names the first of them."""

    count: int
    first: JMSError


def good_rows(batch: pa.RecordBatch, first_row: int, encode: Encode) -> tuple[pa.RecordBatch, list[BadRows]]:
    """The rows that can be encoded, in order. An error that is not about certain rows is raised."""
    numbers = np.arange(first_row, first_row + batch.num_rows)
    bad: list[BadRows] = []
    while batch.num_rows:
        try:
            encode(batch, numbers)
        except JMSError as error:
            if not isinstance(error.__cause__, WrongRows):
                raise
            wrong = np.isin(numbers, error.__cause__.numbers)
            bad.append(BadRows(int(wrong.sum()), error))
            batch, numbers = batch.filter(pa.array(~wrong)), numbers[~wrong]
        else:
            break
    return batch, bad
