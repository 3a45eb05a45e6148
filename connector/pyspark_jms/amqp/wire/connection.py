"""One AMQP 1.0 connection of a client and its one session, without a socket: bytes in, states and messages out, bytes
to send.

The caller reads the socket and calls ``receive_data``, then writes what ``data_to_send`` returns, and looks at the
states of the connection, its session and their links. Every method may queue bytes to send.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyspark_jms.amqp.wire.link import Link, PeerError, peer_error
from pyspark_jms.amqp.wire.receiver import Receiver, plain_handle
from pyspark_jms.amqp.wire.sasl import Login, LoginRefusedError, SaslExchange
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.states import (
    CONNECTION,
    SESSION,
    ConnectionEvent,
    ConnectionState,
    EndpointEvent,
    EndpointMachine,
    EndpointState,
)
from pyspark_jms.amqp.wire.types import (
    AMQP_HEADER,
    EMPTY_FRAME,
    HEADER_BYTES,
    MIN_MAX_FRAME_BYTES,
    SASL_HEADER,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Limits,
    Open,
    Performative,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Transfer,
    decode_performative,
    frame,
    frame_size,
)
from pyspark_jms.amqp.wire.values import malformed
from pyspark_jms.jms.secret_text import SecretBytes

__all__ = ["Connection", "Session"]

_MIN_IDLE_SECONDS = 1.0
"""A peer may state a shorter idle time-out. A client that obeyed 1 ms would do nothing else than send empty frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What the peer's ``open`` has stated (§2.7.1)."""

    idle_seconds: float | None = None
    capabilities: frozenset[str] = frozenset()
    properties: Mapping[str, Any] = field(default_factory=dict)


