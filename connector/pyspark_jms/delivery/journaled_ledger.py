"""The ledger of a query with a journal: ``states.WITH_JOURNAL`` and ``states.IN_JOURNAL``, kept for ranges.

It has the calls of ``Ledger``. The differences: an offset covers durable messages only, ``store_received`` makes
messages due for acknowledgement, and ``finish`` deletes them. A message without a recorded receipt is recognised when
it is redelivered, also by the next process. If its segment is deleted first, a tombstone recognises it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from pyspark_jms.blocks.block import MessageBlock, PartitionSlice, part_starts, positions_of
from pyspark_jms.delivery.journal.contents import SegmentInfo, StoredBlock
from pyspark_jms.delivery.journal.segment import Segment
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.message_range import Backlog, Batch, Bounds, MessageRange
from pyspark_jms.delivery.states import IN_JOURNAL, WITH_JOURNAL, Event, MessageState
from pyspark_jms.delivery.subscription_ledger import (
    AckRound,
    DeliveryLedger,
    ExpectedRedeliveries,
    ExpectedRedelivery,
    Recognition,
    SubscriptionLedger,
)
from pyspark_jms.errors import DataLossError

__all__ = ["JournaledLedger", "partitions_of"]


@dataclass(slots=True)
class _Durable:
    """A whole new segment, or (``segment`` None) messages that came again and are in the journal already."""

    fingerprints: dict[bytes, bytes]
    """By identity; the journal knows those of a segment."""
    size: int
    segment: int | None = None


class JournaledLedger(DeliveryLedger[_Durable]):
    """``sources``: of each subscription what it reads, the dialect of its frames, and how a message is known again.

    ``start`` is the end of the last batch in Spark's log; ``DataLossError`` when the journal does not reach from
    there on, unless that is allowed. ``partition_bytes``: how a new batch is split.
    """

    def __init__(
        self,
        store: JournalStore,
        sources: Sequence[tuple[str, str, Recognition]],
        start: int,
        *,
        partition_bytes: int,
        fail_on_data_loss: bool,
    ) -> None:
        self._by_origin: dict[str, ExpectedRedeliveries] = {}
        """A queue may have two names, and several subscriptions."""
        for name, _, recognition in sources:
            self._by_origin.setdefault(recognition.origin(name), ExpectedRedeliveries(WITH_JOURNAL, recognition))
        super().__init__(
            [
                SubscriptionLedger(
                    self._by_origin[recognition.origin(name)], partial(self._record_confirmed, subscription)
                )
                for subscription, (name, _, recognition) in enumerate(sources)
            ]
        )
        self._store = store
        self._sources = list(sources)
        self._partition_bytes = partition_bytes
        self._received = Backlog[MessageRange]()
        """What is not durable."""
        start = self._reach(start, fail_on_data_loss=fail_on_data_loss)
        self._store.release(start)
        self.offered = self.done = start
        for known in store.receipts.unacknowledged():
            for source in self._sources_of(known.source):
                source.expect(known.id, ExpectedRedelivery(known.fingerprint, MessageState.LOST))
        for info in store.segments(start):
            self._add(store.read(info.first), max(0, start - info.first))

    def _sources_of(self, name: str) -> Iterator[ExpectedRedeliveries]:
        for origin, source in self._by_origin.items():
            assert source.recognition is not None
            if source.recognition.origin(name) == origin:
                yield source

    def _is_of(self, subscription: int) -> Callable[[str], bool]:
        name, _, recognition = self._sources[subscription]
        return lambda source: recognition.origin(source) == recognition.origin(name)

    def _reach(self, start: int, *, fail_on_data_loss: bool) -> int:
        position = self._store.position
        if position.oldest <= start <= position.next:
            return start
        if fail_on_data_loss:
            raise _lost_between(start, position.oldest, position.next)
        if start < position.oldest:
            return position.oldest
        self._store.release(position.next)
        self._store.skip_to(start)
        return start

    def _add(self, segment: Segment, skipped: int = 0) -> None:
        """A segment's messages wait, without their bytes, and without the first ``skipped``."""
        sizes_only = MessageBlock(ends=segment.block.ends)
        self._backlog.add(MessageRange(0, sizes_only, skipped, len(segment), MessageState.DURABLE))

    # --- received ------------------------------------------------------------------------------

    @property
    def waiting_messages(self) -> int:
        return super().waiting_messages + self._received.messages

    @property
    def waiting_bytes(self) -> int:
        return super().waiting_bytes + self._received.size

    @property
    def in_flight_messages(self) -> int:
        return self._received.messages + sum(len(ack.ids) for each in self._ledgers for ack in each.rounds)

    @property
    def in_flight_bytes(self) -> int:
        return self._received.size + sum(ack.what.size for each in self._ledgers for ack in each.rounds)

    def receive(
        self, subscription: int, block: MessageBlock, upto: int | None = None, *, without: Collection[int] = ()
    ) -> None:
        """Take in a block. What is in the journal already is only acknowledged."""
        source = self._ledgers[subscription].source
        new, again = source.split_redelivered(block, len(block) if upto is None else upto, without)
        for first, last in new:
            self._received.add(MessageRange(subscription, block, first, last))
        if again:
            self.recognised += len(again)
            ids = [identifier for index, _ in again if (identifier := block.ids[index]) is not None]
            fingerprints = {source.identity(block, index): expected.fingerprint for index, expected in again}
            size = sum(MessageRange(subscription, block, index, index + 1).size for index, _ in again)
            self._ledgers[subscription].add_round(ids, _Durable(fingerprints, size), again[0][1].state)

    def due(self, subscription: int) -> list[AckRound[_Durable]]:
        """Return what every ledger returns, but only while this process is the one that writes the journal."""
        due = super().due(subscription)
        if due:
            self._store.require_writer()
        return due

    def store_received(self) -> None:
        while (range_ := self._received.first) is not None:
            segment = self._segment(range_)
            self._store.append(segment)
            range_.state = WITH_JOURNAL.after(range_.state, Event.STORE)
            self._add(segment)
            ids = [identifier for identifier in range_.ids if identifier is not None]
            self._ledgers[range_.subscription].add_round(ids, _Durable({}, range_.size, segment.first), range_.state)
            self._received.take(Bounds(len(range_), None))

    def _segment(self, range_: MessageRange) -> Segment:
        source, dialect, recognition = self._sources[range_.subscription]
        block = range_.messages()
        block.ids = [recognition.identity(range_.block, index) for index in range(range_.first, range_.last)]
        return Segment(source=source, dialect=dialect, first=self._store.position.next, block=block)

    # --- acknowledged --------------------------------------------------------------------------

    def _record_confirmed(self, subscription: int, what: _Durable) -> None:
        if what.segment is not None:
            self._store.mark_acknowledged(what.segment)
        else:
            self._store.confirm(self._is_of(subscription), what.fingerprints.keys())

    # --- offered -------------------------------------------------------------------------------

    def _record_batch(self, batch: Batch) -> None:
        """Record the batch and where its partitions start."""
        IN_JOURNAL.after(MessageState.DURABLE, Event.OFFER)
        # A process that died before Spark logged the offset may have recorded this batch already.
        if self._store.batch(batch.start, batch.end) is None:
            sizes = [np.diff(positions_of(each.block.ends), prepend=0)[each.first : each.last] for each in batch.ranges]
            starts = part_starts(np.cumsum(np.concatenate(sizes)), self._partition_bytes)
            self._store.record_batch(batch.start, batch.end, [batch.start + index for index in starts])

    # --- done ----------------------------------------------------------------------------------

    def finish(self, sequence: int) -> None:
        """Everything below ``sequence`` is done: it is deleted."""
        last = MessageState.OFFERED if sequence <= self.offered else MessageState.DURABLE
        IN_JOURNAL.after(last, Event.FINISH, f"sequence {sequence - 1}, offered are those below {self.offered}")
        if sequence > self.done:
            given_up = self._store.release(sequence)
            self.done = sequence
            for messages in given_up:
                for source in self._sources_of(messages.source):
                    source.give_up(messages.fingerprints.keys() & source.expected.keys())

    # --- lost ----------------------------------------------------------------------------------

    def lost(self, subscription: int, blocks: Sequence[MessageBlock] = ()) -> None:  # noqa: ARG002
        """The subscription's connection is gone: what is not durable comes again, and so may what was not confirmed.

        ``blocks`` do not matter: the broker gives each message an identity.
        """
        for range_ in self._received.forget(subscription):
            range_.state = WITH_JOURNAL.after(range_.state, Event.LOSE)
        for ack in self._ledgers[subscription].lose():
            what = ack.what
            known = what.fingerprints if what.segment is None else self._store.receipts.fingerprints_from(what.segment)
            for identity, fingerprint in known.items():
                self._ledgers[subscription].source.expect(identity, ExpectedRedelivery(fingerprint, ack.state))


