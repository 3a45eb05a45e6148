"""A blocking AMQP 1.0 connection for the raw clients: one session, links, transactions; no heart-beats, no windows."""

import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from bench.job import Job
from pyspark_jms.amqp.wire.types import (
    AMQP_HEADER,
    SASL_HEADER,
    Attach,
    Begin,
    Close,
    Coordinator,
    Declare,
    Declared,
    Detach,
    Discharge,
    Disposition,
    End,
    Flow,
    Open,
    Rejected,
    SaslInit,
    Source,
    Target,
    Transfer,
    decode_performative,
    encode_performative,
    frame,
)

__all__ = ["AmqpConnection"]

_READ_BYTES = 1 << 18
_MAX_FRAME_BYTES = 1 << 17
_LARGE_FRAME = 1 << 16
"""A smaller frame with a transfer holds a whole message or its end."""
_MANY = (1 << 31) - 1
_HEADER = 8
_SHORTEST_TRANSFER, _CODE, _TRANSFER = 12, 10, 0x14
_SIZE = struct.Struct(">I").unpack_from


class AmqpConnection:
    """``with AmqpConnection(job) as connection:`` has opened a connection and a session."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._buffer = b""
        self._handles = 0
        self._credit: dict[int, int] = {}
        self._sent: dict[int, int] = {}
        self._coordinator = -1
        self.delivery_id = 0
        """Of the next transfer that this side sends."""
        self.transactions: deque[bytes] = deque()
        """Declared, and not used."""
        self.confirmed = 0
        """Discharges that the broker has confirmed."""

    def __enter__(self) -> Self:
        job = self._job
        self.socket = socket.create_connection((job.host, job.port), job.time_limit)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        response = b"\0" + job.user.encode() + b"\0" + job.password.encode()
        init = frame(0, SaslInit(mechanism="PLAIN", initial_response=response), sasl=True)
        opening = Open(container_id=f"bench-{time.time_ns()}", hostname=job.host, max_frame_size=_MAX_FRAME_BYTES)
        begin = Begin(next_outgoing_id=0, incoming_window=_MANY, outgoing_window=_MANY)
        self._take_header(SASL_HEADER)
        self._await_frame()
        self.socket.sendall(init)
        self._await_frame()
        self._take_header(AMQP_HEADER)
        self.socket.sendall(frame(0, opening) + frame(0, begin))
        self._await_frame()
        self._await_frame()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def _take_header(self, header: bytes) -> None:
        self.socket.sendall(header)
        while len(self._buffer) < len(header):
            self._buffer += self._read()
        self._buffer = self._buffer[len(header) :]

    # --- links -----------------------------------------------------------------------------------

    def attach_receiver(self, queue: str) -> int:
        source = Source(address=queue, capabilities=("queue",))
        return self._attach(role=True, source=source, target=Target(address="bench"))

    def attach_sender(self, queue: str) -> int:
        return self._attach_sender(Target(address=queue, capabilities=("queue",)))

    def attach_coordinator(self) -> None:
        self._coordinator = self._attach_sender(Coordinator(capabilities=("amqp:local-transactions",)))

    def _attach_sender(self, target: Any) -> int:
        handle = self._attach(role=False, source=Source(address="bench"), target=target, initial_delivery_count=0)
        self.read_until(lambda: self.credit(handle))
        return handle

    def _attach(self, **fields: Any) -> int:
        handle, self._handles = self._handles, self._handles + 1
        self._credit[handle] = self._sent[handle] = 0
        name = f"bench-{time.time_ns()}"
        self.send(Attach(name=name, handle=handle, snd_settle_mode=2, rcv_settle_mode=0, **fields))
        self._await_frame()
        return handle

    def credit(self, handle: int) -> int:
        return self._credit[handle] - self._sent[handle]

    def grant(self, handle: int, received: int, credit: int) -> bytes:
        """A flow frame for a receiving link."""
        flow = Flow(
            next_incoming_id=received,
            incoming_window=_MANY,
            next_outgoing_id=self.delivery_id,
            outgoing_window=_MANY,
            handle=handle,
            delivery_count=received,
            link_credit=credit,
        )
        return frame(0, flow)

    # --- transactions ----------------------------------------------------------------------------

    def declare(self) -> bytes:
        """A frame; its answer is in ``transactions``."""
        return self._request(Declare())

    def discharge(self, transaction: bytes) -> bytes:
        """A frame; its answer is counted by ``confirmed``."""
        return self._request(Discharge(txn_id=transaction, fail=False))

    def _request(self, body: Declare | Discharge) -> bytes:
        identifier = self.delivery_id
        self.sent(self._coordinator, 1)
        transfer = Transfer(
            handle=self._coordinator,
            delivery_id=identifier,
            delivery_tag=identifier.to_bytes(4, "big"),
            message_format=0,
        )
        return frame(0, transfer, b"\x00\x53\x77" + encode_performative(body))

    def new_transaction(self) -> bytes:
        self.socket.sendall(self.declare())
        self.read_until(lambda: self.transactions)
        return self.transactions.popleft()

    def sent(self, handle: int, transfers: int) -> None:
        self._sent[handle] += transfers
        self.delivery_id += transfers

    # --- reading ---------------------------------------------------------------------------------

    def send(self, performative: Any) -> None:
        self.socket.sendall(frame(0, performative))

    def read_until(self, true: Callable[[], object]) -> int:
        """The number of messages that have arrived before it is true."""
        messages = self.take()
        while not true():
            self._buffer += self._read()
            messages += self.take()
        return messages

    def read(self) -> int:
        """Read once. Returns the number of messages in it."""
        self._buffer += self._read()
        return self.take()

    def take(self) -> int:
        """Take all whole frames, and count the messages that end in them."""
        buffer, position, messages = self._buffer, 0, 0
        last = len(buffer)
        while last - position >= _HEADER:
            (size,) = _SIZE(buffer, position)
            if size > last - position:
                break
            if _SHORTEST_TRANSFER <= size < _LARGE_FRAME and buffer[position + _CODE] == _TRANSFER:
                messages += 1
            else:
                messages += self._on_frame(position, position + size)
            position += size
        self._buffer = buffer[position:]
        return messages

    def _read(self) -> bytes:
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the broker closed the connection")
        return data

    def _await_frame(self) -> None:
        while len(self._buffer) < _HEADER or len(self._buffer) < _SIZE(self._buffer)[0]:
            self._buffer += self._read()
        (size,) = _SIZE(self._buffer)
        self._on_frame(0, size)
        self._buffer = self._buffer[size:]

    def _on_frame(self, begin: int, end: int) -> int:
        """Returns the number of messages that end in this frame."""
        if end - begin == _HEADER:
            return 0
        performative, _ = decode_performative(self._buffer, begin + _HEADER, end)
        match performative:
            case Transfer():
                return 0 if performative.more else 1
            case Flow() if performative.handle is not None:
                self._credit[performative.handle] = (performative.delivery_count or 0) + (performative.link_credit or 0)
            case Disposition():
                self._on_outcome(performative)
            case Close() | End() | Detach():
                raise ConnectionError(f"the broker ended the connection or a link: {performative.error}")
        return 0

    def _on_outcome(self, disposition: Disposition) -> None:
        if isinstance(disposition.state, Rejected):
            raise ConnectionError(f"the broker rejected a transfer: {disposition.state.error}")
        if isinstance(disposition.state, Declared):
            self.transactions.append(disposition.state.txn_id)
        elif disposition.role:
            self.confirmed += (disposition.last or disposition.first) - disposition.first + 1
