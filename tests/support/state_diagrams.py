"""The moves of a ``StateTable``, and the diagram of a page."""

from enum import Enum


def arrows(table):
    """Return the moves as (from, event, to)."""
    return sorted(
        (state.value, _name(event), after.value)
        for state, row in table.moves.items()
        for event, afters in row.items()
        for after in afters
    )


def mermaid(table):
    """The diagram of a page: one arrow for each pair of states."""
    pairs = {}
    for before, event, after in arrows(table):
        pairs.setdefault((before, after), []).append(event)
    named = [
        f"    {before.replace(' ', '_')} --> {after.replace(' ', '_')}: {', '.join(events)}"
        for (before, after), events in sorted(pairs.items())
    ]
    return "\n".join(["stateDiagram-v2", f"    %% {table.name}", *named])


def _name(key):
    return str(key.value) if isinstance(key, Enum) else str(key.__name__)