def partitions_of(
    store: JournalStore, start: int, end: int, *, after_loss: bool = False
) -> list[list[PartitionSlice]] | None:
    """The partitions of a recorded batch, whichever process recorded it; None when the journal has no such batch.

    ``after_loss``: Spark's batch may begin where the journal holds nothing any more; what it holds up to ``end``
    was recorded as the batch.
    """
    bounds = store.batch(start, end)
    if bounds is None and after_loss:
        start, bounds = store.batch_ending(end) or (start, None)
    if bounds is None:
        return None
    return [
        [_part_of(info, max(first, info.first), min(last, info.last)) for info in store.segments(first, last)]
        for first, last in pairwise([start, *bounds, end])
    ]


def _part_of(info: SegmentInfo, first: int, last: int) -> PartitionSlice:
    return PartitionSlice(info.source, info.dialect, first, StoredBlock(info.path, info.digest, first, last))


def _lost_between(sequence: int, oldest: int, following: int) -> DataLossError:
    return DataLossError(
        f"Spark's checkpoint ends at {sequence}, and the journal holds the sequences {oldest} to {following}: it is not"
        " the journal of this checkpoint, or was emptied.",
        "Give the journalLocation that belongs to the checkpoint. With failOnDataLoss=false the query goes on with what"
        " there is.",
    )
