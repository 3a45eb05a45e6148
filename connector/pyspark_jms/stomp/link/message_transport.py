"""stomp.py's transport with two differences: its parser does not see MESSAGE frames, and the socket is opened here.

stomp.py 9 takes 40-60 µs to parse a MESSAGE frame, in the thread that also handles heart-beats and receipts. Its
public ``receive()`` is overridden: ``feed`` keeps whole MESSAGE frames, and stomp.py gets every other frame. For a read
with MESSAGE frames only it gets one EOL, which it counts as a heart-beat.
"""

import contextlib
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from stomp.transport import Transport
from stomp.utils import PollableQueue

from pyspark_jms.blocks.block import ByteArray
from pyspark_jms.network.address import Address
from pyspark_jms.network.dialing import open_socket

__all__ = ["MessageTransport"]

_READ_BYTES = 1 << 18
_DRAIN_BYTES = 1 << 22
_SMALL_READ_BYTES, _NAP_SECONDS = 1 << 15, 0.0005
"""A broker writes frame by frame, and each write would wake the reader. After a small read the reader sleeps, so that
more frames arrive: one read of thirty frames takes half the CPU of thirty reads."""
_EOL = b"\n"
_HEARTBEAT_EOL_SECONDS = 0.1
"""How often stomp.py gets an EOL while MESSAGE frames arrive: it takes more CPU for an EOL than a frame takes here."""
_OUTBOX_BYTES = 16 << 20
_OUTBOX_FRAMES = 128
"""Limits of the frames that wait to be written to a TLS peer. Without them all rows of a task are in memory twice."""


class _Outbox(PollableQueue):  # type: ignore[misc]  # stomp.py has no type information
    """stomp.py's queue to the io thread, with a limit."""

    def __init__(self) -> None:
        super().__init__()
        self._room = threading.Condition()
        self._bytes = 0
        self._closed = False

    def put_when_room(self, data: memoryview, timeout: float) -> None:
        """``BlockingIOError`` when the peer accepts nothing for ``timeout`` seconds."""
        with self._room:
            while not self._closed and (self._bytes >= _OUTBOX_BYTES or self.qsize() >= _OUTBOX_FRAMES):
                if not self._room.wait(timeout):
                    raise BlockingIOError
        self.put(data)

    def put(self, item: bytes | memoryview) -> None:
        with self._room:
            self._bytes += len(item)
        super().put(item)

    def get(self) -> bytes | memoryview:
        item: bytes | memoryview = super().get()
        with self._room:
            self._bytes -= len(item)
            self._room.notify_all()
        return item

    def shutdown(self) -> None:
        super().shutdown()
        with self._room:
            self._closed = True
            self._room.notify_all()


class MessageTransport(Transport):  # type: ignore[misc]  # stomp.py has no type information
    """``feed`` gets the bytes of a read and returns the frames for stomp.py. It runs in the io thread."""

    def __init__(
        self,
        address: Address,
        *,
        context: ssl.SSLContext | None,
        connect_timeout: float,
        send_timeout: float,
        feed: Callable[[memoryview], list[bytes]],
    ) -> None:
        super().__init__(
            [(address.host, address.port)],
            prefer_localhost=False,
            try_loopback_connect=False,
            timeout=connect_timeout,
        )
        self._address = address
        self._context = context
        self._connect_timeout = connect_timeout
        self._send_timeout = send_timeout
        self._feed = feed
        self._view = memoryview(bytearray(_READ_BYTES))
        self._next_eol = 0.0
        self.failure: BaseException | None = None
        """What ended the reading: an ``OSError`` of the socket, or whatever else was raised in the io thread."""

    def attempt_connection(self) -> None:
        """Connect once, and raise the reason of a failure: stomp.py's own version only logs it."""
        connected = open_socket(self._address, self._context, self._connect_timeout)
        if isinstance(connected, ssl.SSLSocket):
            self._write_in_io_thread(connected)
        else:
            # A send ends when the peer accepts nothing for this long; without it sendall has no limit.
            timeval = struct.pack("ll", int(self._send_timeout), int(self._send_timeout % 1 * 1_000_000))
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval)
        self.socket = connected
        connected.setblocking(self.blocking)
        self.current_host_and_port = (self._address.host, self._address.port)

    def _write_in_io_thread(self, connected: ssl.SSLSocket) -> None:
        # As in stomp.py for TLS: the socket is non-blocking, and the thread that reads it also writes.
        self.send_queue = _Outbox()
        self.sel = selectors.DefaultSelector()
        self.sel.register(self.send_queue, selectors.EVENT_READ)
        self.sel.register(connected, selectors.EVENT_READ)
        self.blocking = False

    def receive(self) -> bytes:
        """The part of one read for stomp.py: whole frames that are not MESSAGE, or one EOL, or ``b""`` at the end."""
        if self.socket is None or self.failure is not None:
            return b""
        others: list[bytes] = []
        got, at_end = 0, False
        try:
            got, at_end = self._drain(others)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except BaseException as error:  # noqa: BLE001  # stomp.py would only log it
            self.failure = error
            at_end = True
        if others:
            return b"".join(others)
        if got and self.failure is None:
            return _EOL
        if at_end and not self.blocking:
            # stomp.py 9 does not notice the end of a TLS connection and would loop: this ends its loop.
            self.shutdown_queue()
        return b""

    def notify(self, frame_type: str, frame: Any = None) -> None:
        """Call the listeners. stomp.py only logs what one of them raises, and goes on without the socket."""
        try:
            super().notify(frame_type, frame)
        except BaseException as error:  # noqa: BLE001
            self.failure = self.failure or error
            self.disconnect_socket()

    def _drain(self, others: list[bytes]) -> tuple[int, bool]:
        """Read until there is something for stomp.py; with TLS until the buffer of OpenSSL is empty."""
        got = 0
        while True:
            try:
                size = self.socket.recv_into(self._view)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if got:
                    return got, False
                raise
            if not size:
                return got, True
            got += size
            others += self._feed(self._view[:size])
            is_drained = got > _DRAIN_BYTES and isinstance(self.socket, ssl.SSLSocket) and not self.socket.pending()
            if others or is_drained or (self.blocking and self._is_time_for_eol()):
                return got, False
            if self.blocking and size < _SMALL_READ_BYTES:
                time.sleep(_NAP_SECONDS)

    def _is_time_for_eol(self) -> bool:
        now = time.monotonic()
        if now < self._next_eol:
            return False
        self._next_eol = now + _HEARTBEAT_EOL_SECONDS
        return True

    def disconnect_socket(self) -> None:
        """End the connection from any thread, without waiting for the peer; the io thread closes the socket.

        stomp.py's own version waits without limit for a TLS peer that no longer answers.
        """
        self.running = False
        connected = self.socket
        if connected is not None:
            with contextlib.suppress(OSError):
                # Not through OpenSSL: the io thread may be reading from its object.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)

    def send(self, encoded_frame: ByteArray) -> None:
        """Write whole frames, from any thread. With TLS they are only queued: a receipt proves that they were sent."""
        queue = self.send_queue
        if self.blocking or queue is None:
            super().send(encoded_frame)
        else:
            # A view, because stomp.py slices the rest for each TLS record.
            queue.put_when_room(memoryview(encoded_frame), self._send_timeout)
