"""The phases of a machine with their events, as a table that can be printed and drawn. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from pyspark_jms.errors import IllegalStateError

__all__ = ["Moves", "Table"]

Moves = Mapping[Enum, Mapping[type, tuple[Enum, ...]]]


@dataclass(frozen=True)
class Table:
    """Which events a machine accepts in each phase, and which phases may follow."""

    name: str
    moves: Moves

    def __post_init__(self) -> None:
        rows = {phase: MappingProxyType(dict(row)) for phase, row in self.moves.items()}
        object.__setattr__(self, "moves", MappingProxyType(rows))

    def require(self, phase: Enum, event: object) -> None:
        if type(event) not in self.moves[phase]:
            raise self._illegal(f"{type(event).__name__} for {self.name} that is {phase.value!r}")

    def require_move(self, phase: Enum, event: object, after: Enum) -> None:
        if after not in self.moves[phase][type(event)]:
            raise self._illegal(f"{type(event).__name__} led {self.name} from {phase.value!r} to {after.value!r}")

    def _illegal(self, what: str) -> IllegalStateError:
        return IllegalStateError(f"Event {what}.", "This is a fault of pyspark-jms: please report it with the log.")

    def arrows(self) -> list[tuple[str, str, str]]:
        """Return the moves as (from, event, to)."""
        return sorted(
            (phase.value, event.__name__, after.value)
            for phase, row in self.moves.items()
            for event, afters in row.items()
            for after in afters
        )

    def text(self) -> str:
        """The table for people: a line for each phase and event."""
        lines = [
            f"{phase.value:<22} {event.__name__:<14} {' | '.join(after.value for after in afters)}"
            for phase, row in self.moves.items()
            for event, afters in row.items()
        ]
        return "\n".join(lines)

    def mermaid(self) -> str:
        """The diagram of ``docs/internals-exactly-once.md``: one arrow for each pair of phases."""
        pairs: dict[tuple[str, str], list[str]] = {}
        for before, event, after in self.arrows():
            pairs.setdefault((before, after), []).append(event)
        named = [
            f"    {before.replace(' ', '_')} --> {after.replace(' ', '_')}: {', '.join(events)}"
            for (before, after), events in sorted(pairs.items())
        ]
        return "\n".join(["stateDiagram-v2", f"    %% {self.name}", *named])
