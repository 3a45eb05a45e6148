"""From the links into the ledger: which subscriptions are read, what waits, and when nothing more is to come."""

import time
from collections.abc import Iterable

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.ledger_interface import DeliveryLedger
from pyspark_jms.errors import JMSError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop
from pyspark_jms.source.admission import IdleCheck, Waiting
from pyspark_jms.source.diverting import Diverter
from pyspark_jms.source.draining import Drain
from pyspark_jms.source.links import SourceLink
from pyspark_jms.source.progress import Counts
from pyspark_jms.source.subscriptions import Subscriptions

__all__ = ["Intake"]

_PROBE_SECONDS = 0.25
"""Still quiet this long after the probe's receipt: the queue is empty."""


class Intake:
    """``drain`` None: the query goes on until it is stopped."""

    def __init__(
        self,
        options: SourceOptions,
        *,
        subscriptions: Subscriptions,
        ledger: DeliveryLedger,
        store: JournalStore | None,
        ack_loop: AckLoop,
        diverter: Diverter,
        counts: Counts,
        drain: Drain | None,
    ) -> None:
        self._options = options
        self._subscriptions = subscriptions
        self._ledger = ledger
        self._store = store
        self._ack_loop = ack_loop
        self._diverter = diverter
        self._counts = counts
        self._drain = drain
        self._idle_check = IdleCheck()
        self._known_links = list(subscriptions.links)
        """Those that the drain knows: a connection that was replaced is another link."""

    # --- what waits ----------------------------------------------------------------------------

    def waiting(self) -> Waiting:
        received = {subscription: link.waiting() for subscription, link in enumerate(self._subscriptions.links)}
        messages, size = self._ledger.waiting_messages, self._ledger.waiting_bytes
        for subscription in self._open_subscriptions():
            messages, size = messages + received[subscription][0], size + received[subscription][1]
        in_flight = self._ledger.in_flight_bytes + sum(size for _, size in received.values())
        full = any(size >= self._options.connection_window for _, size in received.values())
        return Waiting(messages, size, in_flight, no_room=self.journal_is_full, one_is_full=full)

    def activity(self) -> tuple[int, int]:
        """Changes while messages arrive on the subscriptions that are read, also during a large message."""
        links = self._subscriptions.links
        return self._ledger.recognised, sum(
            links[subscription].received_bytes for subscription in self._open_subscriptions()
        )

    def has_all(self, waiting: Waiting) -> bool:
        """Return True if every broker has answered a question sent after ``waiting``: it has no more for now."""
        come = self._ledger.offered, self._ledger.recognised, waiting.messages, waiting.size
        return self._idle_check.is_exhausted(
            [self._subscriptions.links[subscription] for subscription in self._open_subscriptions()], come
        )

    @property
    def journal_is_full(self) -> bool:
        """No more messages are received until finished ones are deleted."""
        journal, store = self._options.journal, self._store
        return journal is not None and store is not None and store.segment_bytes >= journal.max_bytes

    def _open_subscriptions(self) -> list[int]:
        """Return the subscriptions to take from: none while the journal is full, and in a drain those not yet ended."""
        if self.journal_is_full:
            return []
        subscriptions = range(len(self._subscriptions.links))
        return [
            subscription
            for subscription in subscriptions
            if self._drain is None or subscription not in self._drain.ended
        ]

    # --- taking it -----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what stops the query; send away what is too large; acknowledge what was redelivered."""
        self._reopen()
        for link in self._subscriptions.links:
            try:
                link.check()
            except JMSError as error:
                if not (link.is_down and error.transient):
                    raise  # a connection that was lost this moment is replaced before the next poll
        for subscription in self._open_subscriptions():
            self._diverter.divert_oversized(self._subscriptions.links[subscription])
        self._take_redelivered()

    def take_all(self) -> None:
        """Everything that may be taken; with a journal it is durable then, and acknowledged."""
        self._take(self._open_subscriptions())
        self._ledger.store_received()
        self._ack_loop.acknowledge_all()

    def _take(self, subscriptions: Iterable[int]) -> None:
        links = self._subscriptions.links
        taken = [(subscription, links[subscription], links[subscription].take()) for subscription in subscriptions]
        self._ack_loop.replace_dead(subscription for subscription, _, blocks in taken if blocks)
        for subscription, link, blocks in taken:
            if links[subscription] is link:  # else the broker redelivers them
                self._into_ledger(subscription, link, blocks)

    def _into_ledger(self, subscription: int, link: SourceLink, blocks: Iterable[MessageBlock]) -> None:
        drain = self._drain
        for block in blocks:
            upto = (
                drain.sent_before_start(subscription, link, block, now_ms=time.time() * 1000) if drain else len(block)
            )
            unmappable = self._diverter.unmappable(link, block, upto)
            known = self._ledger.redelivered(subscription, block) if unmappable else ()
            bad = {index: why for index, why in unmappable.items() if index not in known}
            if bad and not self._diverter.divert(link, block, bad):
                return
            self._counts.redelivered += link.redelivered(block)
            self._counts.received += upto
            self._ledger.receive(subscription, block, upto, without=bad)

    def _take_redelivered(self) -> None:
        """On subscriptions that are not read any more, but may redeliver what is to be acknowledged."""
        for subscription in self._drain.ended if self._drain else ():
            if self._ledger.expects(subscription):
                self._take([subscription])
                self._ack_loop.acknowledge(subscription)

    # --- AvailableNow --------------------------------------------------------------------------

    def _reopen(self) -> bool:
        """After a lost connection, read its subscription and those beside it from the head of the queue again.

        The broker gives the messages to a connection beside the lost one behind later messages, and the first later
        message ends the reading of a subscription.
        """
        links, known = self._subscriptions.links, self._known_links
        if self._drain is None:
            return False
        lost = {subscription for subscription in range(len(links)) if links[subscription] is not known[subscription]}
        beside = {each for subscription in lost for each in self._subscriptions.beside(subscription)}
        self._ack_loop.begin_again(sorted(beside))
        self._drain.ended -= lost | beside
        self._known_links = list(links)
        return bool(lost)

    def is_drained(self, quiet: float) -> bool:
        """Whether everything was taken that was sent before the start. ``quiet``: seconds since something arrived."""
        drain, links = self._drain, self._subscriptions.links
        if drain is None:
            return False
        watched = [
            subscription
            for subscription in range(len(links))
            if subscription not in drain.ended or self._ledger.expects(subscription)
        ]
        if watched and quiet < drain.idle_timeout:
            return False
        # A quiet moment is not an empty queue: a broker may collect its garbage for seconds. So ask for a sign of
        # life, and see whether it is still quiet after it.
        probes = [(links[subscription], links[subscription].probe()) for subscription in watched]
        for link, receipt in probes:
            link.has_receipt(receipt, wait=True)
        if watched:
            known = self._ledger.recognised
            self._subscriptions.condition.pause(_PROBE_SECONDS)
            self._take_redelivered()
            if self._reopen() or self._ledger.recognised > known or self.waiting().messages:
                return False
        drain.ended.update(watched)
        return True
