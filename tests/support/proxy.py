"""A TCP proxy in front of a broker. It forwards, stalls and cuts connections, at once or when given bytes pass.

    with Proxy(broker.host, broker.port) as proxy:
        connect to proxy.url …
        proxy.to_client.stall()                      # nothing more arrives, without an error
        proxy.to_broker.cut_at(b"COMMIT")            # the connection ends before these bytes pass
        proxy.to_broker.hold_at(b"COMMIT")           # these bytes wait until release()
        proxy.cut()                                  # every connection, at once
        proxy.leave_open()                           # the broker does not notice the end of a client

It knows nothing of protocols but their heart-beats: patterns are bytes, found wherever they are split. With TLS it sees
only cipher text.
"""

import contextlib
import socket
import sys
import threading
from dataclasses import dataclass, field

_BEAT_SECONDS = 0.3
_LOOK_SECONDS = 0.05
_BEATS = {"stomp": b"\n", "amqp": b"\0\0\0\x08\x02\0\0\0"}
"""STOMP's end of line, AMQP's empty frame: what keeps a connection alive."""
_LOGGED_IN = {"stomp": b"", "amqp": b"AMQP\0\1\0\0"}
"""A client has sent this before its first heart-beat: before the end of SASL an empty frame of AMQP is an error, and
Artemis 2.55 reads on for ever (docs/brokers/artemis.md)."""


@dataclass
class _Trap:
    """The action at the ``left``-th occurrence of ``pattern``."""

    pattern: bytes
    included: bool
    left: int
    cuts: bool
    outlives: bool = True
    """Whether held bytes are forwarded although their client has ended meanwhile."""
    link: object = None
    """Only for this connection; None: for all."""
    back: int = 0
    """Bytes before the pattern that belong to it, as the head of its frame."""
    released: threading.Event = field(default_factory=threading.Event)

    def springs_at(self, tail, data):
        """Where in tail + bytes, or None. Counts down."""
        at = (tail + data).find(self.pattern)
        while at >= 0:
            self.left -= 1
            if not self.left:
                return at + len(self.pattern) if self.included else max(0, at - self.back)
            at = (tail + data).find(self.pattern, at + len(self.pattern))
        return None


class Direction:
    """One direction of all connections. ``size`` counts the forwarded bytes."""

    def __init__(self):
        self.size = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._trap = None
        self._sprung = []
        self._lock = threading.Lock()
        self.cut_done = threading.Event()
        """Set after a ``cut_at``."""
        self.held = threading.Event()
        """Set after a ``hold_at``."""
        self.held_link = None
        """The connection of the ``hold_at``."""
        self.alter = lambda data: data
        """Called with the bytes of each read; its result is forwarded."""
        self.before_cut = lambda: None
        """Called just before a cut, as ``proxy.refuse``: then a client cannot reconnect before the test continues."""

    def stall(self):
        """Forward nothing while the connection stays open, like a hung network or peer."""
        self._flowing.clear()

    def resume(self):
        self._flowing.set()

    def cut_at(self, pattern, *, included=False, nth=1):
        """End the connection in which these bytes come next; with ``included`` right after forwarding them."""
        self._set(_Trap(pattern, included, nth, cuts=True))

    def hold_at(self, pattern, *, included=False, nth=1, link=None, outlives=True, back=0):
        """Hold these bytes and all that follow in their connection (with ``included`` only those that follow).

        ``back``: and so many bytes before them, if they arrive together. ``link``: in that connection only. ``release``
        lets them go on; after ``Proxy.cut`` they go nowhere, nor without ``outlives`` if their client has gone.
        """
        self._set(_Trap(pattern, included, nth, cuts=False, link=link, outlives=outlives, back=back))

    def release(self):
        """Forward the held bytes. A ``hold_at`` that has not happened stays."""
        with self._lock:
            sprung, self._sprung = self._sprung, []
        for trap in sprung:
            trap.released.set()

    def clear(self):
        """Forward everything, and remove every ``cut_at`` and ``hold_at``."""
        with self._lock:
            self._trap = None
        self.release()
        self.resume()

    def _set(self, trap):
        with self._lock:
            self._trap = trap
            self.cut_done.clear()
            self.held.clear()

    def _admit(self, link, tail, data):
        """The part that may be forwarded, and the trap at its end. ``tail`` was forwarded before."""
        self._flowing.wait()
        with self._lock:
            trap = self._trap if self._trap and self._trap.link in {None, link} else None
            tail = tail[1 - len(trap.pattern) :] if trap and len(trap.pattern) > 1 else b""
            end = trap.springs_at(tail, data) if trap else None
            if end is None:
                return data, None
            self._trap = None
            if not trap.cuts:
                self._sprung.append(trap)
            return data[: max(0, end - len(tail))], trap

    def _hold(self, link, trap):
        self.held_link = link
        self.held.set()
        trap.released.wait()
        self._flowing.wait()


