"""Between two batches: acknowledgements sent and confirmed, lost connections replaced, subscribed time counted.

``Progress`` makes the metrics of the query from that.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.subscription_ledger import DeliveryLedger
from pyspark_jms.errors import ConnectionLostError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.diverting import Diverter
from pyspark_jms.source.end_of_queue import EndOfQueue
from pyspark_jms.source.links import SourceLink
from pyspark_jms.source.subscriptions import Subscriptions

__all__ = ["AckLoop", "Progress", "compared"]

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
        due = [each for each in range(self.ledger.subscriptions) if self.ledger.due(each)]
        windows, links = self.subscriptions.windows, self.subscriptions.links
        filled = windows.filled({each: links[each] for each in due})
        for subscription in due:
            self.acknowledge(subscription)
        absent = self.subscriptions.absent
        for subscription in windows.to_resubscribe([each for each in filled if each not in absent]):
            self.begin_again([subscription])  # one by one, so that their connection stays

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
        known, links = self.subscriptions, self.subscriptions.links
        beside = {each for subscription in subscriptions for each in known.beside(subscription)}
        alive = EndOfQueue[SourceLink](lambda link: link.ping(), lost=lambda link, _: self.reconnect(links.index(link)))
        while not alive.is_reached([links[each] for each in beside.difference(known.absent)], 0, wait=True):
            pass  # the first round asks, the next one waits for the answers

    def begin_again(self, subscriptions: Sequence[int]) -> None:
        """Give back what these subscriptions have, so that the broker sorts it, and subscribe all of them again."""
        for subscription in subscriptions:
            with contextlib.suppress(ConnectionLostError):
                self.confirm(subscription)
            self.subscriptions.links[subscription].close()
            self._lost(subscription)
        for subscription in subscriptions:
            self.subscriptions.subscribe_again(subscription)

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


# --- what the progress of the query shows ---------------------------------------------------------

_log = logging.getLogger("pyspark_jms.source")


def compared(options: SourceOptions, received: Callable[[], int]) -> Callable[[], int] | None:
    """``received`` if the broker's counts can be compared with it. With a selector, the counts of a queue include
    messages that the query does not read; the queue of a durable subscription has only those that match.
    """
    of_queue = any(each.kind is DestinationKind.QUEUE for each in options.destinations)
    return None if of_queue and options.selector is not None else received


class Progress:
    """``metrics`` never raises, and sends no request to the broker."""

    def __init__(self, options: SourceOptions, loop: AckLoop, diverter: Diverter) -> None:
        self._options, self._loop, self._diverter = options, loop, diverter
        self._warned_of_others = False
        self.in_flight = 0
        """Messages here and not acknowledged, when the metrics were last read."""

    def metrics(self, watched: Mapping[str, int | str], reached: int) -> dict[str, object]:
        """``watched``: the broker's metrics of its queues. ``reached``: the end of the last batch in the commit log."""
        loop, diverter = self._loop, self._diverter
        ledger, store, links = loop.ledger, loop.store, loop.subscriptions.links
        waiting = [link.waiting() for link in links]
        self.in_flight = ledger.in_flight_messages + sum(messages for messages, _ in waiting)
        return {
            "seq": ledger.offered,
            "inFlightMessages": self.in_flight,
            "inFlightBytes": ledger.in_flight_bytes + sum(size for _, size in waiting),
            "received": loop.counts.received,
            "acknowledged": loop.counts.acknowledged,
            "redelivered": loop.counts.redelivered,
            "recognised": ledger.recognised,
            "reconnects": loop.subscriptions.reconnects,
            **({} if store is None else _journal_metrics(store, max(reached, ledger.done))),
            "deadLetters": diverter.dead_letters,
            "droppedTooLarge": diverter.skipped,
            "guarantee": self._guarantee(store, watched, links),
            "broker": links[0].server if links else None,
            **loop.subscriptions.condition.counts,  # what only this protocol counts
        }

    def _guarantee(
        self, store: JournalStore | None, watched: Mapping[str, int | str], links: Sequence[SourceLink]
    ) -> str:
        if self._options.is_plain_topic:
            return "at-most-once (plain topic subscription)"
        if store is None:
            confirmed = all(link.confirms_acknowledgements for link in links)
            return "at-least-once" if confirmed else "at-least-once (the broker confirms no acknowledgement)"
        if int(watched.get("consumers", 0)) <= len(links):
            return "exactly-once into Spark"
        if not self._warned_of_others:
            self._warned_of_others = True
            _log.warning(
                "! the queue has other consumers: after a lost connection one of them may get messages that the journal"
                " already holds, so both process them (at-least-once). Give each query a queue of its own"
            )
        return "at-least-once (other consumers read this queue)"


def _journal_metrics(store: JournalStore, reached: int) -> dict[str, object]:
    age, backlog = store.age_of(reached), store.position.next - reached
    return {
        "journalBytes": store.bytes_used,
        "backlog": backlog,
        "backlogAgeSeconds": None if age is None else round(age, 1),
        **({} if backlog or not store.bytes_used else {"journalKeeps": _kept(store)}),
    }


def _kept(store: JournalStore) -> str:
    if store.segment_bytes:
        return "the last batch, until the next one is planned"
    return f"tombstones of {store.receipts.messages} messages whose acknowledgement is not confirmed"
