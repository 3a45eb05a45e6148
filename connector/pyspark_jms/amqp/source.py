"""AMQP 1.0 for the engine of reading: the Protocols of ``source.links``, joined from links, columns and recognition."""

from collections.abc import Sequence
from typing import Any, Unpack

from pyspark_jms.amqp.answers import MessageAnswers, decode_block
from pyspark_jms.amqp.dead_letters import send_dead_letters
from pyspark_jms.amqp.dialects import dialect_named
from pyspark_jms.amqp.dialects.refusals import (
    require_connections,
    require_enough_unacknowledged,
    require_readable,
)
from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.management_node import open_amqp_management
from pyspark_jms.amqp.link.subscriptions import end_subscription
from pyspark_jms.amqp.recognition import recognition_of
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter
from pyspark_jms.blocks.oversized import OversizedMessage
from pyspark_jms.columns.read_columns import DecodeOptions
from pyspark_jms.delivery.subscription_ledger import Recognition
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["AmqpSource", "AmqpSourceLink"]


class AmqpSourceLink(Consumer, MessageAnswers):
    """A ``Consumer`` with the answers that only reading needs."""

    def subscribe(self, subscription: Subscription) -> None:
        """What else a broker refuses, its attach shows."""
        durable = subscription.durable
        try:
            require_connections(self.dialect, subscription.connections)
            require_readable(self.dialect, subscription.destination.kind)
            require_enough_unacknowledged(self.dialect, subscription.min_messages)
            if durable is not None:
                self.dialect.refused_subscriptions.check(subscription.destination.name, durable)
        except JMSError:
            self.close()
            raise
        super().subscribe(subscription)

    def take_oversized(self) -> list[OversizedMessage]:
        return self.prefetch.take_oversized()

    def shown(self, block: MessageBlock) -> None:
        """Without a browse, what was shown stays in the window until the end, and is given back then."""
        if not self.dialect.browses:
            return
        with self.connection.core():
            self.prefetch.released(len(block))


class AmqpSource:
    """Has no state: a value that the adapters of Spark choose by the scheme of ``brokerUrl``."""

    def connect(self, settings: ConnectionSettings, condition: StateCondition) -> AmqpSourceLink:
        return AmqpSourceLink(settings, condition)

    def decode(self, block: MessageBlock, *, dialect: str, **how: Unpack[DecodeOptions]) -> Any:
        return decode_block(block, dialect=dialect_named(dialect), **how)

    def recognition(self, dialect: str) -> Recognition | None:
        return recognition_of(dialect_named(dialect))

    def open_management(self, settings: ConnectionSettings) -> ManagementLink:
        return open_amqp_management(settings)

    def send_dead_letters(self, settings: ConnectionSettings, queue: str, letters: Sequence[DeadLetter]) -> None:
        send_dead_letters(settings, queue, letters)

    def end_subscription(
        self, settings: ConnectionSettings, topic: Destination, subscription: DurableSubscription
    ) -> None:
        end_subscription(settings, topic, subscription)
