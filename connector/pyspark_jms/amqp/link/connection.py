"""One AMQP connection with its session, open and logged in: used by a consumer or a producer, then closed.

The protocol core is guarded by ``condition``, which is notified when something has arrived. Every wait has a limit. One
thread reads and writes the socket (``Stream``), and why a broker ended or refused something becomes a ``JMSError`` here
(``error_of``).
"""

import contextlib
import logging
import re
import selectors
import socket
import ssl
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from pyspark_jms.amqp.dialects import DIALECTS, Dialect, dialect_of
from pyspark_jms.amqp.wire.connection import Connection as Core
from pyspark_jms.amqp.wire.connection import Session
from pyspark_jms.amqp.wire.link import Link, PeerError
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sasl import Login
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.sender import Coordinator, Sender
from pyspark_jms.amqp.wire.states import ConnectionState, EndpointState
from pyspark_jms.amqp.wire.types import Limits
from pyspark_jms.blocks.dead_letter import KEPT
from pyspark_jms.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    SubscriptionInUseError,
)
from pyspark_jms.jms.subscription import FULL_QUEUE_REMEDY
from pyspark_jms.network.address import DEFAULT_VIRTUAL_HOST, Address
from pyspark_jms.network.connection import StateCondition, closed_on
from pyspark_jms.network.dialing import open_socket
from pyspark_jms.network.failures import SECURITY_REMEDY, connection_lost, first_that_answers, late, unreachable
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["QUIET_SECONDS", "Connection", "connect", "error_of"]

LinkToPeer = TypeVar("LinkToPeer", Receiver, Sender, Coordinator)
_log = logging.getLogger("pyspark_jms.link")
_CLOSE_SECONDS = 5.0
_WINDOW_FRAMES = (1 << 31) - 1
"""The session's incoming window: no limit, because link credit and the socket hold a peer back. While a smaller window
is used up, Artemis goes through all waiting deliveries for each write. With 1,024 frames that took a third of its CPU.
"""
QUIET_SECONDS = 2.0
_IDLE_FACTOR = 2
"""§2.4.5: a peer is asked for frames at half of the time after which it counts as gone."""


def connect(settings: ConnectionSettings, condition: StateCondition | None = None) -> "Connection":
    """Connect to the first address of the list that answers, as ``first_that_answers``."""
    return first_that_answers(
        settings.addresses, lambda address: _connected(address, settings, condition or StateCondition())
    )


def _connected(address: Address, settings: ConnectionSettings, condition: StateCondition) -> "Connection":
    """A broker whose names of virtual hosts have a prefix is known by its answer only, and has then opened its default
    one, if the name went without the prefix.
    """
    connection = Connection(address, settings, condition)
    if _hostname(settings, address) == _hostname(settings, address, connection.dialect):
        return connection
    connection.close()
    return Connection(address, replace(settings, broker=connection.dialect.name), condition)


def _hostname(settings: ConnectionSettings, address: Address, dialect: Dialect | None = None) -> str:
    """Return the name of the host, or of the virtual host to open (§2.7.1). ``dialect``: of the broker, once known."""
    if address.virtual_host == DEFAULT_VIRTUAL_HOST:
        return address.host
    if dialect is None and settings.broker != "auto":
        dialect = DIALECTS[settings.broker]
    prefix = dialect.virtual_host_prefix if dialect is not None else ""
    return prefix + address.virtual_host.removeprefix(prefix)


def _closed_at_open(address: Address, reason: OSError | None) -> JMSError:
    """Return the error of a connection that the broker closed in place of an answer. RabbitMQ does so for a virtual
    host that it does not have, or that the user may not access. With TLS 1.3 a refused certificate ends it here.
    """
    if address.virtual_host == DEFAULT_VIRTUAL_HOST or isinstance(reason, ssl.SSLError):
        return unreachable(address, reason)
    return BrokerUnreachableError(
        f"{address} closed the connection and did not open virtual host {address.virtual_host}.",
        "Check that the virtual host exists, that the user may access it, and whether the port uses TLS (amqps://).",
    )


