"""Subscriptions → batches, acknowledged when they are done. The source's engine, in the runner's process.

``BatchReceiver`` decides when a batch ends, and ``Reception`` moves messages from the links into the ledger: which are
read, what waits in them, and when nothing more is to come. Everything here runs on the one thread that Spark's calls
come on; the threads of the links only fill buffers.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journaled_ledger import JournaledLedger
from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.delivery.message_range import Batch
from pyspark_jms.delivery.subscription_ledger import DeliveryLedger, Recognition
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.subscription import source_name
from pyspark_jms.options.broker import dialect_of
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop, Progress
from pyspark_jms.source.admission import IDLE_SECONDS, LINGER_SECONDS, BatchDecision, BatchTrigger, Waiting
from pyspark_jms.source.diverting import Diverter, DriverDiverter
from pyspark_jms.source.end_of_queue import Drain, EndOfQueue, end_of_reading
from pyspark_jms.source.links import Reading, SourceLink, SourceProtocol
from pyspark_jms.source.queues import warn_of_undelivered
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.subscriptions import MAX_SHORT_SESSIONS, Subscriptions, may_pass
from pyspark_jms.source.unmatched import warn_of_unmatched

__all__ = ["BatchReceiver", "required_recognition"]

_STORED_BYTES = 4 << 20
"""So much at a time goes into the journal while a batch grows: disk, broker and this process then work at once."""


class BatchReceiver:
    """Subscribed once constructed. Then in turn: ``acknowledge_through`` what is done, and ``next_batch_end``."""

    def __init__(
        self,
        reading: Reading,
        stop: StopRequest,
        *,
        store: JournalStore | None,
        sequence: int,
        selector_digest: str | None = None,
        restarted: bool = False,
        drain_since_ms: float | None = None,
    ) -> None:
        """The next message gets ``sequence``.

        ``selector_digest``: of a durable subscription, as the checkpoint has it. ``restarted``: the query has run
        before, so it waits for a broker that is away. ``drain_since_ms``: read only what was sent before that time, in
        milliseconds since 1970 (AvailableNow).
        """
        self._reading = reading
        self._options = options = reading.options
        self._stop = stop
        self._store = store
        self._draining = drain_since_ms is not None
        self._is_end_noted = False
        self._diverter = DriverDiverter(reading, stop.pause)
        self._subscriptions = Subscriptions(reading, stop.pause)
        self._ledger = self._open(sequence, selector_digest, restarted=restarted)
        self._ack_loop = AckLoop(self._subscriptions, self._ledger, store)
        self._progress = Progress(options, self._ack_loop, self._diverter)
        self._reception = Reception(options, self._ack_loop, self._diverter, Drain(drain_since_ms))
        self._backlog_end = self._ledger.offered + self._ledger.waiting_messages
        """Messages below it were left by an earlier process: they are offered before anything is received."""
        self._admission = BatchTrigger(options, time.monotonic)
        self._idle_since = -1
        """The changes that had been seen when nothing was to be done, or -1."""
        self.reached = 0
        """The end of the last batch that the commit log holds; a journal may keep its messages a little longer."""

    def _open(self, sequence: int, selector_digest: str | None, *, restarted: bool) -> DeliveryLedger[Any]:
        try:
            self._subscriptions.open(selector_digest, self._options.connection.reconnect_timeout if restarted else 0.0)
            return self._ledger_from(sequence)
        except BaseException:
            self._subscriptions.close()
            raise

    def _ledger_from(self, start: int) -> DeliveryLedger[Any]:
        links, protocol = self._subscriptions.links, self._reading.protocol
        if self._store is None:
            recognises, connections = not self._options.is_plain_topic, self._options.connections
            first = [each.dialect.name for each in links[::connections]]
            return Ledger([protocol.recognition(each) if recognises else None for each in first], start, connections)
        names = [source_name(each.subscription.destination, each.subscription.durable) for each in links]
        dialects = [each.dialect.name for each in links]
        return JournaledLedger(
            self._store,
            [(name, each, required_recognition(protocol, each)) for name, each in zip(names, dialects, strict=True)],
            start,
            partition_bytes=self._options.partition_bytes,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )

    def received(self) -> int:
        """Return how many messages have come."""
        return self._ack_loop.counts.received + sum(link.waiting()[0] for link in self.links)

    def close(self) -> None:
        """Give back what is not acknowledged, without costing it a delivery attempt. Never raises."""
        for subscription in range(self._ledger.subscriptions):
            with contextlib.suppress(JMSError):
                self._ack_loop.confirm(subscription)  # so that the journal need not wait for what was acknowledged
        self._subscriptions.close()

    # --- done ----------------------------------------------------------------------------------

    def acknowledge_through(self, sequence: int) -> None:
        """Spark holds every batch below ``sequence``. Waits only for the receipts of earlier acknowledgements."""
        if sequence <= self._ledger.done:
            return
        self._idle_since = -1
        self._ack_loop.reconnect_lost()
        self._ack_loop.confirm_received()  # a journal deletes at less cost what has its receipt
        if self._options.connections > 1 and self._store is None:
            # If another connection is lost, an equal message in a buffer may be a redelivery; one in the ledger is not.
            self._reception.take_all()
        self._ledger.finish(sequence)
        self._ack_loop.acknowledge_all()

    # --- next ----------------------------------------------------------------------------------

    def next_batch_end(self) -> int:
        """Wait a while for messages; the end of the batch to read next, or of the one before if none came."""
        reception, admission, condition = self._reception, self._admission, self._subscriptions.condition
        if self._idle_since == condition.changes and not self._await_change(IDLE_SECONDS):
            self._ack_loop.reconnect_lost()  # a queue that is not there changes nothing
            return self._ledger.offered
        admission.begin(reception.activity())
        while True:
            self._stop.check()
            changes, self._idle_since = condition.changes, -1
            self._ack_loop.run()
            if self._ledger.offered < self._backlog_end:
                break  # read these first, even if a new message would stop the query
            reception.check()
            waiting = reception.waiting()
            verdict = admission.verdict(waiting, reception.activity())
            if verdict is BatchDecision.BATCH or (verdict is BatchDecision.ASK and reception.has_all(waiting)):
                reception.take_all()
                if self._ledger.waiting_messages:
                    break
                admission.restart()
                continue
            if verdict is BatchDecision.NOTHING and self._nothing_to_come():
                self._idle_since = changes if not self._draining else -1
                return self._ledger.offered
            if self._store is not None and waiting.size - self._ledger.waiting_bytes >= _STORED_BYTES:
                reception.take_all()  # the broker sends more meanwhile
            elif waiting.messages:
                time.sleep(LINGER_SECONDS / 2)  # instead of waking for every message
            elif self._draining:
                condition.pause()
            else:
                self._await_change(IDLE_SECONDS - admission.waited, changes)
        admission.note_batch()
        return self._ledger.offer(max_messages=self._options.max_messages, max_bytes=self._options.max_bytes)

    def _await_change(self, seconds: float, seen: int | None = None) -> bool:
        """Wait until something arrives, and return whether it has: of a thousand queues, none needs a look before."""
        condition = self._subscriptions.condition
        seen = condition.changes if seen is None else seen
        return condition.poll(lambda: condition.changes != seen, seconds, self._stop.check)

    def _nothing_to_come(self) -> bool:
        if self._draining:
            has_ended = self._reception.is_drained(self._admission.quiet)
            if has_ended and not self._ack_loop.counts.received and not self._is_end_noted:
                self._is_end_noted = True
                warn_of_undelivered(self._reading)
                warn_of_unmatched(self._reading)
            return has_ended
        return self._admission.waited >= IDLE_SECONDS

    @property
    def journal_is_full(self) -> bool:
        return self._reception.journal_is_full

    # --- metrics and offsets -----------------------------------------------------------------------

    def batch(self, start: int, end: int) -> Batch | None:
        """Return what to read without a journal, or None if an earlier process received it."""
        return self._ledger.batch(start, end) if isinstance(self._ledger, Ledger) else None

    @property
    def links(self) -> list[SourceLink]:
        return self._subscriptions.links

    @property
    def selector_digest(self) -> str | None:
        """Return the digest of the selector that a durable subscription has, for the checkpoint."""
        return self._subscriptions.selector_digest

    def in_flight(self) -> int:
        """Return how many messages were here and not acknowledged when the metrics were last read."""
        return self._progress.in_flight

    def progress(self, watched: Mapping[str, int | str] | None = None) -> dict[str, object]:
        """Return the metrics; cheap, never raises. ``watched``: those of the broker's queues."""
        return self._progress.metrics(watched or {}, self.reached)


