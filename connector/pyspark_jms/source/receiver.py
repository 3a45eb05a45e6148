"""Subscriptions → batches, acknowledged when they are done. The source's engine, in the runner's process.

Joins the link (connections that die) with the ledger (promises that do not). Everything here runs on the one
thread that Spark's calls come on; the link's threads only fill buffers.
"""

import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journaled_ledger import DurableLedger
from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.delivery.span import Batch
from pyspark_jms.errors import ConnectionLostError, JMSError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.source.diverting import Diverter
from pyspark_jms.source.draining import Drain
from pyspark_jms.source.lingering import LINGER_SECONDS, Linger
from pyspark_jms.source.offsets import selector_digest
from pyspark_jms.source.short_lives import MOST_IN_VAIN, ShortLives
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.dialects.refusals import require_durable, require_enough_unacknowledged
from pyspark_jms.stomp.link.connection import Arrivals
from pyspark_jms.stomp.link.consumer import Consumer, Subscription
from pyspark_jms.stomp.link.missing_queues import warn_of_missing_queues
from pyspark_jms.stomp.link.queue_watch import QueueWatch
from pyspark_jms.stomp.link.subscriptions import require_as_asked, selector_changed
from pyspark_jms.stomp.recognition import fingerprints_of, recognition_if_any, recognition_of, redelivered, source_name

__all__ = ["Receiver"]

_log = logging.getLogger("pyspark_jms.source")

IDLE_SECONDS = 0.5
"""How long one look for messages may take when there are none: Spark would ask again every 10 ms."""
_POLL_SECONDS = 0.05
_LOCK_SECONDS = 30.0
"""``query.stop()`` returns before the old process is gone: a starter waits this long for its journal."""
_PROBE_SECONDS = 0.25
"""Still quiet this long after the probe's receipt: drained."""
_LONGEST_COUNTED_SECONDS = 600.0
"""Between two looks for messages, as time that the query was subscribed: some batches take that long."""


def _now_ms() -> float:
    return time.time() * 1000


@dataclass(slots=True)
class _Counts:
    received: int = 0
    acknowledged: int = 0
    redelivered: int = 0
    reconnects: int = 0
    selector_dropped: int = 0


