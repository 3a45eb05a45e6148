"""A machine whose every move is checked against its table, and whose state is one frozen value."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pyspark_jms.delivery.register.outcomes import Phase, Reason, Stop
from pyspark_jms.delivery.state_table import StateTable

__all__ = ["Machine"]


class HasPhase(Protocol):
    @property
    def phase(self) -> Enum: ...


S = TypeVar("S", bound=HasPhase)
C = TypeVar("C")
A = TypeVar("A")


class Machine(Generic[S, C]):
    """``next(event)`` returns the next command. Nothing else changes ``state``, which can be read and set."""

    table: ClassVar[StateTable[Any]]

    def __init__(self, state: S) -> None:
        self.state = state

    def next(self, event: object) -> C:
        """Raise ``IllegalStateError`` if the phase does not accept the event."""
        before = self.state.phase
        self.table.require(before, event)
        command = self._handlers()[type(event)](event)
        self.table.require_move(before, event, self.state.phase)
        return command

    def _handlers(self) -> Mapping[type, Callable[..., C]]:
        raise NotImplementedError

    def _end(self, answer: A, **changes: object) -> A:
        self._set(phase=Phase.ENDED, **changes)
        return answer

    def _stop(self, reason: Reason) -> Stop:
        return self._end(Stop(reason))

    def _set(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[type-var]
