"""Subscriptions → batches, acknowledged when they are done. The source's engine, in the runner's process.

Everything here runs on the one thread that Spark's calls come on; the threads of the links only fill buffers.
"""

import contextlib
import time

from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journaled_ledger import JournaledLedger
from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.delivery.ledger_interface import DeliveryLedger
from pyspark_jms.delivery.message_range import Batch
from pyspark_jms.delivery.subscription_ledger import Recognition, unrecognisable
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.jms.subscription import source_name
from pyspark_jms.management.queue_watch import QueueWatch
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop
from pyspark_jms.source.admission import IDLE_SECONDS, LINGER_SECONDS, BatchDecision, BatchTrigger
from pyspark_jms.source.diverting import Diverter
from pyspark_jms.source.draining import Drain
from pyspark_jms.source.intake import Intake
from pyspark_jms.source.links import SourceLink, SourceProtocol
from pyspark_jms.source.progress import Progress, compared
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.subscriptions import Subscriptions

__all__ = ["BatchReceiver", "required_recognition"]

_POLL_SECONDS = 0.05


class BatchReceiver:
    """Subscribed once constructed. Then in turn: ``acknowledge_through`` what is done, and ``next_batch_end``."""

    def __init__(
        self,
        options: SourceOptions,
        protocol: SourceProtocol,
        stop: StopRequest,
        *,
        store: JournalStore | None,
        sequence: int,
        selector_digest: str | None = None,
        restarted: bool = False,
        drain: bool = False,
    ) -> None:
        """The next message gets ``sequence``.

        ``selector_digest``: of a durable subscription, as the checkpoint has it. ``restarted``: the query has run
        before, so it waits for a broker that is away. ``drain``: read only what was sent before now (AvailableNow).
        """
        draining = Drain(time.time() * 1000, options.idle_timeout) if drain else None
        self._options = options
        self._stop = stop
        self._store = store
        self._draining = drain
        self._progress = Progress(options)
        self._diverter = Diverter(options, protocol, stop.pause)
        self._subscriptions = Subscriptions(options, protocol, stop.pause)
        self._in_memory, self._ledger = self._open(protocol, sequence, selector_digest, restarted=restarted)
        self._ack_loop = AckLoop(self._subscriptions, self._ledger, store, self._progress.counts)
        self._intake = self._new_intake(draining)
        self._backlog_end = self._ledger.offered + self._ledger.waiting_messages
        """Messages below it were left by an earlier process: they are offered before anything is received."""
        self._admission = BatchTrigger(options, time.monotonic, draining=drain)
        self._watch = self._watch_queues(protocol)
        self.reached = 0
        """The end of the last batch that the commit log holds; a journal may keep its messages a little longer."""

    def _new_intake(self, drain: Drain | None) -> Intake:
        return Intake(
            self._options,
            subscriptions=self._subscriptions,
            ledger=self._ledger,
            store=self._store,
            ack_loop=self._ack_loop,
            diverter=self._diverter,
            counts=self._progress.counts,
            drain=drain,
        )

    def _open(
        self, protocol: SourceProtocol, sequence: int, selector_digest: str | None, *, restarted: bool
    ) -> tuple[Ledger | None, DeliveryLedger]:
        try:
            self._subscriptions.open(selector_digest, self._options.connection.reconnect_timeout if restarted else 0.0)
            return self._ledgers(protocol, sequence)
        except BaseException:
            self._subscriptions.close()
            raise

    def _ledgers(self, protocol: SourceProtocol, start: int) -> tuple[Ledger | None, DeliveryLedger]:
        """The ledger, and the same if it keeps its messages in memory."""
        links = self._subscriptions.links
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

    def _watch_queues(self, protocol: SourceProtocol) -> QueueWatch | None:
        options = self._options
        queues = [each.name for each in options.destinations if each.kind is DestinationKind.QUEUE]
        queues += [str(options.durable)] if options.durable else []
        # A run that ends does not need metrics that come every 30 s; a journal must know of other consumers.
        if not queues or (self._draining and self._store is None):
            return None
        return QueueWatch(
            protocol.open_management,
            options.connection,
            queues,
            lambda: self._progress.in_flight,
            compared(options, self._received),
            connections=options.connections,
        )

    def _received(self) -> int:
        return self._progress.counts.received + sum(link.waiting()[0] for link in self.links)

    def close(self) -> None:
        """Give back what is not acknowledged, without costing it a delivery attempt. Never raises."""
        if self._watch is not None:
            self._watch.close()
        for subscription in range(self._ledger.subscriptions):
            with contextlib.suppress(JMSError):
                self._ack_loop.confirm(subscription)  # so that the journal need not wait for what was acknowledged
        self._subscriptions.close()

    # --- done ----------------------------------------------------------------------------------

    def acknowledge_through(self, sequence: int) -> None:
        """Spark holds every batch below ``sequence``. Waits only for the receipts of earlier acknowledgements."""
        if sequence <= self._ledger.done:
            return
        self._ack_loop.reconnect_lost()
        self._ack_loop.confirm_received()  # a journal deletes at less cost what has its receipt
        self._ledger.finish(sequence)
        self._ack_loop.acknowledge_all()

    # --- next ----------------------------------------------------------------------------------

    def next_batch_end(self) -> int:
        """Wait a while for messages; the end of the batch to read next, or of the one before if none came."""
        intake, admission = self._intake, self._admission
        admission.begin(intake.activity())
        while True:
            self._stop.check()
            self._ack_loop.run()
            if self._ledger.offered < self._backlog_end:
                break  # read these first, even if a new message would stop the query
            intake.check()
            waiting = intake.waiting()
            verdict = admission.verdict(waiting, intake.activity())
            if verdict is BatchDecision.BATCH or (verdict is BatchDecision.ASK and intake.has_all(waiting)):
                intake.take_all()
                if self._ledger.waiting_messages:
                    break
                admission.restart()
                continue
            if verdict is BatchDecision.NONE_YET or (verdict is BatchDecision.NOTHING and self._nothing_to_come()):
                return self._ledger.offered
            if waiting.messages:
                time.sleep(LINGER_SECONDS / 2)  # instead of waking for every message
            else:
                self._subscriptions.condition.pause(_POLL_SECONDS)
        admission.note_batch()
        return self._ledger.offer(max_messages=self._options.max_messages, max_bytes=self._options.max_bytes)

    def _nothing_to_come(self) -> bool:
        if self._draining:
            return self._intake.is_drained(self._admission.quiet)
        return self._admission.waited >= IDLE_SECONDS

    @property
    def journal_is_full(self) -> bool:
        return self._intake.journal_is_full

    # --- metrics and offsets -----------------------------------------------------------------------

    def batch(self, start: int, end: int) -> Batch | None:
        """What to read without a journal. None: an earlier process received it."""
        return None if self._in_memory is None else self._in_memory.batch(start, end)

    @property
    def links(self) -> list[SourceLink]:
        return self._subscriptions.links

    @property
    def selector_digest(self) -> str | None:
        """Of the selector that a durable subscription has, for the checkpoint."""
        return self._subscriptions.selector_digest

    def progress(self, dropped: int | str = 0) -> dict[str, object]:
        """Metrics for ``StreamingQueryProgress``; cheap, never raises. ``dropped``: rows dropped for the selector."""
        return self._progress.metrics(
            self._ledger,
            self._subscriptions.links,
            self._store,
            self._diverter,
            {} if self._watch is None else self._watch.metrics(),
            own=self._subscriptions.condition.counts,
            reached=self.reached,
            reconnects=self._subscriptions.reconnects,
            dropped=dropped,
        )


def required_recognition(protocol: SourceProtocol, dialect: str) -> Recognition:
    """For a journal; ``UnsupportedError`` where redelivered messages cannot be recognised."""
    recognition = protocol.recognition(dialect)
    if recognition is None:
        raise unrecognisable(dialect)
    return recognition
