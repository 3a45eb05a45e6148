"""The states of connection, session and link as tables, state × event → state (AMQP 1.0 §2.4.6, §2.5.5, §2.6.3).

The tables are the client's view, and nothing else changes a state.
"""

from enum import StrEnum
from typing import Generic, TypeVar

from pyspark_jms.amqp.wire.values import malformed
from pyspark_jms.delivery.state_table import StateTable

__all__ = [
    "CONNECTION",
    "LINK",
    "SESSION",
    "ConnectionEvent",
    "ConnectionState",
    "EndpointEvent",
    "EndpointMachine",
    "EndpointState",
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
    """The states of a session (begin, end) and of a link (attach, detach)."""

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

CONNECTION = StateTable.of_one(
    "a connection",
    {
        _C.START: {_CE.CONNECT: _C.SASL, _CE.END_OF_BYTES: _C.CLOSED},
        _C.SASL: {_CE.LOGGED_IN: _C.OPENING, _CE.END_OF_BYTES: _C.CLOSED},
        _C.OPENING: {
            _CE.PEER_OPEN: _C.OPEN,
            _CE.PEER_CLOSE: _C.CLOSED,
            _CE.CLOSE: _C.CLOSING,
            _CE.END_OF_BYTES: _C.CLOSED,
        },
        _C.OPEN: {_CE.CLOSE: _C.CLOSING, _CE.PEER_CLOSE: _C.CLOSED, _CE.END_OF_BYTES: _C.CLOSED},
        _C.CLOSING: {_CE.PEER_OPEN: _C.CLOSING, _CE.PEER_CLOSE: _C.CLOSED, _CE.END_OF_BYTES: _C.CLOSED},
        _C.CLOSED: {_CE.END_OF_BYTES: _C.CLOSED},
    },
)

SESSION = LINK = StateTable.of_one(
    "an endpoint",
    {
        _E.STARTING: {_EE.PEER_START: _E.ACTIVE, _EE.END: _E.ENDING, _EE.CONNECTION_CLOSED: _E.ENDED},
        _E.ACTIVE: {_EE.END: _E.ENDING, _EE.PEER_END: _E.ENDED, _EE.CONNECTION_CLOSED: _E.ENDED},
        _E.ENDING: {_EE.PEER_START: _E.ENDING, _EE.PEER_END: _E.ENDED, _EE.CONNECTION_CLOSED: _E.ENDED},
        _E.ENDED: {_EE.CONNECTION_CLOSED: _E.ENDED},
    },
)

State = TypeVar("State", bound=StrEnum)


class EndpointMachine(Generic[State]):
    """One state, moved by events. ``what`` names its owner in errors."""

    def __init__(self, table: StateTable[State], first: State, what: str) -> None:
        self._table = table
        self._what = what
        self.state = first

    def move(self, event: ConnectionEvent | EndpointEvent) -> None:
        """Take an event. One that the table does not have is malformed if the peer's, else an ``IllegalStateError``."""
        if event.startswith("peer's") and event not in self._table.moves[self.state]:
            raise malformed(f"the {event} of a {self._what} that is {self.state}")
        self.state = self._table.after(self.state, event, self._what)
