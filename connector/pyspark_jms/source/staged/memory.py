"""The staged messages that are in the driver's memory, by their numbers, until Spark has committed them. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pyspark_jms.blocks.block import MessageBlock, index_of, positions_of
from pyspark_jms.blocks.fit import cuts
from pyspark_jms.blocks.part import BatchPart, Place
from pyspark_jms.blocks.shared_memory import SharedMemory

__all__ = ["Run", "StagedMemory", "joined"]

_RUN_BYTES, _RUN_MESSAGES = 15 << 20, 1 << 14
"""Staged blocks are joined up to this size: a task decodes one large block faster than many small ones."""


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """Consecutive messages of one source. The first one has the number ``first``."""

    first: int
    source: str
    dialect: str
    messages: MessageBlock
    moved_ms: int

    @property
    def end(self) -> int:
        return self.first + len(self.messages)

    def within(self, first: int, end: int) -> "Run":
        """The part of it that lies in [first, end)."""
        a, b = max(first, self.first), min(end, self.end)
        part = self.messages.slice(a - self.first, b - self.first)
        return Run(a, self.source, self.dialect, part, self.moved_ms)


class StagedMemory:
    """Runs in the order of their numbers, without an overlap."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def add(self, runs: Iterable[Run]) -> None:
        self._runs += runs

    def replace(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)

    def forget_below(self, number: int) -> None:
        self._runs = [run for run in self._runs if run.end > number]

    @property
    def oldest_ms(self) -> int | None:
        return min((run.moved_ms for run in self._runs), default=None)

    def between(self, first: int, end: int) -> list[Run]:
        at = bisect_right(self._runs, first, key=lambda run: run.end)
        found = []
        for run in self._runs[at:]:
            if run.first >= end:
                break
            found.append(run.within(first, end))
        return found

    def cuts(self, first: int, end: int, size: int) -> tuple[int, ...]:
        """The numbers at which each part begins, after the first one, if [first, end) is cut into parts of a size."""
        numbers: list[int] = []
        sizes: list[np.ndarray] = []
        for run in self.between(first, end):
            numbers += range(run.first, run.end)
            sizes.append(np.diff(positions_of(run.messages.ends), prepend=0))
        if not sizes:
            return ()
        ends = np.cumsum(np.concatenate(sizes))
        return tuple(numbers[index] for index in cuts(ends, size))

    def tasks(self, starts: Sequence[int], end: int, memory: SharedMemory | None) -> Iterator[list[BatchPart]]:
        """The parts of each task: it reads from its start to the next one. ``memory``: where tasks map them."""
        for first, last in zip(starts, (*starts[1:], end), strict=True):
            parts = []
            for run in self.between(first, last):
                place: Place = run.messages if memory is None else memory.put(run.messages)
                parts.append(BatchPart(run.source, run.dialect, run.first, place))
            if parts:
                yield parts


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
    return Run(
        first.first, first.source, first.dialect, MessageBlock(data, ends=index_of(np.cumsum(sizes))), first.moved_ms
    )
