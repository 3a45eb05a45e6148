"""Rows that the vectorised decoder does not take, collected over all of its steps.

A step that refuses a row goes on with anything in its place: the reader of one message makes the whole row again.
"""

import numpy as np

from pyspark_jms.columns.strings import Ints, Mask

__all__ = ["Refusals"]


class Refusals:
    def __init__(self) -> None:
        self._rows: list[Ints] = []

    def add(self, rows: Ints) -> None:
        if len(rows):
            self._rows.append(rows)

    def add_where(self, rows: Ints, wrong: Mask | np.bool_) -> None:
        """Refuse the rows where ``wrong`` is true; it may be one value for all of them."""
        if wrong.any():
            self._rows.append(rows[np.broadcast_to(wrong, rows.shape)])

    def rows(self) -> Ints:
        """The refused rows, each once, in order."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *self._rows]))
