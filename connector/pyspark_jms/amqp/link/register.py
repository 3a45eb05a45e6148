"""A value in the broker that one connection at a time holds and replaces: a register with compare-and-swap.

The *lock* is the one consumer of an unshared durable subscription to a topic address: a broker refuses the second one.
No message is the lock, so no delivery count grows while others wait. The *value* is the messages of the subscription's
queue: a token, and before it the blocks that a reader has received. Who holds the lock takes them, and replaces them
inside a transaction, beside other messages of that transaction. The transaction fails if the lock was lost meanwhile.

The methods are the commands of ``delivery.register.steps``. Which one follows which is decided there.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.amqp.link.pull import Pull, drain, look
from pyspark_jms.amqp.link.staged_messages import FIRST_TOKEN, HEAD_BYTES, TOKENS, body_of, stream_of, token_message
from pyspark_jms.amqp.link.subscriptions import (
    DURABLE,
    NOT_FOUND,
    OUTCOMES,
    copy_of,
    queue_of,
    require_at,
    require_same_topic,
)
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import delivery_count
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.blocks.block import MessageBlock, block_of
from pyspark_jms.delivery.register.token import StoredToken
from pyspark_jms.errors import (
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    MaxConsumersError,
    NotDeliveredError,
    SubscriptionInUseError,
)
from pyspark_jms.jms.model import DestinationKind, DurableSubscription
from pyspark_jms.management.link import ask
from pyspark_jms.management.queue_facts import queue_facts
from pyspark_jms.management.routing import queue_names
from pyspark_jms.network.connection import OnConnection
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["TOPIC", "Place", "Register", "find_queue", "not_delivered", "tokens_at"]

_log = logging.getLogger("pyspark_jms.link")

TOPIC = "topic"
_TAKE_SECONDS = 5.0
"""A message of the register that no other connection holds arrives at once."""
_MOST_TOKENS = 1_000
"""More than there ever are. A drain whose credit is used up exactly is not answered."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.002, 0.05
"""Between two attempts to take a lock that another connection holds."""


class _Token(Protocol):
    """The last message of a value."""

    def body(self) -> bytes: ...

    @classmethod
    def parse(cls, body: bytes, /) -> Self:
        """Raise ``ValueError`` if the body is that of another message."""

    @staticmethod
    def foreign(address: str, /) -> JMSError:
        """The error for another message at this address."""


T = TypeVar("T", bound=_Token)


class Place(NamedTuple):
    """Where a register is. The container id and the name of the link name the subscription, and its queue."""

    address: str
    container: str
    link: str
    has_blocks: bool = False
    """Of a reader: its tokens are marked, so that a browse shows them without the blocks."""

    @property
    def subscription(self) -> DurableSubscription:
        return DurableSubscription(self.link, client_id=self.container)

    @property
    def queue(self) -> str:
        """The fully qualified name of its queue, as brokers usually form it: ``find_queue`` asks the broker."""
        return self.fully_qualified(str(self.subscription))

    def fully_qualified(self, queue: str) -> str:
        return f"{self.address}::{queue}"