class Connection:
    """``start`` first. ``session`` begins with the connection, so no round trip is spent on it."""

    def __init__(
        self,
        *,
        container_id: str,
        hostname: str,
        login: Login,
        idle_seconds: float,
        incoming_window: int,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._container_id = container_id
        self._hostname = hostname
        self._idle_seconds = idle_seconds
        self._pending = bytearray()
        self._to_send: list[Buffer] = []
        self._expects_header = SASL_HEADER
        self._exchange = SaslExchange(login, hostname)
        self._machine: EndpointMachine[ConnectionState] = EndpointMachine(
            CONNECTION, ConnectionState.START, "connection"
        )
        self.session = Session(self._to_send.append, incoming_window, self._limits)
        self.peer = Peer()
        self.has_peer_opened = False
        self.error: PeerError | None = None
        """Why the peer refused the login, or closed the connection."""

    @property
    def state(self) -> ConnectionState:
        return self._machine.state

    def start(self) -> None:
        self._machine.move(ConnectionEvent.CONNECT)
        self._to_send.append(SASL_HEADER)

    def close(self) -> None:
        if self.state in {ConnectionState.OPENING, ConnectionState.OPEN}:
            self._machine.move(ConnectionEvent.CLOSE)
            self._to_send.append(frame(0, Close()))

    def keep_alive(self) -> None:
        """Queue an empty frame (§2.4.5)."""
        if self.state is ConnectionState.OPEN:
            self._to_send.append(EMPTY_FRAME)

    def data_to_send(self) -> list[Buffer]:
        """Return what must be written now, in order."""
        self.session.answer()
        data = self._to_send[:]
        self._to_send.clear()  # the session appends to this very list
        return data

    def receive_end(self) -> None:
        """The peer will send no more bytes."""
        self._machine.move(ConnectionEvent.END_OF_BYTES)
        self.session.on_connection_closed()

    def receive_data(self, data: Buffer) -> None:
        """``MalformedFrameError``: the bytes are not AMQP 1.0, and the connection is of no more use.

        Bytes after the end of the connection are passed over: a broker may send its header after a refused login.
        """
        view = memoryview(data)
        while view and self.state is not ConnectionState.CLOSED:
            taken = 0 if self._pending or self._expects_header else self._take_frames(view)
            view = view[taken or self._complete(view) :]

    def _take_frames(self, data: memoryview) -> int:
        """Take whole frames without copying them. Return the position of what follows them."""
        position = 0
        while not self._expects_header and self.state is not ConnectionState.CLOSED:
            if self.state in {ConnectionState.OPEN, ConnectionState.CLOSING}:
                position = self.session.take_plain(data, position)
            left = len(data) - position
            if left < HEADER_BYTES or left < (size := frame_size(data, position, self._limits)):
                break
            self._on_frame(data[position : position + size])
            position += size
        return position

    def _complete(self, data: memoryview) -> int:
        """Add to the pending header or frame what it lacks, and take it once it is whole. Return the bytes used."""
        used = 0
        while used < len(data) and (missing := self._pending_size() - len(self._pending)):
            piece = data[used : used + missing]
            self._pending += piece
            used += len(piece)
        if self._expects_header:
            self._take_header()
        elif len(self._pending) == self._pending_size():
            whole, self._pending = self._pending, bytearray()
            self._take_frames(memoryview(whole))
        return used

    def _pending_size(self) -> int:
        """The bytes of the pending header or frame, as far as they are known."""
        if self._expects_header or len(self._pending) < HEADER_BYTES:
            return HEADER_BYTES
        return frame_size(self._pending, 0, self._limits)

    def _take_header(self) -> None:
        """Take the eight bytes that name the protocol (§2.2)."""
        got, wanted = bytes(self._pending), self._expects_header
        if not wanted.startswith(got[:4]):
            raise malformed("they do not begin with AMQP")
        if len(got) < len(wanted):
            return
        if got != wanted:
            raise malformed(f"the protocol header is {got!r}, and {wanted!r} was expected")
        self._expects_header = b""
        self._pending.clear()

    # --- frames --------------------------------------------------------------------------------

    def _on_frame(self, data: memoryview) -> None:
        begin = data[4] * 4
        if begin == len(data):
            return  # an empty frame
        performative, payload = decode_performative(data, begin, len(data))
        if self.state is ConnectionState.SASL:
            try:
                self._log_in(performative)
            except LoginRefusedError as error:
                self.error = PeerError("amqp:unauthorized-access", str(error))
                self.receive_end()
        else:
            self._on_amqp(performative, data[payload:])

    def _log_in(self, performative: Performative) -> None:
        match performative:
            case SaslMechanisms():
                self._send_secret(self._exchange.init(tuple(performative.sasl_server_mechanisms)))
            case SaslChallenge():
                self._send_secret(SaslResponse(response=self._exchange.response(performative.challenge)))
            case SaslOutcome(code=0):
                self._exchange.finish(performative.additional_data)
                self._expects_header = AMQP_HEADER
                self._machine.move(ConnectionEvent.LOGGED_IN)
                self._to_send += [AMQP_HEADER, frame(0, self._open())]
                self.session.begin()
            case SaslOutcome():
                raise self._exchange.refusal
            case _:
                raise malformed("a frame that does not belong to a login")

    def _send_secret(self, performative: Performative) -> None:
        self._to_send.append(SecretBytes(frame(0, performative, sasl=True)))

    def _open(self) -> Open:
        return Open(
            container_id=self._container_id,
            hostname=self._hostname,
            max_frame_size=self._limits.max_frame_bytes,
            channel_max=0,
            idle_time_out=int(self._idle_seconds * 1000),
        )

    def _on_amqp(self, performative: Performative, payload: memoryview) -> None:
        match performative:
            case Open():
                self._machine.move(ConnectionEvent.PEER_OPEN)
                self._on_open(performative)
            case Close():
                answers = self.state is not ConnectionState.CLOSING
                self.error = self.error or peer_error(performative.error)
                self._machine.move(ConnectionEvent.PEER_CLOSE)
                self.session.on_connection_closed()
                if answers:
                    self._to_send.append(frame(0, Close()))
            case _:
                self.session.on(performative, payload)

    def _on_open(self, peer: Open) -> None:
        idle = peer.idle_time_out
        self.peer = Peer(
            idle_seconds=max(idle / 1000, _MIN_IDLE_SECONDS) if idle else None,
            capabilities=frozenset(peer.offered_capabilities or ()),
            properties=peer.properties or {},
        )
        self.has_peer_opened = True
        max_frame_bytes = max(peer.max_frame_size or (1 << 32) - 1, MIN_MAX_FRAME_BYTES)
        self.session.max_payload = min(max_frame_bytes, self._limits.max_frame_bytes)


# --- the session of a connection, on channel 0: windows, delivery-ids, links by handle (§2.5) --------

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
        self._machine: EndpointMachine[EndpointState] = EndpointMachine(SESSION, EndpointState.STARTING, "session")
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
        """Send whole frames. The pieces must not change before they are written."""
        self._next_outgoing = (self._next_outgoing + transfers) % _SEQUENCE
        self._peer_window -= transfers
        for piece in pieces:
            self._write(piece)

    def next_delivery_id(self, count: int) -> int:
        first = self._next_delivery
        self._next_delivery = (first + count) % _SEQUENCE
        return first

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
        """Let the peer send so many more, while no transfer is on its way; with None, as many as before."""
        self._is_narrow = frames is not None
        self._left = self._window if frames is None else frames
        self.flow()

    # --- receiving -----------------------------------------------------------------------------

    def take_plain(self, buffer: Buffer, position: int) -> int:
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
            if not isinstance(link, Sender | Receiver) or link.is_receiver is disposition.role:
                continue  # it is of the same role as the peer
            waiting = link.unanswered if isinstance(link, Receiver) else link.unsettled
            if not waiting:
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
