"""How large the messages are that wait to be offered, and how many of them fit into a batch. Pure.

Of a journal's backlog only this is in memory: 8 bytes a message.
"""

from collections import deque

import numpy as np

from pyspark_jms.blocks.block import Positions, fit

__all__ = ["Backlog"]


class Backlog:
    """First in, first out."""

    def __init__(self) -> None:
        self._ends: deque[Positions] = deque()  # of each block: bytes up to each of its messages
        self.messages = 0
        self.size = 0
        """Bytes of the messages."""

    def add(self, ends: Positions) -> None:
        """Consecutive messages: where each ends, counted from the beginning of the first."""
        if len(ends):
            self._ends.append(ends)
            self.messages += len(ends)
            self.size += int(ends[-1])

    def take(self, *, max_messages: int | None, max_bytes: int | None) -> Positions:
        """Where each message of the next batch ends. The first fits always."""
        taken: list[Positions] = []
        messages, size = 0, 0
        while self._ends:
            ends = self._ends[0]
            fits = fit(
                ends,
                size=None if max_bytes is None else max_bytes - size,
                messages=None if max_messages is None else max_messages - messages,
                at_least_one=not messages,
            )
            if not fits:
                break
            self._ends.popleft()
            if fits < len(ends):
                self._ends.appendleft(ends[fits:] - ends[fits - 1])
            taken.append(ends[:fits] + size)
            messages += fits
            size += int(ends[fits - 1])
        self.messages -= messages
        self.size -= size
        return np.concatenate(taken) if taken else np.empty(0, np.int64)
