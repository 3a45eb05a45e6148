"""One subscription on its own connection: messages in, acknowledgements out. Does not track what is acknowledged."""

import contextlib
import logging
from collections.abc import Iterable, Iterator

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage
from pyspark_jms.errors import ConnectionLostError, JMSError, JMSSecurityError, SubscriptionInUseError, UnsupportedError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.jms.names import has_wildcards
from pyspark_jms.jms.subscription import FULL_QUEUE_REMEDY, Subscription
from pyspark_jms.management.destinations import require_destinations
from pyspark_jms.management.link import ask
from pyspark_jms.management.queue_facts import queue_facts
from pyspark_jms.management.routing import is_fully_qualified, is_kept, routing_of, shows_addresses
from pyspark_jms.network.connection import OnConnection, StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import ACK_REMEDY, Connection, connect
from pyspark_jms.stomp.link.conversion_probe import probe_queue
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.stomp.link.prefetch import NOT_SUBSCRIBED, PrefetchLimit, Unacknowledged, limit_of
from pyspark_jms.stomp.wire.frame import ack_frames

__all__ = ["Consumer", "subscribe_headers"]

_COUNTED = 3
"""Of a window that is full, at least this part is counted here: Artemis counts the bytes of a CORE text twice."""

_log = logging.getLogger("pyspark_jms.link")


def subscribe_headers(
    subscription: Subscription, dialect: Dialect, routing: DestinationKind | None = None, number: str = "1"
) -> dict[str, str]:
    """The headers of SUBSCRIBE, without a receipt. ``routing``: of the queue, if it is not that of the destination.
    ``number``: of the subscription on its connection.

    Acknowledgement is always individual: on Artemis a cumulative ACK also deletes messages that could not be sent over
    STOMP.
    """
    address = dialect.addresses.header_value(subscription.destination, sending=False)
    durable, words = subscription.durable, dialect.durable_subscriptions
    headers = {
        "id": number,
        "destination": words.destination(address, durable) if durable else address,
        "ack": "client-individual",
        dialect.window_header: str(dialect.window(subscription.window_bytes, subscription.window_messages)),
        **dialect.subscribe_headers[routing or subscription.destination.kind],
    }
    if subscription.browse:  # a transformation would stay on Classic's messages, as a property
        headers |= dialect.browse_headers
    elif subscription.transform:
        headers |= dialect.transform_headers
    if durable:
        headers |= words.for_subscribe(durable)
    if subscription.selector is not None:
        headers["selector"] = subscription.selector
    return headers


def _refusal(settings: ConnectionSettings, subscription: Subscription, dialect: Dialect, error: JMSError) -> JMSError:
    """Artemis gives no reason for a subscription that it refuses (AMQ339016). Its management shows whether the queue
    has all the consumers that it may have.
    """
    name, has_reason = subscription.destination.name, not any(text in error.fact for text in dialect.subscribe_errors)
    if has_reason or subscription.durable or subscription.destination.kind is not DestinationKind.QUEUE:
        return error
    about = f"whether queue {name} takes more consumers"
    facts = ask(StompManagementLink, settings, lambda link: queue_facts(link, [name]).get(name), about)
    if facts is None or facts.max_consumers is None or (facts.consumers or 0) < facts.max_consumers:
        return error
    return SubscriptionInUseError(f"{error.fact.rstrip('.')}: queue {name} takes no more consumers.", FULL_QUEUE_REMEDY)


