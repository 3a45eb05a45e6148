"""Metrics of a query for ``StreamingQueryProgress``."""

import logging
from collections.abc import Callable, Mapping, Sequence

from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop
from pyspark_jms.source.diverting import Diverter
from pyspark_jms.source.links import SourceLink

__all__ = ["Progress", "compared"]

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
    return f"tombstones of {store.unconfirmed_messages} messages whose acknowledgement is not confirmed"
