"""A streaming read: Spark's calls on the driver, in their order, → journal, receiver and the parts of each batch."""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark_jms.blocks.block import PartitionSlice
from pyspark_jms.blocks.shared_memory import SharedMemory
from pyspark_jms.delivery.journal.binding import JournalMark, require_own_messages, require_same_journal
from pyspark_jms.delivery.journal.segment import Segment
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journaled_ledger import partitions_of
from pyspark_jms.delivery.message_range import Batch
from pyspark_jms.errors import DataLossError, OptionConflictError
from pyspark_jms.jms.subscription import source_name
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Reading
from pyspark_jms.source.offsets import CHANGED_GUARANTEE, CommitOrder, mark_of, offset, selector_of, sequence
from pyspark_jms.source.receiver import BatchReceiver, required_recognition
from pyspark_jms.source.stopping import StopRequest, driver_heap, warn_of_small_heap
from pyspark_jms.source.task_inputs import TaskInput, TaskInputs

__all__ = ["QueryJournal", "StreamSource", "received_partitions", "recorded_partitions"]

_log = logging.getLogger("pyspark_jms.source")


class StreamSource:
    """In the streaming runner. Offsets are the dictionaries that Spark logs (``source.offsets``)."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._options = options = reading.options
        self._stop = StopRequest()
        self._stop.install()
        if options.journal is None or not options.journal.shared:  # else messages do not pass the driver's heap
            warn_of_small_heap(options.connection.max_message_bytes, driver_heap())
        self._journal = QueryJournal(reading, self._stop)
        self._receiver: BatchReceiver | None = None
        self._draining = False
        self._is_new = False
        """Whether the checkpoint is new: then a broker that does not answer is more likely a wrong address."""
        self._order = CommitOrder(
            "A journal deletes what the commit log holds, and with this setting a restart may need it again.",
            "or leave deliveryGuarantee and journalLocation out (at-least-once)",
        )
        self._tasks = TaskInputs(options)

    def initial_offset(self) -> dict[str, Any]:
        """Return the offset of a new checkpoint: with a journal, the oldest message that is not done."""
        self._is_new = True
        store = self._journal.store()
        if store is not None and not store.is_new:
            _log.warning(
                "! the checkpoint is new, and the journal %s is of an earlier query: its messages that are not done"
                " come first. Give Spark's file sink a new output folder: the sink drops a batch whose number its"
                " folder has",
                store.path,
            )
        return offset(store.position.oldest if store else 0)

    def drain(self) -> None:
        """Read only what was sent before the first ``latest_offset`` (Trigger.AvailableNow)."""
        self._draining = True

    def latest_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        """Acknowledge what is in Spark's commit log up to ``start``, then end the next batch.

        Spark requests what follows ``start`` only when the batch that ends there is in its commit log.
        """
        receiver = self._open(start)
        self._acknowledge_up_to(receiver, sequence(start))
        end = receiver.next_batch_end()
        if end <= sequence(start):
            return start
        return offset(end, receiver.selector_digest, self._journal.mark())

    def _open(self, start: dict[str, Any]) -> BatchReceiver:
        if self._receiver is None:
            self._receiver = BatchReceiver(
                self._reading,
                self._stop,
                store=self._journal.require_belongs(start),
                sequence=sequence(start),
                selector_digest=selector_of(start),
                restarted=not self._is_new,
                drain=self._draining,
            )
        return self._receiver

    def _acknowledge_up_to(self, receiver: BatchReceiver, start: int) -> None:
        """A journal keeps the first batch until its commit is certain."""
        self._order.requested(start)
        receiver.reached = start
        sure = self._options.journal is None or self._draining or self._order.synchronous
        if sure or self._order.is_first(start) or receiver.journal_is_full:
            self._acknowledge(receiver, start)

    def _acknowledge(self, receiver: BatchReceiver, through: int) -> None:
        receiver.acknowledge_through(through)
        self._tasks.release(through)

    # --- what tasks read -----------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskInput]:
        first, last = sequence(start), sequence(end)
        if self._receiver is None:
            self._is_new = False  # Spark repeats a batch before it requests the next: its first one did not end
        if first == last:
            return []
        store = self._journal.require_belongs(start, end)
        if store is not None:
            self._order.require(first)
        here = self._tasks.are_here()
        tasks = self._recorded(store, first, last, here=here) if store else self._received(first, last, here=here)
        dialects = {link.dialect.name for link in self._receiver.links} if self._receiver else ()
        return self._tasks.of(tasks, dialects, run_ends=self._draining)

    def _received(self, first: int, last: int, *, here: bool) -> Iterator[list[PartitionSlice]]:
        """Nothing of a batch that another process received: its messages were not acknowledged and are redelivered."""
        receiver = self._receiver
        batch = None if receiver is None else receiver.batch(first, last)
        if receiver is None or batch is None:
            _log.warning("! batch [%d, %d) was received by an earlier process and is empty in this one", first, last)
            return iter(())
        memory = self._tasks.memory_for(last) if here else None
        origins = [(str(link.subscription.destination), link.dialect.name) for link in receiver.links]
        return received_partitions(batch, origins, self._options.partition_bytes, memory)

    def _recorded(self, store: JournalStore, first: int, last: int, *, here: bool) -> Iterator[list[PartitionSlice]]:
        assert self._options.journal is not None
        return recorded_partitions(store, first, last, self._options, seen=here or self._options.journal.shared)

    # --- done batches and metrics -----------------------------------------------------------------------

    def commit(self, end: dict[str, Any]) -> None:
        """``end`` is in Spark's commit log. Never called for the last batch of a run."""
        self._order.committed(sequence(end))
        if self._receiver is not None:
            self._acknowledge(self._receiver, sequence(end))

    def progress(self) -> dict[str, object]:
        """The metrics of ``progress.sources[].latestOffset``."""
        return {} if self._receiver is None else self._receiver.progress(self._tasks.dropped())

    def stop(self) -> None:
        """Give back what is not acknowledged, and leave."""
        if self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            receiver.close()
        self._journal.close()
        self._tasks.close()


