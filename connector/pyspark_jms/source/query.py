"""A streaming read on the driver: Spark's calls in their order, whatever keeps the messages of its batches.

Until Spark's commit log has a batch, its messages are in one of four places: the driver's memory, a journal, queues of
the broker, or the log itself, a stream of RabbitMQ. ``source.stores`` has them.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark_jms.management.queue_watch import QueueWatch
from pyspark_jms.sentences import counted
from pyspark_jms.source.ack_loop import compared
from pyspark_jms.source.links import Reading
from pyspark_jms.source.offsets import CommitOrder
from pyspark_jms.source.queues import features_of, left_on
from pyspark_jms.source.readers.reader_input import ReaderInput
from pyspark_jms.source.stopping import StopRequest, driver_heap, warn_of_small_heap
from pyspark_jms.source.task_inputs import TaskInput, TaskReports
from pyspark_jms.source.unmatched import UnmatchedSelector

__all__ = ["Query", "Run", "Store"]

_log = logging.getLogger("pyspark_jms.source")

_MOST_NAMED = 8
"""The closing line of a run names so many queues, and of more than that those that have something left."""

Offset = dict[str, Any]
"""As Spark logs it."""


@dataclass(slots=True)
class Run:
    reading: Reading
    stop: StopRequest = field(default_factory=StopRequest)
    drain_since_ms: float | None = None
    """With AvailableNow: when the run began. What was sent later is left."""
    is_new: bool = False
    """Whether the checkpoint is new: then a broker that does not answer is more likely a wrong address."""


class Store(Protocol):
    """Where the messages of a batch are until Spark's commit log has it, and how they come there."""

    needs_commits: tuple[str, str] | None = None
    """Why a batch must not be planned before the one before is in the commit log, and what a user may do instead; None
    if it may, as with ``asyncProgressTrackingEnabled``."""

    passes_driver: bool = True
    """Whether messages travel to the tasks through the driver's heap."""

    reports: TaskReports

    def first_offset(self) -> Offset: ...

    def count(self, offset: Offset) -> int:
        """Return what the offset counts: messages, or batches."""

    def open(self, start: Offset) -> None:
        """Connect, once."""

    def is_full(self) -> bool:
        """Return whether there is no room for the next batch before one is released."""
        return False

    def release(self, through: int) -> None:
        """Every batch up to this count is in Spark's commit log."""

    def next(self, start: Offset) -> Offset:
        """Wait a while for messages. Return the end of the next batch, or ``start`` if there is none."""

    def tasks(self, start: Offset, end: Offset) -> Sequence[TaskInput | ReaderInput]: ...

    def received(self) -> int:
        """Return how many messages have come in this run. Called in another thread, too."""

    def in_flight(self) -> int | None:
        """Return how many of them are not acknowledged, where that is known here. Called in another thread."""
        return None

    def watches(self) -> bool:
        """Return whether the metrics of the broker's queues are wanted."""

    def metrics(self, watched: Mapping[str, int | str]) -> dict[str, object]:
        """Return the metrics, none before there are any. ``watched``: those of the broker's queues."""

    def close(self) -> None:
        """Give back what is not acknowledged, and leave. Never raises."""


