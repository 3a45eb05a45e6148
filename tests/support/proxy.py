"""A TCP proxy before a broker: forwards, stalls, cuts, now or when given bytes pass.

    with Proxy(broker.host, broker.port) as proxy:
        connect to proxy.url …
        proxy.to_client.stall()                      # nothing more arrives, nobody is told
        proxy.to_broker.cut_at(b"COMMIT")            # the link dies before this goes through
        proxy.to_broker.hold_at(b"COMMIT")           # it waits here, until release()
        proxy.cut()                                  # every connection, at once
        proxy.leave_open()                           # a client that dies is not missed by the broker

It knows no STOMP: patterns are bytes, found wherever they are split. With TLS it sees only cipher text.
"""

import contextlib
import socket
import sys
import threading
from dataclasses import dataclass, field

_BEAT_SECONDS = 0.3


@dataclass
class _Trap:
    """What happens where ``pattern`` comes for the ``left``-th time from now on."""

    pattern: bytes
    included: bool
    left: int
    cuts: bool
    outlives: bool = True
    """Whether what is held goes on even if its client has gone meanwhile."""
    link: object = None
    """Of this connection only."""
    released: threading.Event = field(default_factory=threading.Event)

    def springs_at(self, tail, octets):
        """Where in tail + bytes, or None. Counts down."""
        at = (tail + octets).find(self.pattern)
        while at >= 0:
            self.left -= 1
            if not self.left:
                return at + len(self.pattern) if self.included else at
            at = (tail + octets).find(self.pattern, at + len(self.pattern))
        return None


class Direction:
    """What one way of all connections does. ``bytes`` have passed."""

    def __init__(self):
        self.octets = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._trap = None
        self._sprung = []
        self._lock = threading.Lock()
        self.cut_done = threading.Event()
        """Set when a ``cut_at`` came true."""
        self.held = threading.Event()
        """Set when a ``hold_at`` came true."""
        self.held_link = None
        """In which connection."""
        self.alter = lambda octets: octets
        """Called with what was read at a time; what it returns goes on."""
        self.before_cut = lambda: None
        """Called just before it does: ``proxy.refuse``, so that nobody is back before a test can say so."""

    def stall(self):
        """Take nothing and give nothing, with the connection left up. What a hung network or peer looks like."""
        self._flowing.clear()

    def resume(self):
        self._flowing.set()

    def cut_at(self, pattern, *, included=False, nth=1):
        """End the connection in which these bytes come next; ``included``: right after they went through."""
        self._set(_Trap(pattern, included, nth, cuts=True))

    def hold_at(self, pattern, *, included=False, nth=1, link=None, outlives=True):
        """Keep back these bytes and all that follow in their connection (``included``: what follows them).

        ``link``: in that connection only. ``release`` lets them go on; after ``Proxy.cut`` they go nowhere, nor without
        ``outlives`` if their client has gone.
        """
        self._set(_Trap(pattern, included, nth, cuts=False, link=link, outlives=outlives))

    def release(self):
        """Let go what is held. What was asked for and has not come yet still holds."""
        with self._lock:
            sprung, self._sprung = self._sprung, []
        for trap in sprung:
            trap.released.set()

    def clear(self):
        """Let everything through, held or still to come."""
        with self._lock:
            self._trap = None
        self.release()
        self.resume()

    def _set(self, trap):
        with self._lock:
            self._trap = trap
            self.cut_done.clear()
            self.held.clear()

    def _admit(self, link, tail, octets):
        """What may go through of them, and the trap that sprang there. ``tail`` went through before."""
        self._flowing.wait()
        with self._lock:
            trap = self._trap if self._trap and self._trap.link in {None, link} else None
            tail = tail[1 - len(trap.pattern) :] if trap and len(trap.pattern) > 1 else b""
            end = trap.springs_at(tail, octets) if trap else None
            if end is None:
                return octets, None
            self._trap = None
            if not trap.cuts:
                self._sprung.append(trap)
            return octets[: max(0, end - len(tail))], trap

    def _hold(self, link, trap):
        self.held_link = link
        self.held.set()
        trap.released.wait()
        self._flowing.wait()


class _Link:
    """A connection in two halves."""

    def __init__(self, client, broker):
        self.client, self.broker = client, broker
        self.silent = False
        """Nothing comes from the client: what it said last is held, or it is gone and the broker was not told."""
        self.beats = 0
        """Heart-beats sent in its name."""
        self.ends = threading.Barrier(2, action=self._close)

    def _close(self):
        self.client.close()
        self.broker.close()


class Proxy:
    def __init__(self, host, port):
        self._target = (host, port)
        self.to_broker, self.to_client = Direction(), Direction()
        self.accepted = 0
        self._refusing = False
        self._leaving_open, self._beats = False, 0
        self._links = set()
        self._expiring = threading.Event()
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
        self.let_expire()
        self.cut()
        for way in (self.to_broker, self.to_client):
            way.clear()
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
            _end(link.client)
            _end(link.broker)

    def leave_open(self, beats=sys.maxsize):
        """A client that goes away is not missed: its connection to the broker stays up.

        So many heart-beats go on in its name, or until ``let_expire``; then the broker waits as long as it does.
        """
        self._leaving_open = True
        self._beats = beats
        self._start(self._beat)

    def let_expire(self):
        self._expiring.set()

    def cut_clients(self):
        """End the clients' ends only; with ``leave_open`` the broker is not told."""
        for link in list(self._links):
            _end(link.client)

    @property
    def connections(self):
        """How many the broker has not ended, nor the proxy."""
        return len(self._links)

    @property
    def left_open(self):
        """How many of them have no client any more, or one whose words are held."""
        return sum(link.silent for link in list(self._links))

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
        link = _Link(client, broker)
        self._links.add(link)
        self._start(self._towards_broker, link)
        self._start(self._towards_client, link)

    def _beat(self):
        while not self._expiring.wait(_BEAT_SECONDS):
            for link in [link for link in list(self._links) if link.silent and link.beats < self._beats]:
                link.beats += 1
                with contextlib.suppress(OSError):
                    link.broker.sendall(b"\n")

    def _towards_broker(self, link):
        with contextlib.suppress(OSError):
            self._pump(link, link.client, link.broker, self.to_broker)
        if self._leaving_open:
            link.silent = True
        else:
            _end(link.broker)
        _end(link.client)
        link.ends.wait()

    def _towards_client(self, link):
        with contextlib.suppress(OSError):
            self._pump(link, link.broker, link.client, self.to_client)
            while self._leaving_open and link.broker.recv(1 << 16):
                pass  # to a client that is gone
        self._links.discard(link)
        _end(link.broker)
        _end(link.client)
        link.ends.wait()

    @staticmethod
    def _pump(link, source, target, direction):
        seen = b""
        while octets := source.recv(1 << 16):
            octets = direction.alter(octets)
            passed, trap = direction._admit(link, seen, octets)
            direction.octets += len(passed)
            if not _sent(target, passed):
                return
            if trap and trap.cuts:
                direction.before_cut()
                _end(target)
                direction.cut_done.set()
                return
            if trap:
                link.silent = target is link.broker
                direction._hold(link, trap)
                if not trap.outlives and _gone(source):
                    return  # its last words are lost with it
                link.silent = False
                target.sendall(octets[len(passed) :])
                direction.octets += len(octets) - len(passed)
            seen = (seen + octets)[-1024:]


def _sent(target, octets):
    try:
        target.sendall(octets)
    except OSError:
        return False
    return True


def _gone(link):
    """Whether the other end has ended it, and nothing of it is left to read."""
    try:
        return not link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _end(link):
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
