"""The ceilings: a socket that drains a queue, and sockets that fill one, with no more Python than that takes.

Nothing is parsed but ``message-id``. Frames to send are made before the clock starts.
"""

import os
import re
import socket
import threading
from collections.abc import Iterator

from bench.job import TIME_LIMIT, Job, Measured, properties, text
from bench.processes import Meter

__all__ = ["drain", "meter", "send"]

_READ_BYTES = 1 << 18
_ACK_EVERY = 1000
_CONNECTIONS = 2
_MESSAGE_ID = re.compile(rb"\nmessage-id:([^\n]+)\n")
_LONGEST_LINE = 64


def drain(job: Job) -> Measured:
    """SUBSCRIBE to the receipt of the last ACK: one ACK a message, a thousand in a write, no window."""
    connection = _connect(job)
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
    """The message ids of each read; a line that was cut is found in the next."""
    rest = b""
    while True:
        data = rest + _read(connection)
        end, found = 0, []
        for match in _MESSAGE_ID.finditer(data):
            found.append(match[1])
            end = match.end()
        rest = data[max(end - 1, len(data) - _LONGEST_LINE) :]
        if found:
            yield found


def send(job: Job) -> Measured:
    """Transactions on two connections at once, each with its COMMIT's receipt before the next begins."""
    shares: list[list[bytes]] = [[] for _ in range(_CONNECTIONS)]
    for number, rows in enumerate(job.transactions()):
        shares[number % _CONNECTIONS].append(_transaction(job.queue, rows))
    connections = [_connect(job) for _ in shares]
    failures: list[Exception] = []
    threads = [
        threading.Thread(target=_send_all, args=(connection, share, failures), daemon=True)
        for connection, share in zip(connections, shares, strict=True)
    ]
    with meter(job) as measuring:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIME_LIMIT)
    for connection in connections:
        connection.close()
    if failures or any(thread.is_alive() for thread in threads):
        raise failures[0] if failures else TimeoutError(f"not sent within {TIME_LIMIT:g} s")
    return measuring.measured(job.messages)


def _send_all(connection: socket.socket, transactions: list[bytes], failures: list[Exception]) -> None:
    try:
        for octets in transactions:
            connection.sendall(octets)
            _await(connection, b"RECEIPT\n")
    except Exception as error:  # noqa: BLE001 - told to the thread that waits
        failures.append(error)


def _transaction(queue: str, rows: range) -> bytes:
    frames = (_frame(queue, i) for i in rows)
    return b"BEGIN\ntransaction:t\n\n\0" + b"".join(frames) + b"COMMIT\ntransaction:t\nreceipt:c\n\n\0"


def _frame(queue: str, i: int) -> bytes:
    """As a TextMessage: without content-length."""
    own = "".join(f"{name}:{value}\n" for name, value in properties(i).items())
    return (
        f"SEND\ndestination:{queue}\ndestination-type:ANYCAST\npersistent:true\ntransaction:t\n{own}\n{text(i)}\0"
    ).encode()


def meter(job: Job) -> Meter:
    """The broker and this process."""
    return Meter(lambda: {job.broker_pid: "broker", os.getpid(): "client"})


def _connect(job: Job) -> socket.socket:
    connection = socket.create_connection((job.host, job.port), TIME_LIMIT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    login = f"login:{job.user}\npasscode:{job.password}\n"
    connection.sendall(f"CONNECT\naccept-version:1.2\nhost:x\nheart-beat:0,0\n{login}\n\0".encode())
    _await(connection, b"CONNECTED\n")
    return connection


def _await(connection: socket.socket, wanted: bytes) -> None:
    """Read on until the answer is whole; what stands before it is of no interest."""
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