class Query:
    """In the streaming runner. Spark makes its calls on one thread."""

    def __init__(self, reading: Reading, store: Callable[[Run], Store]) -> None:
        self._run = Run(reading)
        self._run.stop.install()
        self.store = store(self._run)
        if self.store.passes_driver:
            warn_of_small_heap(reading.options.connection.max_message_bytes, driver_heap())
        self._order = CommitOrder(*(self.store.needs_commits or ("", "")))
        self._watch: QueueWatch | None = None
        self._is_open = self._has_ended = False
        self._initial: Offset | None = None
        self._batches = 0

    def initial_offset(self) -> Offset:
        """Return the offset of a new checkpoint. Spark asks before it plans the first batch, and again to run it: the
        store has messages then.
        """
        if self._initial is None:
            self._run.is_new = True
            self._initial = self.store.first_offset()
        return self._initial

    def drain(self) -> None:
        """Read only what was sent before now (Trigger.AvailableNow)."""
        self._run.drain_since_ms = time.time() * 1000

    def latest_offset(self, start: Offset) -> Offset:
        """Release what is in Spark's commit log, then end the next batch.

        Spark requests what follows ``start`` only when the batch that ends there is in its commit log.
        """
        store, through = self.store, self.store.count(start)
        self._order.requested(through)
        store.open(start)
        if self._is_certain(through):
            store.release(through)
        end = store.next(start)
        if not self._is_open:
            self._is_open = True
            self._watch = open_watch(self._run.reading, store) if store.watches() else None
        self._batches += end != start
        if end == start and self._run.drain_since_ms is not None and not self._has_ended:
            self._has_ended = True
            self._log_end(through)
        return end

    def _log_end(self, through: int) -> None:
        """The closing line of a run with AvailableNow."""
        metrics: Mapping[str, Any] = self.store.metrics({})
        assert self._order.began is not None
        read = metrics.get("moved", through - self._order.began)  # offsets of registers count batches
        dead, dropped = metrics.get("deadLetters"), metrics.get("droppedTooLarge")
        parts = [f"{counted(read)} in {self._batches:,} batch{'es' * (self._batches != 1)}"]
        parts += [counted(dead, "dead letter")] if dead else []
        parts += [f"{dropped:,} dropped for size"] if dropped else []
        queues = left_on(self._run.reading)
        named = [facts for facts in queues if facts.messages or len(queues) <= _MOST_NAMED]
        parts += [f"{facts.messages:,} left on {facts.name}" for facts in named]
        if rest := len(queues) - len(named):
            parts.append(f"0 left on {counted(rest, 'other' if named else 'queue')}")
        _log.warning("= the run has ended: %s", ", ".join(parts))

    def _is_certain(self, through: int) -> bool:
        """Return whether the commit log has the batch for certain. Where a repeated batch needs what a release deletes,
        the first batch of a run shows it: Spark may track its progress asynchronously.
        """
        is_kept = self.store.needs_commits is not None and self._run.drain_since_ms is None
        return not is_kept or self._order.synchronous or through == self._order.began or self.store.is_full()

    def partitions(self, start: Offset, end: Offset) -> Sequence[TaskInput | ReaderInput]:
        first, last = self.store.count(start), self.store.count(end)
        if not self._is_open:
            self._run.is_new = False  # Spark repeats a batch before it requests the next: its first one did not end
        if first == last:
            return []
        if self.store.needs_commits is not None:
            self._order.require(first)
        return self.store.tasks(start, end)

    def commit(self, end: Offset) -> None:
        """``end`` is in Spark's commit log. Never called for the last batch of a run."""
        through = self.store.count(end)
        self._order.committed(through)
        if self._is_open:
            self.store.release(through)

    def progress(self) -> dict[str, object]:
        """Return the metrics of ``progress.sources[].latestOffset``. Never raises, and asks the broker nothing."""
        watched = {} if self._watch is None else self._watch.metrics()
        metrics = self.store.metrics(watched)
        return {**metrics, "selectorDropped": self.store.reports.dropped(), **watched} if metrics else {}

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self.store.close()
        self.store.reports.close()


def open_watch(reading: Reading, store: Store) -> QueueWatch | None:
    """Ask the broker for the metrics of the queues, and of the queue of a durable subscription, from now on."""
    options = reading.options
    queues = options.queues + ([str(options.durable)] if options.durable else [])
    if not queues:
        return None
    return QueueWatch(
        reading.protocol.open_management,
        options.connection,
        queues,
        store.in_flight,
        compared(options, store.received),
        connections=options.connections,
        note_undelivered=UnmatchedSelector(reading, store.received),
        features=features_of(options),
    )
