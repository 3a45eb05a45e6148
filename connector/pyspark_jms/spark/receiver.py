"""Subscriptions → batches, acknowledged when they are done. The source's engine, in the runner's process.

Joins the link (connections that die) with the ledger (promises that do not). Everything here runs on the one
thread that Spark's calls come on; the link's threads only fill buffers.
"""

import contextlib
import logging
import time
from dataclasses import dataclass, field

from pyspark_jms.dialect import Dialect
from pyspark_jms.errors import ConnectionLostError, JMSError
from pyspark_jms.journal.durable import DurableLedger
from pyspark_jms.journal.ledger import Batch, Ledger
from pyspark_jms.journal.store import JournalStore
from pyspark_jms.link.connection import Arrivals
from pyspark_jms.link.consumer import Consumer, Subscription
from pyspark_jms.model import Destination, DestinationKind
from pyspark_jms.options import SourceOptions
from pyspark_jms.spark.recognising import recognition_if_any, recognition_of, redelivered
from pyspark_jms.spark.stopping import StopRequest
from pyspark_jms.wire.scan import FrameRun

__all__ = ["Receiver"]

_log = logging.getLogger("pyspark_jms.source")

IDLE_SECONDS = 0.5
"""How long one look for messages may take when there are none: Spark would ask again every 10 ms."""
LINGER_SECONDS = 0.02
"""A batch is cut when nothing came for this long …"""
LONGEST_LINGER_SECONDS = 0.1
"""… or this long after its first message, whatever still comes."""
_POLL_SECONDS = 0.05
_LOCK_SECONDS = 30.0
"""``query.stop()`` returns before the old process is gone: a starter waits this long for its journal."""
_PROBE_SECONDS = 0.25
"""Still quiet this long after the probe's receipt: drained."""
_CLOCKS_DIFFER_MS = 1_000
"""AvailableNow stops at a message sent after the start: by this much, since the clocks are two."""
_FIRST_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS = 1.0, 30.0


@dataclass(slots=True)
class _Counts:
    received: int = 0
    acknowledged: int = 0
    redelivered: int = 0
    reconnects: int = 0
    selector_dropped: int = 0


@dataclass(slots=True)
class _Draining:
    """AvailableNow: what there was at the start, and no more."""

    started_ms: float
    idle_timeout: float
    ended: set[int] = field(default_factory=set)
    """Lanes that have shown a later message, or nothing more."""


