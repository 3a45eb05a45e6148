"""Subscriptions → batches, acknowledged when they are done. The source's engine, in the runner's process.

``BatchReceiver`` decides when a batch ends, and ``Reception`` moves messages from the links into the ledger. Everything
here runs on the one thread that Spark's calls come on; the threads of the links only fill buffers.
"""

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journaled_ledger import JournaledLedger
from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.delivery.message_range import Batch
from pyspark_jms.delivery.subscription_ledger import DeliveryLedger, Recognition
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.subscription import source_name
from pyspark_jms.options.broker import dialect_of
from pyspark_jms.source.ack_loop import AckLoop
from pyspark_jms.source.admission import IDLE_SECONDS, LINGER_SECONDS, BatchDecision, BatchTrigger
from pyspark_jms.source.diverting import DriverDiverter
from pyspark_jms.source.draining import Drain
from pyspark_jms.source.links import Reading, SourceLink, SourceProtocol
from pyspark_jms.source.progress import Progress
from pyspark_jms.source.queues import warn_of_undelivered
from pyspark_jms.source.reception import Reception
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.subscriptions import Subscriptions
from pyspark_jms.source.unmatched import warn_of_unmatched

__all__ = ["BatchReceiver", "required_recognition"]

_POLL_SECONDS = 0.05
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
        drain = None if drain_since_ms is None else Drain(drain_since_ms)
        self._stop = stop
        self._store = store
        self._draining = drain is not None
        self._is_end_noted = False
        self._diverter = DriverDiverter(reading, stop.pause)
        self._subscriptions = Subscriptions(reading, stop.pause)
        self._in_memory, self._ledger = self._open(sequence, selector_digest, restarted=restarted)
        self._ack_loop = AckLoop(self._subscriptions, self._ledger, store)
        self._progress = Progress(options, self._ack_loop, self._diverter)
        self._reception = Reception(options, self._ack_loop, self._diverter, drain)
        self._backlog_end = self._ledger.offered + self._ledger.waiting_messages
        """Messages below it were left by an earlier process: they are offered before anything is received."""
        self._admission = BatchTrigger(options, time.monotonic)
        self._idle_since = -1
        """The changes that had been seen when nothing was to be done, or -1."""
        self.reached = 0
        """The end of the last batch that the commit log holds; a journal may keep its messages a little longer."""

    def _open(
        self, sequence: int, selector_digest: str | None, *, restarted: bool
    ) -> tuple[Ledger | None, DeliveryLedger[Any]]:
        try:
            self._subscriptions.open(selector_digest, self._options.connection.reconnect_timeout if restarted else 0.0)
            return self._ledgers(sequence)
        except BaseException:
            self._subscriptions.close()
            raise

    def _ledgers(self, start: int) -> tuple[Ledger | None, DeliveryLedger[Any]]:
        """The ledger, and the same if it keeps its messages in memory."""
        links, protocol = self._subscriptions.links, self._reading.protocol
        if self._store is None:
            recognises, connections = not self._options.is_plain_topic, self._options.connections
            first = [each.dialect.name for each in links[::connections]]
            ledger = Ledger([protocol.recognition(each) if recognises else None for each in first], start, connections)
            return ledger, ledger
        names = [source_name(each.subscription.destination, each.subscription.durable) for each in links]
        dialects = [each.dialect.name for each in links]
        return None, JournaledLedger(
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
                condition.pause(_POLL_SECONDS)
            else:
                self._await_change(IDLE_SECONDS - admission.waited, changes)
        admission.note_batch()
        return self._ledger.offer(max_messages=self._options.max_messages, max_bytes=self._options.max_bytes)

    def _await_change(self, seconds: float, seen: int | None = None) -> bool:
        """Wait until something arrives, and return whether it has: of a thousand queues, none needs a look before."""
        condition, until = self._subscriptions.condition, time.monotonic() + seconds
        seen = condition.changes if seen is None else seen
        while condition.changes == seen and (left := until - time.monotonic()) > 0:
            self._stop.check()
            condition.pause(min(left, _POLL_SECONDS))
        return condition.changes != seen

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
        return None if self._in_memory is None else self._in_memory.batch(start, end)

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
