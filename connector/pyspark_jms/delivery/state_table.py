"""A machine as a table: in each state, the events that it accepts and the states that may follow. Values only.

The messages of a ledger, the machines of exactly-once queries and the endpoints of AMQP have such tables. A move that a
table does not have is an internal error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pyspark_jms.errors import IllegalStateError

__all__ = ["StateTable"]

S = TypeVar("S", bound=Enum)


@dataclass(frozen=True)
class StateTable(Generic[S]):
    """``name`` is what has the states. An event is a member of an enum, or a value whose class is in the table."""

    name: str
    moves: Mapping[S, Mapping[Any, tuple[S, ...]]]

    def __post_init__(self) -> None:
        rows = {state: MappingProxyType(dict(row)) for state, row in self.moves.items()}
        object.__setattr__(self, "moves", MappingProxyType(rows))

    @classmethod
    def of_one(cls, name: str, moves: Mapping[S, Mapping[Any, S]]) -> "StateTable[S]":
        """Make a table in which one state follows each event."""
        return cls(name, {state: {event: (after,) for event, after in row.items()} for state, row in moves.items()})

    def after(self, state: S, event: object, which: str = "") -> S:
        """Return the state after the event, of the one that may follow. An ``IllegalStateError`` names ``which``."""
        self.require(state, event, which)
        (after,) = self.moves[state][_key(event)]
        return after

    def require(self, state: S, event: object, which: str = "") -> None:
        if _key(event) not in self.moves.get(state, ()):
            raise self._illegal(f"{_shown(event)} for {self.name} that is {state.value!r}{which and f' ({which})'}")

    def require_move(self, state: S, event: object, after: S) -> None:
        if after not in self.moves[state][_key(event)]:
            raise self._illegal(f"{_shown(event)} led {self.name} from {state.value!r} to {after.value!r}")

    def _illegal(self, what: str) -> IllegalStateError:
        return IllegalStateError(f"Event {what}.", "This is a fault of pyspark-jms: please report it with the log.")


def _key(event: object) -> object:
    return event if isinstance(event, Enum) else type(event)


def _shown(event: object) -> str:
    return repr(event.value) if isinstance(event, Enum) else type(event).__name__
