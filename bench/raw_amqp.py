"""The upper limits over AMQP 1.0: one connection that drains a queue, and two that fill one, without Spark.

Nothing of a received message is parsed. ``send`` creates the transfers before the clock starts, ``fill`` while sending.
A connection is blocking, with one session, links and transactions, and no heart-beats and no windows.
"""

import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Self, TypeAlias

from bench.job import Job, Measured
from bench.raw import meter
from pyspark_jms.amqp.wire import types as wire
from pyspark_jms.amqp.wire.types import encode_performative, frame
from pyspark_jms.amqp.wire.values import Symbol, TypedValue, encode

__all__ = ["drain", "fill", "message", "section", "send", "wide"]

_READ_BYTES = 1 << 18
_MAX_FRAME_BYTES = 1 << 17
_LARGE_FRAME = 1 << 16
"""A smaller frame with a transfer holds a whole message or its end."""
_MANY = (1 << 31) - 1
_HEADER = 8
_SHORTEST_TRANSFER, _CODE, _TRANSFER = 12, 10, 0x14
_SIZE = struct.Struct(">I").unpack_from


class _Connection:
    """``with _Connection(job) as connection:`` has opened a connection and a session."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._buffer = b""
        self._handles = 0
        self._credit: dict[int, int] = {}
        self._sent: dict[int, int] = {}
        self._coordinator = -1
        self.delivery_id = 0
        """The delivery-id of the next transfer that this side sends."""
        self.transactions: deque[bytes] = deque()
        """Declared, and not used."""
        self.confirmed = 0
        """Discharges that the broker has confirmed."""

    def __enter__(self) -> Self:
        job = self._job
        self.socket = socket.create_connection((job.host, job.port), job.time_limit)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        response = b"\0" + job.user.encode() + b"\0" + job.password.encode()
        init = frame(0, wire.SaslInit(mechanism="PLAIN", initial_response=response), sasl=True)
        opening = wire.Open(container_id=f"bench-{time.time_ns()}", hostname=job.host, max_frame_size=_MAX_FRAME_BYTES)
        begin = wire.Begin(next_outgoing_id=0, incoming_window=_MANY, outgoing_window=_MANY)
        self._take_header(wire.SASL_HEADER)
        self._await_frame()
        self.socket.sendall(init)
        self._await_frame()
        self._take_header(wire.AMQP_HEADER)
        self.socket.sendall(frame(0, opening) + frame(0, begin))
        self._await_frame()
        self._await_frame()
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def _take_header(self, header: bytes) -> None:
        self.socket.sendall(header)
        while len(self._buffer) < len(header):
            self._buffer += self._read()
        self._buffer = self._buffer[len(header) :]

    # --- links -----------------------------------------------------------------------------------

    def attach_receiver(self, queue: str) -> int:
        source = wire.Source(address=queue, capabilities=("queue",))
        return self._attach(role=True, source=source, target=wire.Target(address="bench"))

    def attach_sender(self, queue: str) -> int:
        return self._attach_sender(wire.Target(address=queue, capabilities=("queue",)))

    def attach_coordinator(self) -> None:
        self._coordinator = self._attach_sender(wire.Coordinator(capabilities=("amqp:local-transactions",)))

    def _attach_sender(self, target: Any) -> int:
        handle = self._attach(role=False, source=wire.Source(address="bench"), target=target, initial_delivery_count=0)
        self.read_until(lambda: self.credit(handle))
        return handle

    def _attach(self, **fields: Any) -> int:
        handle, self._handles = self._handles, self._handles + 1
        self._credit[handle] = self._sent[handle] = 0
        name = f"bench-{time.time_ns()}"
        self.send(wire.Attach(name=name, handle=handle, snd_settle_mode=2, rcv_settle_mode=0, **fields))
        self._await_frame()
        return handle

    def credit(self, handle: int) -> int:
        return self._credit[handle] - self._sent[handle]

    def grant(self, handle: int, received: int, credit: int) -> bytes:
        """A flow frame for a receiving link."""
        flow = wire.Flow(
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
        return self._request(wire.Declare())

    def discharge(self, transaction: bytes) -> bytes:
        """A frame; its answer is counted by ``confirmed``."""
        return self._request(wire.Discharge(txn_id=transaction, fail=False))

    def _request(self, body: wire.Declare | wire.Discharge) -> bytes:
        identifier = self.delivery_id
        self.sent(self._coordinator, 1)
        transfer = wire.Transfer(
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
        performative, _ = wire.decode_performative(self._buffer, begin + _HEADER, end)
        match performative:
            case wire.Transfer():
                return 0 if performative.more else 1
            case wire.Flow() if performative.handle is not None:
                self._credit[performative.handle] = (performative.delivery_count or 0) + (performative.link_credit or 0)
            case wire.Disposition():
                self._on_outcome(performative)
            case wire.Close() | wire.End() | wire.Detach():
                raise ConnectionError(f"the broker ended the connection or a link: {performative.error}")
        return 0

    def _on_outcome(self, disposition: wire.Disposition) -> None:
        if isinstance(disposition.state, wire.Rejected):
            raise ConnectionError(f"the broker rejected a transfer: {disposition.state.error}")
        if isinstance(disposition.state, wire.Declared):
            self.transactions.append(disposition.state.txn_id)
        elif disposition.role:
            self.confirmed += (disposition.last or disposition.first) - disposition.first + 1


# --- clients ---------------------------------------------------------------------------------------

_CREDIT = 20_000
_ACK_EVERY = 2_000
_CONNECTIONS = 2
_CREATED_MS = 1_760_000_000_000
_WORD = struct.Struct(">I").pack
_LIST, _MAP = 0xD0, 0xD1

Prepared: TypeAlias = tuple[bytes, Sequence[bytes]]
"""A transaction's id and its transfer frames."""


