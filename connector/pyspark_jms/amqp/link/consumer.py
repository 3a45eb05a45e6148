"""The consumers of a subscription: messages in, acknowledgements out. They do not track what is acknowledged.

A ``Consumer`` has a connection of its own. A ``ReaderConsumer`` belongs to a task, and uses the connection of the
task's register: no credit stands while nobody asks for messages.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.dialects.cannot import NO_TRANSACTIONS
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.management import refuse_stream
from pyspark_jms.amqp.link.prefetch import Prefetch
from pyspark_jms.amqp.link.subscriptions import (
    require_echo,
    require_harmless,
    require_kind,
    require_same_topic,
    require_shared,
    require_unchanged,
    source_of,
)
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sender import CoordinatorAnswer
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage, too_large
from pyspark_jms.errors import ConnectionLostError, JMSError, LinkError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import OnConnection, StateCondition, closed_on
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Consumer", "ReaderConsumer", "attach", "check_receiver"]

_log = logging.getLogger("pyspark_jms.link")


class _Receiving(OnConnection[Dialect]):
    """A receiving link of a subscription. Its messages wait in its prefetch window until they are taken."""

    subscription: Subscription
    """Once it has subscribed."""

    def __init__(self, connection: Connection, settings: ConnectionSettings) -> None:
        self.connection: Connection = connection
        self._settings = settings
        self._prefetch: Prefetch | None = None

    @property
    def prefetch(self) -> Prefetch:
        assert self._prefetch is not None
        return self._prefetch

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""
        return self.prefetch.waiting()

    def take(self, *, only_full: bool = False) -> list[MessageBlock]:
        """The messages received since the last call. ``only_full``: without the block that is still filled."""
        return self.prefetch.take(only_full=only_full)

    def take_oversized(self) -> list[OversizedMessage]:
        return self.prefetch.take_oversized()

    def fills_window(self) -> bool:
        """The window grows by itself (``SharedWindow``)."""
        return False

    def check(self) -> None:
        """Raise what ended the connection or the link, or the error of a message that stops the query."""
        self.connection.check()
        if self._prefetch is not None:
            check_receiver(self.connection, self._prefetch.receiver, self._settings, self.subscription.destination)

    def _detach(self) -> None:
        """Give back what was not accepted, and await the broker's detach."""
        receiver = self.prefetch.receiver
        with self.connection.core():
            receiver.detach(closed=self.subscription.durable is None)
        self.connection.await_(lambda: not receiver.is_attached, "its detach")


