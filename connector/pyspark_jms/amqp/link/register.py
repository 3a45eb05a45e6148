"""A value in the broker that one connection at a time holds and replaces: a register with compare-and-swap.

The *lock* is the one consumer of an unshared durable subscription to a topic address: a broker refuses the second one.
No message is the lock, so no delivery count grows while others wait. The *tokens* are the messages of that
subscription, usually one: the value. Who holds the lock reads them, and replaces them inside a transaction, beside
other messages of that transaction. The transaction fails if the lock was lost meanwhile, because another owner of the
lock has the tokens then.

Knows nothing of what is in a token.
"""

import logging
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from pyspark_jms.amqp.link.acknowledging import ranges_of
from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.locks import require_one_consumer
from pyspark_jms.amqp.link.pull import browse
from pyspark_jms.amqp.link.senders import await_accepted
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import DATA, HEADER, PROPERTIES, delivery_count, sections
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.amqp.wire.types import Source, Target
from pyspark_jms.amqp.wire.values import Described, Typed, decode, encode
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.errors import (
    BrokerError,
    IllegalStateError,
    InvalidDestinationError,
    JMSSecurityError,
    ReceiptTimeoutError,
    SubscriptionInUseError,
)
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Register", "Token", "register_settings"]

_log = logging.getLogger("pyspark_jms.link")

_LINK = "token"
"""The name of the subscription. With the container id of the connection it names the queue of the tokens."""
_NOT_FOUND = "amqp:not-found"
_OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
_UNSETTLED_STATE = 2  # §3.5.5: durable
_CREDIT = 100
"""More tokens than there ever are."""
_DRAIN_SECONDS = 1.0
"""A broker may skip a drain while the end of another one is being sent (Artemis): it is sent again."""
_MAX_DRAIN_SECONDS = 10.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.002, 0.05
"""Between two attempts to take a lock that another connection holds."""
_MAX_TOKEN_BYTES = 16 << 20
_NEVER_MS = 253_402_300_799_000
"""A token expires at the end of the year 9999: so an ``expiry-delay`` of the address does not apply (Artemis)."""


@dataclass(frozen=True, slots=True)
class Token:
    """A value that is in the register."""

    body: bytes = field(repr=False)
    delivery_count: int
    """How many earlier deliveries of it failed: each death of an owner may add one, and a broker has a limit."""


def register_settings(settings: ConnectionSettings, owner: str) -> ConnectionSettings:
    """The settings of a connection with a register: the subscription belongs to ``owner``, its container id.

    The largest message that a connection takes is no matter of option ``maxMessageBytes`` here.
    """
    return replace(settings, client_id=owner, max_message_bytes=max(settings.max_message_bytes, _MAX_TOKEN_BYTES))


