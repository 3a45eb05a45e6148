"""What an open journal holds and remembers. Nothing here changes it."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from pyspark_jms.delivery.journal.contents import JournalIdentity, SegmentInfo, read_segment
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.journal_log import JournalLog, Position
from pyspark_jms.delivery.journal.pending_receipts import Fingerprints, PendingReceipts, UnacknowledgedMessage
from pyspark_jms.delivery.journal.segment import Segment
from pyspark_jms.errors import IllegalStateError

__all__ = ["JournalView"]


class JournalView:
    """The reading half of ``JournalStore``, which fills and changes it."""

    def __init__(
        self,
        folder: Folder,
        meta: JournalIdentity,
        log: JournalLog,
        clock: Callable[[], float],
        fingerprints: Fingerprints,
    ) -> None:
        self.path = folder.path
        self.meta = meta
        self._folder = folder
        self._log = log
        self._clock = clock
        self._segments: dict[int, SegmentInfo] = {}
        self._receipts = PendingReceipts(folder, log, self._segments, fingerprints)
        self._next = log.position.next

    @property
    def ids(self) -> tuple[str, ...]:
        """The journal's own id, and the ids of lost journals that it replaces."""
        return (self.meta.id, *self.meta.replaces)

    @property
    def is_new(self) -> bool:
        """Return whether no message was ever stored here."""
        return self.position == Position(0, 0)

    @property
    def position(self) -> Position:
        return Position(self._log.position.oldest, self._next)

    # --- messages ------------------------------------------------------------------------------

    @property
    def segment_bytes(self) -> int:
        """Bytes of all segments, for ``maxJournalBytes``. Reading messages does not free the bytes of tombstones."""
        return sum(info.size for info in self._segments.values())

    @property
    def bytes_used(self) -> int:
        """Bytes of all segments and tombstones."""
        return self.segment_bytes + self._receipts.size

    def age_of(self, sequence: int) -> float | None:
        """Seconds since the first message from ``sequence`` on was stored; None when there is none."""
        stored = next((info.stored for info in self._segments.values() if info.last > sequence), None)
        return None if stored is None else max(0.0, self._clock() - stored)

    def segments(self, start: int = 0, end: int | None = None) -> list[SegmentInfo]:
        """Yield, in order, the segments that hold any of the sequences ``start`` to ``end`` (not included)."""
        limit = self._next if end is None else end
        return [
            replace(info, acknowledged=info.first not in self._receipts)
            for info in self._segments.values()
            if info.last > start and info.first < limit
        ]

    def read(self, first: int) -> Segment:
        """The segment that begins with this sequence, verified again. Its bytes are mapped, not copied."""
        info = self._segments.get(first)
        if info is None:
            raise IllegalStateError(f"Event read({first}): no segment of the journal begins there.")
        return read_segment(info)

    # --- receipts ------------------------------------------------------------------------------

    @property
    def unconfirmed_messages(self) -> int:
        """Messages of segments and tombstones whose acknowledgement the broker has not confirmed."""
        return self._receipts.messages

    def unacknowledged(self) -> Iterator[UnacknowledgedMessage]:
        """Every message of segments and tombstones without a recorded receipt."""
        return self._receipts.unacknowledged()

    def known(self, first: int) -> dict[bytes, bytes]:
        """Fingerprints by id, of the messages without a recorded receipt whose segment begins, or began, there."""
        return self._receipts.fingerprints_from(first)

    # --- batches -------------------------------------------------------------------------------

    def batch(self, start: int, end: int) -> list[int] | None:
        """Return where the partitions of the batch of exactly these sequences begin, if it is recorded."""
        return self._log.batches.get((start, end))

    def batch_ending(self, end: int) -> tuple[int, list[int]] | None:
        """Return the start and the beginnings of the partitions of the last recorded batch that ends there."""
        found = [(start, starts) for (start, last), starts in self._log.batches.items() if last == end]
        return found[-1] if found else None
