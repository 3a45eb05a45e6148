"""STOMP for the engine of reading: the Protocols of ``source.links``, joined from links, columns and recognition."""

from typing import Any, Unpack

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.schema import DecodeOptions
from pyspark_jms.delivery.subscription_ledger import Recognition
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import dialect_named
from pyspark_jms.stomp.dialects.refusals import require_durable
from pyspark_jms.stomp.link.consumer import Consumer
from pyspark_jms.stomp.link.dead_letters import send_dead_letters
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.stomp.link.subscriptions import end_subscription, require_same_subscription
from pyspark_jms.stomp.recognition import recognition_of, redelivered
from pyspark_jms.stomp.wire.frame import header_of

__all__ = ["StompSource", "StompSourceLink"]


class StompSourceLink(Consumer):
    """A ``Consumer`` with the answers that only reading needs."""

    def __init__(self, settings: ConnectionSettings, condition: StateCondition | None = None) -> None:
        super().__init__(settings, condition=condition)

    def subscribe(self, subscription: Subscription) -> None:
        durable = subscription.durable
        try:
            if durable is not None:
                selected = subscription.selector is not None
                require_durable(self.dialect, subscription.destination.name, durable, selected=selected)
            super().subscribe(subscription)
            if durable is not None:
                self._require_same(durable)
        except JMSError:
            self.close()
            raise

    def _require_same(self, durable: DurableSubscription) -> None:
        wanted, headers = self.subscription, self.dialect.durable_subscriptions
        if durable.client_id is not None and headers.ignores_changed_selector:
            require_same_subscription(self._settings, durable, wanted.destination, wanted.selector)

    def sent_ms(self, block: MessageBlock, index: int) -> int | None:
        """None also where the producer switched timestamps off (0)."""
        header = self.dialect.header_of("JMSTimestamp")
        sent = None if header is None else header_of(block, index, header)
        return int(sent) * self.dialect.timestamp_unit_ms or None if sent is not None and sent.isdigit() else None

    def shown(self, block: MessageBlock) -> None:
        """An acknowledgement of a browsed message moves the window and nothing else. Without a browse, what was shown
        stays in the window until the end.
        """
        if self.dialect.browses:
            self.acknowledge(each for each in block.ids if each is not None)

    def redelivered(self, block: MessageBlock) -> int:
        return redelivered(block)

    def message_id(self, identifier: bytes) -> str:
        return self.dialect.message_id(identifier)


class StompSource:
    """Has no state: a value that the adapters of Spark choose by the scheme of ``brokerUrl``."""

    connect = staticmethod(StompSourceLink)
    open_management = staticmethod(StompManagementLink)
    send_dead_letters = staticmethod(send_dead_letters)
    end_subscription = staticmethod(end_subscription)

    def decode(self, block: MessageBlock, *, dialect: str, **how: Unpack[DecodeOptions]) -> Any:
        from pyspark_jms.stomp.columns.decode import decode  # imports pyarrow.compute, needed only where rows are made

        return decode(block, dialect=dialect_named(dialect), **how)

    def recognition(self, dialect: str) -> Recognition | None:
        return recognition_of(dialect_named(dialect))