# --- what the tasks of a batch read -----------------------------------------------------------------

_NEARLY_FULL = 16
"""A task with less room than this part of it is not filled up with the beginning of what another decodes in one go."""


def received_partitions(
    batch: Batch, origins: Sequence[tuple[str, str]], partition_bytes: int, memory: SharedMemory | None
) -> Iterator[list[PartitionSlice]]:
    """Return the input partitions. ``origins`` are source and dialect of each subscription.

    ``memory`` is where tasks on this machine map the messages, or None if the messages travel to the tasks.
    """
    parts: list[PartitionSlice] = []
    first, room, delivered_ms = batch.start, partition_bytes, int(time.time() * 1000)
    for whole in batch.ranges:
        rest = whole
        while len(rest):
            fits = rest.fit(size=room, at_least_one=not parts)
            if fits:
                taken, rest = rest.split(fits)
                block = taken.messages()
                place = block if memory is None else memory.put(block)
                parts.append(PartitionSlice(*origins[taken.subscription], first, place, delivered_ms))
                first += fits
                room -= taken.size
            if len(rest) or room < partition_bytes // _NEARLY_FULL:
                yield parts
                parts, room = [], partition_bytes
    if parts:
        yield parts


def recorded_partitions(
    store: JournalStore, first: int, last: int, options: SourceOptions, *, seen: bool
) -> Iterator[list[PartitionSlice]]:
    """``seen``: tasks can read the journal's folder, so a part names the place and does not carry the messages."""
    must_be_whole = options.fail_on_data_loss
    partitions = partitions_of(store, first, last, after_loss=not must_be_whole)
    if partitions is None:
        if must_be_whole:
            raise DataLossError(
                f"Spark's checkpoint needs the batch [{first}, {last}), which the journal does not hold.",
                "Give the journalLocation of this checkpoint. With failOnDataLoss=false the batch is empty.",
            )
        return
    for parts in partitions:
        yield parts if seen else [part.load() for part in parts]


# --- the journal of a query --------------------------------------------------------------------------

_LOCK_SECONDS = 30.0
"""``query.stop()`` returns before the old process is gone: a starter waits this long for its journal."""


class QueryJournal:
    """Without option journalLocation there is no store, and the offsets must not name one."""

    def __init__(self, reading: Reading, stop: StopRequest) -> None:
        self._options = reading.options
        self._protocol = reading.protocol
        self._stop = stop
        self._store: JournalStore | None = None

    def store(self) -> JournalStore | None:
        """The first call waits until no other process writes the journal."""
        wanted = self._options.journal
        if wanted is not None and self._store is None:
            self._store = JournalStore.open(
                wanted.location,
                query=f"reading {', '.join(map(str, self._options.destinations))}",
                wait_seconds=_LOCK_SECONDS,
                pause=self._stop.pause,
                clock=time.time,
                fingerprints=self._fingerprints,
            )
        return self._store

    def _fingerprints(self, segment: Segment) -> list[bytes]:
        """Return, for each stored message, what the fingerprint of its redelivery will be."""
        fingerprint = required_recognition(self._protocol, segment.dialect).fingerprint
        return [fingerprint(segment.block, index) for index in range(len(segment))]

    def mark(self) -> JournalMark | None:
        """Return the journal's id and its end, for an offset."""
        store = self.store()
        return None if store is None else JournalMark(store.meta.id, store.position.next)

    def require_belongs(self, *offsets: dict[str, Any]) -> JournalStore | None:
        """The store, if these offsets of the checkpoint belong to it; ``DataLossError`` if they do not."""
        store, must_be_whole = self.store(), self._options.fail_on_data_loss
        marks = list(map(mark_of, offsets))
        if store is not None and not any(marks):
            require_own_messages(store, self._reads)
            if must_be_whole and max(map(sequence, offsets)) > store.position.next:
                raise OptionConflictError(
                    "journalLocation is given, and the checkpoint is of a read without a journal (at-least-once).",
                    f"Remove deliveryGuarantee and journalLocation. {CHANGED_GUARANTEE}",
                )
        for mark in marks:
            if store is not None:
                require_same_journal(store, mark, fail_on_data_loss=must_be_whole)
            elif mark is not None and must_be_whole:
                raise OptionConflictError(
                    f"The checkpoint was written with journal {mark.id}, and this query has no journal.",
                    "Give deliveryGuarantee=exactly-once and the journalLocation of the checkpoint. With"
                    " failOnDataLoss=false the query continues without a journal: messages that only the journal holds"
                    f" are then lost. {CHANGED_GUARANTEE}",
                )
        return store

    def _reads(self, source: str, dialect: str) -> bool:
        """Return whether this query reads that subscription."""
        origin, durable = required_recognition(self._protocol, dialect).origin, self._options.durable
        return origin(source) in {origin(source_name(each, durable)) for each in self._options.destinations}

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
