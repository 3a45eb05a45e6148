"""The base of a receiver and a sender: a name, a handle, a state, and how the link ends (AMQP 1.0 §2.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.states import LINK, EndpointEvent, EndpointMachine, EndpointState
from pyspark_jms.amqp.wire.types import Attach, Detach, Error, Limits, Performative

__all__ = ["Channel", "Link", "PeerError", "peer_error"]


@dataclass(frozen=True, slots=True)
class PeerError:
    """Why the peer refused or ended something (§2.8.14)."""

    condition: str
    description: str = ""


def peer_error(error: Any) -> PeerError | None:
    """Return the error of a detach, end, close or rejection."""
    return PeerError(error.condition, error.description or "") if isinstance(error, Error) else None


class Channel(Protocol):
    """Where a link sends its frames: its session."""

    limits: Limits

    @property
    def max_payload(self) -> int:
        """The largest frame that the peer takes."""

    def send(self, performative: Performative, payload: bytes = b"") -> None: ...

    def send_frames(self, pieces: Sequence[Buffer], transfers: int) -> None:
        """Encoded transfer frames."""

    def next_delivery_id(self, count: int) -> int:
        """The first of ``count`` new delivery-ids."""

    @property
    def sendable(self) -> int:
        """Return how many transfer frames the peer's window takes."""

    def flow(self, **fields: Any) -> None:
        """Send a flow with the fields of the session, and these of a link."""


class Link:
    """Attached by its session. ``error``: why the peer detached it."""

    is_receiver: bool

    def __init__(self, channel: Channel, name: str, handle: int) -> None:
        self.channel = channel
        self.name = name
        self.handle = handle
        self.error: PeerError | None = None
        self.remote: Attach | None = None
        """The peer's attach."""
        self.delivery_count = 0
        self._machine: EndpointMachine[EndpointState] = EndpointMachine(LINK, EndpointState.STARTING, f"link {name}")

    @property
    def state(self) -> EndpointState:
        return self._machine.state

    @property
    def is_refused(self) -> bool:
        """The peer's attach has no terminus: a detach with the reason follows (§2.6.3)."""
        attach = self.remote
        return attach is not None and (attach.source if self.is_receiver else attach.target) is None

    @property
    def is_attached(self) -> bool:
        """Return whether the peer has not ended the link yet."""
        return self.state is not EndpointState.ENDED

    @property
    def is_ready(self) -> bool:
        return self.state is EndpointState.ACTIVE and not self.is_refused

    def attach(self, **fields: Any) -> None:
        attach = Attach(name=self.name, handle=self.handle, role=self.is_receiver, **fields)
        self.channel.send(attach)

    def detach(self, *, closed: bool = True) -> None:
        """``closed``: the link and what the peer keeps for it end; False keeps a durable subscription."""
        if self.state in {EndpointState.STARTING, EndpointState.ACTIVE}:
            self._machine.move(EndpointEvent.END)
            self.channel.send(Detach(handle=self.handle, closed=closed))

    def on_attach(self, attach: Attach) -> None:
        self._machine.move(EndpointEvent.PEER_START)
        self.remote = attach

    def on_detach(self, detach: Detach) -> None:
        answers = self.state is EndpointState.ACTIVE
        self.error = self.error or peer_error(detach.error)
        self._machine.move(EndpointEvent.PEER_END)
        if answers:
            self.channel.send(Detach(handle=self.handle, closed=detach.closed))

    def on_connection_closed(self) -> None:
        self._machine.move(EndpointEvent.CONNECTION_CLOSED)
