"""From the links into the ledger: which lanes are read, what waits, and when nothing more is to come."""

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
        received = {lane: link.waiting() for lane, link in enumerate(self._subscriptions.links)}
        messages, size = self._ledger.waiting_messages, self._ledger.waiting_bytes
        for lane in self._open_lanes():
            messages, size = messages + received[lane][0], size + received[lane][1]
        in_flight = self._ledger.in_flight_bytes + sum(size for _, size in received.values())
        full = any(size >= self._options.connection_window for _, size in received.values())
        return Waiting(messages, size, in_flight, no_room=self.journal_is_full, one_is_full=full)

    def activity(self) -> tuple[int, int]:
        """Changes while messages arrive, on the lanes that are read: a large message on its way is no silence."""
        links = self._subscriptions.links
        return self._ledger.recognised, sum(links[lane].received_bytes for lane in self._open_lanes())

    def has_all(self, waiting: Waiting) -> bool:
        """Return True if every broker has answered a question sent after ``waiting``: it has no more for now."""
        come = self._ledger.offered, self._ledger.recognised, waiting.messages, waiting.size
        return self._idle_check.is_exhausted([self._subscriptions.links[lane] for lane in self._open_lanes()], come)

    @property
    def journal_is_full(self) -> bool:
        """No more messages are received until finished ones are deleted."""
        journal, store = self._options.journal, self._store
        return journal is not None and store is not None and store.segment_bytes >= journal.max_bytes

    def _open_lanes(self) -> list[int]:
        """Return the subscriptions to take from: none while the journal is full, and in a drain those not yet ended."""
        if self.journal_is_full:
            return []
        lanes = range(len(self._subscriptions.links))
        return [lane for lane in lanes if self._drain is None or lane not in self._drain.ended]

    # --- taking it -----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what stops the query; send away what is too large; acknowledge what was redelivered."""
        self._reopen()
        for link in self._subscriptions.links:
            try:
                link.check_messages()
            except JMSError as error:
                if not (link.is_down and error.transient):
                    raise  # a connection that was lost this moment is replaced before the next poll
        for lane in self._open_lanes():
            self._diverter.divert_oversized(self._subscriptions.links[lane])
        self._take_redelivered()

    def take_all(self) -> None:
        """Everything that may be taken; with a journal it is durable then, and acknowledged."""
        self._take(self._open_lanes())
        self._ledger.store_received()
        self._ack_loop.acknowledge_all()

    def _take(self, lanes: Iterable[int]) -> None:
        links = self._subscriptions.links
        taken = [(lane, links[lane], links[lane].take()) for lane in lanes]
        self._ack_loop.replace_dead(lane for lane, _, blocks in taken if blocks)
        for lane, link, blocks in taken:
            if links[lane] is link:  # else the broker redelivers them
                self._into_ledger(lane, link, blocks)

    def _into_ledger(self, lane: int, link: SourceLink, blocks: Iterable[MessageBlock]) -> None:
        drain = self._drain
        for block in blocks:
            upto = drain.sent_before_start(lane, link, block, now_ms=time.time() * 1000) if drain else len(block)
            unmappable = self._diverter.unmappable(link, block, upto)
            known = self._ledger.redelivered(lane, block) if unmappable else ()
            bad = {index: why for index, why in unmappable.items() if index not in known}
            if bad and not self._diverter.divert(link, block, bad):
                return
            self._counts.redelivered += link.redelivered(block)
            self._counts.received += upto
            self._ledger.receive(lane, block, upto, without=bad)

    def _take_redelivered(self) -> None:
        """On lanes that are not read any more, but may redeliver what is to be acknowledged."""
        for lane in self._drain.ended if self._drain else ():
            if self._ledger.expects(lane):
                self._take([lane])
                self._ack_loop.acknowledge(lane)

    # --- AvailableNow --------------------------------------------------------------------------

    def _reopen(self) -> bool:
        """After a lost connection, read its lane and those beside it from the head of the queue again.

        The broker gives the messages to a connection beside the lost one behind later messages, and the first later
        message ends the reading of a lane.
        """
        links, known = self._subscriptions.links, self._known_links
        if self._drain is None:
            return False
        lost = {lane for lane in range(len(links)) if links[lane] is not known[lane]}
        beside = {each for lane in lost for each in self._subscriptions.beside(lane)}
        self._ack_loop.begin_again(sorted(beside))
        self._drain.ended -= lost | beside
        self._known_links = list(links)
        return bool(lost)

    def is_drained(self, quiet: float) -> bool:
        """Whether everything was taken that was sent before the start. ``quiet``: seconds since something arrived."""
        drain, links = self._drain, self._subscriptions.links
        if drain is None:
            return False
        watched = [lane for lane in range(len(links)) if lane not in drain.ended or self._ledger.expects(lane)]
        if watched and quiet < drain.idle_timeout:
            return False
        # A quiet moment is not an empty queue: a broker may collect its garbage for seconds. So ask for a sign of
        # life, and see whether it is still quiet after it.
        probes = [(links[lane], links[lane].probe()) for lane in watched]
        for link, receipt in probes:
            link.await_receipt(receipt)
        if watched:
            known = self._ledger.recognised
            self._subscriptions.arrivals.pause(_PROBE_SECONDS)
            self._take_redelivered()
            if self._reopen() or self._ledger.recognised > known or self.waiting().messages:
                return False
        drain.ended.update(watched)
        return True