def drain(job: Job) -> Measured:
    """Measures from the first credit to the confirmation of the last acknowledgements: one transaction for each 2,000
    messages, as settled acceptances of a range.
    """
    with _Connection(job) as connection:
        link = connection.attach_receiver(job.queue)
        connection.attach_coordinator()
        transaction = connection.new_transaction()
        with meter(job) as measuring:
            connection.socket.sendall(connection.declare() + connection.grant(link, 0, _CREDIT))
            received = acknowledged = rounds = 0
            while acknowledged < job.messages:
                received += connection.read()
                if received - acknowledged >= _ACK_EVERY or received >= job.messages:
                    received += connection.read_until(lambda: connection.transactions)
                    accepting = _accepting(acknowledged, received - 1, transaction) + connection.discharge(transaction)
                    connection.socket.sendall(
                        accepting + connection.declare() + connection.grant(link, received, _CREDIT)
                    )
                    transaction, acknowledged, rounds = connection.transactions.popleft(), received, rounds + 1
            connection.read_until(lambda: connection.confirmed >= rounds)
    return measuring.measured(received)


def _accepting(first: int, last: int, transaction: bytes) -> bytes:
    state = wire.TransactionalState(txn_id=transaction, outcome=wire.Accepted())
    return frame(0, wire.Disposition(role=True, first=first, last=last, settled=True, state=state))


def send(job: Job) -> Measured:
    """Sends presettled transfers in transactions on two connections. Each waits for the confirmation of its discharge
    before the next begins. The transactions are declared before the clock starts.
    """
    return _send(job, _prepared)


def fill(job: Job) -> Measured:
    """Fills a queue, not to be measured. Transfers are created while sending, so memory does not limit their number."""
    return _send(job, _created)


def _send(job: Job, transactions: Callable[[_Connection, int, Job, list[range]], Iterator[Prepared]]) -> Measured:
    failures: list[Exception] = []
    with ExitStack() as stack:
        threads = []
        for number in range(_CONNECTIONS):
            connection = stack.enter_context(_Connection(job))
            link = connection.attach_sender(job.queue)
            connection.attach_coordinator()
            share = transactions(connection, link, job, list(job.transactions())[number::_CONNECTIONS])
            threads.append(threading.Thread(target=_send_all, args=(connection, link, share, failures), daemon=True))
        with meter(job) as measuring:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(job.time_limit)
    if failures or any(thread.is_alive() for thread in threads):
        raise failures[0] if failures else TimeoutError(f"not sent within {job.time_limit:g} s")
    return measuring.measured(job.messages)


