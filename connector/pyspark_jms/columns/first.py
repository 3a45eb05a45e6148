"""Rows and keys of entries → which entries are the first of their key in their row."""

import numpy as np

from pyspark_jms.columns.cut import Ints, Mask

__all__ = ["is_first"]

_TABLE_FACTOR = 8
"""A table of rows × keys is faster than sorting, up to this number of cells per entry."""


def is_first(rows: Ints, key: Ints, row_count: int, key_count: int) -> Mask:
    """Whether an entry is the first one in its row with its key; keys are numbers below ``key_count``."""
    cells = row_count * key_count
    cell = rows * key_count + key
    number = np.arange(len(cell))
    if cells > _TABLE_FACTOR * len(cell):
        _, inverse_first = np.unique(cell, return_index=True)
        first = np.zeros(len(cell), np.bool_)
        first[inverse_first] = True
        return first
    table = np.empty(cells, np.int64)
    table[cell[::-1]] = number[::-1]
    firsts: Mask = table[cell] == number
    return firsts
