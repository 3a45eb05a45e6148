"""The books of a query with a journal: received → durable → acknowledged, and durable → offered → done → deleted.

    received       in memory
    durable        in a segment of the journal, with a sequence: it may be acknowledged, and it may be offered
    acknowledged   the broker's receipt is here, and recorded
    offered        in a recorded batch, with its cut: Spark may have it in its log, and any process can read it again
    done           Spark's log holds its batch
    deleted        no segment holds it; without a receipt, a tombstone still recognises it

The same calls as ``Ledger``. What differs: an offset covers durable messages only, ``finish`` deletes instead
of acknowledging, and every message that was not acknowledged for certain is recognised when it comes again,
also by the next process.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyspark_jms.errors import DataLossError, IllegalStateError
from pyspark_jms.journal.ledger import Span
from pyspark_jms.journal.recognition import Recognition, other_content
from pyspark_jms.journal.segment import Index, Segment
from pyspark_jms.journal.store import JournalStore, SegmentInfo

__all__ = ["DurableLedger", "Stored", "partitions_of"]


@dataclass(frozen=True, slots=True)
class Stored:
    """The sequences ``first`` to ``last`` (not included) of one segment."""

    info: SegmentInfo
    first: int
    last: int


@dataclass(slots=True)
class _Confirming:
    """ACKs on their way: of a whole new segment, or of messages that came again (identity → fingerprint)."""

    messages: dict[bytes, bytes]
    segment: int | None = None
    receipt: str | None = None


@dataclass(slots=True)
class _Lane:
    source: str
    dialect: str
    recognition: Recognition
    expected: dict[bytes, bytes] = field(default_factory=dict)
    """Identity → fingerprint of messages that the broker may send again."""
    received: list[Span] = field(default_factory=list)
    sights: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Wire id and identity of messages that came again."""
    confirming: list[_Confirming] = field(default_factory=list)


