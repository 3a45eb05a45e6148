"""A TCP proxy that cuts both ways when given octets pass from the client to the broker.

``before``: the broker never sees them. ``after``: it sees them and its answer never comes back.
``stall``: nothing is cut; the answers just stop.
"""

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class CuttingProxy:
    """``with CuttingProxy(broker.url, b"COMMIT", "after") as proxy: … proxy.url`` — cuts once, then is a pipe."""

    def __init__(self, url, pattern, mode, then=lambda: None):
        split = urlsplit(url)
        self._target = (split.hostname, split.port)
        self._pattern, self._mode, self._then = pattern, mode, then
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets, self._threads = [self._listener], []
        self.cuts = 0
        self.url = f"stomp://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_):
        for each in list(self._sockets):
            _close(each)
        for thread in self._threads:
            thread.join(10)

    def _start(self, target, *arguments):
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self._target, 10)
            except OSError:
                _close(client)
                continue
            broker.settimeout(None)
            self._sockets += [client, broker]
            stalled = threading.Event()
            self._start(self._up, client, broker, stalled)
            self._start(self._down, broker, client, stalled)

    def _up(self, client, broker, stalled):
        seen = b""
        with contextlib.suppress(OSError):
            while octets := client.recv(1 << 16):
                seen = seen[-len(self._pattern) :] + octets
                if self.cuts or self._pattern not in seen:
                    broker.sendall(octets)
                    continue
                self.cuts += 1
                stalled.set()
                # what came before the pattern in the same read has every right to pass
                passed = len(octets) - (len(seen) - seen.index(self._pattern))
                broker.sendall(octets[: max(0, passed)] if self._mode == "before" else octets)
                self._then()
                if self._mode != "stall":
                    break
        if self._mode == "after" and stalled.is_set():
            _close(client)
            with contextlib.suppress(OSError):
                broker.shutdown(socket.SHUT_WR)  # what was sent is still read
        else:
            _close(client)
            _close(broker)

    def _down(self, broker, client, stalled):
        with contextlib.suppress(OSError):
            while octets := broker.recv(1 << 16):
                if not stalled.is_set():
                    client.sendall(octets)
        _close(broker)
        if self._mode != "stall" or not stalled.is_set():
            _close(client)


def _close(each):
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