class Connection:
    """Every method raises what ended the connection, once it has: a ``LinkError``, or whatever ended its thread."""

    def __init__(self, address: Address, settings: ConnectionSettings, condition: StateCondition) -> None:
        self.address = address
        self.condition = condition
        self.received_bytes = 0
        self.readers: list[tuple[Callable[[], None], Callable[[float], None]]] = []
        """The thread calls these of each link with ``condition`` held, after bytes have arrived and every
        ``QUIET_SECONDS``."""
        self.users: set[object] = set()
        """The consumers that share the connection. The last one closes it."""
        self._settings = settings
        self._failure: BaseException | None = None
        self._end_reason: OSError | None = None
        """What the system or OpenSSL said when the connection ended."""
        self._last_received = self._last_sent = self._last_look = time.monotonic()
        context = settings.tls.context() if address.tls else None
        self._core = Core(
            container_id=_container_id(settings),
            hostname=_hostname(settings, address),
            login=_login(settings, address),
            idle_seconds=settings.heartbeat,
            incoming_window=_WINDOW_FRAMES,
            limits=Limits(max_message_bytes=settings.max_message_bytes, keep_oversized=KEPT[settings.on_too_large]),
        )
        try:
            self._stream = Stream(address, context=context, connect_timeout=settings.connect_timeout)
        except (OSError, UnicodeError) as error:
            raise unreachable(address, error, settings.tls.ca_file) from None
        self._open()
        self.dialect: Dialect = self._dialect()
        self.peer_idle_seconds = self._core.peer.idle_seconds
        _log.info("= connected to %s, server %s", address, self.server)

    def _open(self) -> None:
        limit = self._settings.connect_timeout
        with closed_on(BaseException, self.drop):
            self._core.start()
            self._stream.start(self)
            with self.condition:
                # A broker may open, and close with the reason at once.
                ready = self.condition.wait_for(
                    lambda: self.is_down or self.session.state is EndpointState.ACTIVE, limit
                )
            self._require_open(ready=ready)

    def _require_open(self, *, ready: bool) -> None:
        if not ready:
            raise BrokerUnreachableError(
                f"{self.address} accepted the connection and sent no open within {self._settings.connect_timeout:g} s.",
                "Check that this is the broker's AMQP port, and whether it uses TLS (amqps://).",
            )
        if not self._core.has_peer_opened and self._core.error is None and self._failure is None:
            raise _closed_at_open(self.address, self._end_reason)
        self.check()

    def _dialect(self) -> Dialect:
        if self._settings.broker != "auto":
            return DIALECTS[self._settings.broker]
        product = self._core.peer.properties.get("product")
        return dialect_of(product if isinstance(product, str) else None, self.address.host)

    @property
    def server(self) -> str | None:
        """The product and version that the broker names in its open."""
        properties = self._core.peer.properties
        named = [str(properties[key]) for key in ("product", "version") if properties.get(key)]
        return "/".join(named) or None

    @property
    def capabilities(self) -> frozenset[str]:
        return self._core.peer.capabilities

    @property
    def session(self) -> Session:
        return self._core.session

    @property
    def is_down(self) -> bool:
        return self._core.state is ConnectionState.CLOSED or self._failure is not None

    # --- using it ------------------------------------------------------------------------------

    @contextmanager
    def core(self) -> Iterator[Session]:
        """Use the protocol core: ``with connection.core() as session: …``. What it queued is then written."""
        with self.condition:
            self.check()
            yield self.session
        self._stream.wake()

    def check(self) -> None:
        """Raise the error that ended the connection or its session, if one has ended."""
        if self._failure is not None:
            raise self._failure
        error = self._core.error or self.session.error
        if error is not None:
            raise error_of(self.address, error)
        if self.is_down or self.session.state is EndpointState.ENDED:
            raise connection_lost(self.address)

    def await_(self, ready: Callable[[], object], what: str, timeout: float | None = None) -> None:
        """Wait until ``ready``; ``ReceiptTimeoutError`` after ``receiptTimeout``. The broker did not send ``what``."""
        limit = self._settings.receipt_timeout if timeout is None else timeout
        self.condition.await_(ready, self.check, limit, lambda: late(self.address, what, limit))

    def attached(self, kind: type[LinkToPeer], terminus: Any, name: str) -> LinkToPeer:
        """Attach a link to where messages come from, or go. Return it once the broker has; the error of a refusal."""
        with self.core() as session:
            link = session.link(kind, name)
            link.attach_to(terminus)
        self.await_attached(link)
        return link

    def await_attached(self, link: Link) -> None:
        """Wait until the broker has attached the link; the error of a refusal."""
        self.await_(lambda: link.is_ready or link.state is EndpointState.ENDED, "its attach")
        self.check_link(link)

    def await_credit(self, sender: Sender, what: str) -> None:
        """Wait until a message can be sent; the error that ended the link. ``what`` the credit is for."""
        self.await_(lambda: sender.sendable or not sender.is_attached, f"credit for {what}")
        self.check_link(sender)

    def await_accepted(self, sender: Sender, what: str) -> None:
        """Wait until the broker has accepted every message that was sent unsettled; raise why it did not."""
        self.await_(lambda: not sender.unsettled or not sender.is_attached, f"the confirmation of {what}")
        self.check_refusal(sender)
        self.check_link(sender)

    def check_link(self, link: Link) -> None:
        """Raise why the broker detached a link."""
        if link.state is EndpointState.ENDED:
            self.check()
            error = link.error or PeerError("amqp:internal-error", "the link was detached")
            receiver = link if isinstance(link, Receiver) else None
            reason = error_of(
                self.address,
                error,
                selected=receiver is not None and receiver.is_selective,
                of_queue=receiver is not None and receiver.is_plain,
            )
            if reason.missing and receiver is not None and receiver.remote is not None and not receiver.is_refused:
                raise ConnectionLostError(f"{link.name} has ended: {reason.fact}", _DELETED_REMEDY)
            raise reason

    def check_refusal(self, sender: Sender) -> None:
        """Raise why the broker did not accept a message, if it has said so."""
        if sender.rejection is not None:
            raise error_of(self.address, sender.rejection)

    def close(self) -> None:
        """Close in order, as far as the broker answers within a few seconds. Never raises."""
        try:
            if self._failure is None:
                with self.core():
                    self._core.close()
                self.await_(lambda: self.is_down, "its close", _CLOSE_SECONDS)
        except JMSError:
            _log.debug("= %s closed the connection before it confirmed close", self.address)
        self.drop()

    def drop(self) -> None:
        """Close the socket at once, as a crash would."""
        self._stream.close()
        with self.condition:
            if self._core.state is not ConnectionState.CLOSED:
                self._core.receive_end()
            self.condition.notify_all()

    # --- called by the reading thread ----------------------------------------------------------

    def receive(self, data: memoryview) -> None:
        with self.condition:
            self.received_bytes += len(data)
            self._last_received = time.monotonic()
            try:
                self._core.receive_data(data)
            except JMSError as error:
                self._failure = error
                raise
            for on_received, _ in self.readers:
                on_received()
            self.condition.notify_all()

    def to_send(self) -> list[Buffer]:
        with self.condition:
            data = self._core.data_to_send()
        if data:
            self._last_sent = time.monotonic()
        return data

    def tick(self, now: float) -> float:
        """Watch the time. Return the seconds until the next call."""
        idle = self._settings.heartbeat * _IDLE_FACTOR
        if now - self._last_received > idle:
            raise ConnectionLostError(
                f"{self.address} sent nothing for {idle:g} s.", "The broker or the network is not responding."
            )
        if self.readers and now - self._last_look >= QUIET_SECONDS:
            self._last_look = now
            with self.condition:
                for _, on_time in self.readers:
                    on_time(now)
            return 0.0  # what it queued is written before the next wait
        often = min(self._settings.heartbeat, (self._core.peer.idle_seconds or self._settings.heartbeat) / _IDLE_FACTOR)
        if now - self._last_sent >= often:
            with self.condition:
                self._core.keep_alive()
            self._last_sent = now
            return 0.0
        return min(often - (now - self._last_sent), idle - (now - self._last_received), QUIET_SECONDS)

    def lost(self, reason: BaseException | None) -> None:
        """Note that no more bytes will come. ``reason`` is None if the peer closed the connection."""
        with self.condition:
            if isinstance(reason, OSError):
                self._end_reason = reason
            else:
                self._failure = self._failure or reason
            if self._core.state is not ConnectionState.CLOSED:
                self._core.receive_end()
            self.condition.notify_all()