class Consumer(_Receiving):
    """At most one subscription. ``close`` returns unacknowledged messages to the queue."""

    def __init__(
        self,
        settings: ConnectionSettings,
        condition: StateCondition | None = None,
        beside: "Consumer | None" = None,
    ) -> None:
        """Connect, or use the connection of the consumer ``beside``, which must have subscribed."""
        super().__init__(connect(settings, condition) if beside is None else beside.connection, settings)
        self.connection.users.add(self)
        self._condition = condition
        self._confirms = beside is None or beside.confirms_acknowledgements
        self._acknowledger: Acknowledger | None = None
        self._receipts: dict[str, Acknowledgement | None] = {}
        """By receipt, the acknowledgement that it confirms, or None for that of a probe."""
        self._pings: set[str] = set()
        """The receipts of pings that are not sent, because no transaction has begun."""
        self._receipt_count = 0

    # --- subscribing ---------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription) -> None:
        """Attach to the subscription, once. After an error its connection is closed, unless others use it."""
        self.subscription = subscription
        with closed_on(JMSError, super().close):
            destination, durable = subscription.destination, subscription.durable
            if durable is None:
                require_harmless(self._settings, destination, self.dialect)
            else:
                require_same_topic(self.connection, self._settings, destination.name, durable)
            address = source_of(subscription, self.dialect).address or ""
            refuse_stream(self._settings, address, self.dialect)
            receiver = self._attach(subscription)
            if self._acknowledger is not None and self._acknowledger.lost_session:
                self.connection.drop()
                self.connection = connect(self._settings, self._condition)
                self.connection.users.add(self)
                self._confirms = False
                receiver = self._attach(subscription)
        self._prefetch = Prefetch(self.connection, receiver, subscription)
        self._prefetch.begin(tries_more=True)

    def _attach(self, subscription: Subscription) -> Receiver:
        receiver = attach(self.connection, subscription)
        if not subscription.browse:
            self._acknowledger = Acknowledger(self.connection, receiver, confirmed=self._confirms)
        return receiver

    @property
    def confirms_acknowledgements(self) -> bool:
        return self._acknowledger is not None and self._acknowledger.is_confirmed

    def check(self) -> None:
        try:
            super().check()
        except ConnectionLostError:
            self.connection.drop()  # the broker may have ended only the link: the source connects again
            raise

    # --- acknowledgements, and the end of a queue -----------------------------------------------

    def acknowledge(self, ids: Iterable[bytes]) -> str:
        """Accept these deliveries, and return the receipt that will confirm it."""
        assert self._acknowledger is not None
        acknowledgement = self._acknowledger.acknowledge(list(ids))
        with self.connection.core():
            self.prefetch.released(acknowledgement.messages)
        return self._receipt(acknowledgement)

    def ping(self) -> str:
        """Commit an empty transaction, to see that the broker answers, as soon as it has begun one."""
        self.connection.check()
        receipt = self._receipt(None)
        self._pings.add(receipt)
        self._send_ping(receipt, wait=False)
        return receipt

    def _send_ping(self, receipt: str, *, wait: bool) -> None:
        if wait and not self.confirms_acknowledgements:
            raise NO_TRANSACTIONS[Feature.CONNECTIONS].error(self.connection.address)
        if self._acknowledger is not None and (wait or self._acknowledger.is_ready):
            self._receipts[receipt] = self._acknowledger.acknowledge(())
            self._pings.remove(receipt)

    def probe(self) -> str:
        """Ask whether the queue is empty for this link. The receipt is there when that is proven, or when a message
        has arrived.
        """
        self.prefetch.begin_probe()
        return self._receipt(None)

    def _receipt(self, what: "Acknowledgement | None") -> str:
        self._receipt_count += 1
        receipt = f"r{self._receipt_count}"
        self._receipts[receipt] = what
        return receipt

    def has_receipt(self, receipt: str, *, wait: bool = False) -> bool:
        if receipt in self._pings:
            self._send_ping(receipt, wait=wait)
            if receipt in self._pings:
                return False
        acknowledgement = self._receipts[receipt]
        is_there = self.prefetch.is_probed if acknowledgement is None else acknowledgement.is_confirmed
        if not is_there and not wait:
            return False
        if acknowledgement is None:
            self.prefetch.await_probe()
        elif self._acknowledger is not None:
            self._acknowledger.await_confirmed(acknowledgement)
        del self._receipts[receipt]
        return True

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Detach, which gives unacknowledged messages back without a delivery attempt (on Broker-J 9.2.1 with one), and
        disconnect. Never raises.
        """
        if self._prefetch is not None:
            self._prefetch.end()
            if self._prefetch.receiver.is_ready:
                try:
                    self._detach()
                except JMSError as error:
                    _log.debug("= %s did not confirm the detach: %s", self.connection.address, error.fact)
        super().close()

    def drop(self) -> None:
        """Leave without a word a connection that is lost, and one on which only the link is."""
        if self._prefetch is not None:
            self._prefetch.end()
        self.connection.users.discard(self)
        if self.connection.is_down or not self.connection.users:
            super().drop()


class ReaderConsumer(_Receiving):
    """``resume``, and messages arrive; ``pause``, and no more can. They are accepted by a commit, or released."""

    def __init__(self, connection: Connection, subscription: Subscription, settings: ConnectionSettings) -> None:
        """Send the attach. ``begin`` waits for the answer, so that the attaches of many sources are under way."""
        super().__init__(connection, settings)
        if subscription.durable is None:  # that of the driver is asked for before the first task (reading.Probe)
            require_harmless(settings, subscription.destination, connection.dialect)
        self.subscription = subscription
        self.receiver: Receiver = begin_attach(connection, subscription)

    def begin(self) -> None:
        """Raise the broker's refusal."""
        await_attached(self.connection, self.subscription, self.receiver)
        self._prefetch = Prefetch(self.connection, self.receiver, self.subscription)
        self._prefetch.begin(paused=True)
        self._asked_empty = 0

    def resume(self) -> None:
        self._asked_empty = self.receiver.proven_empty
        self.prefetch.resume()

    def begin_pause(self) -> None:
        """Take the credit back. Nothing waits: of many sources all are asked before ``pause``."""
        self.prefetch.begin_pause()

    def pause(self) -> None:
        self.prefetch.pause()

    @property
    def was_empty(self) -> bool:
        """Return whether the last ``pause`` has proven that the queue has no message for this link."""
        return self.receiver.proven_empty > self._asked_empty

    def release(self, ids: Sequence[bytes | None]) -> None:
        """Give messages back; their delivery counts stay."""
        with self.connection.core():
            self.receiver.release(ids)
        self.prefetch.released(len(ids))

    def detach(self) -> None:
        """Give back what was not accepted. Never raises: without an answer the connection is dropped."""
        try:
            self._detach()
        except JMSError:
            self.connection.drop()


