"""A TCP proxy before a broker: forwards, stalls, cuts, now or when given octets pass.

    with Proxy(broker.host, broker.port) as proxy:
        connect to proxy.url …
        proxy.to_client.stall()                      # nothing more arrives, nobody is told
        proxy.to_broker.cut_at(b"COMMIT")            # the link dies before this goes through
        proxy.cut()                                  # every connection, at once

It knows no STOMP: patterns are octets, found wherever they are split. With TLS it sees only cipher text.
"""

import contextlib
import socket
import threading


class Direction:
    """What one way of all connections does. ``octets`` have passed."""

    def __init__(self):
        self.octets = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._pattern = None
        self._included = False
        self._lock = threading.Lock()
        self.cut_done = threading.Event()
        """Set when a ``cut_at`` came true."""
        self.before_cut = lambda: None
        """Called just before it does: ``proxy.refuse``, so that nobody is back before a test can say so."""

    def stall(self):
        """Take nothing and give nothing, with the connection left up. What a hung network or peer looks like."""
        self._flowing.clear()

    def resume(self):
        self._flowing.set()

    def cut_at(self, pattern, *, included=False):
        """End the connection in which these octets come next; ``included``: right after they went through."""
        with self._lock:
            self._pattern, self._included = pattern, included
            self.cut_done.clear()

    def _admit(self, tail, octets):
        """What may go through of them, and whether the connection ends there. ``tail`` went through before."""
        self._flowing.wait()
        with self._lock:
            at = (tail + octets).find(self._pattern) if self._pattern else -1
            if at < 0:
                return octets, False
            end = at + len(self._pattern) if self._included else at
            self._pattern = None
            return octets[: max(0, end - len(tail))], True

    def _tail(self, seen):
        length = len(self._pattern) - 1 if self._pattern else 0
        return seen[-length:] if length > 0 else b""


class Proxy:
    def __init__(self, host, port):
        self._target = (host, port)
        self.to_broker, self.to_client = Direction(), Direction()
        self.accepted = 0
        self._refusing = False
        self._links = set()
        self._threads = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()

    @property
    def url(self):
        return f"stomp://{self.host}:{self.port}"

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.to_broker.resume()
        self.to_client.resume()
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def refuse(self):
        """New connections are ended at once, until ``accept``."""
        self._refusing = True

    def accept(self):
        self._refusing = False

    def cut(self):
        """End every connection, both ends; what was under way may be lost."""
        for link in list(self._links):
            _end(link)

    # --- threads -----------------------------------------------------------------------------

    def _start(self, target, *args):
        thread = threading.Thread(target=target, args=args, name="proxy")
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                if self._refusing:
                    _end(client)
                    client.close()
                    continue
                self.accepted += 1
                self._connect(client)

    def _connect(self, client):
        try:
            broker = socket.create_connection(self._target, 10)
            broker.settimeout(None)
        except OSError:
            _end(client)
            client.close()
            return
        self._links |= {client, broker}
        ends = threading.Barrier(2, action=lambda: self._close(client, broker))
        self._start(self._pump, client, broker, self.to_broker, ends)
        self._start(self._pump, broker, client, self.to_client, ends)

    def _pump(self, source, target, direction, ends):
        seen = b""
        with contextlib.suppress(OSError):
            while octets := source.recv(1 << 16):
                passed, cut = direction._admit(direction._tail(seen), octets)
                target.sendall(passed)
                direction.octets += len(passed)
                if cut:
                    direction.before_cut()
                    _end(target)
                    direction.cut_done.set()
                    break
                seen = (seen + octets)[-1024:]
        _end(source)
        _end(target)
        ends.wait()

    def _close(self, *links):
        for link in links:
            self._links.discard(link)
            link.close()


def _end(link):
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
