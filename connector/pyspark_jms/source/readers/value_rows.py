"""The rows of a value's messages, made while the broker executes its transaction, or when they are asked for."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark_jms.source.readers.new_value import Run

__all__ = ["ValueRows"]


class ValueRows:
    """Iterate once: for each run its RecordBatch, and how many of its messages became no row.

    The bytes of a run are kept until its rows are made, and the rows until they are asked for.
    """

    def __init__(self, runs: Iterable[Run] = (), rows_of: Callable[[Run], tuple[Any, int]] | None = None) -> None:
        """``rows_of``: None, if there are no runs."""
        self._runs = deque(runs)
        self._rows_of = rows_of
        self._made = deque[tuple[Any, int]]()

    def make(self) -> None:
        """Raises nothing: an error comes when the rows are asked for."""
        with contextlib.suppress(Exception):
            while self._runs:
                self._made.append(self._of(self._runs[0]))
                self._runs.popleft()

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        while self._made:
            yield self._made.popleft()
        while self._runs:
            yield self._of(self._runs.popleft())

    def _of(self, run: Run) -> tuple[Any, int]:
        assert self._rows_of is not None
        return self._rows_of(run)
