"""A STOMP 1.2 client for tests, which uses sockets and nothing of the connector.

Slow and plain on purpose: what the connector reads and writes is checked against it.
"""

import contextlib
import itertools
import re
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

_UNESCAPED = {b"\\r": b"\r", b"\\n": b"\n", b"\\c": b":", b"\\\\": b"\\"}
_ESCAPED = {plain: wire for wire, plain in _UNESCAPED.items()}


def escape(value):
    data = value if isinstance(value, bytes) else str(value).encode()
    return re.sub(rb"[\\\r\n:]", lambda match: _ESCAPED[match[0]], data)


def unescape(data):
    return re.sub(rb"\\.?", lambda match: _UNESCAPED[match[0]], data, flags=re.DOTALL)


def frame(command, headers, body=b""):
    lines = [command.encode(), *(escape(name) + b":" + escape(value) for name, value in headers)]
    return b"\n".join(lines) + b"\n\n" + body + b"\0"


@dataclass
class Received:
    command: str
    lines: list
    body: bytes

    @property
    def headers(self):
        found = {}
        for name, value in self.lines:
            found.setdefault(name, value)
        return found


class RawStomp:
    """``with RawStomp(broker) as client: …`` — errors of the broker raise ``AssertionError``."""

    def __init__(self, broker, *, user=None, password=None, timeout=60):
        url = urlsplit(broker.url)
        self._socket = socket.create_connection((url.hostname, url.port), timeout)
        self._buffer = bytearray()
        self._receipts = itertools.count(1)
        login = (("login", user or broker.user), ("passcode", password or broker.password))
        # The host is the virtual host of RabbitMQ. The other brokers ignore it.
        head = b"".join(
            f"{name}:{value}\n".encode() for name, value in (("accept-version", "1.2"), ("host", "/"), *login)
        )
        try:
            # Without a heart-beat Artemis ends a connection that is quiet for 60 s, as many are while a query runs.
            self._socket.sendall(b"CONNECT\n" + head + b"heart-beat:600000,0\n\n\0")
            answer = self.receive()
            assert answer.command == "CONNECTED", answer
            self.server = answer.headers.get("server")
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.closing(self._socket), contextlib.suppress(OSError, EOFError):
            self.request("DISCONNECT", [])

    def close_abruptly(self):
        self._socket.close()

    def write(self, data):
        self._socket.sendall(data)

    def request(self, command, headers, body=b""):
        """Send a frame and wait for its receipt; a MESSAGE frame before the receipt is an error."""
        receipt = f"raw-{next(self._receipts)}"
        self.write(frame(command, [*headers, ("receipt", receipt)], body))
        answer = self.receive()
        assert (answer.command, answer.headers.get("receipt-id")) == ("RECEIPT", receipt), answer

    def send(self, queue, messages, *, topic=False):
        """One transaction. ``messages``: (headers, body); a str is sent as text, bytes with a content-length."""
        kind = "MULTICAST" if topic else "ANYCAST"
        fixed = [("destination", queue), ("destination-type", kind), ("persistent", "true"), ("transaction", "raw")]
        out = [frame("BEGIN", [("transaction", "raw")])]
        size = 0
        for headers, body in messages:
            if isinstance(body, str):
                out.append(frame("SEND", [*fixed, *headers], body.encode()))
            else:
                out.append(frame("SEND", [*fixed, ("content-length", len(body)), *headers], body))
            size += len(out[-1])
            if size > 8_000_000:
                self.write(b"".join(out))
                out, size = [], 0
        self.write(b"".join(out))
        self.request("COMMIT", [("transaction", "raw")])

    def read(self, queue, *, wanted=None, quiet=1.0, ack=True):
        """Messages of a queue: ``wanted`` of them, or all until nothing came for ``quiet`` seconds; acknowledged."""
        self.write(
            frame(
                "SUBSCRIBE",
                [("id", "raw"), ("destination", queue), ("subscription-type", "ANYCAST"),
                 ("ack", "client-individual"), ("consumer-window-size", "-1")],
            )
        )  # fmt: skip
        found = []
        timeout = self._socket.gettimeout()
        try:
            while wanted is None or len(found) < wanted:
                if wanted is None:
                    self._socket.settimeout(quiet)
                found.append(self.receive())
                assert found[-1].command == "MESSAGE", found[-1]
        except TimeoutError:
            assert wanted is None, f"{len(found)} of {wanted} messages came"
        self._socket.settimeout(timeout)
        if ack and found:
            # the last ack header is the broker's, because a producer may have set a property of that name
            ids = [[value for name, value in message.lines if name == "ack"][-1] for message in found]
            self.write(b"".join(frame("ACK", [("id", value)]) for value in ids))
        self.request("UNSUBSCRIBE", [("id", "raw")])
        return found

    def receive(self):
        """The next frame; a ``TimeoutError`` if none is received in time."""
        while (received := self._next()) is None:
            data = self._socket.recv(1 << 20)
            if not data:
                raise EOFError("the broker closed the connection")
            self._buffer += data
        return received

    def _next(self):
        while self._buffer[:1] in (b"\n", b"\r"):
            del self._buffer[:1]
        head = self._buffer.find(b"\n\n")
        if head < 0:
            return None
        command, *lines = bytes(self._buffer[:head]).split(b"\n")
        pairs = [tuple(unescape(part).decode() for part in line.split(b":", 1)) for line in lines]
        length = next((int(value) for name, value in pairs if name == "content-length"), None)
        end = self._buffer.find(b"\0", head + 2) if length is None else head + 2 + length
        if end < 0 or end >= len(self._buffer):
            return None
        assert self._buffer[end] == 0
        body = bytes(self._buffer[head + 2 : end])
        del self._buffer[: end + 1]
        return Received(command.decode(), pairs, body)


def read_all(broker, queue):
    with RawStomp(broker) as client:
        return client.read(queue)


def take_texts(broker, queue, quiet=0.5):
    """Receive all messages of the queue, and return their texts in order."""
    with RawStomp(broker) as client:
        return sorted(message.body.decode() for message in client.read(queue, quiet=quiet))
