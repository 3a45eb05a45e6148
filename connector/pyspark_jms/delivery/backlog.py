"""How large the messages are that wait to be offered, and how many of them fit into a batch. Pure.

Of a journal's backlog only this is in memory: 8 bytes a message.
"""

from collections import deque

import numpy as np

from pyspark_jms.delivery.journal.segment import Index

__all__ = ["Backlog"]


class Backlog:
    """First in, first out."""

    def __init__(self) -> None:
        self._ends: deque[Index] = deque()  # of each stretch: bytes up to each of its messages
        self.messages = 0
        self.octets = 0

    def add(self, ends: Index) -> None:
        """A stretch of messages: where each ends, counted from the beginning of the first."""
        if len(ends):
            self._ends.append(ends)
            self.messages += len(ends)
            self.octets += int(ends[-1])

    def take(self, *, max_messages: int | None, max_bytes: int | None) -> Index:
        """Where each message of the next batch ends. The first fits always."""
        taken: list[Index] = []
        messages, octets = 0, 0
        while self._ends:
            ends = self._ends[0]
            fits = len(ends) if max_messages is None else min(len(ends), max_messages - messages)
            if max_bytes is not None:
                fits = min(fits, int(np.searchsorted(ends, max_bytes - octets, side="right")))
            fits = fits if messages else max(1, fits)
            if fits <= 0:
                break
            self._ends.popleft()
            if fits < len(ends):
                self._ends.appendleft(ends[fits:] - ends[fits - 1])
            taken.append(ends[:fits] + octets)
            messages += fits
            octets += int(ends[fits - 1])
        self.messages -= messages
        self.octets -= octets
        return np.concatenate(taken) if taken else np.empty(0, np.int64)
