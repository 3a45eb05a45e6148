"""The links of an exactly-once read: the register of a reader with its sources, and the planner's probe.

``source.readers`` decides when. Over STOMP there is no such read, so these classes are no port.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.consumer import ReaderConsumer, attach
from pyspark_jms.amqp.link.producer import pieces_of
from pyspark_jms.amqp.link.pull import AT_ONCE, ask_all
from pyspark_jms.amqp.link.read_register import ReadRegister, RegisterName, driver_container, queue_at
from pyspark_jms.amqp.link.register import not_delivered, tokens_at
from pyspark_jms.amqp.link.subscriptions import copy_of, detach, queue_of, require_harmless, require_same_topic
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.source import MessageAnswers, identity_of, suspects
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.blocks.dead_letter import DeadLetter
from pyspark_jms.blocks.staged import Packed
from pyspark_jms.delivery.register.token import StoredToken, Token
from pyspark_jms.errors import JMSError, SubscriptionInUseError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import OnConnection, StateCondition, closed_on
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Probe", "ReadSource", "ReaderLink"]


_log = logging.getLogger("pyspark_jms.link")

_IDLE_SECONDS = 30.0
"""After this time without a frame a broker asks; after twice the time it ends the connection."""
_MARGIN_SECONDS = 10.0

Accepted: TypeAlias = Sequence[tuple[int, list[bytes]]]
"""Numbers of sources, and the ids of their messages."""


def _patience_seconds(connection: Connection) -> float:
    """The broker has ended every lost connection by then."""
    return 2 * (connection.peer_idle_seconds or _IDLE_SECONDS) + _MARGIN_SECONDS


class ReadSource(ReaderConsumer, MessageAnswers):
    """A ``ReaderConsumer`` with the answers that only reading needs."""

    suspects = staticmethod(suspects)
    identity_of = staticmethod(identity_of)


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
        with closed_on(JMSError, super().close):
            self.dialect.require(Feature.REGISTER)

    @property
    def patience_seconds(self) -> float:
        return _patience_seconds(self.connection)

    def not_delivered(self) -> JMSError:
        return not_delivered(self._settings, self.queue)

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None:
        begun = [ReadSource(self.connection, each, self._settings) for each in subscriptions]
        self.sources = [source for source in begun if self._is_there(source)]

    def _is_there(self, source: ReadSource) -> bool:
        """Return False for a queue that is not there. The planner has seen it: it has no message."""
        try:
            source.begin()
        except JMSError as error:
            if not error.missing:
                raise
            _log.debug("= %s is not there, so it has no messages: %s", source.subscription.destination, error.fact)
            return False
        return True

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
            for pieces in [pieces_of(letter, self.dialect) for letter in letters]:
                self._diverted.send_pieces(address, "queue", pieces)
        self._diverted.accept(self._receivers([(source, ids)]), answered=True)
        self._diverted.discharge()
        self._released([(source, ids)])

    def _receivers(self, accepted: Accepted) -> list[tuple[Receiver, list[bytes]]]:
        return [(self.sources[source].receiver, ids) for source, ids in accepted]

    def _released(self, accepted: Accepted) -> None:
        for source, ids in accepted:
            self.sources[source].prefetch.released(len(ids))

    def finish(self, sources: Sequence[tuple[Receiver, bool]] = ()) -> None:
        self.connection.readers.clear()
        self._diverted.roll_back()
        mine = [(source.receiver, source.subscription.durable is None) for source in self.sources]
        super().finish([*sources, *mine])

    def close(self) -> None:
        """The sources first: whoever gets the lock then finds their messages, and giving back costs no delivery."""
        self.connection.readers.clear()
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
        was_seen: bool = False,
    ) -> None:
        """``base``: of the registers whose driver this is. ``was_seen``: the queues were there before, so one that is
        not there has no messages.

        ``durable``: of the one destination, a topic. Its subscription is made if there is none.
        """
        self.connection: Connection = connect(replace(settings, client_id=driver_container(base)))
        self._client_id = durable.client_id if durable else None
        self._settings = replace(settings, client_id=self._client_id, addresses=(self.connection.address,))
        self._was_seen, self._has_warned = was_seen, False
        self._last: Source | None = None
        """The queue that had a message last."""
        self._queues: dict[RegisterName, str] = {}
        """The queues of the registers that were looked at."""
        with closed_on(JMSError, self.connection.close):
            self.dialect.require(Feature.REGISTER)
            selector = selector_for(self.dialect)
            self._sources = [
                self._browsed(destination, selector)
                if durable is None
                else self._subscribed(destination, durable, selector)
                for destination in destinations
            ]

    def _browsed(self, destination: Destination, selector: str | None) -> Source:
        require_harmless(self._settings, destination, self.dialect)
        return copy_of(self.dialect.send.source_address(destination.kind, destination.name), selector)

    def _subscribed(self, topic: Destination, durable: DurableSubscription, selector: str | None) -> Source:
        """Subscribe: from then on the broker keeps what is sent. The subscription is browsed by its queue, which has
        the messages that match the selector. ``SelectorChangedError``: it has another selector;
        ``InvalidDestinationError``: it belongs to another topic.
        """
        subscription = Subscription(destination=topic, window_bytes=1, durable=durable, selector=selector)
        self.dialect.require_subscription(subscription)
        with contextlib.closing(connect(self._settings)) as connection:
            require_same_topic(connection, self._settings, topic.name, durable)
            with contextlib.suppress(SubscriptionInUseError):  # it is there, and a task reads it
                detach(connection, attach(connection, subscription), closed=False)
            queue = queue_of(connection, durable)
        return copy_of(f"{self.dialect.send.source_address(topic.kind, topic.name)}::{queue}")

    @property
    def patience_seconds(self) -> float:
        """That of the readers, which have the same broker."""
        return _patience_seconds(self.connection)

    def has_messages(self) -> bool:
        """Ask the queue that had a message last before all others. The first time all queues are asked, so that they
        were seen when a task reads them.
        """
        if self._last is not None and self._ask([self._last]):
            return True
        is_first, self._last = not self._was_seen, None
        for first in range(0, len(self._sources), AT_ONCE):
            if self._ask(self._sources[first : first + AT_ONCE]) and not is_first:
                break
        self._was_seen = True
        return self._last is not None

    def _ask(self, sources: Sequence[Source]) -> bool:
        found, refused = ask_all(self.connection, sources)
        for at, error in refused.items():
            if not (self._was_seen and error.missing):
                raise error
            self._warn_of_missing(sources[at], error)
        self._last = sources[found[0]] if found else self._last
        return bool(found)

    def _warn_of_missing(self, source: Source, error: JMSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "! %s is not on the broker any more, so it has no messages; the query goes on when somebody creates it."
                " Artemis deletes an empty queue that it has created, unless auto-delete-queues is false: %s",
                source.address,
                error.fact,
            )

    def peek(self, base: str, reader: int) -> tuple[StoredToken[Token], ...]:
        name = RegisterName(base, reader, self._client_id)
        queue = self._queues.get(name) or queue_at(self._settings, name)
        if queue is None:
            return ()
        self._queues[name] = queue
        return tokens_at(self.connection, name.place, queue, Token)
