"""Between two batches: acknowledgements sent and confirmed, lost connections replaced, subscribed time counted."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.subscription_ledger import DeliveryLedger
from pyspark_jms.errors import ConnectionLostError, ReceiptTimeoutError
from pyspark_jms.source.links import SourceLink
from pyspark_jms.source.subscriptions import Subscriptions

__all__ = ["AckLoop", "Counts"]

_LONGEST_COUNTED_SECONDS = 600.0
"""Longest time between two polls that counts as time of the subscription: some batches take that long."""


@dataclass(slots=True)
class Counts:
    received: int = 0
    acknowledged: int = 0
    redelivered: int = 0


@dataclass(eq=False)
class AckLoop:
    """Sends acknowledgements over links that may fail, and keeps the ledger consistent with them."""

    subscriptions: Subscriptions
    ledger: DeliveryLedger[Any]
    store: JournalStore | None
    counts: Counts = field(default_factory=Counts)
    taken: dict[int, list[MessageBlock]] = field(default_factory=dict)
    """What was taken from the links, and is not in the ledger yet."""
    _subscribed_since: float | None = None
    """Up to when the time of being subscribed was counted; None while a connection is lost."""

    def run(self) -> None:
        self.reconnect_lost()
        self._count_subscribed_time()
        self.confirm_received()

    # --- acknowledgements ----------------------------------------------------------------------

    def acknowledge_all(self) -> None:
        for subscription in range(self.ledger.subscriptions):
            self.acknowledge(subscription)

    def acknowledge(self, subscription: int) -> None:
        """Acknowledge what is due, if anything is. Waits only for the receipts of earlier acknowledgements."""
        due = self.ledger.due(subscription)
        if not due:
            return
        try:
            self.confirm(subscription)
            for ack in due:
                ack.sent(self.subscriptions.links[subscription].acknowledge(ack.ids))
        except ConnectionLostError:
            self.reconnect(subscription)

    def confirm(self, subscription: int, *, wait: bool = True) -> None:
        """Look for the receipts of acknowledgements: nobody waited for them when they were sent."""
        link = self.subscriptions.links[subscription]
        for ack in self.ledger.unconfirmed(subscription):
            assert ack.receipt is not None
            if not link.has_receipt(ack.receipt, wait=wait):
                return
            self.counts.acknowledged += ack.confirmed()

    def confirm_received(self) -> None:
        for subscription in range(self.ledger.subscriptions):
            self.confirm(subscription, wait=False)

    # --- lost connections ----------------------------------------------------------------------

    def replace_dead(self, subscriptions: Iterable[int]) -> None:
        """Replace each connection whose messages the broker may have given to one of these subscriptions.

        Call it after the messages of the subscriptions were taken, and before the ledger gets them: of a lost
        connection, the broker can give the messages to another one of the same queue before this process knows of the
        loss. A connection that answers now still had all of its messages when those were taken.
        """
        beside = {each for subscription in subscriptions for each in self.subscriptions.beside(subscription)}
        asked = {}
        for subscription in beside:
            with self._replaced_if_lost(subscription) as link:
                asked[subscription] = link.ping()
        for subscription, receipt in asked.items():
            with self._replaced_if_lost(subscription) as link:
                link.has_receipt(receipt, wait=True)
                link.check()

    @contextlib.contextmanager
    def _replaced_if_lost(self, subscription: int) -> Iterator[SourceLink]:
        try:
            yield self.subscriptions.links[subscription]
        except (ConnectionLostError, ReceiptTimeoutError):
            self.reconnect(subscription)

    def begin_again(self, subscriptions: Sequence[int]) -> None:
        """Give back what these connections have, so that the broker sorts it, and replace all of them."""
        for subscription in subscriptions:
            with contextlib.suppress(ConnectionLostError):
                self.confirm(subscription)
            self.subscriptions.links[subscription].close()
            self._lost(subscription)
        for subscription in subscriptions:
            self.subscriptions.reconnect(subscription, None)

    def reconnect_lost(self) -> None:
        for subscription in self.subscriptions.lost():
            self.reconnect(subscription)

    def reconnect(self, subscription: int) -> None:
        """Replace a connection. What it has sent and the ledger does not have is redelivered."""
        self._subscribed_since = None
        end = self.subscriptions.end_of(subscription)
        self.confirm(subscription, wait=False)  # what came before the end
        self._lost(subscription)
        self.subscriptions.reconnect(subscription, end)

    def _lost(self, subscription: int) -> None:
        blocks = [*self.taken.pop(subscription, ()), *self.subscriptions.links[subscription].take()]
        self.ledger.lost(subscription, blocks)

    # --- time ----------------------------------------------------------------------------------

    def _count_subscribed_time(self) -> None:
        """Count the time for the journal's tombstones. A long gap between two calls may be a process that was stopped
        meanwhile.
        """
        if self.store is None:
            return
        before, self._subscribed_since = self._subscribed_since, time.monotonic()
        if before is not None:
            self.store.note_subscribed(min(self._subscribed_since - before, _LONGEST_COUNTED_SECONDS))