class _Link:
    """A connection of a client and its connection to the broker."""

    def __init__(self, client, broker):
        self.client, self.broker = client, broker
        self.client_port = client.getpeername()[1]
        """By which the process of the client is found."""
        self.silent = False
        """The client sends nothing: its last bytes are held, or it has ended and the broker has not noticed."""
        self.ended_unseen = False
        """The broker has seen the end of the connection, and the client sees it when it sends something."""
        self.logged_in = False
        self.beats = 0
        """Heart-beats that were sent for the client."""
        self.ends = threading.Barrier(2, action=self._close)

    def _close(self):
        self.client.close()
        self.broker.close()


class Proxy:
    def __init__(self, host, port, protocol="stomp"):
        """``protocol``: of ``url`` and of the heart-beats."""
        self._target, self._protocol = (host, port), protocol
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
        return f"{self._protocol}://{self.host}:{self.port}"

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
        """End new connections at once, until ``accept``."""
        self._refusing = True

    def accept(self):
        self._refusing = False

    def lead_to(self, host, port):
        """Connect the next clients to this broker."""
        self._target = host, port

    def links(self):
        """The connections of this moment, for ``cut``."""
        return list(self._links)

    def cut(self, links=None):
        """End both ends of these connections, or of all; bytes in flight may be lost."""
        for link in self.links() if links is None else links:
            _end(link.client)
            _end(link.broker)

    def cut_unseen(self, links):
        """End the broker's ends of these connections. A client does not see it before it sends something."""
        for link in links:
            link.ended_unseen = True
            _end(link.broker)

    def leave_open(self, beats=sys.maxsize):
        """When a client ends, its connection to the broker stays open.

        So many heart-beats go on in its name, or until ``let_expire``; then the broker waits as long as it does.
        """
        self._leaving_open = True
        self._beats = beats
        self._start(self._beat)

    def let_expire(self):
        self._expiring.set()

    def cut_clients(self):
        """End only the clients' ends; with ``leave_open`` the broker does not notice."""
        for link in list(self._links):
            _end(link.client)

    @property
    def connections(self):
        """The number of connections that neither the broker nor the proxy has ended."""
        return len(self._links)

    @property
    def left_open(self):
        """The number of these connections without a client, or with a client whose bytes are held."""
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
            silent = [link for link in list(self._links) if link.silent and link.logged_in]
            for link in [link for link in silent if link.beats < self._beats]:
                link.beats += 1
                with contextlib.suppress(OSError):
                    link.broker.sendall(_BEATS[self._protocol])

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
                pass  # the client has ended
        while link.ended_unseen and not self._expiring.is_set() and not _gone(link.client):
            self._expiring.wait(_LOOK_SECONDS)
        self._links.discard(link)
        _end(link.broker)
        _end(link.client)
        link.ends.wait()

    def _pump(self, link, source, target, direction):
        seen = b""
        while data := source.recv(1 << 16):
            data = direction.alter(data)
            passed, trap = direction._admit(link, seen, data)
            direction.size += len(passed)
            if not _sent(target, passed):
                return
            link.logged_in |= target is link.broker and _LOGGED_IN[self._protocol] in seen + passed
            if trap and trap.cuts:
                direction.before_cut()
                _end(target)
                direction.cut_done.set()
                return
            if trap:
                link.silent = target is link.broker
                direction._hold(link, trap)
                if not trap.outlives and _gone(source):
                    return  # its last bytes are lost
                link.silent = False
                target.sendall(data[len(passed) :])
                link.logged_in |= target is link.broker and _LOGGED_IN[self._protocol] in seen + data
                direction.size += len(data) - len(passed)
            seen = (seen + data)[-1024:]


def _sent(target, data):
    try:
        target.sendall(data)
    except OSError:
        return False
    return True


def _gone(link):
    """Whether the other end has closed the connection, and nothing is left to read."""
    try:
        return not link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _end(link):
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
