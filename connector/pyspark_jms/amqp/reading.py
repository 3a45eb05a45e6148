"""What an exactly-once read does at the broker: the register of a reader with its sources, and the planner's probe.

``source.readers`` decides when. Over STOMP there is no such read, so these classes are no port.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyspark_jms.amqp.dead_letters import message_of
from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.dialects.refusals import require_staging
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.consumer import ReaderConsumer, attach
from pyspark_jms.amqp.link.pull import has_message
from pyspark_jms.amqp.link.read_register import ReadRegister, RegisterName, driver_container, tokens_of
from pyspark_jms.amqp.link.subscriptions import copy_of, require_same_topic, subscription_queue
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.source import MessageAnswers, suspect
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.blocks.block import MessageBlock, block_of
from pyspark_jms.blocks.dead_letter import DeadLetter
from pyspark_jms.blocks.staged import Packed
from pyspark_jms.delivery.register.token import StoredToken, Token
from pyspark_jms.errors import JMSError, SubscriptionInUseError
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import OnConnection, StateCondition
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Probe", "ReadSource", "ReaderLink"]


_IDLE_SECONDS = 30.0
"""After this time without a frame a broker asks; after twice the time it ends the connection."""
_MARGIN_SECONDS = 10.0

Accepted: TypeAlias = Sequence[tuple[int, list[bytes]]]
"""Numbers of sources, and the ids of their messages."""


class ReadSource(ReaderConsumer, MessageAnswers):
    """A ``ReaderConsumer`` with the answers that only reading needs."""

    def suspect(self, block: MessageBlock) -> tuple[int, str]:
        """The highest number of earlier deliveries of one message, and what identifies that message."""
        return suspect(block)


class ReaderLink(ReadRegister):
    """The register of a reader, and its sources, on one connection."""

    def __init__(self, settings: ConnectionSettings, name: RegisterName, condition: StateCondition) -> None:
        super().__init__(settings, name, condition)
        self._settings = settings
        self._diverted = Transactions(self.connection)
        """Messages that are not in the value. Their transaction ends while that of the value is open."""
        self.sources: list[ReadSource] = []
        self._accepted: list[tuple[int, list[bytes]]] = []
        """Numbers of sources, and the ids of their messages in the value."""
        try:
            require_staging(self.dialect)
        except JMSError:
            super().close()
            raise

    @property
    def patience_seconds(self) -> float:
        """The broker has ended every lost connection by then."""
        return 2 * (self.connection.peer_idle_seconds or _IDLE_SECONDS) + _MARGIN_SECONDS

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None:
        self.sources = [ReadSource(self.connection, each, self._settings) for each in subscriptions]
        with self.connection.core():
            self.connection.on_received = self._grant

    def _grant(self) -> None:
        for source in self.sources:
            source.grant()

    def add_to_value(
        self, source: int, ids: list[bytes], stream: str, batch: int, blocks: Iterable[tuple[int, int, Packed]]
    ) -> int:
        """Send messages of a source in the open transaction, which accepts those with these ids."""
        self._accepted.append((source, ids))
        return self.send_value(stream, batch, blocks)

    def replace_value(self, token: Token, meanwhile: Callable[[], object]) -> None:
        """``replace`` with the messages that were added to the value."""
        accepted, self._accepted = self._accepted, []
        self.replace(token, self._receivers(accepted), meanwhile)
        self._released(accepted)

    def send_away(self, source: int, ids: list[bytes], queue: str | None, letters: Sequence[DeadLetter]) -> None:
        """One transaction: accept messages that are not in the value, and send dead letters for them."""
        if queue is not None and letters:
            address = self.dialect.send.target_address(DestinationKind.QUEUE, queue)
            self._diverted.send(address, "queue", block_of(*(message_of(letter, self.dialect) for letter in letters)))
        self._diverted.accept(self._receivers([(source, ids)]))
        self._diverted.discharge()
        self._released([(source, ids)])

    def _receivers(self, accepted: Accepted) -> list[tuple[Receiver, list[bytes]]]:
        """The numbers of sources as their links."""
        return [(self.sources[source].receiver, ids) for source, ids in accepted]

    def _released(self, accepted: Accepted) -> None:
        for source, ids in accepted:
            self.sources[source].released(len(ids))

    def finish(self, sources: Sequence[tuple[Receiver, bool]] = ()) -> None:
        self.connection.on_received = None
        self._diverted.roll_back()
        mine = [(source.receiver, source.subscription.durable is None) for source in self.sources]
        super().finish([*sources, *mine])

    def close(self) -> None:
        """The sources first: whoever gets the lock then finds their messages, and giving back costs no delivery."""
        self.connection.on_received = None
        for source in self.sources:
            source.detach()
        self._diverted.roll_back()
        super().close()


class Probe(OnConnection[Dialect]):
    """Asks whether queues have messages, and what tokens there are, without receiving anything."""

    def __init__(
        self,
        settings: ConnectionSettings,
        destinations: Sequence[Destination],
        selector_for: Callable[[Dialect], str | None],
        durable: DurableSubscription | None = None,
        *,
        base: str,
    ) -> None:
        """``base``: of the registers whose driver this is.

        ``durable``: of the one destination, a topic. Its subscription is made if there is none.
        """
        self.connection: Connection = connect(replace(settings, client_id=driver_container(base)))
        self._client_id = durable.client_id if durable else None
        try:
            require_staging(self.dialect)
            selector = selector_for(self.dialect)
            if durable is not None:
                self._subscribe(settings, destinations[0], durable, selector)
            self._sources = [self._source(destination, durable, selector) for destination in destinations]
        except JMSError:
            self.connection.close()
            raise

    def _subscribe(
        self, settings: ConnectionSettings, topic: Destination, durable: DurableSubscription, selector: str | None
    ) -> None:
        """From now on the broker keeps what is sent. ``SelectorChangedError``: it has another selector;
        ``InvalidDestinationError``: it belongs to another topic.
        """
        self.dialect.refused_subscriptions.check(topic.name, durable)
        there = (self.connection.address,)
        subscription = Subscription(destination=topic, window_bytes=1, durable=durable, selector=selector)
        settings = replace(settings, client_id=durable.client_id, addresses=there)
        require_same_topic(settings, topic, durable, self.dialect)
        connection = connect(settings)
        try:
            attach(connection, subscription)
        except SubscriptionInUseError:
            pass  # it is there, and a task reads it
        finally:
            connection.close()

    def _source(self, destination: Destination, durable: DurableSubscription | None, selector: str | None) -> Source:
        """A subscription is browsed by its queue, which has the messages that match the selector."""
        address = self.dialect.send.source_address(destination.kind, destination.name)
        if durable is None:
            return copy_of(address, selector)
        return copy_of(f"{address}::{subscription_queue(durable)}")

    def has_messages(self) -> bool:
        """Each time by new links: a browse does not go back, and its next message may have been consumed (Artemis)."""
        return any(map(self._has_message, self._sources))

    def _has_message(self, source: Source) -> bool:
        return has_message(self.connection, source)

    def peek(self, base: str, reader: int) -> tuple[StoredToken[Token], ...]:
        return tokens_of(self.connection, RegisterName(base, reader, self._client_id))

    def close(self) -> None:
        self.connection.close()

    def drop(self) -> None:
        self.connection.drop()
