"""The one session of a connection, on channel 0: windows, delivery-ids, links by handle (AMQP 1.0 §2.5)."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pyspark_jms.amqp.wire.limits import MIN_MAX_FRAME_BYTES, Limits
from pyspark_jms.amqp.wire.link import Link, PeerError, peer_error
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.states import SESSION, EndpointEvent, EndpointMachine, EndpointState
from pyspark_jms.amqp.wire.transfers import plain_handle
from pyspark_jms.amqp.wire.types import Attach, Begin, Detach, Disposition, End, Flow, Performative, Transfer, frame
from pyspark_jms.amqp.wire.values import malformed

__all__ = ["Session"]

_SEQUENCE = 1 << 32
_OUTGOING_WINDOW = (1 << 31) - 1
_HANDLE_MAX = 255


AnyLink = TypeVar("AnyLink", bound=Link)


class Session:
    def __init__(self, write: Callable[[Buffer], None], incoming_window: int, limits: Limits) -> None:
        self._write = write
        self.limits = limits
        self._window = incoming_window
        self._left = incoming_window
        self._is_narrow = False
        self._is_asked = False
        """Whether the peer waits for a flow."""
        self._next_incoming = 0
        self._next_outgoing = 0
        self._next_delivery = 0
        self._peer_window = 0
        self._links: list[Link] = []
        self._by_peer_handle: dict[int, Link] = {}
        self._machine: EndpointMachine[EndpointState, EndpointEvent] = EndpointMachine(
            SESSION, EndpointState.STARTING, "session"
        )
        self.max_payload = MIN_MAX_FRAME_BYTES
        self.error: PeerError | None = None

    @property
    def state(self) -> EndpointState:
        return self._machine.state

    def begin(self) -> None:
        self.send(
            Begin(
                next_outgoing_id=self._next_outgoing,
                incoming_window=self._window,
                outgoing_window=_OUTGOING_WINDOW,
                handle_max=_HANDLE_MAX,
            )
        )

    # --- links ---------------------------------------------------------------------------------

    def link(self, kind: type[AnyLink], name: str) -> AnyLink:
        """A link that is not attached yet.

        Both peers have detached an ended link: its handle is free again (§2.6.4).
        """
        ended = (number for number, each in enumerate(self._links) if each.state is EndpointState.ENDED)
        handle = next(ended, len(self._links))
        link = kind(self, name, handle)
        self._links[handle : handle + 1] = [link]
        return link

    # --- sending -------------------------------------------------------------------------------

    def send(self, performative: Performative, payload: bytes = b"") -> None:
        self._write(frame(0, performative, payload))

    def send_frames(self, pieces: Sequence[Buffer], transfers: int) -> None:
        """Whole frames. The pieces must not change before they are written."""
        self._next_outgoing = (self._next_outgoing + transfers) % _SEQUENCE
        self._peer_window -= transfers
        for piece in pieces:
            self._write(piece)

    def next_delivery_id(self, count: int) -> int:
        first = self._next_delivery
        self._next_delivery = (first + count) % _SEQUENCE
        return first

    @property
    def incoming_window(self) -> int:
        """Frames that the peer may still send before it must wait for a flow."""
        return self._left

    @property
    def sendable(self) -> int:
        return max(0, self._peer_window)

    def flow(self, **fields: Any) -> None:
        self.send(
            Flow(
                next_incoming_id=self._next_incoming,
                incoming_window=self._left,
                next_outgoing_id=self._next_outgoing,
                outgoing_window=_OUTGOING_WINDOW,
                **fields,
            )
        )

    def answer(self) -> None:
        """One flow for all questions of the peer, which would fill the memory if it asked and did not read."""
        if self._is_asked and self.state is EndpointState.ACTIVE:
            self.flow()
        self._is_asked = False

    def narrow(self, frames: int | None) -> None:
        """While no transfer is on its way: the peer may send so many more. None: as many as before."""
        self._is_narrow = frames is not None
        self._left = self._window if frames is None else frames
        self.flow()

    # --- receiving -----------------------------------------------------------------------------

    def take_plain(self, buffer: bytes | bytearray | memoryview, position: int) -> int:
        """Take transfers of whole messages from here on; the position of the first other frame."""
        while (handle := plain_handle(buffer, position)) is not None:
            link = self._by_peer_handle.get(handle)
            if not isinstance(link, Receiver):
                break
            position, messages = link.take_plain(buffer, position, handle)
            if not messages:
                break
            self._count(messages)
        return position

    def _count(self, transfers: int) -> None:
        self._next_incoming = (self._next_incoming + transfers) % _SEQUENCE
        self._left -= transfers
        if not self._is_narrow and self._left <= self._window // 2:
            self._left = self._window
            self.flow()

    def on(self, performative: Performative, payload: bytes | memoryview) -> None:
        """Any performative of this channel."""
        match performative:
            case Transfer():
                link = self._by_peer_handle.get(performative.handle)
                if not isinstance(link, Receiver):
                    raise malformed("a transfer on a link that does not receive")
                link.on_transfer(performative, payload)
                self._count(1)
            case Disposition():
                self._on_disposition(performative)
            case Flow():
                self._on_flow(performative)
            case Attach():
                self._on_attach(performative)
            case Detach():
                detached = self._by_peer_handle.pop(performative.handle, None)
                if detached is None:
                    raise malformed("a detach of a link that is not attached")
                detached.on_detach(performative)
            case Begin():
                self._on_begin(performative)
            case End():
                self._on_end(performative)
            case _:
                raise malformed("a performative that does not belong to a session")

    def _on_begin(self, begin: Begin) -> None:
        self._machine.move(EndpointEvent.PEER_START)
        self._next_incoming = begin.next_outgoing_id
        self._peer_window = begin.incoming_window

    def _on_end(self, end: End) -> None:
        answers = self.state is EndpointState.ACTIVE
        self.error = self.error or peer_error(end.error)
        self._machine.move(EndpointEvent.PEER_END)
        for link in self._links:
            link.on_connection_closed()
        if answers:
            self.send(End())

    def _on_attach(self, attach: Attach) -> None:
        starting = (link for link in self._links if link.state in {EndpointState.STARTING, EndpointState.ENDING})
        link = next((e for e in starting if e.name == attach.name and e.is_receiver is not attach.role), None)
        if link is None:
            raise malformed("an attach that answers none")
        self._by_peer_handle[attach.handle] = link
        link.on_attach(attach)

    def _on_disposition(self, disposition: Disposition) -> None:
        last = disposition.first if disposition.last is None else disposition.last
        if last - disposition.first > _OUTGOING_WINDOW:
            raise malformed("a disposition of more deliveries than there are")
        for link in self._links:
            waiting = _waiting_for(link, by_receiver=disposition.role)
            if not waiting or not isinstance(link, Sender | Receiver):
                continue
            if last - disposition.first < len(waiting):
                link.on_disposition(disposition, disposition.first, last)
            else:
                link.on_disposition(disposition, max(disposition.first, min(waiting)), min(last, max(waiting)))

    def _on_flow(self, flow: Flow) -> None:
        if flow.next_incoming_id is not None:
            sent = (self._next_outgoing - flow.next_incoming_id) % _SEQUENCE
            self._peer_window = flow.incoming_window - sent
        link = None if flow.handle is None else self._by_peer_handle.get(flow.handle)
        if isinstance(link, Receiver | Sender):
            link.on_flow(flow)
        self._is_asked = self._is_asked or bool(flow.echo)

    def on_connection_closed(self) -> None:
        self._machine.move(EndpointEvent.CONNECTION_CLOSED)
        for link in self._links:
            link.on_connection_closed()


def _waiting_for(link: Link, *, by_receiver: bool) -> set[int]:
    """The deliveries of a link that a disposition of the peer, in this role, may be about."""
    if by_receiver:
        return link.unsettled if isinstance(link, Sender) else set()
    return link.unanswered if isinstance(link, Receiver) else set()