def _prepared(connection: _Connection, link: int, job: Job, shares: list[range]) -> Iterator[Prepared]:
    ids = [connection.new_transaction() for _ in shares]
    first, prepared = connection.delivery_id, []
    for transaction, rows in zip(ids, shares, strict=True):
        prepared.append((transaction, _transfers(job, rows, link, first, transaction)))
        first += len(rows) + 1  # a discharge follows
    return iter(prepared)


def _created(connection: _Connection, link: int, job: Job, shares: list[range]) -> Iterator[Prepared]:
    for rows in shares:
        transaction = connection.new_transaction()
        yield transaction, _transfers(job, rows, link, connection.delivery_id, transaction)


def _send_all(connection: _Connection, link: int, transactions: Iterator[Prepared], failures: list[Exception]) -> None:
    try:
        for number, (transaction, frames) in enumerate(transactions, 1):
            begin = 0
            while begin < len(frames):
                connection.read_until(lambda: connection.credit(link) > 0)
                end = min(len(frames), begin + connection.credit(link))
                connection.socket.sendall(b"".join(frames[begin:end]))
                connection.sent(link, end - begin)
                begin = end
            connection.socket.sendall(connection.discharge(transaction))
            connection.read_until(lambda number=number: connection.confirmed >= number)  # type: ignore[misc]
    except Exception as error:  # noqa: BLE001 - the waiting thread raises it
        failures.append(error)


# --- messages ------------------------------------------------------------------------------------


def message(job: Job, i: int) -> bytes:
    """A bare message as a Java client sends a TextMessage (AMQP-JMS binding §3)."""
    own = [encode(part) for pair in job.properties_of(i).items() for part in pair]
    kind = encode(Symbol("x-opt-jms-msg-type")), b"\x51\x05", encode(Symbol("x-opt-jms-dest")), b"\x51\0"
    fields = [f"ID:bench:{i}", None, job.queue, *[None] * 6, TypedValue("timestamp", _CREATED_MS + i)]
    return b"".join(
        [
            section(0x70, wide(_LIST, encode(job.persistent))),
            section(0x72, wide(_MAP, *kind)),
            section(0x73, wide(_LIST, *map(encode, fields))),
            section(0x74, wide(_MAP, *own)) if own else b"",
            section(0x77, encode(job.text_of(i))),
        ]
    )


def wide(constructor: int, *values: bytes) -> bytes:
    """A list or a map with a size of four bytes, as brokers send it (AMQP 1.0 §1.2.3)."""
    data = b"".join(values)
    return bytes((constructor,)) + struct.pack(">II", len(data) + 4, len(values)) + data


def section(code: int, value: bytes) -> bytes:
    """A section of a message (AMQP 1.0 §3.2)."""
    return b"\x00\x53" + bytes((code,)) + value


_MAX_PAYLOAD = (1 << 17) - 512


def _transfers(job: Job, rows: range, link: int, first_id: int, transaction: bytes) -> list[bytes]:
    """Presettled transfers; a message that is larger than a frame has several, in one entry."""
    state = encode_performative(wire.TransactionalState(txn_id=transaction))
    return [_transfer(message(job, i), link, first_id + n, state) for n, i in enumerate(rows)]


def _transfer(data: bytes, link: int, identifier: int, state: bytes) -> bytes:
    number = _WORD(identifier)
    frames = []
    for begin in range(0, len(data), _MAX_PAYLOAD):
        more = encode(begin + _MAX_PAYLOAD < len(data))
        fields = [bytes((0x52, link)), b"\x70" + number, b"\xa0\x04" + number, b"\x43", b"\x41", more, b"\x40", state]
        body = section(0x14, wide(_LIST, *fields)) + data[begin : begin + _MAX_PAYLOAD]
        frames.append(_WORD(len(body) + 8) + b"\x02\0\0\0" + body)
    return b"".join(frames)
