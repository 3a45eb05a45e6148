"""A few words of AMQP 0-9-1: what a test asks RabbitMQ that STOMP has no words for, and a producer that is not ours.

One channel, one question at a time; for tests, not for throughput.
"""

import socket
import struct
from types import TracebackType
from typing import Self

from pyspark_jms.errors import EmbeddedBrokerError

__all__ = ["Amqp"]

_METHOD, _HEADER, _BODY = 1, 2, 3
_FRAME_END = b"\xce"
_START, _START_OK, _TUNE, _TUNE_OK, _OPEN, _OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
_CHANNEL_OPEN, _CHANNEL_OPEN_OK, _CHANNEL_CLOSE = (20, 10), (20, 11), (20, 40)
_DECLARE, _DECLARE_OK, _PURGE, _PURGE_OK = (50, 10), (50, 11), (50, 30), (50, 31)
_PUBLISH = (60, 40)
_CONFIRM, _CONFIRM_OK, _ACK = (85, 10), (85, 11), (60, 80)
_PASSIVE, _DURABLE = 1, 2
_SECONDS = 30.0


class Amqp:
    """``with Amqp(host, port, user, password) as amqp: amqp.count("orders")``."""

    def __init__(self, host: str, port: int, user: str, password: str) -> None:
        self._link = socket.create_connection((host, port), _SECONDS)
        try:
            self._link.sendall(b"AMQP\x00\x00\x09\x01")
            self._expect(_START)
            response = f"\0{user}\0{password}".encode()
            self._send(0, _START_OK, _table({}) + _short("PLAIN") + _long(response) + _short("en_US"))
            tune = self._expect(_TUNE)
            self._send(0, _TUNE_OK, tune[:6] + struct.pack(">H", 0))
            self._send(0, _OPEN, _short("/") + _short("") + b"\0")
            self._expect(_OPEN_OK)
            self._send(1, _CHANNEL_OPEN, _short(""))
            self._expect(_CHANNEL_OPEN_OK)
            self._send(1, _CONFIRM, b"\0")
            self._expect(_CONFIRM_OK)
        except BaseException:
            self._link.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.close()

    def count(self, queue: str) -> tuple[int, int]:
        """Messages that wait, those in delivery not among them, and consumers; an error where there is no queue."""
        return self._declare(queue, _PASSIVE, {})

    def declare(self, queue: str, arguments: dict[str, str] | None = None) -> None:
        """A durable queue."""
        self._declare(queue, _DURABLE, arguments or {})

    def purge(self, queue: str) -> int:
        """Delete what waits; returns how many messages that were."""
        self._send(1, _PURGE, struct.pack(">H", 0) + _short(queue) + b"\0")
        return int(struct.unpack(">I", self._expect(_PURGE_OK))[0])

    def publish(
        self, queue: str, body: bytes, *, content_type: str | None = None, message_id: str | None = None
    ) -> None:
        """A persistent message, confirmed."""
        self._send(1, _PUBLISH, struct.pack(">H", 0) + _short("") + _short(queue) + b"\0")
        flags, properties = 1 << 12, b""
        if content_type is not None:
            flags, properties = flags | 1 << 15, _short(content_type)
        properties += b"\x02"  # delivery-mode
        if message_id is not None:
            flags, properties = flags | 1 << 7, properties + _short(message_id)
        self._frame(_HEADER, 1, struct.pack(">HHQH", 60, 0, len(body), flags) + properties)
        if body:
            self._frame(_BODY, 1, body)
        self._expect(_ACK)

    def _declare(self, queue: str, flags: int, arguments: dict[str, str]) -> tuple[int, int]:
        self._send(1, _DECLARE, struct.pack(">H", 0) + _short(queue) + bytes([flags]) + _table(arguments))
        messages, consumers = struct.unpack(">II", self._expect(_DECLARE_OK)[-8:])
        return messages, consumers

    # --- frames --------------------------------------------------------------------------------

    def _send(self, channel: int, method: tuple[int, int], arguments: bytes) -> None:
        self._frame(_METHOD, channel, struct.pack(">HH", *method) + arguments)

    def _frame(self, kind: int, channel: int, payload: bytes) -> None:
        self._link.sendall(struct.pack(">BHI", kind, channel, len(payload)) + payload + _FRAME_END)

    def _expect(self, method: tuple[int, int]) -> bytes:
        _, _, size = struct.unpack(">BHI", self._read(7))
        payload = self._read(size + 1)[:-1]
        came = struct.unpack(">HH", payload[:4])
        if came == _CHANNEL_CLOSE:
            text = payload[7 : 7 + payload[6]].decode(errors="replace")
            raise EmbeddedBrokerError(f"RabbitMQ refuses: {text}.", "Is there such a queue?")
        if came != method:
            raise EmbeddedBrokerError(f"RabbitMQ answered with method {came}, not {method}.", "Look at its log.")
        return payload[4:]

    def _read(self, size: int) -> bytes:
        octets = b""
        while len(octets) < size:
            more = self._link.recv(size - len(octets))
            if not more:
                raise EmbeddedBrokerError("RabbitMQ closed an AMQP connection.", "Look at its log.")
            octets += more
        return octets


def _short(text: str) -> bytes:
    octets = text.encode()
    return bytes([len(octets)]) + octets


def _long(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


def _table(entries: dict[str, str]) -> bytes:
    return _long(b"".join(_short(name) + b"S" + _long(value.encode()) for name, value in entries.items()))
