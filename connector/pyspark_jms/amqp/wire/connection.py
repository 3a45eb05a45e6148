"""One AMQP 1.0 connection of a client, without a socket: bytes in, states and messages out, bytes to send.

The caller reads the socket and calls ``receive_data``, then writes what ``data_to_send`` returns, and looks at the
states of the connection, its session and their links. Every method may queue bytes to send.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_jms.amqp.wire.limits import MIN_IDLE_SECONDS, MIN_MAX_FRAME_BYTES, Limits
from pyspark_jms.amqp.wire.link import PeerError, peer_error
from pyspark_jms.amqp.wire.sasl import Login, LoginRefusedError, SaslExchange
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.session import Session
from pyspark_jms.amqp.wire.states import CONNECTION, ConnectionEvent, ConnectionState, EndpointMachine
from pyspark_jms.amqp.wire.types import (
    AMQP_HEADER,
    EMPTY_FRAME,
    HEADER_BYTES,
    SASL_HEADER,
    Close,
    Open,
    Performative,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    decode_performative,
    frame,
    frame_size,
)
from pyspark_jms.amqp.wire.values import malformed
from pyspark_jms.jms.secret_text import SecretBytes

__all__ = ["Connection", "Peer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The peer's ``open`` (§2.7.1)."""

    container_id: str
    max_frame_bytes: int
    idle_seconds: float | None
    capabilities: frozenset[str]
    properties: Mapping[str, Any]


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
        self._machine: EndpointMachine[ConnectionState, ConnectionEvent] = EndpointMachine(
            CONNECTION, ConnectionState.START, "connection"
        )
        self.session = Session(self._to_send.append, incoming_window, self._limits)
        self.peer: Peer | None = None
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
        """What must be written now, in order."""
        self.session.answer()
        data = self._to_send[:]
        self._to_send.clear()  # the session appends to this very list
        return data

    def receive_end(self) -> None:
        """The peer will send no more bytes."""
        self._machine.move(ConnectionEvent.END_OF_BYTES)
        self.session.on_connection_closed()

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """``MalformedFrameError``: the bytes are not AMQP 1.0, and the connection is of no more use.

        Bytes after the end of the connection are passed over: a broker may send its header after a refused login.
        """
        view = memoryview(data)
        while view and self.state is not ConnectionState.CLOSED:
            taken = 0 if self._pending or self._expects_header else self._take_frames(view)
            view = view[taken or self._complete(view) :]

    def _take_frames(self, data: memoryview) -> int:
        """Take whole frames without copying them. Returns the position of what follows them."""
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
        """Add to the pending header or frame what it lacks, and take it once it is whole. Returns the bytes used."""
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
        """§2.2: eight bytes that name the protocol."""
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
            self._on_sasl(performative)
        else:
            self._on_amqp(performative, data[payload:])

    def _on_sasl(self, performative: Performative) -> None:
        try:
            self._log_in(performative)
        except LoginRefusedError as error:
            self._refuse(str(error))

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
                raise LoginRefusedError(f"the login was refused. {self._exchange.mechanisms}")
            case _:
                raise malformed("a frame that does not belong to a login")

    def _send_secret(self, performative: Performative) -> None:
        self._to_send.append(SecretBytes(frame(0, performative, sasl=True)))

    def _refuse(self, reason: str) -> None:
        self.error = PeerError("amqp:unauthorized-access", reason)
        self.receive_end()

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
            container_id=peer.container_id,
            max_frame_bytes=max(peer.max_frame_size or (1 << 32) - 1, MIN_MAX_FRAME_BYTES),
            idle_seconds=max(idle / 1000, MIN_IDLE_SECONDS) if idle else None,
            capabilities=frozenset(peer.offered_capabilities or ()),
            properties=peer.properties or {},
        )
        self.session.max_payload = min(self.peer.max_frame_bytes, self._limits.max_frame_bytes)
