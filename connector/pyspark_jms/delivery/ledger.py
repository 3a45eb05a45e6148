"""Which message may be acknowledged when, without a journal: ``states.WITHOUT_JOURNAL``, kept for ranges. Pure.

Sequences only grow, so most states are bounds: done ≤ offered. When a subscription's connection is lost, the ledger
forgets what was received and not offered: the broker redelivers it. It expects the redelivery of what was offered, on
any subscription of the source: the duplicate is dropped, and its id, the only one that can be acknowledged now, is
bound to the first delivery, with the subscription. A message whose batch is done by then is acknowledged on redelivery.
Equal messages cannot be told apart. So the ledger counts those that it forgets, and reads as many, before it takes one
for a message whose acknowledgement the broker may have carried out.

Subscriptions of one source need more: everything that was in flight on one of them must be ``lost`` before messages
of another one are ``receive``d that may be its redeliveries. Else they would be new messages, and the ledger would
wait for redeliveries that never come.

Knows no protocol: a ``Recognition`` identifies a message and its content.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.message_range import Batch, MessageRange
from pyspark_jms.delivery.states import WITHOUT_JOURNAL, Event, MessageState
from pyspark_jms.delivery.subscription_ledger import (
    DeliveryLedger,
    ExpectedRedeliveries,
    ExpectedRedelivery,
    Recognition,
    SubscriptionLedger,
)
from pyspark_jms.errors import IllegalStateError

__all__ = ["Ledger"]

MAX_EXPECTED = 100_000
"""The redeliveries to acknowledge, and those to read, that a source expects at most (some 25 MB each), or as many as
the last lost connection of each of its subscriptions held. A message that another consumer took is never redelivered. A
forgotten message that is redelivered after all is read twice, and not lost.
"""


class _RepeatedMessage(NamedTuple):
    """A message that was redelivered after its batch was finished, or on another subscription than its range."""

    identity: bytes
    fingerprint: bytes
    is_named: bool


@dataclass(slots=True)
class _Finished:
    """Ranges of finished batches, or redelivered messages that are acknowledged apart from their range."""

    ranges: list[MessageRange]
    again: list[_RepeatedMessage]


class Ledger(DeliveryLedger[_Finished]):
    """The ledger of one run of a query. ``recognitions``: one for each source. ``start`` is the offset that Spark
    starts from: an earlier process received what is below it. ``connections``: how many subscriptions read a source.
    """

    in_flight_messages = 0
    in_flight_bytes = 0

    def __init__(self, recognitions: Sequence[Recognition | None], start: int, connections: int = 1) -> None:
        sources = [ExpectedRedeliveries(WITHOUT_JOURNAL, recognition) for recognition in recognitions]
        super().__init__(
            [
                SubscriptionLedger(source, lambda done: self._drop(done.ranges))
                for source in sources
                for _ in range(connections)
            ]
        )
        self._not_taken: list[list[bytes]] = [[] for _ in range(self.subscriptions)]
        """Identities of the messages that ``receive`` did not take in."""
        self._lost_messages = [0] * self.subscriptions
        """How many redeliveries of each subscription's last lost connection were expected."""
        self._batches: deque[Batch] = deque()
        self._start = start
        self.offered = self.done = start

    # --- received ------------------------------------------------------------------------------

    def receive(
        self, subscription: int, block: MessageBlock, upto: int | None = None, *, without: Collection[int] = ()
    ) -> None:
        """The new ids of redelivered messages are bound to their first deliveries. After an ``OtherBrokerError``
        nothing of the block is taken in.
        """
        source, last = self._ledgers[subscription].source, len(block) if upto is None else upto
        new, again = source.split_redelivered(block, last, without)
        if again:
            self._bind(subscription, block, again)
        left = set(range(last, len(block))) - {index for index, _ in again}
        self._not_taken[subscription] += _identities(source, block, left)
        for first, last in new:
            self._add(MessageRange(subscription, block, first, last))

    def _bind(self, subscription: int, block: MessageBlock, again: list[tuple[int, ExpectedRedelivery]]) -> None:
        self.recognised += len(again)
        done: list[int] = []
        for index, expected in again:
            if expected.range_ is None:
                done.append(index)
                state = expected.state
            else:
                expected.range_.bind(expected.index, block.ids[index], subscription)
        if done:
            self._acknowledge_apart(subscription, [(block, index) for index in done], state)

    def _acknowledge_apart(
        self, subscription: int, messages: list[tuple[MessageBlock, int]], state: MessageState
    ) -> None:
        """A round of redelivered messages, whose ids are those of the redelivery."""
        known = self._ledgers[subscription]
        ids = [identifier for block, index in messages if (identifier := block.ids[index]) is not None]
        known.add_round(ids, _Finished([], [_repeated(known.source, block, index) for block, index in messages]), state)

    def store_received(self) -> None:
        """Do nothing: without a journal, what was received is offered from memory."""

    # --- offered -------------------------------------------------------------------------------

    def _record_batch(self, batch: Batch) -> None:
        for range_ in batch.ranges:
            range_.state = WITHOUT_JOURNAL.after(range_.state, Event.OFFER)
        self._batches.append(batch)

    def batch(self, start: int, end: int) -> Batch | None:
        """Return the batch of exactly these sequences, or None if an earlier process received it.

        ``IllegalStateError`` for any other range: its messages would be acknowledged without having been read.
        """
        if end <= self._start:
            return None
        for batch in self._batches:
            if (batch.start, batch.end) == (start, end):
                return batch
        raise IllegalStateError(
            f"Spark requests the batch [{start}, {end}), which was never offered (offered: up to {self.offered}, done:"
            f" up to {self.done}).",
            "Nothing of it was acknowledged. Start the query again, and report this with the log.",
        )

    # --- done ----------------------------------------------------------------------------------

    def finish(self, sequence: int) -> None:
        """Everything below ``sequence`` is done, and due to be acknowledged."""
        last = MessageState.OFFERED if sequence <= self.offered else MessageState.RECEIVED
        WITHOUT_JOURNAL.after(last, Event.FINISH, f"sequence {sequence - 1}, offered are those below {self.offered}")
        finished: dict[int, list[MessageRange]] = {}
        moved: dict[int, list[tuple[MessageBlock, int]]] = {}
        while self._batches and self._batches[0].end <= sequence:
            for range_ in self._batches.popleft().ranges:
                range_.state = WITHOUT_JOURNAL.after(range_.state, Event.FINISH)
                finished.setdefault(range_.subscription, []).append(range_)
                for index, subscription in (range_.moved or {}).items():
                    if range_.block.ids[index] is not None:
                        moved.setdefault(subscription, []).append((range_.block, index))
        self.done = max(self.done, sequence)
        for subscription, ranges in finished.items():
            self._finish_on(subscription, ranges)
        for subscription, messages in moved.items():
            self._acknowledge_apart(subscription, messages, MessageState.DONE)

    def _finish_on(self, subscription: int, ranges: list[MessageRange]) -> None:
        known = self._ledgers[subscription]
        ids = [identifier for range_ in ranges for identifier in range_.own_ids if identifier is not None]
        if len(ids) < sum(map(len, ranges)):
            self._finish_lost(known.source, ranges)
        if ids:
            known.add_round(ids, _Finished(ranges, []), ranges[0].state)
        else:
            self._drop(ranges)

    @staticmethod
    def _finish_lost(source: ExpectedRedeliveries, ranges: list[MessageRange]) -> None:
        finished = set(map(id, ranges))
        for expected in chain.from_iterable(source.expected.values()):
            if id(expected.range_) in finished:
                expected.state = WITHOUT_JOURNAL.after(expected.state, Event.FINISH)
                expected.range_ = None

    # --- lost ----------------------------------------------------------------------------------

    def lost(self, subscription: int, blocks: Sequence[MessageBlock] = ()) -> None:
        """The subscription's connection is gone: nothing received on it can be acknowledged under its old id.

        ``blocks``: received on it, and not given to ``receive``.
        """
        known = self._ledgers[subscription]
        source = known.source
        self._forget_received(subscription, blocks)
        before = source.expected_messages
        for ack in known.lose():
            # The broker may have carried out acknowledgements that were sent. A message without an id that comes then
            # may be an equal, later one: it is read, perhaps a second time.
            every = ack.receipt is None
            for again in ack.what.again:
                if every or again.is_named:
                    source.expect(again.identity, ExpectedRedelivery(again.fingerprint, ack.state, in_doubt=not every))
            for range_ in ack.what.ranges:
                self._expect(subscription, range_, ack.state, bound=False, in_doubt=not every)
            self._drop(ack.what.ranges)
        for batch in self._batches:
            for range_ in batch.ranges:
                self._expect(subscription, range_, WITHOUT_JOURNAL.after(range_.state, Event.LOSE), bound=True)
        self._lost_messages[subscription] = source.expected_messages - before
        lost = sum(
            self._lost_messages[each] for each in range(self.subscriptions) if self._ledgers[each].source is source
        )
        self._forget_oldest(source, max(MAX_EXPECTED, lost))

    def _forget_received(self, subscription: int, blocks: Sequence[MessageBlock]) -> None:
        forgotten = self._backlog.forget(subscription)
        for range_ in forgotten:
            range_.state = WITHOUT_JOURNAL.after(range_.state, Event.LOSE)
        self._drop(forgotten)
        source = self._ledgers[subscription].source
        new = source.unknown(blocks)
        for range_ in forgotten:
            new += _identities(source, range_.block, range(range_.first, range_.last))
        source.forget([*new, *self._not_taken[subscription]], max(MAX_EXPECTED, len(new)))
        self._not_taken[subscription] = []

    def _expect(
        self,
        subscription: int,
        range_: MessageRange,
        state: MessageState,
        *,
        bound: bool,
        in_doubt: bool = False,
    ) -> None:
        """Expect the range's messages that the subscription delivered. ``bound``: their first deliveries are part of a
        batch and get the new ids. ``in_doubt``: only messages of which an equal one is the same.
        """
        block, source = range_.block, self._ledgers[subscription].source
        recognition = source.recognition
        for index in range_.of_subscription(subscription):
            if block.ids[index] is None:
                continue  # expected already, since an earlier loss
            if recognition is not None and (not in_doubt or recognition.is_named(block, index)):
                fingerprint = recognition.fingerprint(block, index)
                expected = ExpectedRedelivery(fingerprint, state, range_ if bound else None, index, in_doubt)
                source.expect(recognition.identity(block, index), expected)
            block.ids[index] = None

    @staticmethod
    def _forget_oldest(source: ExpectedRedeliveries, most: int) -> None:
        surplus = max(0, source.expected_messages - most)
        every = ((key, one) for key, known in source.expected.items() for one in known)
        oldest = (key for key, one in every if one.state is MessageState.ACK_ON_REDELIVERY)
        source.give_up(list(islice(oldest, surplus)))

    # --- counting ------------------------------------------------------------------------------

    def _add(self, range_: MessageRange) -> None:
        self._backlog.add(range_)
        self.in_flight_messages += len(range_)
        self.in_flight_bytes += range_.size

    def _drop(self, ranges: list[MessageRange]) -> None:
        self.in_flight_messages -= sum(len(range_) for range_ in ranges)
        self.in_flight_bytes -= sum(range_.size for range_ in ranges)


def _identities(source: ExpectedRedeliveries, block: MessageBlock, indices: Iterable[int]) -> list[bytes]:
    return [source.identity(block, index) for index in indices] if source.is_counted else []


def _repeated(source: ExpectedRedeliveries, block: MessageBlock, index: int) -> _RepeatedMessage:
    assert source.recognition is not None
    fingerprint = source.recognition.fingerprint(block, index)
    return _RepeatedMessage(source.identity(block, index), fingerprint, source.is_named(block, index))
