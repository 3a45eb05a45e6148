"""The upper limits: one socket that drains a queue, and sockets that fill one, with as little Python as possible.

The code parses only ``message-id``. It creates the frames to send before the clock starts, except in ``fill``.
"""

import os
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bench.job import Job, Measured
from bench.processes import Meter

__all__ = ["connect", "drain", "fill", "frame", "meter", "paced", "send", "smaller"]

_READ_BYTES = 1 << 18
_ACK_EVERY = 1000
_CONNECTIONS = 2
_PACE_SECONDS = 0.02
_MESSAGE_ID = re.compile(rb"\nmessage-id:([^\n]+)\n")
_LONGEST_LINE = 64


def drain(job: Job) -> Measured:
    """Measures from SUBSCRIBE to the receipt of the last ACK: one ACK for each message, 1,000 in a write, no window."""
    connection = connect(job)
    with connection, meter(job) as measuring:
        connection.sendall(
            b"SUBSCRIBE\nid:1\nsubscription-type:ANYCAST\nack:client-individual\nconsumer-window-size:-1\n"
            + f"destination:{job.queue}\n\n\0".encode()
        )
        acknowledged, ids = 0, []
        for batch in _ids(connection):
            ids += batch
            last = acknowledged + len(ids) >= job.messages
            if last or len(ids) >= _ACK_EVERY:
                acks = b"".join(b"ACK\nid:%b\n\n\0" % identifier for identifier in ids[:-1])
                receipt = b"receipt:last\n" if last else b""
                connection.sendall(acks + b"ACK\nid:%b\n%b\n\0" % (ids[-1], receipt))
                acknowledged, ids = acknowledged + len(ids), []
            if last:
                break
        _await(connection, b"receipt-id:last\n")
    return measuring.measured(acknowledged)


def _ids(connection: socket.socket) -> Iterator[list[bytes]]:
    """The message ids of each read. A line that a read cuts is found in the next read."""
    rest = b""
    while True:
        data = rest + _read(connection)
        end, found = 0, []
        for match in _MESSAGE_ID.finditer(data):
            found.append(match[1])
            end = match.end()
        rest = data[max(end - 1, len(data) - _LONGEST_LINE, 0) :]
        if found:
            yield found


def send(job: Job) -> Measured:
    """Sends transactions on two connections. Each waits for the receipt of its COMMIT before the next begins."""
    return _send(job, [list(share) for share in _shares(job)])


def fill(job: Job) -> Measured:
    """Fills a queue, not to be measured. Frames are created while sending, so memory does not limit their number."""
    return _send(job, _shares(job))


def paced(job: Job) -> Measured:
    """Sends ``per_transaction`` messages a second, in 50 writes. A late write does not delay the next one."""
    with connect(job) as connection, meter(job) as measuring:
        began, sent = time.monotonic(), 0
        while sent < job.messages:
            due = min(job.messages, int((time.monotonic() - began + _PACE_SECONDS) * job.per_transaction))
            connection.sendall(b"".join(frame(job, i) for i in range(sent, due)))
            sent = due
            time.sleep(_PACE_SECONDS)
        connection.sendall(b"DISCONNECT\nreceipt:last\n\n\0")
        _await(connection, b"receipt-id:last\n")
    return measuring.measured(job.messages)


def smaller(job: Job, messages: int) -> Job:
    """The job with this number of messages, in one transaction."""
    return replace(job, messages=messages, per_transaction=messages)


def _shares(job: Job) -> list[Iterable[bytes]]:
    def share(number: int) -> Iterator[bytes]:
        return (_transaction(job, rows) for n, rows in enumerate(job.transactions()) if n % _CONNECTIONS == number)

    return [share(number) for number in range(_CONNECTIONS)]


def _send(job: Job, shares: Sequence[Iterable[bytes]]) -> Measured:
    connections = [connect(job) for _ in shares]
    failures: list[Exception] = []
    threads = [
        threading.Thread(target=_send_all, args=(connection, share, failures), daemon=True)
        for connection, share in zip(connections, shares, strict=True)
    ]
    with meter(job) as measuring:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(job.time_limit)
    for connection in connections:
        connection.close()
    if failures or any(thread.is_alive() for thread in threads):
        raise failures[0] if failures else TimeoutError(f"not sent within {job.time_limit:g} s")
    return measuring.measured(job.messages)


def _send_all(connection: socket.socket, transactions: Iterable[bytes], failures: list[Exception]) -> None:
    try:
        for data in transactions:
            connection.sendall(data)
            _await(connection, b"RECEIPT\n")
    except Exception as error:  # noqa: BLE001 - the waiting thread raises it
        failures.append(error)


def _transaction(job: Job, rows: range) -> bytes:
    frames = (frame(job, i, "transaction:t\n") for i in rows)
    return b"BEGIN\ntransaction:t\n\n\0" + b"".join(frames) + b"COMMIT\ntransaction:t\nreceipt:c\n\n\0"


def frame(job: Job, i: int, more: str = "") -> bytes:
    """A SEND frame of a TextMessage, therefore without content-length. ``more``: further headers."""
    own = "".join(f"{name}:{value}\n" for name, value in job.properties_of(i).items())
    persistent = "true" if job.persistent else "false"
    return (
        f"SEND\ndestination:{job.queue}\ndestination-type:ANYCAST\npersistent:{persistent}\n{more}{own}\n"
        f"{job.text_of(i)}\0"
    ).encode()


def meter(job: Job) -> Meter:
    """Measures the broker and this process."""
    return Meter(lambda: {job.broker_pid: "broker", os.getpid(): "client"})


def connect(job: Job) -> socket.socket:
    connection = socket.create_connection((job.host, job.port), job.time_limit)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    login = f"login:{job.user}\npasscode:{job.password}\n"
    connection.sendall(f"CONNECT\naccept-version:1.2\nhost:x\nheart-beat:0,0\n{login}\n\0".encode())
    _await(connection, b"CONNECTED\n")
    return connection


def _await(connection: socket.socket, wanted: bytes) -> None:
    """Read until the wanted frame is complete, and ignore everything before it."""
    data = b""
    while (at := data.find(wanted)) < 0 or data.find(0, at) < 0:
        data = data[max(0, at if at >= 0 else len(data) - _LONGEST_LINE) :] + _read(connection)


def _read(connection: socket.socket) -> bytes:
    data = connection.recv(_READ_BYTES)
    if not data:
        raise ConnectionError("the broker closed the connection")
    if data.startswith(b"ERROR\n"):
        raise ConnectionError(data[:200].decode(errors="replace"))
    return data