def _container_id(settings: ConnectionSettings) -> str:
    """A new id without the characters that the broker of option ``broker`` refuses, or ``client_id``, as it is."""
    refused = "" if settings.broker == "auto" else DIALECTS[settings.broker].refused_in_container_ids
    own = f"pyspark-jms-{uuid.uuid4().hex}"
    return settings.client_id or (re.sub(refused, "_", own) if refused else own)


def _login(settings: ConnectionSettings, address: Address) -> Login:
    return Login(
        user=settings.user,
        password=settings.password.reveal() if settings.password else None,
        external=settings.tls.cert_file is not None,
        host=address.host,
        port=address.port,
    )


# --- the socket, and the one thread that reads and writes it ----------------------------------------

_READ_BYTES = 1 << 18
_READS = 16
"""Reads before the thread checks for data to write."""
_SMALL_READ_BYTES, _NAP_SECONDS = 1 << 15, 0.0005
"""A broker writes frame by frame. After a small read the thread sleeps, so that the next read has more frames."""
_WRITE_BYTES = 1 << 18
_JOIN_SECONDS = 5.0


class Stream:
    """Connects in its constructor, which raises the ``OSError`` of a failure. ``start`` runs the thread.

    Other threads only wake it. With TLS two threads must not use one OpenSSL object, so all bytes pass this thread.
    """

    def __init__(self, address: Address, *, context: ssl.SSLContext | None, connect_timeout: float) -> None:
        connected = open_socket(address, context, connect_timeout)
        connected.setblocking(False)  # noqa: FBT003  # the socket's own method
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

    def start(self, endpoint: Connection) -> None:
        thread = threading.Thread(target=self._run, args=(endpoint,), name="pyspark-jms-amqp", daemon=True)
        thread.start()
        self._thread = thread

    def wake(self) -> None:
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

    def _run(self, endpoint: Connection) -> None:
        reason: BaseException | None = None
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._woken, selectors.EVENT_READ)
                selector.register(self._socket, selectors.EVENT_READ)
                while not self._ends and self._turn(selector, endpoint):
                    pass
        except BaseException as error:  # noqa: BLE001  # nobody else would hear of it: the callers' threads raise it
            reason = error
        self._release()
        endpoint.lost(reason)

    def _release(self) -> None:
        for each in (self._socket, self._wake, self._woken):
            each.close()

    def _turn(self, selector: selectors.BaseSelector, endpoint: Connection) -> bool:
        """Read and write what the socket allows. Return False if the peer has closed the connection."""
        blocked = self._write(endpoint)
        selector.modify(self._socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if blocked else 0))
        selector.select(endpoint.tick(time.monotonic()))
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(_READ_BYTES)
        return self._read(endpoint)

    def _read(self, endpoint: Connection) -> bool:
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

    def _write(self, endpoint: Connection) -> bool:
        """Write what there is. Return whether something is left because the socket takes no more now."""
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