class Receiver:
    """``open`` once, then in turn: ``settle`` what is done, ``admit`` what is next. ``close`` at the end."""

    def __init__(self, options: SourceOptions, stop: StopRequest) -> None:
        self._options = options
        self._stop = stop
        self._arrivals = Arrivals()
        self._consumers: list[Consumer] = []
        self._ledger: Ledger | DurableLedger = Ledger([])
        self._store: JournalStore | None = None
        self._draining: _Draining | None = None
        self._counts = _Counts()
        self._last_batch = 0.0

    # --- opening and closing -------------------------------------------------------------------

    def drain(self) -> None:
        """Read only what was sent before now (Trigger.AvailableNow)."""
        self._draining = _Draining(time.time() * 1000, self._options.idle_timeout)

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
            )
        return self._store

    def open(self, sequence: int) -> None:
        """Subscribe; the next message gets ``sequence``."""
        store = self.journal()
        for destination in self._options.destinations:
            self._consumers.append(self._subscribe(destination))
        self._ledger = self._books(store)
        self._ledger.begin(sequence)
        self._last_batch = time.monotonic()
        for consumer in self._consumers:
            for warning in self._options.selector_warnings(consumer.dialect):
                _log.warning("! selector: %s", warning)
            if consumer.subscription.destination.kind is DestinationKind.TOPIC:
                _log.warning(
                    "! %s is a plain topic subscription: what is sent while this query is not connected is not"
                    " delivered to it (at most once across reconnects and restarts)",
                    consumer.subscription.destination,
                )

    def _books(self, store: JournalStore | None) -> Ledger | DurableLedger:
        if store is None or self._options.journal is None:
            return Ledger([recognition_if_any(c.dialect, c.subscription.destination) for c in self._consumers])
        return DurableLedger(
            store,
            [(str(c.subscription.destination), c.dialect.name, recognition_of(c.dialect)) for c in self._consumers],
            partition_octets=self._options.partition_octets,
            fail_on_data_loss=self._options.journal.fail_on_data_loss,
        )

    def _subscribe(self, destination: Destination) -> Consumer:
        window = max(1, self._options.window_octets // len(self._options.destinations))
        subscription = Subscription(destination=destination, window_bytes=window, selector=self._options.selector_for)
        return Consumer(self._options.connection, subscription, self._arrivals)

    @property
    def opened(self) -> bool:
        return bool(self._consumers)

    def close(self) -> None:
        """Give back what is not acknowledged, without costing it a delivery attempt. Never raises."""
        for lane, consumer in enumerate(self._consumers):
            with contextlib.suppress(JMSError):
                self._confirm(lane)  # so that the journal need not wait for what was acknowledged
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
        for lane, ids in self._ledger.finish(sequence).items():
            self._acknowledge(lane, ids)

    def _acknowledge(self, lane: int, ids: list[bytes]) -> None:
        consumer = self._consumers[lane]
        try:
            self._confirm(lane)
            self._ledger.acknowledging(lane, consumer.acknowledge(ids))
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

    # --- next ----------------------------------------------------------------------------------

    def admit(self) -> int:
        """Wait a while for messages; the end of the batch to read next, or of the one before if none came."""
        began = time.monotonic()
        first = last_change = None
        seen = (0, 0)
        while True:
            self._stop.check()
            self._reconnect_the_lost()
            for lane, consumer in enumerate(self._consumers):
                self._confirm(lane, wait=False)
                consumer.connection.check_messages()
            messages, octets = self._waiting()
            now = time.monotonic()
            if (messages, octets) != seen:
                seen, last_change, first = (messages, octets), now, first or now
            if messages and self._enough(messages, octets, now - (first or now), now - (last_change or now)):
                self._take_all()
                if self._ledger.waiting_messages:
                    break
                first = None  # they were second copies
                continue
            if not messages and self._nothing_to_come(now - began, now - (last_change or began)):
                return self._ledger.offered
            if now - began >= IDLE_SECONDS and self._below_minimum(messages):
                return self._ledger.offered
            self._arrivals.pause(LINGER_SECONDS / 2 if messages else _POLL_SECONDS)
        self._last_batch = time.monotonic()
        return self._ledger.offer(max_messages=self._options.max_messages, max_octets=self._options.max_octets)

    def _enough(self, messages: int, octets: int, age: float, quiet: float) -> bool:
        most = self._options.max_messages
        if octets >= self._options.max_octets or (most is not None and messages >= most):
            return True
        if self._below_minimum(messages):
            return False
        return quiet >= LINGER_SECONDS or age >= LONGEST_LINGER_SECONDS

    def _below_minimum(self, messages: int) -> bool:
        """Fewer than minMessagesPerTrigger, and worth waiting for: not with a full window, nor for too long."""
        least = self._options.min_messages
        if least is None or messages >= least or self._draining is not None:
            return False
        # A broker sends while there is credit, so a full window holds at least as much as it says.
        held = self._ledger.in_flight_octets + sum(consumer.waiting()[1] for consumer in self._consumers)
        full = held >= self._options.window_octets // len(self._consumers)
        return not full and time.monotonic() - self._last_batch < self._options.max_delay

    def _waiting(self) -> tuple[int, int]:
        messages, octets = self._ledger.waiting_messages, self._ledger.waiting_octets
        for lane in self._open_lanes():
            more, size = self._consumers[lane].waiting()
            messages, octets = messages + more, octets + size
        return messages, octets

    def _open_lanes(self) -> list[int]:
        """None while the journal is full; of a drain, those still read, or where second copies are to come."""
        journal = self._options.journal
        if journal is not None and self._store is not None and self._store.bytes_used >= journal.max_octets:
            return []
        lanes = range(len(self._consumers))
        if self._draining is None:
            return list(lanes)
        return [lane for lane in lanes if lane not in self._draining.ended or self._ledger.expects(lane)]

    def _take_all(self) -> None:
        for lane in self._open_lanes():
            self._take(lane)
        if isinstance(self._ledger, DurableLedger):
            for lane, ids in self._ledger.secure().items():
                self._acknowledge(lane, ids)

    def _take(self, lane: int) -> None:
        consumer = self._consumers[lane]
        for run in consumer.take():
            upto = self._before_the_cut(lane, run, consumer.dialect)
            self._counts.redelivered += redelivered(run)
            self._counts.received += upto
            self._ledger.receive(lane, run, upto)
        if sights := self._ledger.on_sight(lane):
            self._acknowledge(lane, sights)

    # --- AvailableNow --------------------------------------------------------------------------

    def _before_the_cut(self, lane: int, run: FrameRun, dialect: Dialect) -> int:
        """How many of the run's messages were sent before the start; the first later one ends the lane's reading.

        What came since is given back at the end, by UNSUBSCRIBE.
        """
        if self._draining is None:
            return len(run)
        if lane in self._draining.ended:
            return 0
        latest = self._draining.started_ms + _CLOCKS_DIFFER_MS
        name = dialect.header_of("JMSTimestamp")
        for index in range(len(run)):
            sent = run.header(index, name) if name else None
            if sent is not None and sent.isdigit() and int(sent) > latest:
                self._draining.ended.add(lane)
                return index
        return len(run)

    def _nothing_to_come(self, waited: float, quiet: float) -> bool:
        draining = self._draining
        if draining is None:
            return waited >= IDLE_SECONDS
        reading = self._open_lanes()
        if reading and quiet < draining.idle_timeout:
            return False
        # A quiet moment is not an empty queue: a broker may collect its garbage for seconds. So ask for a
        # sign of life, and see whether it is still quiet after it.
        probes = [(self._consumers[lane], self._consumers[lane].probe()) for lane in reading]
        for consumer, receipt in probes:
            consumer.await_receipt(receipt)
        if reading:
            self._arrivals.pause(_PROBE_SECONDS)
        if any(self._consumers[lane].waiting()[0] for lane in reading):
            return False
        draining.ended.update(reading)
        return True

    # --- lost connections ----------------------------------------------------------------------

    def _reconnect_the_lost(self) -> None:
        for lane, consumer in enumerate(self._consumers):
            if consumer.connection.down:
                self._reconnect(lane)

    def _reconnect(self, lane: int) -> None:
        """Subscribe again, after growing pauses; what ended the connection is raised if it cannot pass."""
        consumer = self._consumers[lane]
        try:
            consumer.connection.check()
        except JMSError as error:
            if not error.transient:
                raise
        self._ledger.lost(lane)
        consumer.drop()
        failure: JMSError | None = None
        for attempt in range(self._options.connection.reconnect_attempts):
            self._pause(min(_FIRST_BACKOFF_SECONDS * 2**attempt, _LONGEST_BACKOFF_SECONDS) if attempt else 0.1)
            try:
                self._consumers[lane] = self._subscribe(consumer.subscription.destination)
            except JMSError as error:
                if not error.transient:
                    raise
                failure = error
                _log.warning("= attempt %d to reconnect failed: %s", attempt + 1, error.fact)
            else:
                self._counts.reconnects += 1
                _log.warning("= reconnected to %s", self._consumers[lane].connection.address)
                return
        raise failure or ConnectionLostError("The connection is gone.", "Option reconnectAttempts is 0.")

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
        """What to read without a journal."""
        return self._ledger.batch(start, end) if isinstance(self._ledger, Ledger) else None

    def lane(self, index: int) -> tuple[Destination, Dialect]:
        consumer = self._consumers[index]
        return consumer.subscription.destination, consumer.dialect

    def _promise(self) -> str:
        return "at-least-once" if self._store is None else "exactly-once into Spark"

    def progress(self) -> dict[str, object]:
        """Figures for ``StreamingQueryProgress``; cheap, never raises."""
        waiting = [consumer.waiting() for consumer in self._consumers]
        topic = any(destination.kind is DestinationKind.TOPIC for destination in self._options.destinations)
        return {
            "seq": self._ledger.offered,
            "inFlightMessages": self._ledger.in_flight_messages + sum(messages for messages, _ in waiting),
            "inFlightBytes": self._ledger.in_flight_octets + sum(size for _, size in waiting),
            "received": self._counts.received,
            "acknowledged": self._counts.acknowledged,
            "redelivered": self._counts.redelivered,
            "recognised": self._ledger.recognised,
            "reconnects": self._counts.reconnects,
            **({} if self._store is None else {"journalBytes": self._store.bytes_used}),
            "selectorDropped": self._counts.selector_dropped,
            "guarantee": "at-most-once (plain topic subscription)" if topic else self._promise(),
            "broker": self._consumers[0].connection.server if self._consumers else None,
        }