class Register(OnConnection[Dialect], Generic[T]):
    """``lock()``, ``take()`` or ``create(…)``, ``accept()`` and ``send(…)`` in a transaction, ``release()``.

    Every method raises the ``LinkError`` that ended the connection, once it has ended.
    """

    def __init__(self, connection: Connection, place: Place, transactions: Transactions, token_class: type[T]) -> None:
        """``connection`` has the container id of the place. ``transactions``: those of the connection."""
        self.connection: Connection = connection
        self.place = place
        self._topic = connection.dialect.send.address(DestinationKind.TOPIC, place.address)
        self.transactions = transactions
        self._token_class = token_class
        self._lock: Pull | None = None
        self._queue: str | None = None
        self._taken: list[bytes | None] = []
        """Delivery-ids of what was received and not accepted."""
        self._tokens: list[StoredToken[T]] = []
        self._streams: set[str] = set()
        """What the blocks state as their streams."""

    # --- the lock ------------------------------------------------------------------------------

    def lock(
        self,
        *,
        create: bool = True,
        wait_seconds: float = 0.0,
        longest_pause: float = _LONGEST_PAUSE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> bool:
        """Become the one consumer. ``SubscriptionInUseError``: another connection is it, or the broker has not noticed
        its end. Without ``create``, return False if there is no register.

        The broker frees the lock of a lost machine when the idle time-out of its connection is over. Of two
        connections that create a register at the same moment, Artemis ends one. ``sleep`` may raise to give up.
        """
        deadline, pause = time.monotonic() + wait_seconds, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._try_lock(create=create)
            except SubscriptionInUseError:
                self.connection.check()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
                sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311  # so that all do not try at once
                pause = min(2 * pause, longest_pause)

    def _try_lock(self, *, create: bool) -> bool:
        """An attach with a source would move the queue of another address to this one, without its messages. So it
        follows one without a source that has found no queue.
        """
        lock = self._attached(None)
        if lock is None and create:
            self._create_queue()
            lock = self._attached(None)
        if lock is None:
            return False
        source = lock.receiver.remote_source
        if source is not None and source.filter:
            lock.detach(closed=False)
            raise _foreign(self.place, f"Queue {source.address} has a selector. Nothing was read or sent.")
        queue = source.address if source is not None else None
        self._lock, self._queue = lock, self.place.fully_qualified(queue) if queue else self.place.queue
        self._forget()
        return True

    def _attached(self, source: Source | None) -> Pull | None:
        head_bytes = HEAD_BYTES if self.place.has_blocks else None
        try:
            return Pull(self.connection, source, self.place.link, head_bytes=head_bytes)
        except InvalidDestinationError as error:
            if NOT_FOUND not in error.fact:  # as of a queue, which is no subscription
                raise _foreign(self.place, error.fact) from None
            if source is not None:
                raise
            return None
        except JMSSecurityError as error:
            raise self._not_permitted(error) from None

    def _create_queue(self) -> None:
        source = Source(
            address=self._topic,
            durable=DURABLE,
            expiry_policy="never",
            outcomes=OUTCOMES,
            capabilities=(TOPIC,),
        )
        if (created := self._attached(source)) is not None:
            created.detach(closed=False)

    def _not_permitted(self, error: JMSSecurityError) -> JMSSecurityError:
        address, names = self.place.address, queue_names(self.place.subscription)
        return JMSSecurityError(
            error.fact,
            f"Grant createAddress, createDurableQueue, consume, browse and send on {address}. Or an administrator"
            f" creates the address {address} with the multicast queue {names[0]} (with"
            f" amqp-use-core-subscription-naming {names[1]}), max-consumers 1, and grants consume, browse and send"
            " there.",
        )

    def require_same_topic(self, settings: ConnectionSettings) -> None:
        """``InvalidDestinationError`` if another application has the queue, for a subscription of another topic."""
        with _as_foreign(self.place):
            require_same_topic(self.connection, settings, self.place.address, self.place.subscription)

    @property
    def queue(self) -> str:
        """The fully qualified name of its queue, as the broker formed it."""
        self._queue = self._queue or find_queue(self.connection, self.place)
        return self._queue or self.place.queue

    def require_lock(self) -> None:
        """``MaxConsumersError`` unless the broker refuses a second consumer.

        A durable subscription has one consumer. But a queue with its name, which an administrator created beforehand,
        has as many as it was given: without ``max-consumers``, any number.
        """
        queue = self.queue
        try:
            second = Pull(self.connection, Source(address=queue, outcomes=OUTCOMES, capabilities=(TOPIC,)))
        except SubscriptionInUseError:
            return
        second.detach()
        raise MaxConsumersError(
            f"The broker lets a second consumer read from {queue}, so this queue is no lock. Nothing was read or sent.",
            "The queue was created beforehand: set its max-consumers to 1. If it is empty, delete it and create it"
            " again.",
        )

    def prove(self) -> None:
        """Return when the broker has answered on the link that is the lock."""
        pull = self._held()
        drain(self.connection, pull.receiver, 1)
        pull.release(pull.exactly(0, 0).ids)

    def _held(self) -> Pull:
        if self._lock is None:
            raise IllegalStateError("A register is used without its lock.", "Nothing was sent. Report this.")
        self.connection.check()
        self.connection.check_link(self._lock.receiver)
        return self._lock

    def release(self, *, closed: bool = False) -> None:
        """Give the lock back, and what was not accepted: its delivery counts stay (Artemis). ``closed``: the queue ends
        with all its messages.
        """
        lock, self._lock = self._lock, None
        self._forget()
        if lock is not None:
            lock.detach(closed=closed)

    def _forget(self) -> None:
        self._taken, self._tokens, self._streams = [], [], set()

    @property
    def receiver(self) -> Receiver | None:
        """The link that is the lock."""
        return None if self._lock is None else self._lock.receiver

    # --- the value -----------------------------------------------------------------------------

    def peek(self) -> tuple[StoredToken[T], ...]:
        """The tokens without receiving them: then no death counts as a delivery.

        Tokens that a transaction has are not shown.
        """
        return tokens_at(self.connection, self.place, self.queue, self._token_class)

    def take(self, expected: int | None = None, wait_seconds: float = 0.0) -> tuple[StoredToken[T], ...]:
        """Receive the value. Returns its tokens, also those that were taken before and not accepted.

        ``expected``: how many messages there should be; that is one round trip. If others come, all are asked for.
        While there is no token, wait for one: a transaction of an earlier holder may have it for a moment after its
        lock is free, so absence must last.
        """
        pull = self._held()
        self._hold(pull.available() if expected is None else pull.exactly(expected, _TAKE_SECONDS))
        if expected is not None and (len(self._taken) < expected or not self._tokens):
            self._hold(pull.everything())
        if not self._tokens and wait_seconds:
            self._hold(pull.exactly(1, wait_seconds))
            self._hold(pull.available())
        return tuple(self._tokens)

    @property
    def streams(self) -> frozenset[str]:
        """Return what the blocks that were taken state as their streams."""
        return frozenset(self._streams)

    def _hold(self, taken: MessageBlock) -> None:
        self._taken += taken.ids
        for index in range(len(taken)):
            message = taken.message(index)
            stream = stream_of(message)
            if stream is None:
                self._tokens.append(_stored_token(message, self.place, self._token_class))
            else:
                self._streams.add(stream)

    # --- one transaction -----------------------------------------------------------------------

    def open(self) -> None:
        """Return when a transaction has begun, and the broker takes messages."""
        self.transactions.sendable(self._topic, TOPIC)

    def attach_sender(self) -> None:
        """Attach the sending link before the lock is taken, so that the lock is held for a shorter time. Optional."""
        self.transactions.sender_to(self._topic, TOPIC)

    def accept(self, transactions: Transactions | None = None) -> None:
        """Accept what was taken, in the open transaction. Return when the broker has confirmed that."""
        receiver = self._held().receiver
        if not self._taken:
            raise IllegalStateError("A token is replaced before it was read.", "Nothing was sent. Report this.")
        (transactions or self.transactions).accept([(receiver, self._taken)], answered=True)
        self._forget()

    def send(self, token: T, transactions: Transactions | None = None) -> None:
        message = token_message(token.body(), marked=self.place.has_blocks)
        (transactions or self.transactions).send(self._topic, TOPIC, block_of(message))

    def create(self, token: T, *, once: bool = False, duplicate_id: str = FIRST_TOKEN) -> None:
        """Send a token outside of a transaction, and return when the broker has confirmed it.

        ``once``: the broker drops it if a token with this duplicate id was sent before.
        """
        self._held()
        with _as_foreign(self.place):
            require_at(self.connection, self.place.address, self.queue.rpartition("::")[2], self.place.subscription)
        sender = self.transactions.sender_to(self._topic, TOPIC)
        self.connection.await_credit(sender, "a token")
        with self.connection.core():
            chosen = duplicate_id if once else None
            message = token_message(token.body(), marked=self.place.has_blocks, duplicate_id=chosen)
            sender.send(block_of(message), 0, 1, settled=False)
        self.connection.await_accepted(sender, "a token")


def find_queue(connection: Connection, place: Place) -> str | None:
    """Return the fully qualified name of a register's queue, or None if there is none. ``connection`` has the container
    id of the place.
    """
    queue = queue_of(connection, place.subscription)
    return None if queue is None else place.fully_qualified(queue)


def not_delivered(settings: ConnectionSettings, queue: str) -> NotDeliveredError:
    """The error for a register that shows its token and does not deliver it. The broker's management has the cause."""
    cause, remedy = "", "Is it paused, or does it wait for more consumers (consumers-before-dispatch)? "
    about = f"why {queue} delivers nothing"
    facts = ask(AmqpManagementLink, settings, lambda link: queue_facts(link, [queue])[queue], about)
    if facts is not None and facts.paused:
        cause, remedy = " It is paused.", "Resume it. "
    elif facts is not None and facts.consumers_before_dispatch:
        cause = f" Its consumers-before-dispatch is {facts.consumers_before_dispatch}, and it has one consumer."
        remedy = "Set consumers-before-dispatch to 0. "
    return NotDeliveredError(
        f"The broker shows the token of {queue} and does not deliver it.{cause} Nothing was read or sent.",
        f"{remedy}Then start again with the same checkpoint.",
    )


def tokens_at(connection: Connection, place: Place, queue: str, token_class: type[T]) -> tuple[StoredToken[T], ...]:
    """All tokens of a register, on any connection. No delivery count rises. The error of ``foreign``: one is no token.

    ``queue``: by its full name. A browse would create a queue that does not exist.
    """
    block = look(connection, copy_of(queue, TOKENS if place.has_blocks else None), _MOST_TOKENS)
    return tuple(_stored_token(block.message(index), place, token_class) for index in range(len(block)))


@contextmanager
def _as_foreign(place: Place) -> Iterator[None]:
    try:
        yield
    except InvalidDestinationError as error:
        raise _foreign(place, error.fact) from None


def _foreign(place: Place, fact: str) -> InvalidDestinationError:
    other = "stagingQueue" if place.has_blocks else "name of the query"
    return InvalidDestinationError(fact, f"Another application uses it: give another {other}.")


def _stored_token(message: bytes, place: Place, token_class: type[T]) -> StoredToken[T]:
    try:
        return StoredToken(token_class.parse(body_of(message)), delivery_count(message))
    except ValueError:
        raise token_class.foreign(place.address) from None