def _routing_of(settings: ConnectionSettings, subscription: Subscription, dialect: Dialect) -> DestinationKind:
    """The routing type to subscribe with. On Artemis another one than the queue's would change the address for good."""
    destination = subscription.destination
    full_name = is_fully_qualified(destination.name, dialect.management)
    is_topic = destination.kind is DestinationKind.TOPIC and not full_name and not has_wildcards(destination.name)
    if is_topic and shows_addresses(dialect.management):
        # SUBSCRIBE to a queue as to a topic would give its address a second routing type for good. Nothing is refused
        # without the permission manage.
        require_destinations(StompManagementLink, settings, [destination])
    if subscription.durable is not None or not full_name:
        return destination.kind
    try:
        with StompManagementLink(settings) as link:
            routing = routing_of(link, destination)
            kept = routing is DestinationKind.QUEUE or is_kept(link, destination)
    except (JMSSecurityError, UnsupportedError) as error:
        if destination.kind is DestinationKind.TOPIC:
            return destination.kind
        raise JMSSecurityError(
            f"It is not known whether {destination.name} is a queue or a topic subscription, and SUBSCRIBE with the"
            f" other routing type would change the address for good. {error.fact}",
            f"{error.remedy} Or read {destination.name} over AMQP, which needs no such permission.",
        ) from None
    if not kept:
        raise UnsupportedError(
            f"{dialect.name} deletes topic subscription {destination.name}, which is not durable, when a STOMP client"
            " has read it.",
            f"Read {destination.name} over AMQP, which leaves it as it is.",
        )
    if routing is not destination.kind and subscription.selector is not None:
        raise UnsupportedError(
            f"{dialect.name} ignores the selector of topic subscription {destination.name} over STOMP.",
            "Remove the selector and filter the rows, or read over AMQP.",
        )
    return routing


