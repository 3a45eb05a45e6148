"""The durable journal of one query: received messages until their batch is done, in a folder that outlives the process.

    journal                  format of the folder, the journal's id, when it was created
    lock                     held by the one writer (see ``lock``)
    log                      position, batches, receipts (see ``journal_log``)
    segment-<first>          messages (see ``segment``)
    tombstone-<first>        ids of a deleted segment whose receipt was not recorded (see ``pending_receipts``)

After a crash between two steps, the next ``open`` finds the state before the operation or the one after it.
Files with other names are left alone.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from pyspark_jms.delivery.journal.contents import (
    LOCK_NAME,
    META_NAME,
    JournalIdentity,
    SegmentInfo,
    info_of,
    load_segments,
    read_segment,
    require_consecutive,
    require_ours,
    segment_name,
)
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.journal_log import JournalLog, Position
from pyspark_jms.delivery.journal.lock import WriterLock
from pyspark_jms.delivery.journal.pending_receipts import Fingerprints, PendingReceipts, UnconfirmedRange
from pyspark_jms.delivery.journal.segment import Segment, encode
from pyspark_jms.errors import IllegalStateError, JournalError, JournalLockedError


class JournalStore:
    """``open`` it, and ``close`` it. One thread at a time.

    ``append`` → ``mark_acknowledged`` → ``record_batch`` → ``release``: an operation that returned is durable unless
    its docstring says otherwise, and one that raised did not happen.
    """

    def __init__(
        self, folder: Folder, lock: WriterLock, clock: Callable[[], float], fingerprints: Fingerprints
    ) -> None:
        self.path = folder.path
        self.meta = JournalIdentity.load(folder, clock())
        self._folder = folder
        self._lock = lock
        self._meta_file = folder.identity(META_NAME)
        self._log = JournalLog.load(folder)
        self._clock = clock
        self._segments: dict[int, SegmentInfo] = {}
        self.receipts = PendingReceipts(folder, self._log, self._segments, fingerprints)
        self._next = self._log.position.next
        self._load_segments()
        self.receipts.expire()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        query: str,
        wait_seconds: float,
        pause: Callable[[float], None],
        clock: Callable[[], float],
        fingerprints: Fingerprints,
    ) -> Self:
        """Open the journal in this folder and verify every byte of it, or create a journal there.

        Other processes that wait for the lock see ``query``. ``pause`` sleeps, and may raise to give up. ``clock``
        returns seconds since 1970. ``fingerprints`` is called only for segments whose messages may be redelivered.
        ``JournalLockedError`` after ``wait_seconds``.
        """
        path = Path(path).absolute()
        require_ours(path)
        folder = Folder(path)
        lock = WriterLock(path / LOCK_NAME, query=query, wait_seconds=wait_seconds, pause=pause)
        try:
            return cls(folder, lock, clock, fingerprints)
        except BaseException:
            lock.release()
            raise

    def close(self) -> None:
        """Release the journal to other processes. May be called twice."""
        if self._lock.held and self.receipts.subscribed_unrecorded:
            with suppress(JournalError):  # tombstones then last a little longer
                self.require_writer()
                self.receipts.record_subscribed()
        self._log.close()
        self._lock.release()

    def _load_segments(self) -> None:
        """Verify all segments, and complete a release that a crash interrupted."""
        oldest = self.position.oldest
        for segment, info in load_segments(self._folder):
            self._segments[info.first] = info
            if info.first not in self._log.acknowledged and info.first not in self.receipts:
                self.receipts.expect(segment)
        done = [info for info in self._segments.values() if info.last <= oldest]
        self.receipts.use_tombstones(self.receipts.write_tombstones(done))
        for info in done:
            self._delete(info)
        self._next = require_consecutive(self._folder.path, self._log, list(self._segments.values()))
        self._log.acknowledged &= self._segments.keys()

    def require_writer(self) -> None:
        """``JournalLockedError`` unless this journal and its lock are the files that were opened.

        Call it before each write and each acknowledgement: a clean-up job, or a file system that lost the lock, can
        give the folder to a second writer.
        """
        self._lock.require()
        if self._folder.identity(META_NAME) != self._meta_file:
            raise JournalLockedError(
                f"The file {META_NAME} of journal {self.path} was removed or replaced: this is another journal now.",
                "Start the query again with the journalLocation of its checkpoint.",
            )

    def _require_open(self, event: str) -> None:
        if not self._lock.held:
            raise IllegalStateError(f"Event {event} in a journal that is closed.")
        self.require_writer()

    # --- messages ------------------------------------------------------------------------------

    def append(self, segment: Segment) -> SegmentInfo:
        """Durable on return: its messages may be acknowledged."""
        self._require_open("append")
        if segment.first != self._next:
            raise IllegalStateError(f"Event append({segment!r}) in a journal that goes on at {self._next}.")
        encoded = encode(segment)
        name = segment_name(segment.first)
        size = self._folder.create(name, encoded)
        info = info_of(segment, self._folder.path / name, size, encoded.digest, self._clock())
        self._segments[segment.first] = info
        self.receipts.expect(segment)
        self._next = segment.last
        return info

    def release(self, upto: int) -> list[UnconfirmedRange]:
        """Every batch below ``upto`` is done: delete its segments, after tombstones for messages without a receipt.

        The steps are in this order, so that a crash between two of them loses nothing: tombstones, position,
        deletions. A crash after the position leaves files, which the next ``open`` deletes. Returns the
        tombstones that expired: their messages are not recognised any more.
        """
        self._require_open("release")
        if upto > self._next:
            raise IllegalStateError(f"Event release({upto}) in a journal that goes on at {self._next}.")
        if upto <= self.position.oldest:
            return []
        done = [info for info in self._segments.values() if info.last <= upto]
        tombstones = self.receipts.write_tombstones(done)
        self._log.record_position(Position(upto, self._next))
        self.receipts.use_tombstones(tombstones)
        for info in done:
            self._delete(info)
        return self.receipts.expire()

    def _delete(self, info: SegmentInfo) -> None:
        self._folder.delete(segment_name(info.first))
        self._log.acknowledged.discard(info.first)  # the file keeps the entry until it is rewritten
        del self._segments[info.first]

    def replace(self, lost: str) -> None:
        """Durable on return: a checkpoint of the journal ``lost`` continues with this one."""
        self._require_open("replace")
        meta = replace(self.meta, replaces=(*self.meta.replaces, lost))
        meta.store(self._folder)
        self.meta = meta
        self._meta_file = self._folder.identity(META_NAME)

    def skip_to(self, sequence: int) -> None:
        """Continue at ``sequence`` in a journal without segments: the messages below it are lost."""
        self._require_open("skip_to")
        if self._segments or sequence < self._next:
            raise IllegalStateError(
                f"Event skip_to({sequence}) in a journal {self.position} of {len(self._segments)} segments."
            )
        self._log.record_position(Position(sequence, sequence))
        self._next = sequence

    # --- receipts ------------------------------------------------------------------------------

    def mark_acknowledged(self, first: int) -> None:
        """The receipt for the whole segment has arrived.

        Not synced. After a crash that undoes the record, its messages wait for a redelivery that does not come, at last
        in a tombstone. That costs some bytes, and no message.
        """
        self._require_open("mark_acknowledged")
        if first >= self._next:
            raise IllegalStateError(f"Event mark_acknowledged({first}) in a journal that goes on at {self._next}.")
        self.receipts.confirm_all(first)

    def confirm(self, is_of: Callable[[str], bool], ids: Collection[bytes]) -> None:
        """The receipt for these redelivered messages has arrived. ``is_of`` knows the names of their source.

        Call it only then: after a crash before the receipt, the next process must recognise the messages.
        Recorded when all messages of a segment or tombstone are confirmed. Until then only this process knows it,
        and a crash does no harm.
        """
        self._require_open("confirm")
        self.receipts.confirm(is_of, ids)

    def note_subscribed(self, seconds: float) -> None:
        """The query was subscribed to all its sources for so much longer. Tombstones age by this time only."""
        self._require_open("note_subscribed")
        self.receipts.note_subscribed(seconds)

    # --- batches -------------------------------------------------------------------------------

    def record_batch(self, start: int, end: int, starts: list[int]) -> None:
        """Durable on return. ``starts`` are the sequences at which the batch's partitions begin, after the first.

        The same batch may be recorded again, with the same partitions: Spark may have read it already.
        """
        self._require_open("record_batch")
        bounds = [start, *starts, end]
        if not self.position.oldest <= start < end <= self._next or bounds != sorted(bounds):
            raise IllegalStateError(
                f"Event record_batch({start}, {end}, {len(starts)} later partitions) in a journal {self.position}."
            )
        recorded = self.batch(start, end)
        if recorded is None:
            self._log.record_batch(start, end, list(starts))
        elif recorded != list(starts):
            raise IllegalStateError(f"Event record_batch({start}, {end}) with other partitions than those recorded.")

    # --- what the journal holds: nothing below changes it ---------------------------------------

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

    # --- messages that it holds ----------------------------------------------------------------

    @property
    def segment_bytes(self) -> int:
        """Bytes of all segments, for ``maxJournalBytes``. Reading messages does not free the bytes of tombstones."""
        return sum(info.size for info in self._segments.values())

    @property
    def bytes_used(self) -> int:
        """Bytes of all segments and tombstones."""
        return self.segment_bytes + self.receipts.size

    def age_of(self, sequence: int) -> float | None:
        """Seconds since the first message from ``sequence`` on was stored; None when there is none."""
        stored = next((info.stored for info in self._segments.values() if info.last > sequence), None)
        return None if stored is None else max(0.0, self._clock() - stored)

    def segments(self, start: int = 0, end: int | None = None) -> list[SegmentInfo]:
        """Yield, in order, the segments that hold any of the sequences ``start`` to ``end`` (not included)."""
        limit = self._next if end is None else end
        return [info for info in self._segments.values() if info.last > start and info.first < limit]

    def read(self, first: int) -> Segment:
        """The segment that begins with this sequence, verified again. Its bytes are mapped, not copied."""
        info = self._segments.get(first)
        if info is None:
            raise IllegalStateError(f"Event read({first}): no segment of the journal begins there.")
        return read_segment(info)

    # --- batches that it has -------------------------------------------------------------------

    def batch(self, start: int, end: int) -> list[int] | None:
        """Return where the partitions of the batch of exactly these sequences begin, if it is recorded."""
        return self._log.batches.get((start, end))

    def batch_ending(self, end: int) -> tuple[int, list[int]] | None:
        """Return the start and the beginnings of the partitions of the last recorded batch that ends there."""
        found = [(start, starts) for (start, last), starts in self._log.batches.items() if last == end]
        return found[-1] if found else None