def attach(connection: Connection, subscription: Subscription) -> Receiver:
    """A link with the subscription, without credit. Raises if the broker does not take it over as it is."""
    receiver = begin_attach(connection, subscription)
    await_attached(connection, subscription, receiver)
    return receiver


def begin_attach(connection: Connection, subscription: Subscription) -> Receiver:
    source, durable = source_of(subscription, connection.dialect), subscription.durable
    if durable is not None:
        if durable.shared:
            require_shared(connection.capabilities, connection.address)
        require_unchanged(connection, subscription)
    with connection.core() as session:
        receiver = session.link(Receiver, durable.name if durable else f"reading-{subscription.destination.name}")
        receiver.attach_to(source)
    return receiver


def await_attached(connection: Connection, subscription: Subscription, receiver: Receiver) -> None:
    source = source_of(subscription, connection.dialect)
    connection.await_attached(receiver)
    require_kind(connection.address, source, receiver.remote_source)
    require_echo(connection.address, source, receiver.remote_source)


def check_receiver(
    connection: Connection, receiver: Receiver, settings: ConnectionSettings, destination: Destination
) -> None:
    """Raise what ended the connection or the link, or the error of a message that is too large, where option onTooLarge
    says that it stops the query.
    """
    connection.check()
    connection.check_link(receiver)
    oversized = receiver.transfers.oversized
    if oversized and settings.on_too_large == "fail":
        raise too_large(oversized[0].size, settings.max_message_bytes, str(destination))


# --- acknowledgements --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An acknowledgement. ``answer`` is that of the discharge, or None if the broker confirms no acknowledgement."""

    answer: CoordinatorAnswer | None
    messages: int

    @property
    def is_confirmed(self) -> bool:
        return self.answer is None or (self.answer.done and self.answer.error is None)


class Acknowledger:
    """Settled acceptances in a transaction, whose discharge is the receipt. One transaction is always declared in
    advance, so that an acknowledgement waits for nothing.

    Nothing else proves that a broker has stored an acknowledgement: the answers to a detach, a drain or a close do not.
    """

    def __init__(self, connection: Connection, receiver: Receiver, *, confirmed: bool = True) -> None:
        """Attaches to the coordinator. Without one, or if not ``confirmed``, acknowledgements go unconfirmed.

        A broker may end the session instead of the link (RabbitMQ 4.0).
        """
        self._connection = connection
        self._receiver = receiver
        self._transactions = Transactions(connection)
        self.is_confirmed = False
        if confirmed and connection.dialect.has_transactions:
            self._attach()

    def _attach(self) -> None:
        try:
            self._transactions.await_open()
        except LinkError as error:
            if error.transient:
                raise
            _log.warning(
                "! %s has no transactions, so it confirms no acknowledgement: %s", self._connection.address, error
            )
            return
        self.is_confirmed = True

    @property
    def lost_session(self) -> bool:
        """Return whether the broker has no transactions, and ended the session to tell so. No message was delivered
        yet.
        """
        return not self.is_confirmed and self._connection.session.state is EndpointState.ENDED

    @property
    def is_ready(self) -> bool:
        """Return whether a transaction has begun, so that ``acknowledge`` waits for nothing."""
        return self._transactions.is_open

    def acknowledge(self, ids: Sequence[bytes]) -> Acknowledgement:
        if not self.is_confirmed:
            with self._connection.core():
                self._receiver.accept(ids)
            return Acknowledgement(None, len(ids))
        txn_id = self._open()
        with self._connection.core():
            self._transactions.require_open(txn_id)
            self._receiver.accept(ids, txn_id)
            answer = self._transactions.go_on(txn_id)
        return Acknowledgement(answer, len(ids))

    def _open(self) -> bytes:
        try:
            return self._transactions.await_open()
        except LinkError as error:
            if error.transient:
                raise
            raise ConnectionLostError(
                f"{self._connection.address} refused to begin a transaction.", "The query connects again."
            ) from None

    def await_confirmed(self, acknowledgement: Acknowledgement) -> None:
        """``ConnectionLostError`` when the broker has rolled it back: the messages are delivered again."""
        answer = acknowledgement.answer
        if answer is None:
            return
        self._connection.await_(lambda: answer.done, "the confirmation of acknowledgements")
        if answer.error is not None:
            self._connection.drop()
            raise ConnectionLostError(
                f"{self._connection.address} rolled acknowledgements back: {answer.error.condition}"
                f" {answer.error.description}.",
                "The messages are delivered again.",
            )
