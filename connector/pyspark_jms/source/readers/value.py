"""The messages of a value, by their numbers: as a task receives and sends them, in its memory, and their rows.

The rows are made while the broker executes the transaction, or when they are asked for.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.blocks.block import MessageBlock, index_of, positions_of
from pyspark_jms.blocks.staged import pack_all
from pyspark_jms.delivery.message_range import MessageRange

__all__ = ["NewValue", "Run", "ValueRows", "joined"]

_RUN_BYTES, _RUN_MESSAGES = 15 << 20, 1 << 14
"""Staged blocks are joined up to this size: a task decodes one large block faster than many small ones."""


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """Consecutive messages of one source. The first one has the number ``first``."""

    first: int
    source: str
    dialect: str
    messages: MessageBlock

    @property
    def end(self) -> int:
        return self.first + len(self.messages)


def joined(runs: Iterable[Run]) -> Iterator[Run]:
    """Neighbours of one source joined, up to a size."""
    open_: list[Run] = []
    size = messages = 0
    for run in runs:
        fits = size + len(run.messages.data) <= _RUN_BYTES and messages + len(run.messages) <= _RUN_MESSAGES
        if open_ and not (fits and _follows(open_[-1], run)):
            yield _join(open_)
            open_, size, messages = [], 0, 0
        open_.append(run)
        size, messages = size + len(run.messages.data), messages + len(run.messages)
    if open_:
        yield _join(open_)


def _follows(before: Run, run: Run) -> bool:
    return run.first == before.end and (run.source, run.dialect) == (before.source, before.dialect)


def _join(runs: list[Run]) -> Run:
    first = runs[0]
    if len(runs) == 1:
        return first
    sizes = np.concatenate([np.diff(positions_of(run.messages.ends), prepend=0) for run in runs])
    data = b"".join(run.messages.data for run in runs)
    return Run(first.first, first.source, first.dialect, MessageBlock(data, ends=index_of(np.cumsum(sizes))))


class NewValue:
    """``len`` is the number of its messages. They are not accepted, and nothing is visible before the commit."""

    def __init__(self, link: ReaderLink, stream: str, batch: int, first: int) -> None:
        """``first``: the number of the first message."""
        self.first = self.end = first
        self.size = 0
        """Bytes of its messages."""
        self.runs: list[Run] = []
        self.blocks = 0
        """How many were sent."""
        self._link, self._stream, self._batch = link, stream, batch

    def __len__(self) -> int:
        return self.end - self.first

    def add(self, range_: MessageRange) -> None:
        """Send the messages in blocks, in the open transaction."""
        dialect = self._link.dialect.name
        source, part = str(self._link.sources[range_.subscription].subscription.destination), range_.messages()
        packed = pack_all(part, source=source, dialect=dialect)
        blocks = ((self.end + first, last - first, block) for first, last, block in packed)
        ids = [each for each in range_.ids if each is not None]
        self.blocks += self._link.add_to_value(range_.subscription, ids, self._stream, self._batch, blocks)
        self.runs.append(Run(self.end, source, dialect, part))
        self.end += len(range_)
        self.size += range_.size


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
            self.make_all()

    def make_all(self) -> None:
        """Raise the error of a message that makes no row."""
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
