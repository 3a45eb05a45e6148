"""Rows that the vectorised decoder does not take, collected over all of its steps."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from pyspark_jms.columns.cut import Ints, Mask

__all__ = ["Refusals", "RefusedRowsError"]

_Read = TypeVar("_Read")


class RefusedRowsError(Exception):
    """The numbers of rows that the reader of one message must read."""

    def __init__(self, rows: Ints) -> None:
        super().__init__()
        self.rows = rows


class Refusals:
    """Rows to refuse, all at once: another round over the block costs more than to continue."""

    def __init__(self) -> None:
        self._rows: list[Ints] = []

    def add(self, rows: Ints) -> None:
        if len(rows):
            self._rows.append(rows)

    def add_where(self, rows: Ints, wrong: Mask | np.bool_) -> None:
        """Refuse the rows where ``wrong`` is true; it may be one value for all of them."""
        if wrong.any():
            self._rows.append(rows[np.broadcast_to(wrong, rows.shape)])

    def attempt(self, read: Callable[[], _Read]) -> _Read | None:
        """The result of ``read``; None if it refuses rows."""
        try:
            return read()
        except RefusedRowsError as refused:
            self.add(refused.rows)
            return None

    def error(self) -> RefusedRowsError:
        return RefusedRowsError(np.concatenate(self._rows))

    def raise_any(self) -> None:
        if self._rows:
            raise self.error()
