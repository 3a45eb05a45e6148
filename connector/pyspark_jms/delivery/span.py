"""Stretches of received messages: what the ledgers move from state to state, and batches are made of. Pure."""

from array import array
from dataclasses import dataclass
from typing import Protocol

from pyspark_jms.delivery.states import State

__all__ = ["Batch", "Messages", "Span"]


class Messages(Protocol):
    """Received messages: their ids (None: of a connection that is gone), and where each one ends."""

    ids: list[bytes | None]

    @property
    def ends(self) -> "array[int]": ...

    def __len__(self) -> int: ...


@dataclass(slots=True)
class Span:
    """Messages ``first`` to ``last`` (not included) of one run of one lane, all in one state."""

    lane: int
    run: Messages
    first: int
    last: int
    state: State = State.RECEIVED

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def begin(self) -> int:
        """Where in the run's bytes the first message begins."""
        return self.run.ends[self.first - 1] if self.first else 0

    @property
    def end(self) -> int:
        return self.run.ends[self.last - 1]

    @property
    def octets(self) -> int:
        return self.end - self.begin

    @property
    def ids(self) -> list[bytes | None]:
        return self.run.ids[self.first : self.last]

    def cut(self, messages: int) -> "tuple[Span, Span]":
        middle = self.first + messages
        return (
            Span(self.lane, self.run, self.first, middle, self.state),
            Span(self.lane, self.run, middle, self.last, self.state),
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """The sequences from ``start`` to ``end`` (not included)."""

    start: int
    end: int
    spans: tuple[Span, ...]
