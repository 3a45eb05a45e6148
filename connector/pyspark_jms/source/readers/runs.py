"""The messages of a value in the memory of a task, by their numbers. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pyspark_jms.blocks.block import MessageBlock, index_of, positions_of

__all__ = ["Run", "joined"]

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
