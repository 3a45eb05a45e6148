"""A connected socket and the one thread that reads and writes it. Other threads only wake it.

With TLS two threads must not use one OpenSSL object, so all bytes pass this thread.
"""

import contextlib
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from pyspark_jms.network.address import Address
from pyspark_jms.network.dialing import dial

__all__ = ["Endpoint", "Stream"]

_READ_BYTES = 1 << 18
_READS = 16
"""Reads before the thread checks for data to write."""
_SMALL_READ_BYTES, _NAP_SECONDS = 1 << 15, 0.0005
"""A broker writes frame by frame. After a small read the thread sleeps, so that the next read has more frames."""
_WRITE_BYTES = 1 << 18
_MIN_SECONDS = 0.1
_JOIN_SECONDS = 5.0


class Endpoint(Protocol):
    """What the thread calls. ``send`` and ``receive`` are the protocol core; ``tick`` watches the time."""

    def receive(self, data: memoryview) -> None: ...

    def to_send(self) -> Sequence[bytes | bytearray | memoryview]: ...

    def tick(self, now: float) -> float:
        """Seconds until the next call."""

    def lost(self, reason: BaseException | None) -> None:
        """No more bytes will come. None: the peer closed the connection."""


class Stream:
    """Connects in its constructor, which raises the ``OSError`` of a failure. ``start`` runs the thread."""

    def __init__(self, address: Address, *, context: ssl.SSLContext | None, connect_timeout: float) -> None:
        deadline = time.monotonic() + connect_timeout
        connected = dial(address.host, address.port, connect_timeout)
        try:
            connected.settimeout(max(deadline - time.monotonic(), _MIN_SECONDS))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                connected = context.wrap_socket(connected, server_hostname=address.host)
            connected.setblocking(False)  # noqa: FBT003  # the socket's own method
        except BaseException:
            connected.close()
            raise
        self._socket = connected
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)  # noqa: FBT003
        self._woken.setblocking(False)  # noqa: FBT003
        self._outgoing = memoryview(b"")
        self._waiting: deque[bytes | bytearray | memoryview] = deque()
        """What follows ``_outgoing``."""
        self._view = memoryview(bytearray(_READ_BYTES))
        self._thread: threading.Thread | None = None
        self._ends = False

    def start(self, endpoint: Endpoint) -> None:
        self._thread = threading.Thread(target=self._run, args=(endpoint,), name="pyspark-jms-amqp", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There may be something to send."""
        with contextlib.suppress(OSError):
            self._wake.send(b"\0")

    def close(self) -> None:
        """End the connection without waiting for the peer, and the thread."""
        self._ends = True
        with contextlib.suppress(OSError):
            # Not through OpenSSL: the thread may be using its object.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self.wake()
        if self._thread is None:
            self._release()
        elif self._thread is not threading.current_thread():
            self._thread.join(_JOIN_SECONDS)

    # --- the thread ----------------------------------------------------------------------------

    def _run(self, endpoint: Endpoint) -> None:
        reason: BaseException | None = None
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._woken, selectors.EVENT_READ)
                selector.register(self._socket, selectors.EVENT_READ)
                while not self._ends and self._turn(selector, endpoint):
                    pass
        except Exception as error:  # noqa: BLE001  # whatever ended the thread, the connection is of no more use
            reason = error
        self._release()
        endpoint.lost(reason)

    def _release(self) -> None:
        for each in (self._socket, self._wake, self._woken):
            each.close()

    def _turn(self, selector: selectors.BaseSelector, endpoint: Endpoint) -> bool:
        """Read and write what the socket allows. False: the peer has closed the connection."""
        blocked = self._write(endpoint)
        selector.modify(self._socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if blocked else 0))
        selector.select(endpoint.tick(time.monotonic()))
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(_READ_BYTES)
        return self._read(endpoint)

    def _read(self, endpoint: Endpoint) -> bool:
        for _ in range(_READS):
            try:
                size = self._socket.recv_into(self._view)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return True
            if not size:
                return False
            endpoint.receive(self._view[:size])
            if size < _SMALL_READ_BYTES:
                self._write(endpoint)
                time.sleep(_NAP_SECONDS)
        return True

    def _write(self, endpoint: Endpoint) -> bool:
        """Write what there is. Returns whether something is left because the socket takes no more now."""
        while True:
            if not self._outgoing:
                self._waiting.extend(endpoint.to_send())
                self._outgoing = self._next_pieces()
            if not self._outgoing:
                return False
            try:
                sent = self._socket.send(self._outgoing[:_WRITE_BYTES])
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return True
            self._outgoing = self._outgoing[sent:]

    def _next_pieces(self) -> memoryview:
        """Pieces joined for one write. All at once would be a copy of what a batch of the staging queue holds.

        A large piece is not copied.
        """
        pieces: list[bytes | bytearray | memoryview] = []
        size = 0
        while self._waiting and size < _WRITE_BYTES:
            pieces.append(self._waiting.popleft())
            size += len(pieces[-1])
        return memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))
