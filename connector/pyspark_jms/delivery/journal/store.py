"""The durable journal of one query: received messages until their batch is done, in a folder that outlives us.

    journal                  format of the folder, the journal's id, when it was created
    lock                     held by the one writer (see ``lock``)
    books                    position, batches, receipts (see ``books``)
    segment-<first>          messages (see ``segment``)
    tombstone-<first>        recognises what a deleted segment held, if its receipt never came (see ``unconfirmed``)

Whatever happens between two steps, the next ``open`` finds the state before an operation or the one after it.
Files of other names are left alone.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from pyspark_jms.delivery.journal.books import Books, Position
from pyspark_jms.delivery.journal.contents import (
    LOCK_NAME,
    META_NAME,
    Meta,
    SegmentInfo,
    info_of,
    load_segments,
    load_tombstones,
    require_consecutive,
    require_ours,
    segment_name,
)
from pyspark_jms.delivery.journal.folder import Folder, map_file
from pyspark_jms.delivery.journal.lock import WriterLock
from pyspark_jms.delivery.journal.segment import Segment, encode, read_head
from pyspark_jms.delivery.journal.unconfirmed import Unconfirmed, tombstone_name, write_tombstone
from pyspark_jms.errors import IllegalStateError, JournalError, JournalLockedError

__all__ = ["Fingerprints", "JournalStore", "Position", "SegmentInfo", "Unacknowledged"]


_NOTE_EVERY_SECONDS = 60.0
"""A process that dies forgets so much of the time that it was subscribed."""

Fingerprints: TypeAlias = Callable[[Segment], Sequence[bytes]]
"""Of each message of a segment a digest (16 bytes) of what is the same when it comes again."""


class Unacknowledged(NamedTuple):
    """A message without a recorded receipt: if it comes again it is to be acknowledged, and not read."""

    source: str
    id: bytes
    fingerprint: bytes


class JournalStore:
    """``open`` it, and ``close`` it. One thread at a time.

    ``append`` → ``mark_acknowledged`` → ``record_batch`` → ``release``: what returned is durable unless its
    docstring says otherwise, and what raised did not happen.
    """

    def __init__(
        self, folder: Folder, lock: WriterLock, clock: Callable[[], float], fingerprints: Fingerprints
    ) -> None:
        self._folder = folder
        self._lock = lock
        self._clock = clock
        self._fingerprints = fingerprints
        self.meta = Meta.load(folder, clock())
        self._identity = folder.identity(META_NAME)
        self._books = Books.load(folder)
        self._subscribed = self._books.subscribed
        self._segments: dict[int, SegmentInfo] = {}
        self._unconfirmed = load_tombstones(folder, self._books.position)
        self._next = self._books.position.next
        self._load_segments()
        self._expire()

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
        """Take the journal in this folder, or begin one there, and prove every byte of it.

        ``query`` is told to others while they wait for the lock, ``pause`` sleeps and may raise to give up,
        ``clock`` tells seconds since 1970, ``fingerprints`` those of a segment's messages: it is asked only for what
        may come again. ``JournalLockedError`` after ``wait_seconds``.
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
        """Let others have the journal. May be called twice."""
        if self._lock.held and self._subscribed > self._books.subscribed:
            with suppress(JournalError):  # tombstones then last a little longer
                self.require_writer()
                self._books.enter_subscribed(self._subscribed)
        self._books.close()
        self._lock.release()

    # --- what there is -------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        return self._folder.path

    @property
    def ids(self) -> tuple[str, ...]:
        """Its own id, and those of lost journals that it replaces."""
        return (self.meta.id, *self.meta.replaces)

    @property
    def is_new(self) -> bool:
        """Whether no message was ever stored here."""
        return self.position == Position(0, 0)

    @property
    def position(self) -> Position:
        return Position(self._books.position.oldest, self._next)

    @property
    def segment_bytes(self) -> int:
        """Bytes of all segments, for ``maxJournalBytes``: tombstones hold no messages that reading would free."""
        return sum(info.size for info in self._segments.values())

    @property
    def bytes_used(self) -> int:
        """Bytes of all segments and tombstones."""
        return self.segment_bytes + sum(messages.size for messages in self._unconfirmed.values())

    def age_of(self, sequence: int) -> float | None:
        """Seconds since the first message that is not below ``sequence`` was stored; None: there is none."""
        stored = next((info.stored for info in self._segments.values() if info.last > sequence), None)
        return None if stored is None else max(0.0, self._clock() - stored)

    @property
    def unconfirmed_messages(self) -> int:
        """Messages whose acknowledgement the broker has not confirmed, of segments and tombstones."""
        return sum(len(messages.fingerprints) for messages in self._unconfirmed.values())

    def segments(self, start: int = 0, end: int | None = None) -> list[SegmentInfo]:
        """In order, those that hold any of the sequences ``start`` to ``end`` (not included)."""
        limit = self._next if end is None else end
        return [
            replace(info, acknowledged=info.first not in self._unconfirmed)
            for info in self._segments.values()
            if info.last > start and info.first < limit
        ]

    def read(self, first: int) -> Segment:
        """The segment that begins with this sequence, proved again; its bytes are mapped, not copied."""
        info = self._segments.get(first)
        if info is None:
            raise IllegalStateError(f"Event read({first}): no segment of the journal begins there.")
        return read_head(map_file(Path(info.path)), info.path).segment()

    def unacknowledged(self) -> Iterator[Unacknowledged]:
        """Every message without a recorded receipt, of segments and of tombstones."""
        for messages in self._unconfirmed.values():
            for identifier, fingerprint in self._told(messages).items():
                yield Unacknowledged(messages.source, identifier, fingerprint)

    def known(self, first: int) -> dict[bytes, bytes]:
        """By id, the fingerprints of those messages without a recorded receipt whose segment began there."""
        messages = self._unconfirmed.get(first)
        return {} if messages is None else self._told(messages)

    def batch(self, start: int, end: int) -> list[int] | None:
        """The recorded cuts of the batch of exactly these sequences."""
        return self._books.batches.get((start, end))

    def batch_ending(self, end: int) -> tuple[int, list[int]] | None:
        """Start and cuts of the last recorded batch that ends there."""
        found = [(start, cuts) for (start, last), cuts in self._books.batches.items() if last == end]
        return found[-1] if found else None

    # --- what happens --------------------------------------------------------------------------

    def append(self, segment: Segment) -> SegmentInfo:
        """Durable on return: its messages may be acknowledged."""
        self._require_open("append")
        if segment.first != self._next:
            raise IllegalStateError(f"Event append({segment!r}) in a journal that goes on at {self._next}.")
        encoded = encode(segment)
        name = segment_name(segment.first)
        self._folder.create(name, encoded)
        info = info_of(segment, self._folder.path / name, encoded, self._clock())
        self._segments[segment.first] = info
        self._await_receipt(segment)
        self._next = segment.last
        return info

    def mark_acknowledged(self, first: int) -> None:
        """The broker's receipt for the whole segment is here.

        Not synced: a mark that is lost makes its messages wait for a redelivery that never comes, in the end as a
        tombstone. That costs some bytes, and no message.
        """
        self._require_open("mark_acknowledged")
        if first >= self._next:
            raise IllegalStateError(f"Event mark_acknowledged({first}) in a journal that goes on at {self._next}.")
        messages = self._unconfirmed.get(first)
        if messages is not None:
            self._settle(messages)

    def confirm(self, is_of: Callable[[str], bool], ids: Collection[bytes]) -> None:
        """The broker confirmed the acknowledgement of these redelivered messages. ``is_of`` knows names of the source.

        Not before the receipt: a process that dies in between must know them still. Remembered for good when
        all of a segment or tombstone are confirmed; until then by this process only, and harmless to forget.
        """
        self._require_open("confirm")
        for messages in [messages for messages in self._unconfirmed.values() if is_of(messages.source)]:
            for identifier in ids:
                messages.fingerprints.pop(identifier, None)
            if not messages.fingerprints:
                self._settle(messages)

    def record_batch(self, start: int, end: int, cuts: list[int]) -> None:
        """Durable on return. ``cuts`` are the sequences at which the batch's partitions begin, after the first.

        Recording it again is allowed, recording it otherwise is not: Spark may have read it as it was.
        """
        self._require_open("record_batch")
        bounds = [start, *cuts, end]
        if not self.position.oldest <= start < end <= self._next or bounds != sorted(bounds):
            raise IllegalStateError(
                f"Event record_batch({start}, {end}, {len(cuts)} cuts) in a journal {self.position}."
            )
        recorded = self.batch(start, end)
        if recorded is None:
            self._books.enter_batch(start, end, list(cuts))
        elif recorded != list(cuts):
            raise IllegalStateError(f"Event record_batch({start}, {end}) with other cuts than those recorded.")

    def release(self, upto: int) -> list[Unconfirmed]:
        """Everything below ``upto`` is done: forget it, save what recognises messages without a receipt.

        In this order, so that a crash between two steps costs nothing: tombstones, position, deletions. A crash
        after the position leaves files behind, and ``open`` deletes them. Returns what is not recognised any
        more, its day being over.
        """
        self._require_open("release")
        if upto > self._next:
            raise IllegalStateError(f"Event release({upto}) in a journal that goes on at {self._next}.")
        if upto <= self.position.oldest:
            return []
        done = [info for info in self._segments.values() if info.last <= upto]
        tombstones = self._bury(done)
        self._books.enter_position(Position(upto, self._next))
        self._unconfirmed.update(tombstones)
        for info in done:
            self._delete(info)
        return self._expire()

    def replace(self, lost: str) -> None:
        """Durable on return: a checkpoint of the journal ``lost`` continues with this one."""
        self._require_open("replace")
        meta = replace(self.meta, replaces=(*self.meta.replaces, lost))
        meta.store(self._folder)
        self.meta, self._identity = meta, self._folder.identity(META_NAME)

    def skip_to(self, sequence: int) -> None:
        """Count on from ``sequence``, in a journal that holds no segment: what was below is lost."""
        self._require_open("skip_to")
        if self._segments or sequence < self._next:
            raise IllegalStateError(
                f"Event skip_to({sequence}) in a journal {self.position} of {len(self._segments)} segments."
            )
        self._books.enter_position(Position(sequence, sequence))
        self._next = sequence

    # --- receipts ------------------------------------------------------------------------------

    def note_subscribed(self, seconds: float) -> None:
        """So much more time the query was subscribed to all that it reads: tombstones age by that, and nothing else."""
        self._require_open("note_subscribed")
        self._subscribed += seconds
        if self._subscribed - self._books.subscribed >= _NOTE_EVERY_SECONDS:
            self._books.enter_subscribed(self._subscribed)

    def _await_receipt(self, segment: Segment) -> None:
        self._unconfirmed[segment.first] = Unconfirmed(
            first=segment.first,
            last=segment.last,
            source=segment.source,
            fingerprints=dict.fromkeys(segment.ids, b""),
        )

    def _told(self, messages: Unconfirmed) -> dict[bytes, bytes]:
        """Their fingerprints, which cost too much to be made of every message that is received."""
        if messages.since is not None:
            return messages.fingerprints
        segment = self.read(messages.first)
        told = dict(zip(segment.ids, self._fingerprints(segment), strict=True))
        return {identifier: told[identifier] for identifier in messages.fingerprints}

    def _settle(self, messages: Unconfirmed) -> None:
        """Nothing of it will come again."""
        if messages.since is None:
            self._books.enter_acknowledged(messages.first)
        else:
            self._folder.delete(tombstone_name(messages.first))
        del self._unconfirmed[messages.first]

    def _bury(self, done: Collection[SegmentInfo]) -> dict[int, Unconfirmed]:
        """Durable tombstones for those of these segments whose receipt was not recorded."""
        tombstones = {}
        for info in done:
            messages = self._unconfirmed.get(info.first)
            if messages is not None and messages.since is None:
                buried = replace(messages, fingerprints=self._told(messages))
                tombstones[info.first] = write_tombstone(self._folder, buried, self._subscribed)
        return tombstones

    def _delete(self, info: SegmentInfo) -> None:
        self._folder.delete(segment_name(info.first))
        self._books.forget_acknowledged(info.first)
        del self._segments[info.first]

    def _expire(self) -> list[Unconfirmed]:
        expired = [messages for messages in self._unconfirmed.values() if messages.expired(self._subscribed)]
        for messages in expired:
            self._settle(messages)
        return expired

    # --- opening -------------------------------------------------------------------------------

    def _load_segments(self) -> None:
        """Prove what there is, and end a release that a crash cut short."""
        oldest = self.position.oldest
        for segment, info in load_segments(self._folder):
            self._segments[info.first] = info
            if info.first not in self._books.acknowledged and info.first not in self._unconfirmed:
                self._await_receipt(segment)
        done = [info for info in self._segments.values() if info.last <= oldest]
        self._unconfirmed.update(self._bury(done))
        for info in done:
            self._delete(info)
        self._next = require_consecutive(self._folder.path, self._books, list(self._segments.values()))
        self._books.acknowledged &= self._segments.keys()

    def require_writer(self) -> None:
        """``JournalLockedError`` unless this journal and its lock are the files that were opened.

        Asked before each write and each acknowledgement: a cleaner, or a file system that lost the lock, can give the
        folder to a second writer.
        """
        self._lock.require()
        if self._folder.identity(META_NAME) != self._identity:
            raise JournalLockedError(
                f"The file {META_NAME} of journal {self.path} was removed or replaced: this is another journal now.",
                "Start the query again with the journalLocation of its checkpoint.",
            )

    def _require_open(self, event: str) -> None:
        if not self._lock.held:
            raise IllegalStateError(f"Event {event} in a journal that is closed.")
        self.require_writer()
