"""The interface of a ledger, with and without a journal, for the engine of reading."""

from collections.abc import Collection, Sequence
from typing import Protocol

from pyspark_jms.blocks.block import MessageBlock

__all__ = ["Ack", "DeliveryLedger"]


class Ack(Protocol):
    """Messages to acknowledge together: ``sent`` with the receipt to come, then ``confirmed`` when it is here."""

    @property
    def ids(self) -> list[bytes]: ...

    @property
    def receipt(self) -> str | None: ...

    def sent(self, receipt: str) -> None: ...

    def confirmed(self) -> int:
        """Return how many messages the broker has confirmed."""


class DeliveryLedger(Protocol):
    """Subscriptions are numbered from 0, and outlive their connections. Sequences count the messages of all of them."""

    @property
    def subscriptions(self) -> int: ...

    @property
    def offered(self) -> int:
        """The end of the last batch."""

    @property
    def done(self) -> int:
        """Below it every message's batch is in the commit log."""

    @property
    def recognised(self) -> int: ...

    @property
    def waiting_messages(self) -> int:
        """Received, and in no batch."""

    @property
    def waiting_bytes(self) -> int: ...

    @property
    def in_flight_messages(self) -> int:
        """Received, and not known to be acknowledged."""

    @property
    def in_flight_bytes(self) -> int: ...

    def receive(self, subscription: int, block: MessageBlock, upto: int, *, without: Collection[int]) -> None: ...

    def store_received(self) -> None:
        """Make durable what was received, where there is a journal."""

    def expects(self, subscription: int) -> bool:
        """Return whether messages of this subscription may still be redelivered."""

    def redelivered(self, subscription: int, block: MessageBlock) -> set[int]:
        """The messages of the block that were received before, by index."""

    def due(self, subscription: int) -> Sequence[Ack]:
        """Return what is to be acknowledged now."""

    def unconfirmed(self, subscription: int) -> Sequence[Ack]:
        """Return what was sent and is not confirmed, the oldest first."""

    def offer(self, *, max_messages: int | None, max_bytes: int | None) -> int:
        """End the next batch, and return its end."""

    def finish(self, sequence: int) -> None:
        """Every batch below ``sequence`` is in the commit log."""

    def lost(self, subscription: int, blocks: Sequence[MessageBlock]) -> None:
        """The subscription's connection is gone. ``blocks``: received on it, and not given to ``receive``."""