def required_recognition(protocol: SourceProtocol, dialect: str) -> Recognition:
    """Return the recognition that a journal needs. Raise ``UnsupportedError`` where redelivered messages cannot be
    recognised.
    """
    dialect_of("stomp", dialect).require(Feature.JOURNAL)
    recognition = protocol.recognition(dialect)
    assert recognition is not None
    return recognition


# --- what is read, what waits, and when nothing more is to come -----------------------------------


class Reception:
    """Which subscriptions are read, what waits, and when nothing more is to come."""

    def __init__(self, options: SourceOptions, ack_loop: AckLoop, diverter: Diverter, drain: Drain) -> None:
        self._options = options
        self._ack_loop = ack_loop
        self._subscriptions, self._ledger, self._counts = ack_loop.subscriptions, ack_loop.ledger, ack_loop.counts
        self._diverter = diverter
        self._drain = drain
        self._for_now = EndOfQueue[SourceLink](lambda link: link.ping())
        self._end = end_of_reading(options.idle_timeout, lost=self._replace)
        self._ends_in_a_row, self._received_at_end = 0, 0
        self._known_links = list(self._subscriptions.links)
        """The links that the drain knows. A connection that was replaced is another link."""

    # --- what waits ----------------------------------------------------------------------------

    def waiting(self) -> Waiting:
        received = {subscription: link.waiting() for subscription, link in enumerate(self._subscriptions.links)}
        messages, size = self._ledger.waiting_messages, self._ledger.waiting_bytes
        for subscription in self._open_subscriptions():
            messages, size = messages + received[subscription][0], size + received[subscription][1]
        return Waiting(messages, size, no_room=self.journal_is_full)

    def activity(self) -> tuple[int, int]:
        """Changes while messages arrive on the subscriptions that are read, also during a large message."""
        links = self._subscriptions.links
        return self._ledger.recognised, sum(
            links[subscription].received_bytes for subscription in self._open_subscriptions()
        )

    def has_all(self, waiting: Waiting) -> bool:
        """Return True if every broker has answered a question sent after ``waiting``: it has no more for now."""
        come = self._ledger.offered, self._ledger.recognised, waiting.messages, waiting.size
        open_ = [self._subscriptions.links[subscription] for subscription in self._open_subscriptions()]
        asked: list[SourceLink] = []  # one link of each connection: its answer follows what the others were sent
        for link in open_:
            if not any(link.shares(each) for each in asked):
                asked.append(link)
        return self._for_now.is_reached(asked, come)

    @property
    def journal_is_full(self) -> bool:
        """No more messages are received until finished ones are deleted."""
        journal, store = self._options.journal, self._ack_loop.store
        return journal is not None and store is not None and store.segment_bytes >= journal.max_bytes

    def _open_subscriptions(self) -> list[int]:
        """Return the subscriptions to take from: none while the journal is full, and in a drain those not yet ended."""
        if self.journal_is_full:
            return []
        left_out = {*self._subscriptions.absent, *self._drain.ended}
        return [each for each in range(len(self._subscriptions.links)) if each not in left_out]

    # --- taking it -----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what stops the query; send away what is too large; acknowledge what was redelivered."""
        self._reopen()
        for link in self._subscriptions.links:
            try:
                link.check()
            except JMSError as error:
                if not (link.is_down and may_pass(error)):
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
        links, taken = self._subscriptions.links, self._ack_loop.taken
        subscriptions = list(subscriptions)
        for subscription in subscriptions:
            taken.setdefault(subscription, []).extend(links[subscription].take())
        self._ack_loop.replace_dead(subscription for subscription in subscriptions if taken[subscription])
        for subscription in subscriptions:
            blocks = taken.get(subscription, [])  # of a lost connection none: the broker redelivers them
            while blocks and self._into_ledger(subscription, links[subscription], blocks[0]):
                del blocks[0]

    def _into_ledger(self, subscription: int, link: SourceLink, block: MessageBlock) -> bool:
        """Return False if the connection is gone, and the ledger has not got the block."""
        upto = self._drain.sent_before_start(subscription, link, block, now_ms=time.time() * 1000)
        unmappable = self._diverter.unmappable(link.dialect, link.subscription.destination, block, upto)
        known = self._ledger.redelivered(subscription, block) if unmappable else ()
        bad = {index: why for index, why in unmappable.items() if index not in known}
        if bad and not self._diverter.divert(link, block, bad):
            return False
        self._counts.redelivered += link.redelivered(block)
        self._counts.received += upto
        self._ledger.receive(subscription, block, upto, without=bad)
        return True

    def _take_redelivered(self) -> None:
        """On subscriptions that are not read any more, but may redeliver what is to be acknowledged."""
        for subscription in self._drain.ended:
            if self._ledger.expects(subscription):
                self._take([subscription])
                self._ack_loop.acknowledge(subscription)

    # --- AvailableNow --------------------------------------------------------------------------

    def _reopen(self) -> None:
        """After a lost connection, read its subscription and those beside it from the head of the queue again.

        The broker gives the messages to a connection beside the lost one behind later messages, and the first later
        message ends the reading of a subscription.
        """
        links, known = self._subscriptions.links, self._known_links
        if self._drain.started_ms is None:
            return
        lost = {subscription for subscription in range(len(links)) if links[subscription] is not known[subscription]}
        beside = {each for subscription in lost for each in self._subscriptions.beside(subscription)}
        self._ack_loop.begin_again(sorted(beside))
        self._drain.ended -= lost | beside
        self._known_links = list(links)

    def is_drained(self, quiet: float) -> bool:
        """Return whether everything was taken that was sent before the start. ``quiet`` is the number of seconds since
        something arrived.
        """
        drain, links = self._drain, self._subscriptions.links
        if drain.started_ms is None:
            return False
        watched = [
            subscription
            for subscription in range(len(links))
            if subscription not in self._subscriptions.absent
            and (subscription not in drain.ended or self._ledger.expects(subscription))
        ]
        come = self._ledger.offered, self._ledger.recognised, self.waiting()
        if watched and not self._end.is_reached([links[each] for each in watched], come, quiet=quiet, wait=True):
            return False
        drain.ended.update(watched)
        return True

    def _replace(self, link: SourceLink, end: JMSError) -> None:
        """Replace a connection that was lost while it was asked whether there is more.

        Raise ``end`` when so many in a row have ended there, and nothing was received: Classic does not answer while it
        waits for more consumers.
        """
        received = self._counts.received + self._ledger.recognised
        again = self._ends_in_a_row if received == self._received_at_end else 0
        self._ends_in_a_row, self._received_at_end = again + 1, received
        if self._ends_in_a_row >= MAX_SHORT_SESSIONS:
            raise end
        self._ack_loop.reconnect(self._subscriptions.links.index(link))