class Consumer(OnConnection[Dialect]):
    """At most one subscription. ``close`` returns unacknowledged messages to the queue."""

    subscription: Subscription
    """Once it has subscribed."""

    def __init__(
        self,
        settings: ConnectionSettings,
        condition: StateCondition | None = None,
        beside: "Consumer | None" = None,
    ) -> None:
        """Connect, or use the connection of the consumer ``beside``."""
        self._settings = settings
        self.connection: Connection = connect(settings, condition) if beside is None else beside.connection
        self.connection.users.add(self)
        self._number, self._inbox = self.connection.new_inbox()
        self._is_subscribed = False
        self._limit: PrefetchLimit = NOT_SUBSCRIBED
        self._taken = Unacknowledged()
        self._acked: dict[str, list[bytes]] = {}
        """What was acknowledged, by the receipt that has not arrived."""

    def subscribe(self, subscription: Subscription) -> None:
        """Subscribe, once. After an error its connection is closed, unless others use it and the broker stays on it.

        ``UnconvertibleMessageError`` if a message was redelivered that the broker cannot send over STOMP.
        """
        self.subscription, is_asked = subscription, False
        try:
            routing = _routing_of(self._settings, subscription, self.dialect)
            headers = subscribe_headers(subscription, self.dialect, routing, self._number)
            if self._should_probe(subscription, routing):
                self._probe(subscription, headers)
            self._limit = self._inbox.limit = limit_of(self.dialect, int(headers[self.dialect.window_header]))
            is_asked = True
            self.connection.request("SUBSCRIBE", headers)
            self._is_subscribed = True
        except JMSError as error:
            self._leave(is_asked=is_asked)
            raise _refusal(self._settings, subscription, self.dialect, error) from None

    def _leave(self, *, is_asked: bool) -> None:
        """Drop the connection, for all who share it, if an ERROR ends it, or if the broker owes it an answer.

        The reason is about this subscription. For the others the connection is lost.
        """
        if is_asked or self.connection.is_down or self.connection.has_error:
            self.drop()
            self.connection.forget_error()
        else:
            super().close()

    def _should_probe(self, subscription: Subscription, routing: DestinationKind) -> bool:
        """Return False for a plain topic subscription, among others: what is given back at its end is lost."""
        is_full_name = is_fully_qualified(subscription.destination.name, self.dialect.management)
        keeps = routing is DestinationKind.QUEUE or subscription.durable is not None or is_full_name
        is_wider = subscription.window_bytes > 1
        return subscription.probes and keeps and is_wider and bool(self.dialect.conversion_errors)

    def _probe(self, subscription: Subscription, headers: dict[str, str]) -> None:
        """Not on a connection where others would lose an attempt with the message that ends it."""
        connection = self.connection
        if len(connection.users) > 1 and subscription.spare is not None:
            connection = subscription.spare.opened(lambda: connect(self._settings))
        probe_queue(connection, self._settings, headers)

    @property
    def confirms_acknowledgements(self) -> bool:
        return self.dialect.ack_receipts_are_durable

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""
        return self._inbox.waiting()

    def take(self) -> list[MessageBlock]:
        """The messages received since the last call."""
        blocks = self._inbox.take()
        for block in blocks:
            self._taken.add(len(block), len(block.data))
        return blocks

    def take_oversized(self) -> list[OversizedMessage]:
        oversized = self._inbox.take_oversized()
        for message in oversized:
            self._taken.add(1, message.size)
        return oversized

    def check(self) -> None:
        """Raise what ended the connection, and ``PrefetchExceededError`` if too much is not acknowledged."""
        with self._cause_of_end():
            self.connection.check_messages()
        messages, size = self.waiting()
        messages, size = messages + self._taken.messages, size + self._taken.size
        self._limit.require(messages, size, max_message_bytes=self._settings.max_message_bytes)

    def acknowledge(self, ids: Iterable[bytes]) -> str:
        """Send one ACK for each message, and return the receipt that confirms the last of them.

        A broker with ``max_acks_without_receipt`` gets that many at a time, and this method waits for every receipt
        except the last one.
        """
        waiting = list(ids)
        self._taken.remove(len(waiting))
        burst = self.dialect.max_acks_without_receipt or len(waiting)
        while len(waiting) > burst:
            receipt = self._acknowledge(waiting[:burst])
            self.has_receipt(receipt, wait=True)
            del waiting[:burst]
        return self._acknowledge(waiting)

    def _acknowledge(self, ids: list[bytes]) -> str:
        receipt = self.connection.new_receipt()
        if self.dialect.acknowledgeable_ids:
            arrived = self.connection.has_receipt  # nobody takes the receipts of a browse
            self._acked = {each: sent for each, sent in self._acked.items() if not arrived(each)} | {receipt: ids}
        with self._cause_of_end():
            self.connection.send(ack_frames(list(map(self.dialect.ack_id, ids)), receipt))
        return receipt

    @contextlib.contextmanager
    def _cause_of_end(self) -> Iterator[None]:
        """Name the message whose ACK ended the connection, if there is one without a receipt."""
        try:
            yield
        except ConnectionLostError:
            for receipt, ids in self._acked.items():
                if not self.connection.has_receipt(receipt):
                    self.require_acknowledgeable(ids)
            raise

    def window_is_full(self) -> bool:
        """Return whether the broker delivers no more before something is acknowledged. For a window of messages."""
        wanted = self.subscription
        return self._taken.messages >= self.dialect.window(wanted.window_bytes, wanted.window_messages)

    def fills_window(self) -> bool:
        in_flight = self.waiting()[1] + self._taken.size
        return self.dialect.widens_again and _COUNTED * in_flight >= self.subscription.window_bytes

    def require_acknowledgeable(self, ids: Iterable[bytes]) -> None:
        """``UnsupportedError`` for a message whose ACK ends the connection."""
        found = self.dialect.unacknowledgeable(ids)
        if found is not None:
            raise UnsupportedError(
                f"{self.address} ends a connection that acknowledges message {found} of"
                f" {self.subscription.destination}.",
                ACK_REMEDY,
            ) from None

    def has_receipt(self, receipt: str, *, wait: bool = False) -> bool:
        if not wait and not self.connection.has_receipt(receipt):
            return False
        with self._cause_of_end():
            self.connection.await_receipt(receipt)
        self._acked.pop(receipt, None)
        return True

    def ping(self) -> str:
        """Request a receipt, to see that the broker answers: begin and abort an empty transaction.

        It is not a barrier: on Artemis the receipt can overtake messages that are in flight.
        """
        receipt = self.connection.new_receipt()
        self.connection.frame("BEGIN", {"transaction": receipt, "receipt": receipt})
        self.connection.frame("ABORT", {"transaction": receipt})
        return receipt

    def probe(self) -> str:
        """Send what ``ping`` sends: STOMP has no question whether a queue is empty."""
        return self.ping()

    def close(self) -> None:
        """UNSUBSCRIBE, then DISCONNECT. Never raises.

        Only UNSUBSCRIBE returns unread messages without counting a delivery attempt (measured on Artemis, where a
        message goes to the dead-letter queue after ten attempts).
        """
        if self._is_subscribed and not self.connection.is_down:
            try:
                self.connection.request("UNSUBSCRIBE", {"id": self._number})
                self.connection.prefetch.leave(self._number)
            except JMSError as error:
                _log.warning("= %s did not confirm UNSUBSCRIBE: %s", self.connection.address, error.fact)
        super().close()
