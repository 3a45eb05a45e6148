"""Messages that the driver receives: they wait for their batch in its memory, or in a journal."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
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
from pyspark_jms.source.links import Reading
from pyspark_jms.source.offsets import CHANGED_GUARANTEE, ReceivedOffset
from pyspark_jms.source.query import Run, Store
from pyspark_jms.source.receiver import BatchReceiver, required_recognition
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.task_inputs import TaskInput, TaskInputs

__all__ = ["ReceivedStore", "received_partitions"]

_log = logging.getLogger("pyspark_jms.source")

_JOURNAL_NEEDS = (
    "A journal deletes what the commit log holds, and with this setting a restart may need it again.",
    "or leave deliveryGuarantee and journalLocation out (at-least-once)",
)


class ReceivedStore(Store):
    """The store of an at-least-once read, and of an exactly-once read over STOMP."""

    def __init__(self, run: Run) -> None:
        self._run, self._options = run, run.reading.options
        journal = self._options.journal
        self.needs_commits = None if journal is None else _JOURNAL_NEEDS
        self.passes_driver = journal is None or not journal.shared
        self.reports = self._tasks = TaskInputs(self._options)
        self._journal = QueryJournal(run.reading, run.stop)
        self._receiver: BatchReceiver | None = None

    def first_offset(self) -> dict[str, Any]:
        """Return the offset of the oldest message that is not done, with a journal."""
        store = self._journal.store()
        if store is not None and not store.is_new:
            _log.warning(
                "! the checkpoint is new, and the journal %s is of an earlier query: its messages that are not done"
                " come first. Give Spark's file sink a new output folder: the sink drops a batch whose number its"
                " folder has",
                store.path,
            )
        return ReceivedOffset(store.position.oldest if store else 0).logged()

    def count(self, offset: dict[str, Any]) -> int:
        return ReceivedOffset.parse(offset).sequence

    def open(self, start: dict[str, Any]) -> None:
        if self._receiver is None:
            offset = ReceivedOffset.parse(start)
            self._receiver = BatchReceiver(
                self._run.reading,
                self._run.stop,
                store=self._journal.require_belongs(start),
                sequence=offset.sequence,
                selector_digest=offset.selector,
                restarted=not self._run.is_new,
                drain_since_ms=self._run.drain_since_ms,
            )

    @property
    def _open(self) -> BatchReceiver:
        assert self._receiver is not None
        return self._receiver

    def is_full(self) -> bool:
        return self._open.journal_is_full

    def release(self, through: int) -> None:
        self._open.acknowledge_through(through)
        self._tasks.release(through)

    def next(self, start: dict[str, Any]) -> dict[str, Any]:
        receiver, before = self._open, self.count(start)
        receiver.reached = before
        end = ReceivedOffset(receiver.next_batch_end(), receiver.selector_digest, self._journal.mark())
        return start if end.sequence <= before else end.logged()

    # --- what tasks read -----------------------------------------------------------------------

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskInput]:
        first, last, here = self.count(start), self.count(end), self._tasks.are_here()
        store = self._journal.require_belongs(start, end)
        tasks = self._recorded(store, first, last, here=here) if store else self._received(first, last, here=here)
        dialects = {link.dialect.name for link in self._receiver.links} if self._receiver else ()
        return self._tasks.of(tasks, dialects, run_ends=self._run.drain_since_ms is not None)

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
        """A part names the place where tasks can read the journal's folder, and does not carry the messages then."""
        journal, must_be_whole = self._options.journal, self._options.fail_on_data_loss
        partitions = partitions_of(store, first, last, after_loss=not must_be_whole)
        if partitions is None and must_be_whole:
            raise DataLossError(
                f"Spark's checkpoint needs the batch [{first}, {last}), which the journal does not hold.",
                "Give the journalLocation of this checkpoint. With failOnDataLoss=false the batch is empty.",
            )
        for parts in partitions or ():
            yield parts if here or (journal and journal.shared) else [part.load() for part in parts]

    # --- metrics -------------------------------------------------------------------------------

    def received(self) -> int:
        return self._open.received()

    def in_flight(self) -> int:
        return self._open.in_flight()

    def watches(self) -> bool:
        """A run that ends needs no metrics that come every 30 s; a journal must know of other consumers."""
        return self._run.drain_since_ms is None or self._options.journal is not None

    def metrics(self, watched: Mapping[str, int | str]) -> dict[str, object]:
        return {} if self._receiver is None else self._receiver.progress(watched)

    def close(self) -> None:
        if self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            receiver.close()
        self._journal.close()


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


# --- the journal of a query -----------------------------------------------------------------------

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
        found = list(map(ReceivedOffset.parse, offsets))
        marks = [each.journal for each in found]
        if store is not None and not any(marks):
            require_own_messages(store, self._reads)
            if must_be_whole and max(each.sequence for each in found) > store.position.next:
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
        origin, durable = required_recognition(self._protocol, dialect).origin, self._options.durable
        return origin(source) in {origin(source_name(each, durable)) for each in self._options.destinations}

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
