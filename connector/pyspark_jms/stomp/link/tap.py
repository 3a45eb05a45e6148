"""stomp.py's transport with two differences: MESSAGE frames never reach its parser, and we open the socket.

stomp.py 9 takes 40-60 µs to parse a MESSAGE frame, on the thread that must also see heart-beats and
receipts. Its public ``receive()`` is overridden: whole MESSAGE frames stay in a ``FrameScanner``, stomp.py
gets every other frame, and for a read that held nothing else one EOL, which it takes for a heart-beat.
"""

import contextlib
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable

from stomp.transport import Transport
from stomp.utils import PollableQueue

from pyspark_jms.blocks.block import ByteArray
from pyspark_jms.errors import JMSError
from pyspark_jms.network.address import Address
from pyspark_jms.network.dialing import dial

__all__ = ["Tap"]

_READ_BYTES = 1 << 18
_DRAIN_BYTES = 1 << 22
_SMALL_READ_BYTES, _NAP_SECONDS = 1 << 15, 0.0005
"""A broker writes frame by frame, and whoever waits is woken for each. After a small read some more are let come:
one read of thirty frames takes half the CPU of thirty reads."""
_EOL = b"\n"
_LEAST_SECONDS = 0.1
_SIGN_OF_LIFE_SECONDS = 0.1
"""How often stomp.py hears that MESSAGE frames come: what it does at a heart-beat costs more than receiving a frame."""
_OUTBOX_BYTES = 16 << 20
_OUTBOX_FRAMES = 128
"""What may wait to be written to a TLS peer; a whole task's rows would else stand in memory twice."""


class _Outbox(PollableQueue):  # type: ignore[misc]  # stomp.py has no type information
    """stomp.py's queue to the io thread, with a bound."""

    def __init__(self) -> None:
        super().__init__()
        self._room = threading.Condition()
        self._bytes = 0
        self._closed = False

    def put_when_room(self, data: memoryview, timeout: float) -> None:
        """A ``BlockingIOError`` when the peer takes nothing of what waits for so long."""
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


class Tap(Transport):  # type: ignore[misc]  # stomp.py has no type information
    """``feed`` takes the bytes of a read and returns the frames that are not ours; it runs on the io thread."""

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
        self._next_sign = 0.0
        self.failure: JMSError | OSError | None = None

    def attempt_connection(self) -> None:
        """Connect once, and let the reason of a failure through: stomp.py's own version only logs it."""
        target = (self._address.host, self._address.port)
        deadline = time.monotonic() + self._connect_timeout
        connected = dial(*target, self._connect_timeout)
        try:
            connected.settimeout(max(deadline - time.monotonic(), _LEAST_SECONDS))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                connected = self._context.wrap_socket(connected, server_hostname=self._address.host)
                self._leave_writing_to_io_thread(connected)
            else:
                # A peer that takes nothing for this long ends a send; without it sendall has no limit.
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(self._send_timeout))
        except BaseException:
            connected.close()
            raise
        self.socket = connected
        connected.setblocking(self.blocking)
        self.current_host_and_port = target

    def _leave_writing_to_io_thread(self, connected: ssl.SSLSocket) -> None:
        # As stomp.py does for TLS: non-blocking, and everything is written where it is read.
        self.send_queue = _Outbox()
        self.sel = selectors.DefaultSelector()
        self.sel.register(self.send_queue, selectors.EVENT_READ)
        self.sel.register(connected, selectors.EVENT_READ)
        self.blocking = False

    def receive(self) -> bytes:
        """What stomp.py may see of one read: whole foreign frames, or one EOL, or ``b""`` at the end."""
        if self.socket is None or self.failure is not None:
            return b""
        others: list[bytes] = []
        got, at_end = 0, False
        try:
            got, at_end = self._drain(others)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except (JMSError, OSError) as error:
            self.failure = error
            at_end = True
        if others:
            return b"".join(others)
        if got and self.failure is None:
            return _EOL
        if at_end and not self.blocking:
            # stomp.py 9 does not see the end of a TLS connection and would spin: this makes it look.
            self.shutdown_queue()
        return b""

    def _drain(self, others: list[bytes]) -> tuple[int, bool]:
        """Read until stomp.py is to hear of it; with TLS until OpenSSL holds nothing: select() does not see that."""
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
            if others or (self._is_time_for_a_sign() if self.blocking else self._has_drained(got)):
                return got, False
            if self.blocking and size < _SMALL_READ_BYTES:
                time.sleep(_NAP_SECONDS)

    def _is_time_for_a_sign(self) -> bool:
        now = time.monotonic()
        if now < self._next_sign:
            return False
        self._next_sign = now + _SIGN_OF_LIFE_SECONDS
        return True

    def _has_drained(self, got: int) -> bool:
        return got > _DRAIN_BYTES and not _pending(self.socket)

    def disconnect_socket(self) -> None:
        """End the connection from any thread, without waiting for the peer; the io thread closes the socket.

        stomp.py's own version waits without limit for a TLS peer that no longer answers.
        """
        self.running = False
        connected = self.socket
        if connected is not None:
            with contextlib.suppress(OSError):
                # Past OpenSSL, whose object the io thread may be reading from.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)

    def send(self, encoded_frame: ByteArray) -> None:
        """Whole frames from any thread. With TLS they are only queued: a receipt tells that they left."""
        queue = self.send_queue
        if self.blocking or queue is None:
            super().send(encoded_frame)
        else:
            # A view: stomp.py slices what is left, record by record.
            queue.put_when_room(memoryview(encoded_frame), self._send_timeout)


def _pending(connected: socket.socket) -> int:
    return connected.pending() if isinstance(connected, ssl.SSLSocket) else 0


def _timeval(seconds: float) -> bytes:
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
