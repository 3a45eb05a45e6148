"""The journal of one query: opened once, and compared with the offsets of the checkpoint before it changes."""

import time
from typing import Any

from pyspark_jms.delivery.journal.binding import JournalMark, require_own_messages, require_same_journal
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.errors import DataLossError
from pyspark_jms.jms.subscription import source_name
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.source.offsets import mark_of
from pyspark_jms.source.stopping import StopRequest

__all__ = ["QueryJournal"]

_LOCK_SECONDS = 30.0
"""``query.stop()`` returns before the old process is gone: a starter waits this long for its journal."""


class QueryJournal:
    """Without option journalLocation there is no store, and the offsets must not name one."""

    def __init__(self, options: SourceOptions, protocol: SourceProtocol, stop: StopRequest) -> None:
        self._options = options
        self._protocol = protocol
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
                fingerprints=self._protocol.fingerprints,
            )
        return self._store

    def mark(self) -> JournalMark | None:
        """For an offset: the journal's id and its end."""
        store = self.store()
        return None if store is None else JournalMark(store.meta.id, store.position.next)

    def require_belongs(self, *offsets: dict[str, Any]) -> JournalStore | None:
        """The store, if these offsets of the checkpoint belong to it; ``DataLossError`` if they do not."""
        store, must_be_whole = self.store(), self._options.fail_on_data_loss
        marks = list(map(mark_of, offsets))
        if store is not None and not any(marks):
            require_own_messages(store, self._reads)
        for mark in marks:
            if store is not None:
                require_same_journal(store, mark, fail_on_data_loss=must_be_whole)
            elif mark is not None and must_be_whole:
                raise DataLossError(
                    f"The checkpoint was written with journal {mark.id}, and this query has no journal.",
                    "Give deliveryGuarantee=exactly-once and the journalLocation of the checkpoint. With"
                    " failOnDataLoss=false the query continues without a journal: messages that only the journal holds"
                    " are then lost.",
                )
        return store

    def _reads(self, source: str, dialect: str) -> bool:
        """Whether this query reads that subscription."""
        origin, durable = self._protocol.require_recognition(dialect).origin, self._options.durable
        return origin(source) in {origin(source_name(each, durable)) for each in self._options.destinations}

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