# --- error conditions, and the texts that brokers put beside them → JMSError --------------------------

_MAX_CHARACTERS = 300
_CREATE_REMEDY = (
    "The address or queue is not there, and this user may not create it: create it on the broker, or grant"
    " createAddress and createDurableQueue. Artemis deletes an empty queue that it has created, unless"
    " auto-delete-queues is false."
)
_IN_USE_REMEDY = (
    "Stop other readers with this clientId and subscriptionName, or give another clientId. The broker closes a dead"
    " connection when its idle time-out is over."
)
_DELETED_REMEDY = "Somebody deleted the queue while it was read. The query goes on when it is there again."
_KIND_REMEDY = (
    "Use option topic for a topic and option queue for a queue. The queue of a durable subscription is named"
    " TOPIC::QUEUE."
)
_SELECTOR_REMEDY = "Check the selector."
_MISSING = ("amqp:not-found", "amqp:resource-deleted")
_CREATE_PERMISSION = "permission='CREATE_"
"""In Artemis' text: the address or queue is not there, and the user may not create it."""
_RULES: tuple[tuple[type[JMSError], tuple[str, ...], tuple[str, ...], str], ...] = (
    # Error class, conditions, parts of the description (Artemis, Classic), remedy.
    (
        SubscriptionInUseError,
        ("amqp:link:stolen",),
        ("Maximum Consumer Limit", "already connected", "AMQ229019"),
        _IN_USE_REMEDY,
    ),
    (JMSSecurityError, (), (_CREATE_PERMISSION,), _CREATE_REMEDY),
    (
        JMSSecurityError,
        (),
        ("SCRAM iterations",),
        "Set another number of iterations for this user on the broker, or check that brokerUrl names your broker.",
    ),
    (
        JMSSecurityError,
        ("amqp:unauthorized-access",),
        ("AMQ229031", "AMQ229032", "AMQ229213", "not authorized"),
        SECURITY_REMEDY,
    ),
    (InvalidSelectorError, (), ("Invalid selector", "selector filter"), _SELECTOR_REMEDY),
    (
        InvalidDestinationError,
        (),
        ("amqp_address_v1_not_permitted",),
        "Name a queue of RabbitMQ 4 as /queues/NAME, and to write also /exchanges/NAME/KEY, percent-encoded.",
    ),
    (
        InvalidDestinationError,
        _MISSING,
        ("AMQ229216", "AMQ119002"),
        "Create the address and queue on the broker, or let it create them (auto-create).",
    ),
    (
        InvalidDestinationError,  # Azure Service Bus, from its documentation
        (),
        ("requires sessions",),
        "Read a queue or a subscription without sessions: this connector asks for none.",
    ),
    (
        InvalidDestinationError,
        (),
        ("Incorrect Routing Type", "is not configured for"),
        _KIND_REMEDY,
    ),
    (
        InvalidDestinationError,
        ("amqp:released",),
        (),
        "Create the queue or the binding that takes these messages; a router needs a broker or a consumer behind it.",
    ),
    (
        ConnectionLostError,
        ("amqp:connection:forced", "amqp:link:detach-forced", "amqp:session:unattached-handle"),
        # The second, and while RabbitMQ (4.3) starts the third, with amqp:internal-error.
        ("idle-timeout expired", "Connection forced", "' is down"),
        "The broker is stopping, an operator closed the connection, or this process was silent for too long.",
    ),
)


def error_of(address: Address, error: PeerError, *, selected: bool = False, of_queue: bool = False) -> JMSError:
    """``selected``: it ended a link with a selector, which is then the invalid field of its attach. ``of_queue``: it
    ended a link that reads a queue and no durable subscription.
    """
    reason = " ".join(filter(None, (error.condition, error.description.strip()[:_MAX_CHARACTERS])))
    for kind, conditions, texts, remedy in _RULES:
        if error.condition in conditions or any(text in error.description for text in texts):
            verb = "ended the connection" if kind is ConnectionLostError else "refused"
            is_full = of_queue and kind is SubscriptionInUseError
            found = kind(f"{address} {verb}: {reason}.", FULL_QUEUE_REMEDY if is_full else remedy)
            found.missing = error.condition in _MISSING or _CREATE_PERMISSION in error.description
            return found
    if selected and error.condition == "amqp:invalid-field":
        return InvalidSelectorError(f"{address} refused: {reason}.", _SELECTOR_REMEDY)
    return BrokerError(f"{address} answered with an error: {reason}.", "See the broker's log for the reason.")
