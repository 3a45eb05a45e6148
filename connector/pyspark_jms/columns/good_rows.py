"""Rows of the sink in, those that can be sent out, and what is wrong with the others.

For ``onBadRow=drop`` alone: each round encodes what is left and takes away all rows with the fault it met, so there
are as many rounds as kinds of faults, not as rows. What is kept is encoded again by whoever sends it: the way of
good rows stays as it is. The same rows are kept whenever they come, for no check here looks at the clock.
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
"""Encodes a batch whose rows have these numbers in the task, or raises."""


@dataclass(frozen=True, slots=True)
class BadRows:
    """Rows with one kind of fault; ``first`` names the first of them."""

    count: int
    first: JMSError


def good_rows(batch: pa.RecordBatch, first_row: int, encode: Encode) -> tuple[pa.RecordBatch, list[BadRows]]:
    """The rows that can be encoded, in order. An error that is about no row in particular is raised."""
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
