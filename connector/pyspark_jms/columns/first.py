"""The first entry of each key within each row, for keys given as numbers."""

import numpy as np

from pyspark_jms.columns.cut import Bools, Ints

__all__ = ["is_first"]

_TABLE_FACTOR = 8
"""A table of rows x names is faster than sorting, up to so many cells per header line."""


def is_first(rows: Ints, key: Ints, frames: int, keys: int) -> Bools:
    """Whether a line is the first of its frame with that key."""
    cells = frames * keys
    cell = rows * keys + key
    number = np.arange(len(cell))
    if cells > _TABLE_FACTOR * len(cell):
        _, inverse_first = np.unique(cell, return_index=True)
        first = np.zeros(len(cell), np.bool_)
        first[inverse_first] = True
        return first
    table = np.empty(cells, np.int64)
    table[cell[::-1]] = number[::-1]
    firsts: Bools = table[cell] == number
    return firsts
