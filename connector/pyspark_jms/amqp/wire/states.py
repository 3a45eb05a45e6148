"""The states of connection, session and link as tables, state × event → state (AMQP 1.0 §2.4.6, §2.5.5, §2.6.3).

The tables are the client's view, and nothing else changes a state. ``as_markdown`` prints a table.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from pyspark_jms.amqp.wire.values import malformed
from pyspark_jms.errors import IllegalStateError

__all__ = [
    "CONNECTION",
    "LINK",
    "SESSION",
    "ConnectionEvent",
    "ConnectionState",
    "EndpointEvent",
    "EndpointMachine",
    "EndpointState",
    "as_markdown",
]


class ConnectionState(StrEnum):
    START = "start"
    SASL = "sasl"
    """The login is under way, or the peer's protocol header is awaited."""
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


class ConnectionEvent(StrEnum):
    CONNECT = "connect"
    LOGGED_IN = "logged in"
    PEER_OPEN = "peer's open"
    CLOSE = "close"
    PEER_CLOSE = "peer's close"
    END_OF_BYTES = "end of bytes"


class EndpointState(StrEnum):
    """Of a session (begin, end) and of a link (attach, detach)."""

    STARTING = "starting"
    ACTIVE = "active"
    ENDING = "ending"
    ENDED = "ended"


class EndpointEvent(StrEnum):
    PEER_START = "peer's start"
    END = "end"
    PEER_END = "peer's end"
    CONNECTION_CLOSED = "connection closed"


_C, _CE, _E, _EE = ConnectionState, ConnectionEvent, EndpointState, EndpointEvent

CONNECTION: Mapping[tuple[ConnectionState, ConnectionEvent], ConnectionState] = {
    (_C.START, _CE.CONNECT): _C.SASL,
    (_C.SASL, _CE.LOGGED_IN): _C.OPENING,
    (_C.OPENING, _CE.PEER_OPEN): _C.OPEN,
    (_C.OPENING, _CE.PEER_CLOSE): _C.CLOSED,
    (_C.OPENING, _CE.CLOSE): _C.CLOSING,
    (_C.OPEN, _CE.CLOSE): _C.CLOSING,
    (_C.OPEN, _CE.PEER_CLOSE): _C.CLOSED,
    (_C.CLOSING, _CE.PEER_OPEN): _C.CLOSING,
    (_C.CLOSING, _CE.PEER_CLOSE): _C.CLOSED,
    **{(state, _CE.END_OF_BYTES): _C.CLOSED for state in _C},
}

_ENDPOINT: Mapping[tuple[EndpointState, EndpointEvent], EndpointState] = {
    (_E.STARTING, _EE.PEER_START): _E.ACTIVE,
    (_E.STARTING, _EE.END): _E.ENDING,
    (_E.ACTIVE, _EE.END): _E.ENDING,
    (_E.ACTIVE, _EE.PEER_END): _E.ENDED,
    (_E.ENDING, _EE.PEER_START): _E.ENDING,
    (_E.ENDING, _EE.PEER_END): _E.ENDED,
    **{(state, _EE.CONNECTION_CLOSED): _E.ENDED for state in _E},
}
SESSION = LINK = _ENDPOINT

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)


class EndpointMachine(Generic[State, Event]):
    """One state, moved by events. ``what`` names its owner in errors."""

    def __init__(self, table: Mapping[tuple[State, Event], State], first: State, what: str) -> None:
        self._table = table
        self._what = what
        self.state = first

    def move(self, event: Event) -> None:
        """An event that the table does not have: the peer's is malformed, ours an ``IllegalStateError``."""
        following = self._table.get((self.state, event))
        if following is None and event.startswith("peer's"):
            raise malformed(f"the {event} of a {self._what} that is {self.state}")
        if following is None:
            raise IllegalStateError(f"Event '{event}' for a {self._what} that is '{self.state}'.", "Report this.")
        self.state = following


def as_markdown(table: Mapping[tuple[State, Event], State]) -> str:
    """A row for each state, a column for each event."""
    states, events = list(dict.fromkeys(s for s, _ in table)), list(dict.fromkeys(e for _, e in table))
    lines = ["| state | " + " | ".join(events) + " |", "|---" * (len(events) + 1) + "|"]
    for state in states:
        cells = [str(table.get((state, event), "")) for event in events]
        lines.append(f"| {state} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
