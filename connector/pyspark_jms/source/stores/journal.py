"""The journal of a query: opened once, and only with the checkpoint that it belongs to; what tasks read of it."""

import time
from collections.abc import Iterator
from typing import Any

from pyspark_jms.blocks.block import PartitionSlice
from pyspark_jms.delivery.journal.binding import JournalMark, require_own_messages, require_same_journal
from pyspark_jms.delivery.journal.segment import Segment
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journaled_ledger import partitions_of
from pyspark_jms.errors import DataLossError, OptionConflictError
from pyspark_jms.jms.subscription import source_name
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Reading
from pyspark_jms.source.offsets import CHANGED_GUARANTEE, mark_of, sequence
from pyspark_jms.source.receiver import required_recognition
from pyspark_jms.source.stopping import StopRequest

__all__ = ["QueryJournal", "recorded_partitions"]

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
