"""Which message may be acknowledged when, without a journal: ``states.WITHOUT_JOURNAL``, kept for ranges. Pure.

Sequences only grow, so most states are bounds: done ≤ offered. When a lane's connection is lost, the ledger forgets
what was received and not offered: the broker redelivers it. It expects the redelivery of what was offered, on any lane
of the source: the duplicate is dropped, and its id, the only one that can be acknowledged now, is bound to the first
delivery, with the lane. A message whose batch is done by then is acknowledged on redelivery.

Lanes of one source need more: everything that was in flight on one of them must be ``lost`` before another lane's
messages are ``receive``d that may be its redeliveries. Else they would be new messages, and the ledger would wait for
redeliveries that never come.

Knows no protocol: a ``Recognition`` identifies a message and its content.
"""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.message_range import Batch, MessageRange
from pyspark_jms.delivery.states import WITHOUT_JOURNAL, Event, State
from pyspark_jms.delivery.subscription_ledger import ExpectedRedelivery, Lanes, Recognition, Source, SubscriptionLedger
from pyspark_jms.errors import IllegalStateError

__all__ = ["MAX_EXPECTED", "Ledger"]

MAX_EXPECTED = 100_000
"""The redeliveries to acknowledge that a source expects at most (some 25 MB), or as many as the last lost connection of
each of its lanes held. A message that another consumer took is never redelivered. A forgotten message that is
redelivered after all is read twice, and not lost."""


class _Again(NamedTuple):
    """A message that was redelivered after its batch was finished, or on another lane than that of its span."""

    identity: bytes
    fingerprint: bytes
    is_named: bool


@dataclass(slots=True)
class _Done:
    """Spans of finished batches, or redelivered messages that are acknowledged apart from their span."""

    spans: list[MessageRange]
    again: list[_Again]