class Register:
    """``lock(…)``, ``read()`` or ``create(…)``, ``accept(…)`` and ``send(…)`` in a transaction, ``release()``.

    ``address``: the topic. ``connection`` has the container id of the owner (``register_settings``).
    """

    def __init__(self, connection: Connection, address: str) -> None:
        self._connection = connection
        self._address = connection.dialect.send.address(DestinationKind.TOPIC, address)
        self._receiver: Receiver | None = None
        self._sender: Sender | None = None
        self._tokens: list[tuple[bytes, Token]] = []
        """Those that were read and not replaced, with their delivery-ids."""
        self.existed = False
        """Whether the subscription was there before the lock was taken: then the register should have a token."""

    @property
    def address(self) -> str:
        return self._address

    # --- the lock ------------------------------------------------------------------------------

    def lock(self, wait_seconds: float, *, create: bool = True) -> bool:
        """Take the lock, for which other connections may be ahead. ``SubscriptionInUseError`` after the wait.

        The broker frees the lock of a lost machine when the idle time-out of its connection is over. Without
        ``create``, return False if the register does not exist, and leave it at that. Of two connections that create it
        at the same moment, Artemis ends one.
        """
        deadline, pause = time.monotonic() + wait_seconds, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._try_lock(create=create)
            except SubscriptionInUseError:
                self._connection.check()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
                time.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311  # so that all do not try at once
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _try_lock(self, *, create: bool) -> bool:
        """An attach without a source finds an existing subscription (§2.6.3), and is a consumer of it as well."""
        receiver = self._attach(None)
        self.existed = receiver is not None
        if receiver is None and not create:
            return False
        if receiver is None:
            receiver = self._attach(
                Source(
                    address=self._address,
                    durable=_UNSETTLED_STATE,
                    expiry_policy="never",
                    outcomes=_OUTCOMES,
                    capabilities=(str(DestinationKind.TOPIC),),
                )
            )
            assert receiver is not None
        self._receiver, self._tokens = receiver, []
        return True

    def _attach(self, source: Source | None) -> Receiver | None:
        """None: there is no such subscription. ``SubscriptionInUseError``: another connection consumes from it."""
        with self._connection.core() as session:
            receiver = session.link(Receiver, _LINK)
            receiver.attach_to(source)
        self._connection.await_(lambda: receiver.is_ready or _has_ended(receiver), "its attach")
        if source is None and _has_ended(receiver) and receiver.error and receiver.error.condition == _NOT_FOUND:
            return None
        self._connection.check_link(receiver)
        return receiver

    def attach_sender(self) -> None:
        """Optional, before the lock is taken: others then wait less.

        With the capability: see ``link.sources.source_of``.
        """
        if self._sender is not None and self._sender.is_attached:
            return
        with self._connection.core() as session:
            self._sender = session.link(Sender, f"{_LINK}-{uuid.uuid4().hex}")
            self._sender.attach_to(Target(address=self._address, capabilities=(str(DestinationKind.TOPIC),)))
        self._connection.await_attached(self._sender)

    def require_lock(self, owner: str) -> None:
        """``MaxConsumersError``: an administrator created the queue of the tokens without a limit of one consumer, so
        that others may hold what this connection took for the lock. ``owner``: the container id.
        """
        require_one_consumer(self._connection, self._queue(owner))

    def _queue(self, owner: str) -> str:
        """The queue of the tokens, by its fully qualified name."""
        return f"{self._address}::{owner}.{_LINK}"

    def release(self) -> None:
        """Give the lock back, and tokens that were not replaced: their delivery counts stay (Artemis)."""
        receiver, self._receiver, self._tokens = self._receiver, None, []
        if receiver is None or _has_ended(receiver):
            return
        with self._connection.core():
            receiver.detach(closed=False)
        self._connection.await_(lambda: _has_ended(receiver), "its detach")

    # --- the tokens ----------------------------------------------------------------------------

    def read(self, wait_seconds: float = 0.0) -> tuple[Token, ...]:
        """All tokens of the register, also those read before. While there is none, wait for one.

        A dying owner's transaction may have the tokens for a moment after its lock is free, so absence must last.
        """
        self._drain()
        if not self._tokens and wait_seconds:
            receiver = self._held()
            with self._connection.core():
                receiver.grant(_CREDIT)
            self._await(lambda: bool(len(receiver.transfers)), wait_seconds)
            self._drain()
        return tuple(token for _, token in self._tokens)

    def peek(self, owner: str) -> tuple[Token, ...]:
        """The tokens without receiving them: then no death counts as a delivery. ``owner``: the container id.

        Empty if the broker does not show them (without the permission ``browse``), or if a transaction has them.
        """
        self._held()
        try:
            return tuple(map(_token, browse(self._connection, self._queue(owner))))
        except (JMSSecurityError, InvalidDestinationError, BrokerError) as error:
            _log.debug("= the tokens of %s are received, not browsed: %s", self._address, error.fact)
            return ()

    def _drain(self) -> None:
        """Receive the tokens. There are few, and a broker sends so many before it answers a drain: one is enough."""
        receiver = self._held()
        answered, deadline = receiver.drains_answered, time.monotonic() + _MAX_DRAIN_SECONDS
        while receiver.drains_answered == answered:
            with self._connection.core():
                receiver.drain(_CREDIT)
            if not self._await(lambda: not receiver.is_draining, _DRAIN_SECONDS) and time.monotonic() > deadline:
                raise ReceiptTimeoutError(
                    f"{self._connection.address} did not deliver from {self._address} within {_MAX_DRAIN_SECONDS:g} s.",
                    "Is the queue paused? Look at the broker's log.",
                )
            self._take(receiver)

    def _take(self, receiver: Receiver) -> None:
        with self._connection.core():
            block = receiver.transfers.take()
        for index, delivery_id in enumerate(block.ids):
            assert delivery_id is not None
            self._tokens.append((delivery_id, _token(block.message(index))))

    def create(self, body: bytes) -> None:
        """Send the first token, in a confirmed send of its own; ``read`` finds it."""
        sender = self._sendable()
        with self._connection.core():
            sender.send(_message(body), 0, 1, settled=False)
        await_accepted(self._connection, sender, "a token")

    def accept(self, transactions: Transactions) -> None:
        """In a transaction of this connection, which is begun if it is not open, accept all tokens that were read.

        Returns when the broker has confirmed that the tokens are in the transaction: if it has taken them back, because
        an administrator closed the consumer, it would ignore the acceptance and commit the rest.
        """
        receiver = self._held()
        if not self._tokens:
            raise IllegalStateError("A token is replaced before it was read.", "Nothing was sent. Report this.")
        txn_id = transactions.begin()
        with self._connection.core():
            transactions.require_open(txn_id)
            receiver.accept(ranges_of([each for each, _ in self._tokens]), txn_id, settled=False)
        self._tokens = []
        self._connection.await_(lambda: not receiver.unanswered or _has_ended(receiver), "the acceptance of a token")
        self._held()

    def send(self, body: bytes, transactions: Transactions) -> None:
        """In the transaction, the next token."""
        sender, txn_id = self._sendable(), transactions.begin()
        with self._connection.core():
            transactions.require_open(txn_id)
            sender.send(_message(body), 0, 1, settled=True, txn_id=txn_id)

    def _held(self) -> Receiver:
        receiver = self._receiver
        if receiver is None:
            raise IllegalStateError("A register is used without its lock.", "Nothing was sent. Report this.")
        self._connection.check_link(receiver)
        return receiver

    def _sendable(self) -> Sender:
        self.attach_sender()
        sender = self._sender
        assert sender is not None
        self._connection.await_(lambda: sender.sendable or _has_ended(sender), "credit for a token")
        self._connection.check_link(sender)
        return sender

    def _await(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Whether it was ready in time. Raises if the broker takes the lock away."""
        receiver = self._held()
        try:
            self._connection.await_(lambda: ready() or _has_ended(receiver), "a token", seconds)
        except ReceiptTimeoutError:
            return False
        self._held()
        return True


def _has_ended(link: Receiver | Sender) -> bool:
    return link.state is EndpointState.ENDED


def _message(body: bytes) -> MessageBlock:
    """Durable, of the usual priority, in one section of data."""
    expiry = [None] * 8 + [Typed("timestamp", _NEVER_MS)]
    message = encode(Described(HEADER, [True])) + encode(Described(PROPERTIES, expiry)) + encode(Described(DATA, body))
    return MessageBlock(message, ends=index_of(np.array([len(message)])))


def _token(message: bytes) -> Token:
    return Token(_body(message), delivery_count(message))


def _body(message: bytes) -> bytes:
    """The data of a message; empty if it has none: then it is not a token."""
    found = next((section for section in sections(message) if section.code == DATA), None)
    value = decode(message, found.value, found.end)[0] if found is not None else b""
    return value if isinstance(value, bytes) else b""
