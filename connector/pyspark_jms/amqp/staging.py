"""A staged stream over AMQP for the engine of reading: the Protocols of ``source.staged.links``."""

from collections.abc import Sequence
from typing import TypeAlias

from pyspark_jms.amqp.answers import MessageAnswers
from pyspark_jms.amqp.dead_letters import AmqpDeadLetter, message_of
from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.dialects.refusals import require_staging
from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.lane import Lane
from pyspark_jms.amqp.link.staging_queue import Names, Outgoing, StagingQueue, block_of
from pyspark_jms.amqp.recognition import most_deliveries, suspect
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.staging.tokens import is_token
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.address import Address
from pyspark_jms.network.arrivals import Arrivals
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Accepted", "AmqpStagedLane", "AmqpStagedLink", "Sources"]

_IDLE_SECONDS = 30.0
"""After this time without a frame a broker asks; after twice the time it ends the connection."""
_MARGIN_SECONDS = 10.0


Accepted: TypeAlias = Sequence[tuple[int, list[bytes]]]
"""Numbers of lanes, and the ids of their messages."""


class AmqpStagedLane(Lane, MessageAnswers):
    def most_deliveries(self, block: MessageBlock) -> int:
        return most_deliveries(block)

    def suspect(self, block: MessageBlock) -> tuple[int, str]:
        return suspect(block)


class Sources:
    """The sources of a read, on the connection that also has its lock: what both kinds of links do with them."""

    connection: Connection
    _settings: ConnectionSettings
    lanes: list[AmqpStagedLane]

    @property
    def dialect(self) -> Dialect:
        return self.connection.dialect

    @property
    def address(self) -> Address:
        return self.connection.address

    @property
    def received_bytes(self) -> int:
        return self.connection.received_bytes

    @property
    def patience_seconds(self) -> float:
        return 2 * (self.connection.peer_idle_seconds or _IDLE_SECONDS) + _MARGIN_SECONDS

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None:
        self.lanes = [AmqpStagedLane(self.connection, each, self._settings) for each in subscriptions]
        with self.connection.core():
            self.connection.on_received = self._grant

    def _grant(self) -> None:
        for lane in self.lanes:
            lane.grant()

    def _receivers(self, accepted: Accepted) -> list[tuple[Receiver, list[bytes]]]:
        """The numbers of lanes as their links."""
        return [(self.lanes[lane].receiver, ids) for lane, ids in accepted]

    def _released(self, accepted: Accepted) -> None:
        for lane, ids in accepted:
            self.lanes[lane].released(len(ids))

    def leave_sources(self) -> None:
        """Give their messages back, which costs no delivery."""
        self.connection.on_received = None
        for lane in self.lanes:
            lane.detach()


class AmqpStagedLink(Sources, StagingQueue):
    def __init__(
        self,
        settings: ConnectionSettings,
        names: Names,
        arrivals: Arrivals,
        durable: tuple[Destination, DurableSubscription] | None = None,
    ) -> None:
        """``durable``: the topic and the subscription that are read, with names that the broker must not misread."""
        super().__init__(settings, names, arrivals)
        self._settings = settings
        self.lanes: list[AmqpStagedLane] = []
        try:
            require_staging(self.dialect)
            if durable is not None:
                self.dialect.refused_subscriptions.check(durable[0].name, durable[1])
        except JMSError:
            super().close()
            raise

    @property
    def server(self) -> str | None:
        return self.connection.server

    def is_token(self, text: str) -> bool:
        return is_token(text)

    def check(self) -> None:
        super().check()
        for lane in self.lanes:
            lane.check()

    def move(self, token: str, accepted: Accepted) -> None:
        """``commit`` with the numbers of lanes."""
        self.commit(token, self._receivers(accepted))
        self._released(accepted)

    def send_away(self, lane: int, ids: list[bytes], queue: str | None, letters: Sequence[AmqpDeadLetter]) -> None:
        """``divert`` with the number of a lane."""
        outgoing = Outgoing(queue, block_of(*map(message_of, letters))) if queue is not None and letters else None
        self.divert(self.lanes[lane].receiver, ids, outgoing)
        self.lanes[lane].released(len(ids))

    def close(self, *, delete: bool = False) -> None:
        """The sources first: whoever gets the lock then finds their messages."""
        self.leave_sources()
        super().close(delete=delete)