class Ledger(Lanes[_Done]):
    """The ledger of one run of a query. ``recognitions``: one for each source. ``start`` is the offset that Spark
    starts from: an earlier process received what is below it. ``connections``: how many lanes in a row read a source.
    """

    def __init__(self, recognitions: Sequence[Recognition | None], start: int, connections: int = 1) -> None:
        sources = [Source(WITHOUT_JOURNAL, recognition) for recognition in recognitions]
        super().__init__(
            [SubscriptionLedger(source, self._drop_confirmed) for source in sources for _ in range(connections)]
        )
        self._lost_messages = [0] * self.lanes
        """How many redeliveries of each lane's last lost connection were expected."""
        self._waiting: deque[MessageRange] = deque()
        self._batches: deque[Batch] = deque()
        self._start = start
        self.offered = self.done = start
        self.waiting_messages = 0
        self.waiting_bytes = 0
        self.in_flight_messages = 0
        """Received and not acknowledged, as far as this process knows."""
        self.in_flight_bytes = 0

    # --- received ------------------------------------------------------------------------------

    def receive(
        self, lane: int, block: MessageBlock, upto: int | None = None, *, without: Collection[int] = ()
    ) -> None:
        """Take in a block, or its first ``upto`` messages. Redelivered messages in all of it are dropped, and their
        new ids are bound to their first deliveries.

        ``without``: messages of the block that go elsewhere, by index.
        ``OtherBrokerError`` when a known id comes with other content: nothing of the block is taken in.
        """
        source = self._lanes[lane].source
        new, again = source.split_redelivered(block, len(block) if upto is None else upto, without)
        if again:
            self._bind(lane, block, again)
        for first, last in new:
            self._add(MessageRange(lane, block, first, last))

    def _bind(self, lane: int, block: MessageBlock, again: list[tuple[int, ExpectedRedelivery]]) -> None:
        self.recognised += len(again)
        done: list[int] = []
        for index, expected in again:
            if expected.span is None:
                done.append(index)
                state = expected.state
            else:
                expected.span.bind(expected.index, block.ids[index], lane)
        if done:
            self._acknowledge_apart(lane, [(block, index) for index in done], state)

    def _acknowledge_apart(self, lane: int, messages: list[tuple[MessageBlock, int]], state: State) -> None:
        """A round of redelivered messages, whose ids are those of the redelivery."""
        known = self._lanes[lane]
        ids = [identifier for block, index in messages if (identifier := block.ids[index]) is not None]
        known.add_round(ids, _Done([], [_again(known.source, block, index) for block, index in messages]), state)

    def store_received(self) -> None:
        """Without a journal there is nothing to do: what was received is offered from memory."""

    # --- offered -------------------------------------------------------------------------------

    def offer(self, *, max_messages: int | None, max_bytes: int | None) -> int:
        """Cut the next batch from what waits, at least one message of it, and return its end."""
        spans: list[MessageRange] = []
        messages, size = 0, 0
        while self._waiting:
            span = self._waiting[0]
            fits = span.fit(
                size=None if max_bytes is None else max_bytes - size,
                messages=None if max_messages is None else max_messages - messages,
                at_least_one=not messages,
            )
            if not fits:
                break
            taken, rest = span.split(fits)
            self._waiting.popleft()
            if len(rest):
                self._waiting.appendleft(rest)
            taken.state = WITHOUT_JOURNAL.after(taken.state, Event.OFFER)
            spans.append(taken)
            messages += len(taken)
            size += taken.size
        if spans:
            self.waiting_messages -= messages
            self.waiting_bytes -= size
            self._batches.append(Batch(self.offered, self.offered + messages, tuple(spans)))
            self.offered += messages
        return self.offered

    def batch(self, start: int, end: int) -> Batch | None:
        """The batch of exactly these sequences; None: it ends where this process started, an earlier one received it.

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
        last = State.OFFERED if sequence <= self.offered else State.RECEIVED
        WITHOUT_JOURNAL.after(last, Event.FINISH, f"sequence {sequence - 1}, offered are those below {self.offered}")
        finished: dict[int, list[MessageRange]] = {}
        moved: dict[int, list[tuple[MessageBlock, int]]] = {}
        while self._batches and self._batches[0].end <= sequence:
            for span in self._batches.popleft().spans:
                span.state = WITHOUT_JOURNAL.after(span.state, Event.FINISH)
                finished.setdefault(span.lane, []).append(span)
                for index, lane in (span.moved or {}).items():
                    if span.block.ids[index] is not None:
                        moved.setdefault(lane, []).append((span.block, index))
        self.done = max(self.done, sequence)
        for lane, spans in finished.items():
            self._finish_lane(lane, spans)
        for lane, messages in moved.items():
            self._acknowledge_apart(lane, messages, State.DONE)

    def _finish_lane(self, lane: int, spans: list[MessageRange]) -> None:
        known = self._lanes[lane]
        ids = [identifier for span in spans for identifier in span.own_ids if identifier is not None]
        if len(ids) < sum(map(len, spans)):
            self._finish_lost(known.source, spans)
        if ids:
            known.add_round(ids, _Done(spans, []), spans[0].state)
        else:
            self._drop(spans)

    @staticmethod
    def _finish_lost(source: Source, spans: list[MessageRange]) -> None:
        finished = set(map(id, spans))
        for expected in chain.from_iterable(source.expected.values()):
            if id(expected.span) in finished:
                expected.state = WITHOUT_JOURNAL.after(expected.state, Event.FINISH)
                expected.span = None

    # --- acknowledged --------------------------------------------------------------------------

    def _drop_confirmed(self, done: _Done) -> None:
        self._drop(done.spans)

    # --- lost ----------------------------------------------------------------------------------

    def lost(self, lane: int) -> None:
        """The lane's connection is gone: nothing received on it can be acknowledged under its old id."""
        self._forget_received(lane)
        known = self._lanes[lane]
        source = known.source
        before = source.expected_messages
        for ack in known.lose():
            # The broker may have carried out acknowledgements that were sent. A message without an id that comes then
            # may be an equal, later one: it is read, perhaps a second time.
            every = ack.receipt is None
            for again in ack.what.again:
                if every or again.is_named:
                    source.expect(again.identity, ExpectedRedelivery(again.fingerprint, ack.state))
            for span in ack.what.spans:
                self._expect(lane, span, ack.state, bound=False, every=every)
            self._drop(ack.what.spans)
        for batch in self._batches:
            for span in batch.spans:
                self._expect(lane, span, WITHOUT_JOURNAL.after(span.state, Event.LOSE), bound=True)
        self._lost_messages[lane] = source.expected_messages - before
        lost = sum(self._lost_messages[each] for each in range(self.lanes) if self._lanes[each].source is source)
        self._forget_oldest(source, max(MAX_EXPECTED, lost))

    def _forget_received(self, lane: int) -> None:
        forgotten = [span for span in self._waiting if span.lane == lane]
        self._waiting = deque(span for span in self._waiting if span.lane != lane)
        for span in forgotten:
            span.state = WITHOUT_JOURNAL.after(span.state, Event.LOSE)
        self.waiting_messages -= sum(len(span) for span in forgotten)
        self.waiting_bytes -= sum(span.size for span in forgotten)
        self._drop(forgotten)

    def _expect(self, lane: int, span: MessageRange, state: State, *, bound: bool, every: bool = True) -> None:
        """Of the span's messages those that the lane delivered. ``bound``: their first deliveries are part of a batch
        and get the new ids. Not ``every``: only messages of which an equal one is the same.
        """
        block, source = span.block, self._lanes[lane].source
        recognition = source.recognition
        for index in span.of_lane(lane):
            if block.ids[index] is None:
                continue  # expected already, since an earlier loss
            if recognition is not None and (every or recognition.is_named(block, index)):
                fingerprint = recognition.fingerprint(block, index)
                expected = ExpectedRedelivery(fingerprint, state, span if bound else None, index)
                source.expect(recognition.identity(block, index), expected)
            block.ids[index] = None

    @staticmethod
    def _forget_oldest(source: Source, most: int) -> None:
        surplus = max(0, source.expected_messages - most)
        every = ((key, one) for key, known in source.expected.items() for one in known)
        oldest = (key for key, one in every if one.state is State.ACK_ON_REDELIVERY)
        source.give_up(list(islice(oldest, surplus)))

    # --- counting ------------------------------------------------------------------------------

    def _add(self, span: MessageRange) -> None:
        self._waiting.append(span)
        self.waiting_messages += len(span)
        self.waiting_bytes += span.size
        self.in_flight_messages += len(span)
        self.in_flight_bytes += span.size

    def _drop(self, spans: list[MessageRange]) -> None:
        self.in_flight_messages -= sum(len(span) for span in spans)
        self.in_flight_bytes -= sum(span.size for span in spans)


def _again(source: Source, block: MessageBlock, index: int) -> _Again:
    assert source.recognition is not None
    fingerprint = source.recognition.fingerprint(block, index)
    return _Again(source.identity(block, index), fingerprint, source.is_named(block, index))