class Receiver:
    """``open`` once, then in turn: ``settle`` what is done, ``admit`` what is next. ``close`` at the end."""

    def __init__(self, options: SourceOptions, stop: StopRequest) -> None:
        self._options = options
        self._stop = stop
        self._arrivals = Arrivals()
        self._consumers: list[Consumer] = []
        self._ledger: Ledger | DurableLedger = Ledger([], 0)
        self._store: JournalStore | None = None
        self._draining: Drain | None = None
        self._lives = ShortLives()
        self._diverter = Diverter(options, self._pause)
        self._counts = _Counts()
        self._last_batch = 0.0
        self._subscribed_since: float | None = None
        """Up to when the time of being subscribed was counted; None while a connection is lost."""
        self.reached = 0
        """The end of the last batch that Spark's log holds; a journal may keep its messages a little longer."""
        self._warned_of_others = False
        self._backlog_end = 0
        """Messages below it were left by an earlier process: they are offered before anything is received."""
        self._watch: QueueWatch | None = None
        self.made_with: str | None = None
        """A digest of the selector that a durable subscription has, for the checkpoint."""
        self._held = 0
        """Messages here and not acknowledged, when progress was last asked: for the watch, which is another thread."""

    # --- opening and closing -------------------------------------------------------------------

    def drain(self) -> None:
        """Read only what was sent before now (Trigger.AvailableNow)."""
        self._draining = Drain(_now_ms(), self._options.idle_timeout)

    def journal(self) -> JournalStore | None:
        """The journal, if there is to be one; the first call waits until no other process writes it."""
        wanted = self._options.journal
        if wanted is not None and self._store is None:
            self._store = JournalStore.open(
                wanted.location,
                query=f"reading {', '.join(map(str, self._options.destinations))}",
                wait_seconds=_LOCK_SECONDS,
                pause=self._pause,
                clock=time.time,
                fingerprints=fingerprints_of,
            )
        return self._store

    def open(self, sequence: int, made_with: str | None = None, *, restarted: bool = False) -> None:
        """Subscribe; the next message gets ``sequence``. ``made_with``: the selector of a durable subscription, as it
        was in the checkpoint. ``restarted``: the query has run before, so it waits for a broker that is away.
        """
        patience = self._options.connection.reconnect_timeout if restarted else 0.0
        store = self.journal()
        self.made_with = made_with
        queues = [each.name for each in self._options.destinations if each.kind is DestinationKind.QUEUE]
        warn_of_missing_queues(self._options.connection, queues)
        for lane, destination in enumerate(self._options.destinations):
            self._consumers.append(self._first_subscription(destination, patience))
            self._lives.began(lane, time.monotonic())
            require_enough_unacknowledged(self._consumers[lane].dialect, self._options.min_messages)
            self._require_as_asked(self._consumers[lane])
        self._ledger = self._books(store, sequence)
        self._backlog_end = self._ledger.offered + self._ledger.waiting_messages
        self._last_batch = time.monotonic()
        durable = self._options.durable
        queues += [str(durable)] if durable else []
        # A run that ends has no use for figures that come every 30 s; a journal must know of other consumers.
        if queues and (self._draining is None or store is not None):
            self._watch = QueueWatch(self._options.connection, queues, lambda: self._held)
        for consumer in self._consumers:
            for warning in self._options.selector_warnings(consumer.dialect):
                _log.warning("! selector: %s", warning)
            if self._options.forgotten:
                _log.warning(
                    "! %s is a plain topic subscription: what is sent while this query is not connected is not"
                    " delivered to it (at most once across reconnects and restarts)",
                    consumer.subscription.destination,
                )

    def _books(self, store: JournalStore | None, start: int) -> Ledger | DurableLedger:
        if store is None:
            kept = not self._options.forgotten
            return Ledger([recognition_if_any(c.dialect) if kept else None for c in self._consumers], start)
        return DurableLedger(
            store,
            [
                (
                    source_name(c.subscription.destination, c.subscription.durable),
                    c.dialect.name,
                    recognition_of(c.dialect),
                )
                for c in self._consumers
            ],
            start,
            partition_bytes=self._options.partition_bytes,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )

    def _first_subscription(self, destination: Destination, patience: float) -> Consumer:
        return keep_trying(
            lambda: self._subscribe(destination), "the first connection", timeout=patience, pause=self._pause
        )

    def _subscribe(self, destination: Destination) -> Consumer:
        window = max(1, self._options.window_bytes // len(self._options.destinations))
        subscription = Subscription(
            destination=destination,
            window_bytes=window,
            transform=self._options.body_type == "auto",
            durable=self._options.durable,
            selector=self._selector_for,
        )
        return Consumer(self._options.connection, subscription, self._arrivals)

    def _selector_for(self, dialect: Dialect) -> str | None:
        """Asked before SUBSCRIBE: Classic would forget what a durable subscription with another selector holds."""
        selector, durable = self._options.selector_for(dialect), self._options.durable
        if durable is not None:
            require_durable(dialect, durable, selected=selector is not None)
            digest = selector_digest(selector)
            if self.made_with not in (None, digest):
                raise selector_changed(durable)
            self.made_with = digest
        return selector

    def _require_as_asked(self, consumer: Consumer) -> None:
        durable, words = self._options.durable, consumer.dialect.durable
        if durable is not None and durable.client_id is not None and words.keeps_filter:
            selector = self._options.selector_for(consumer.dialect)
            require_as_asked(self._options.connection, durable, consumer.subscription.destination, selector)

    @property
    def opened(self) -> bool:
        return bool(self._consumers)

    @property
    def _lanes(self) -> range:
        return range(self._ledger.lanes)

    def close(self) -> None:
        """Give back what is not acknowledged, without costing it a delivery attempt. Never raises."""
        if self._watch is not None:
            self._watch.close()
        for lane in self._lanes:
            with contextlib.suppress(JMSError):
                self._confirm(lane)  # so that the journal need not wait for what was acknowledged
        for consumer in self._consumers:
            consumer.close()
        self._consumers = []
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- done ----------------------------------------------------------------------------------

    def settle(self, sequence: int) -> None:
        """Spark holds every batch below ``sequence``: acknowledge it. Waits only for the receipt before this one."""
        if sequence <= self._ledger.done:
            return
        self._reconnect_the_lost()
        self._confirm_what_came()  # a journal deletes with less ado what has its receipt
        self._ledger.finish(sequence)
        for lane in self._lanes:
            self._acknowledge(lane)

    def _acknowledge(self, lane: int) -> None:
        """What is due, if anything is."""
        if not self._ledger.due(lane):
            return
        try:
            self._confirm(lane)
            self._ledger.acknowledging(lane, self._consumers[lane].acknowledge(self._ledger.due_ids(lane)))
        except ConnectionLostError:
            self._reconnect(lane)

    def _confirm(self, lane: int, *, wait: bool = True) -> None:
        """Look for the receipts of ACKs: nobody waited for them when they were sent."""
        consumer = self._consumers[lane]
        while (receipt := self._ledger.unconfirmed(lane)) is not None:
            if not wait and not consumer.connection.has_receipt(receipt):
                return
            consumer.await_receipt(receipt)
            self._counts.acknowledged += self._ledger.acknowledged(lane, receipt)

    def _confirm_what_came(self) -> None:
        for lane in self._lanes:
            self._confirm(lane, wait=False)

    # --- next ----------------------------------------------------------------------------------

    def admit(self) -> int:
        """Wait a while for messages; the end of the batch to read next, or of the one before if none came."""
        began = last_change = time.monotonic()
        seen = (0, 0, self._ledger.recognised, self._received_bytes())
        linger = Linger()
        while True:
            self._stop.check()
            self._reconnect_the_lost()
            self._count_subscribed_time()
            self._confirm_what_came()
            if self._ledger.offered < self._backlog_end:
                break  # first: a new message that stops the query must not keep these from being read
            for consumer in self._consumers:
                consumer.connection.check_messages()
            for lane in self._open_lanes():
                self._diverter.divert_oversized(self._consumers[lane])
            self._look_for_second_copies()
            messages, octets = self._waiting()
            now = time.monotonic()
            if (current := (messages, octets, self._ledger.recognised, self._received_bytes())) != seen:
                seen, last_change = current, now
            if messages and self._enough(messages, octets, lingered=linger.over(now, messages, octets)):
                self._take_all()
                if self._ledger.waiting_messages:
                    break
                linger = Linger()  # they were second copies
                continue
            if not messages and self._nothing_to_come(now - began, now - last_change):
                return self._ledger.offered
            if now - began >= IDLE_SECONDS and self._below_minimum(messages):
                return self._ledger.offered
            if messages:
                time.sleep(LINGER_SECONDS / 2)  # and is not woken for each that comes
            else:
                self._arrivals.pause(_POLL_SECONDS)
        self._last_batch = time.monotonic()
        return self._ledger.offer(max_messages=self._options.max_messages, max_bytes=self._options.max_bytes)

    def _received_bytes(self) -> int:
        """On the lanes that are read: a large message on its way is no silence."""
        return sum(self._consumers[lane].connection.received_bytes for lane in self._open_lanes())

    def _enough(self, messages: int, octets: int, *, lingered: bool) -> bool:
        most = self._options.max_messages
        if octets >= self._options.max_bytes or (most is not None and messages >= most):
            return True
        if self._below_minimum(messages):
            return False
        # Nothing comes behind a full window. What is done was acknowledged before, so what waits is all that fills it.
        return lingered or self.journal_is_full or octets >= self._options.window_bytes

    def _below_minimum(self, messages: int) -> bool:
        """Fewer than minMessagesPerTrigger, and worth waiting for: not with a full window, nor for too long."""
        least = self._options.min_messages
        if least is None or messages >= least or self._draining is not None:
            return False
        # A broker sends while there is credit, so a full window holds at least as much as it says.
        held = self._ledger.in_flight_bytes + sum(consumer.waiting()[1] for consumer in self._consumers)
        full = held >= self._options.window_bytes // len(self._consumers) or self.journal_is_full
        return not full and time.monotonic() - self._last_batch < self._options.max_delay

    def _waiting(self) -> tuple[int, int]:
        messages, octets = self._ledger.waiting_messages, self._ledger.waiting_bytes
        for lane in self._open_lanes():
            more, size = self._consumers[lane].waiting()
            messages, octets = messages + more, octets + size
        return messages, octets

    def _open_lanes(self) -> list[int]:
        """Those whose messages may be taken: none while the journal is full, of a drain those still read."""
        if self.journal_is_full:
            return []
        return [lane for lane in self._lanes if self._draining is None or lane not in self._draining.ended]

    @property
    def journal_is_full(self) -> bool:
        """No more messages are received until finished ones are deleted."""
        journal, store = self._options.journal, self._store
        return journal is not None and store is not None and store.segment_bytes >= journal.max_bytes

    def _take_all(self) -> None:
        for lane in self._open_lanes():
            self._take(lane)
        if isinstance(self._ledger, DurableLedger):
            self._ledger.secure()
        for lane in self._lanes:
            self._acknowledge(lane)

    def _take(self, lane: int) -> None:
        consumer, drain = self._consumers[lane], self._draining
        sent, unit_ms, now_ms = consumer.dialect.header_of("JMSTimestamp"), consumer.dialect.timestamp_ms, _now_ms()
        for run in consumer.take():
            upto = drain.before_the_cut(lane, run, sent, unit_ms, now_ms=now_ms) if drain else len(run)
            unmappable = self._diverter.unmappable(consumer, run, upto)
            bad = {index: why for index, why in unmappable.items() if not self._ledger.awaits(lane, run, index)}
            if bad and not self._diverter.divert(consumer, run, bad):
                return
            self._counts.redelivered += redelivered(run)
            self._counts.received += upto
            self._ledger.receive(lane, run, upto, without=bad)

    # --- AvailableNow --------------------------------------------------------------------------

    def _nothing_to_come(self, waited: float, quiet: float) -> bool:
        draining = self._draining
        if draining is None:
            return waited >= IDLE_SECONDS
        looked_at = [lane for lane in self._lanes if lane not in draining.ended or self._ledger.expects(lane)]
        if looked_at and quiet < draining.idle_timeout:
            return False
        # A quiet moment is not an empty queue: a broker may collect its garbage for seconds. So ask for a
        # sign of life, and see whether it is still quiet after it.
        probes = [(self._consumers[lane], self._consumers[lane].probe()) for lane in looked_at]
        for consumer, receipt in probes:
            consumer.await_receipt(receipt)
        if looked_at:
            known = self._ledger.recognised
            self._arrivals.pause(_PROBE_SECONDS)
            self._look_for_second_copies()
            if self._ledger.recognised > known or self._waiting()[0]:
                return False
        draining.ended.update(looked_at)
        return True

    def _look_for_second_copies(self) -> None:
        """On lanes that are not read any more, but may deliver again what is to be acknowledged."""
        for lane in self._draining.ended if self._draining else ():
            if self._ledger.expects(lane):
                self._take(lane)
                self._acknowledge(lane)

    # --- lost connections ----------------------------------------------------------------------

    def _reconnect_the_lost(self) -> None:
        for lane, consumer in enumerate(self._consumers):
            if consumer.connection.down:
                self._reconnect(lane)

    def _reconnect(self, lane: int) -> None:
        """Subscribe again, after growing pauses; what ended the connection is raised if it cannot pass."""
        consumer, lost = self._consumers[lane], None
        self._subscribed_since = None
        try:
            consumer.connection.check()
        except JMSError as error:
            if not error.transient:
                raise
            lost = error
        self._confirm(lane, wait=False)  # what came before the end
        self._ledger.lost(lane)
        consumer.drop()
        destination = consumer.subscription.destination
        failure: JMSError | None = self._lives.ended(
            lane,
            time.monotonic(),
            dialect=consumer.dialect,
            address=consumer.connection.address,
            destination=destination,
        )
        if failure is not None and self._lives.in_vain(lane) >= MOST_IN_VAIN:
            raise failure
        self._consumers[lane] = keep_trying(
            lambda: self._subscribe(destination),
            f"reconnecting to {consumer.connection.address}",
            timeout=self._options.connection.reconnect_timeout,
            failure=failure or lost,
            pause=self._pause,
        )
        self._lives.began(lane, time.monotonic())
        self._counts.reconnects += 1
        _log.warning("= reconnected to %s", self._consumers[lane].connection.address)

    def _count_subscribed_time(self) -> None:
        """For the journal's tombstones. A long gap between two calls may be a process that was stopped meanwhile."""
        if self._store is None:
            return
        before, self._subscribed_since = self._subscribed_since, time.monotonic()
        if before is not None:
            self._store.note_subscribed(min(self._subscribed_since - before, _LONGEST_COUNTED_SECONDS))

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._stop.check()
            time.sleep(min(left, _POLL_SECONDS))

    def note_dropped(self, messages: int) -> None:
        """So many of the next batch's messages will become no row, for the selector's sake."""
        if messages and not self._counts.selector_dropped:
            _log.warning(
                "! messages that do not match the selector are dropped: this broker does not hold them back (progress"
                " counts them as selectorDropped)"
            )
        self._counts.selector_dropped += messages

    # --- what others ask -----------------------------------------------------------------------

    def batch(self, start: int, end: int) -> Batch | None:
        """What to read without a journal. None: an earlier process received it."""
        return self._ledger.batch(start, end) if self.opened and isinstance(self._ledger, Ledger) else None

    def lane(self, index: int) -> tuple[Destination, Dialect]:
        consumer = self._consumers[index]
        return consumer.subscription.destination, consumer.dialect

    def _guarantee(self, watched: Mapping[str, int | str]) -> str:
        if self._options.forgotten:
            return "at-most-once (plain topic subscription)"
        if self._store is None:
            return "at-least-once"
        if int(watched.get("consumers", 0)) <= len(self._consumers):
            return "exactly-once into Spark"
        if not self._warned_of_others:
            self._warned_of_others = True
            _log.warning(
                "! the queue has other consumers: after a lost connection one of them may get messages that the journal"
                " already holds, so both process them (at-least-once). Give each query a queue of its own"
            )
        return "at-least-once (other consumers read this queue)"

    def _journal_figures(self) -> dict[str, object]:
        store = self._store
        if store is None:
            return {}
        reached = max(self.reached, self._ledger.done)
        age, backlog = store.age_of(reached), store.position.next - reached
        return {
            "journalBytes": store.bytes_used,
            "backlog": backlog,
            "backlogAgeSeconds": None if age is None else round(age, 1),
            **({} if backlog or not store.bytes_used else {"journalKeeps": self._kept(store)}),
        }

    @staticmethod
    def _kept(store: JournalStore) -> str:
        if store.segment_bytes:
            return "the last batch, until the next one is planned"
        return f"tombstones of {store.unconfirmed_messages} messages whose acknowledgement is not confirmed"

    def progress(self) -> dict[str, object]:
        """Figures for ``StreamingQueryProgress``; cheap, never raises."""
        watched = {} if self._watch is None else self._watch.figures()
        waiting = [consumer.waiting() for consumer in self._consumers]
        self._held = self._ledger.in_flight_messages + sum(messages for messages, _ in waiting)
        return {
            "seq": self._ledger.offered,
            "inFlightMessages": self._held,
            "inFlightBytes": self._ledger.in_flight_bytes + sum(size for _, size in waiting),
            "received": self._counts.received,
            "acknowledged": self._counts.acknowledged,
            "redelivered": self._counts.redelivered,
            "recognised": self._ledger.recognised,
            "reconnects": self._counts.reconnects,
            **self._journal_figures(),
            "selectorDropped": self._counts.selector_dropped,
            "deadLetters": self._diverter.dead_letters,
            "skippedTooLarge": self._diverter.skipped,
            "guarantee": self._guarantee(watched),
            "broker": self._consumers[0].connection.server if self._consumers else None,
            **watched,
        }