class DurableLedger:
    """``begin`` first, with the offset that Spark starts from. ``partition_octets``: how a new batch is cut."""

    def __init__(
        self,
        store: JournalStore,
        lanes: Sequence[tuple[str, str, Recognition]],
        *,
        partition_octets: int,
        fail_on_data_loss: bool,
    ) -> None:
        self._store = store
        self._lanes = [_Lane(*lane) for lane in lanes]
        self._partition_octets = partition_octets
        self._fail_on_data_loss = fail_on_data_loss
        self._ends: list[int] = []  # of the durable messages that are not offered: octets up to each
        self.offered = self.done = 0
        self.recognised = 0
        for known in store.unacknowledged():
            for lane in self._lanes:
                if lane.source == known.source:
                    lane.expected[known.id] = known.fingerprint

    # --- begin ---------------------------------------------------------------------------------

    def begin(self, sequence: int) -> None:
        """Go on after ``sequence``, the end of the last batch in Spark's log.

        ``DataLossError`` when the journal does not reach from there on, unless that is allowed.
        """
        position = self._store.position
        oldest, following = position.oldest, position.next
        if not oldest <= sequence <= following:
            if self._fail_on_data_loss:
                raise _lost_between(sequence, oldest, following)
            sequence = self._reach(sequence, oldest, following)
        self._store.release(sequence)
        self.offered = self.done = sequence
        for info in self._store.segments(sequence):
            self._count(self._store.read(info.first).ends, max(0, sequence - info.first))

    def _reach(self, sequence: int, oldest: int, following: int) -> int:
        if sequence > following:
            self._store.release(following)
            self._store.skip_to(sequence)
            return sequence
        return oldest

    def _count(self, ends: Index, skipped: int) -> None:
        """A segment's messages wait, save for the first ``skipped``."""
        before = int(ends[skipped - 1]) if skipped else 0
        base = (self._ends[-1] if self._ends else 0) - before
        self._ends += (ends[skipped:] + base).tolist()

    # --- received ------------------------------------------------------------------------------

    @property
    def waiting_messages(self) -> int:
        """Durable or received, and not offered."""
        return len(self._ends) + sum(len(span) for lane in self._lanes for span in lane.received)

    @property
    def waiting_octets(self) -> int:
        durable = self._ends[-1] if self._ends else 0
        return durable + sum(span.octets for lane in self._lanes for span in lane.received)

    @property
    def in_flight_messages(self) -> int:
        """Received and not known to be acknowledged."""
        on_the_way = sum(len(entry.messages) for lane in self._lanes for entry in lane.confirming)
        return on_the_way + sum(len(span) for lane in self._lanes for span in lane.received)

    @property
    def in_flight_octets(self) -> int:
        return sum(span.octets for lane in self._lanes for span in lane.received)

    def expects(self, lane: int) -> bool:
        return bool(self._lanes[lane].expected)

    def receive(self, lane: int, run: Any, upto: int | None = None) -> None:
        """Take in a run, or its first ``upto`` messages. What is in the journal already is only acknowledged.

        ``OtherBrokerError`` when a known id comes with other content.
        """
        books = self._lanes[lane]
        last = len(run) if upto is None else upto
        spans = list(self._unknown(books, lane, run, last)) if books.expected else [Span(lane, run, 0, last)]
        books.received += [span for span in spans if len(span)]

    def _unknown(self, books: _Lane, lane: int, run: Any, last: int) -> Iterator[Span]:
        begin = 0
        for index in range(len(run)):  # a second copy is one wherever it stands
            identity = books.recognition.identity(run.ids[index])
            fingerprint = books.expected.get(identity)
            if fingerprint is None:
                continue
            if books.recognition.fingerprint(run, index) != fingerprint:
                raise other_content()
            books.sights.append((run.ids[index], identity))
            self.recognised += 1
            yield Span(lane, run, begin, max(begin, min(index, last)))
            begin = index + 1
        yield Span(lane, run, begin, max(begin, last))

    def secure(self) -> dict[int, list[bytes]]:
        """Make durable what was received: the ids to acknowledge now, lane by lane.

        For each lane ``acknowledging`` follows, or ``lost``.
        """
        return {lane: ids for lane, books in enumerate(self._lanes) if (ids := self._secure(books))}

    def _secure(self, lane: _Lane) -> list[bytes]:
        ids: list[bytes] = []
        received, lane.received = lane.received, []
        for span in received:
            bound = span.run.ids[span.first : span.last]
            segment = self._segment(lane, span)
            info = self._store.append(segment)
            self._count(segment.ends, 0)
            ids += [identifier for identifier in bound if identifier is not None]
            messages = dict(zip(segment.ids, segment.fingerprints, strict=True))
            lane.confirming.append(_Confirming(messages, info.first))
        return ids

    def _segment(self, lane: _Lane, span: Span) -> Segment:
        recognition, run = lane.recognition, span.run
        indexes = range(span.first, span.last)
        identities = [recognition.identity(identifier) for i in indexes if (identifier := run.ids[i]) is not None]
        return Segment.of_run(
            run,  # type: ignore[arg-type]  # a run of frames, octets and all
            span.first,
            span.last,
            source=lane.source,
            dialect=lane.dialect,
            first=self._store.position.next,
            ids=identities,
            fingerprints=[recognition.fingerprint(run, i) for i in indexes],
        )

    def on_sight(self, lane: int) -> list[bytes]:
        """Ids of messages that came again and are in the journal: acknowledge them now."""
        books = self._lanes[lane]
        sights, books.sights = books.sights, []
        if sights:
            books.confirming.append(_Confirming({identity: books.expected.pop(identity) for _, identity in sights}))
        return [identifier for identifier, _ in sights]

    # --- acknowledged --------------------------------------------------------------------------

    def acknowledging(self, lane: int, receipt: str) -> None:
        for entry in self._lanes[lane].confirming:
            entry.receipt = entry.receipt or receipt

    def unconfirmed(self, lane: int) -> str | None:
        confirming = self._lanes[lane].confirming
        return confirming[0].receipt if confirming else None

    def acknowledged(self, lane: int, receipt: str) -> int:
        """The broker confirmed, and that is recorded. Returns how many messages that are."""
        books = self._lanes[lane]
        confirmed = [entry for entry in books.confirming if entry.receipt == receipt]
        books.confirming = [entry for entry in books.confirming if entry.receipt != receipt]
        for entry in confirmed:
            if entry.segment is not None:
                self._store.mark_acknowledged(entry.segment)
            else:
                self._store.confirm(books.source, entry.messages.keys())
        return sum(len(entry.messages) for entry in confirmed)

    # --- offered -------------------------------------------------------------------------------

    def offer(self, *, max_messages: int | None, max_octets: int | None) -> int:
        """Cut the next batch from what is durable, at least one message of it, and record it with its cut."""
        count = len(self._ends) if max_messages is None else min(len(self._ends), max_messages)
        if max_octets is not None:
            count = min(count, bisect_right(self._ends, max_octets))
        count = max(count, 1 if self._ends else 0)
        if not count:
            return self.offered
        ends, rest = self._ends[:count], self._ends[count:]
        end = self.offered + count
        self._store.record_batch(self.offered, end, self._cuts(ends))
        self._ends = [at - ends[-1] for at in rest]
        self.offered = end
        return end

    def _cuts(self, ends: list[int]) -> list[int]:
        """The sequences at which a partition begins, after the first."""
        cuts, begin, at = [], 0, 0
        while (at := max(at + 1, bisect_right(ends, begin + self._partition_octets))) < len(ends):
            cuts.append(self.offered + at)
            begin = ends[at - 1]
        return cuts

    # --- done ----------------------------------------------------------------------------------

    def finish(self, sequence: int) -> dict[int, list[bytes]]:
        """Everything below ``sequence`` is done: it is deleted, and nothing is left to acknowledge."""
        if sequence > self.offered:
            raise IllegalStateError(f"Event finish({sequence}) beyond what was offered ({self.offered}).")
        if sequence > self.done:
            self._store.release(sequence)
            self.done = sequence
        return {}

    # --- lost ----------------------------------------------------------------------------------

    def lost(self, lane: int) -> None:
        """The lane's connection is gone: what is not durable comes again, and so may what was not confirmed."""
        books = self._lanes[lane]
        for entry in books.confirming:
            books.expected.update(entry.messages)
        books.received, books.sights, books.confirming = [], [], []


def partitions_of(store: JournalStore, start: int, end: int) -> list[list[Stored]] | None:
    """The partitions of a recorded batch, whichever process recorded it; None when the journal has no such batch."""
    cuts = store.batch(start, end)
    if cuts is None:
        return None
    return [
        [Stored(info, max(first, info.first), min(last, info.last)) for info in store.segments(first, last)]
        for first, last in pairwise([start, *cuts, end])
    ]


def _lost_between(sequence: int, oldest: int, following: int) -> DataLossError:
    return DataLossError(
        f"Spark's checkpoint ends at {sequence}, and the journal holds the sequences {oldest} to {following}: it is not"
        " the journal of this checkpoint, or was emptied.",
        "Give the journalLocation that belongs to the checkpoint. With failOnDataLoss=false the query goes on with what"
        " there is.",
    )
