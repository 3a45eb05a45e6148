"""AMQP 1.0 for the engine of reading: the Protocols of ``source.links``, joined from links, columns and recognition."""

from typing import Any, Unpack

from pyspark_jms.amqp.dead_letters import send_dead_letters
from pyspark_jms.amqp.dialects import dialect_named
from pyspark_jms.amqp.dialects.refusals import require_connections, require_readable
from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.management import open_amqp_management
from pyspark_jms.amqp.link.subscriptions import end_subscription
from pyspark_jms.amqp.recognition import MessageAnswers, recognition_of
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage
from pyspark_jms.columns.schema import DecodeOptions
from pyspark_jms.delivery.subscription_ledger import Recognition
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.subscription import Subscription

__all__ = ["AmqpSource", "AmqpSourceLink"]


class AmqpSourceLink(Consumer, MessageAnswers):
    """A ``Consumer`` with the answers that only reading needs."""

    def subscribe(self, subscription: Subscription) -> None:
        """What else a broker refuses, its attach shows."""
        durable = subscription.durable
        try:
            require_connections(self.dialect, subscription.connections)
            require_readable(self.dialect, subscription.destination.kind)
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

    connect = staticmethod(AmqpSourceLink)
    open_management = staticmethod(open_amqp_management)
    send_dead_letters = staticmethod(send_dead_letters)
    end_subscription = staticmethod(end_subscription)

    def decode(self, block: MessageBlock, *, dialect: str, **how: Unpack[DecodeOptions]) -> Any:
        from pyspark_jms.amqp.columns.decode import decode  # imports pyarrow.compute, needed only where rows are made

        return decode(block, dialect=dialect_named(dialect), **how)

    def recognition(self, dialect: str) -> Recognition | None:
        return recognition_of(dialect_named(dialect))
