"""Which message may be acknowledged when: received → offered → done → acknowledged. Pure.

    received       in memory, no sequence yet
    offered        below an offset that Spark was given: it may be in Spark's log, its rows may be read
    done           Spark's log holds its batch: it may be acknowledged
    acknowledged   the broker's receipt is here: forgotten

Sequences only grow, so a state is a bound: done ≤ offered. A *lane* is one subscription. When its connection
is lost, what was received and not offered is forgotten (the broker sends it again); what was offered waits to
be *recognised*: the second copy of a message is dropped, and the id under which alone it can be acknowledged
from now on is bound to the first. What is done by then is acknowledged on sight.

Knows no protocol: how a message is called and what it contains is asked of a ``Recognition``.
"""

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark_jms.errors import IllegalStateError
from pyspark_jms.journal.recognition import Recognition, other_content

__all__ = ["Batch", "Ledger", "Messages", "Span"]


class Messages(Protocol):
    """Received messages: their ids (None: of a connection that is gone), and where each one ends."""

    ids: list[bytes | None]

    @property
    def ends(self) -> "array[int]": ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Span:
    """Messages ``first`` to ``last`` (not included) of one run of one lane."""

    lane: int
    run: Messages
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def begin(self) -> int:
        """Where in the run's octets the first message begins."""
        return self.run.ends[self.first - 1] if self.first else 0

    @property
    def end(self) -> int:
        return self.run.ends[self.last - 1]

    @property
    def octets(self) -> int:
        return self.end - self.begin

    def cut(self, messages: int) -> "tuple[Span, Span]":
        middle = self.first + messages
        return Span(self.lane, self.run, self.first, middle), Span(self.lane, self.run, middle, self.last)


@dataclass(frozen=True, slots=True)
class Batch:
    """The sequences from ``start`` to ``end`` (not included)."""

    start: int
    end: int
    spans: tuple[Span, ...]


@dataclass(slots=True)
class _Expected:
    """A message that will come again. ``run`` None: it is done, acknowledge it on sight."""

    fingerprint: bytes
    run: Messages | None
    index: int


@dataclass(slots=True)
class _Confirming:
    """Done, and an ACK is on its way: the messages of a batch, and second copies (id, fingerprint) on sight."""

    spans: list[Span]
    sights: list[tuple[bytes, bytes]]
    messages: int
    """How many ACKs that are: a message of a lost connection that did not come back yet has none."""
    receipt: str | None = None


@dataclass(slots=True)
class _Lane:
    recognition: Recognition | None
    confirming: list[_Confirming] = field(default_factory=list)
    expected: dict[bytes, _Expected] = field(default_factory=dict)
    sights: list[tuple[bytes, bytes]] = field(default_factory=list)


class Ledger:
    """The books of one query. ``begin`` first, with the offset that Spark starts from."""

    def __init__(self, recognitions: Sequence[Recognition | None]) -> None:
        self._lanes = [_Lane(recognition) for recognition in recognitions]
        self._waiting: deque[Span] = deque()
        self._batches: deque[Batch] = deque()
        self._begun = False
        self.offered = 0
        self.done = 0
        self.waiting_messages = 0
        self.waiting_octets = 0
        self.in_flight_messages = 0
        """Received and not acknowledged, as far as we know."""
        self.in_flight_octets = 0
        self.recognised = 0
        """Second copies that were dropped."""

    def begin(self, sequence: int) -> None:
        """Count on from ``sequence``: everything below it was another process's business."""
        if self._begun:
            raise IllegalStateError(f"Event begin({sequence}) in a ledger that has begun.")
        self._begun = True
        self.offered = self.done = sequence

    # --- received ------------------------------------------------------------------------------

    def expects(self, lane: int) -> bool:
        """Whether messages of this lane are still to come again."""
        return bool(self._lanes[lane].expected)

    def receive(self, lane: int, run: Messages, upto: int | None = None) -> None:
        """Take in a run, or its first ``upto`` messages. Second copies in all of it are dropped and bound.

        ``OtherBrokerError`` when a known id comes with other content: nothing of the run is taken in.
        """
        last = len(run) if upto is None else upto
        spans = list(self._unknown(lane, run, last)) if self.expects(lane) else [Span(lane, run, 0, last)]
        for span in spans:
            if len(span):
                self._add(span)

    def _unknown(self, lane: int, run: Messages, last: int) -> Iterator[Span]:
        """The stretches of the run that were not seen before."""
        begin = 0
        for index in range(len(run)):  # a second copy is one wherever it stands
            if self._recognise(self._lanes[lane], run, index):
                yield Span(lane, run, begin, max(begin, min(index, last)))
                begin = index + 1
        yield Span(lane, run, begin, max(begin, last))

    def _recognise(self, lane: _Lane, run: Messages, index: int) -> bool:
        assert lane.recognition is not None
        identifier = run.ids[index]
        assert identifier is not None
        expected = lane.expected.get(lane.recognition.identity(identifier))
        if expected is None:
            return False
        if lane.recognition.fingerprint(run, index) != expected.fingerprint:
            raise other_content()
        del lane.expected[lane.recognition.identity(identifier)]
        self.recognised += 1
        if expected.run is None:
            lane.sights.append((identifier, expected.fingerprint))
        else:
            expected.run.ids[expected.index] = identifier
        return True

    def on_sight(self, lane: int) -> list[bytes]:
        """Ids that came again after their batch was done: acknowledge them now, as those of ``finish``."""
        books = self._lanes[lane]
        sights, books.sights = books.sights, []
        if sights:
            books.confirming.append(_Confirming([], sights, len(sights)))
        return [identifier for identifier, _ in sights]

    # --- offered -------------------------------------------------------------------------------

    def offer(self, *, max_messages: int | None, max_octets: int | None) -> int:
        """Cut the next batch from what waits, at least one message of it, and return its end."""
        self._require_begun("offer")
        spans: list[Span] = []
        messages, octets = 0, 0
        while self._waiting:
            span = self._waiting[0]
            room = self._room(span, messages, octets, max_messages, max_octets)
            if room <= 0:
                break
            taken, rest = span.cut(room)
            self._waiting.popleft()
            if len(rest):
                self._waiting.appendleft(rest)
            spans.append(taken)
            messages += len(taken)
            octets += taken.octets
        if spans:
            self.waiting_messages -= messages
            self.waiting_octets -= octets
            self._batches.append(Batch(self.offered, self.offered + messages, tuple(spans)))
            self.offered += messages
        return self.offered

    @staticmethod
    def _room(span: Span, messages: int, octets: int, max_messages: int | None, max_octets: int | None) -> int:
        """How many of the span's messages still fit; a first message always does."""
        room = len(span)
        if max_messages is not None:
            room = min(room, max_messages - messages)
        if max_octets is not None:
            fits = bisect_right(span.run.ends, span.begin + max_octets - octets, span.first, span.last) - span.first
            room = min(room, fits)
        return room if messages else max(1, room)

    def batch(self, start: int, end: int) -> Batch | None:
        """The batch of exactly these sequences; None: this process never received it, so it is planned empty."""
        return next((batch for batch in self._batches if (batch.start, batch.end) == (start, end)), None)

    # --- done ----------------------------------------------------------------------------------

    def finish(self, sequence: int) -> dict[int, list[bytes]]:
        """Everything below ``sequence`` is done: the ids to acknowledge, lane by lane.

        For each lane ``acknowledging`` follows, or ``lost``.
        """
        self._require_begun("finish")
        if sequence > self.offered:
            raise IllegalStateError(f"Event finish({sequence}) beyond what was offered ({self.offered}).")
        finished: dict[int, list[Span]] = {}
        while self._batches and self._batches[0].end <= sequence:
            for span in self._batches.popleft().spans:
                finished.setdefault(span.lane, []).append(span)
        self.done = max(self.done, sequence)
        return {lane: ids for lane, spans in finished.items() if (ids := self._finish_lane(self._lanes[lane], spans))}

    def _finish_lane(self, lane: _Lane, spans: list[Span]) -> list[bytes]:
        ids = [identifier for span in spans for identifier in span.run.ids[span.first : span.last]]
        bound = [identifier for identifier in ids if identifier is not None]
        if len(bound) < len(ids):
            self._settle_on_sight(lane, spans)
        if bound:
            lane.confirming.append(_Confirming(spans, [], len(bound)))
        else:
            self._drop(spans)
        return bound

    @staticmethod
    def _settle_on_sight(lane: _Lane, spans: list[Span]) -> None:
        ranges: dict[int, list[Span]] = {}
        for span in spans:
            ranges.setdefault(id(span.run), []).append(span)
        for expected in lane.expected.values():
            if any(span.first <= expected.index < span.last for span in ranges.get(id(expected.run), ())):
                expected.run = None

    # --- acknowledged --------------------------------------------------------------------------

    def acknowledging(self, lane: int, receipt: str) -> None:
        """The ACKs of ``finish`` or ``on_sight`` were sent; ``receipt`` will confirm them."""
        unsent = [entry for entry in self._lanes[lane].confirming if entry.receipt is None]
        if not unsent:
            raise IllegalStateError(f"Event acknowledging({lane}) with nothing to acknowledge.")
        for entry in unsent:
            entry.receipt = receipt

    def unconfirmed(self, lane: int) -> str | None:
        """The oldest receipt that is still to come."""
        confirming = self._lanes[lane].confirming
        return confirming[0].receipt if confirming else None

    def acknowledged(self, lane: int, receipt: str) -> int:
        """The broker confirmed: forget these messages. Returns how many they were."""
        books = self._lanes[lane]
        confirmed = [entry for entry in books.confirming if entry.receipt == receipt]
        if not confirmed:
            raise IllegalStateError(f"Event acknowledged({lane}) for {receipt!r}, which confirms nothing.")
        books.confirming = [entry for entry in books.confirming if entry.receipt != receipt]
        for entry in confirmed:
            self._drop(entry.spans)
        return sum(entry.messages for entry in confirmed)

    # --- lost ----------------------------------------------------------------------------------

    def lost(self, lane: int) -> None:
        """The lane's connection is gone: nothing received on it can be acknowledged under its old id."""
        forgotten = [span for span in self._waiting if span.lane == lane]
        self._waiting = deque(span for span in self._waiting if span.lane != lane)
        self.waiting_messages -= sum(len(span) for span in forgotten)
        self.waiting_octets -= sum(span.octets for span in forgotten)
        self._drop(forgotten)
        books = self._lanes[lane]
        confirming, books.confirming = books.confirming, []
        for entry in confirming:
            for span in entry.spans:
                self._expect(books, span, done=True)
            self._drop(entry.spans)
        for identifier, fingerprint in [*books.sights, *(sight for entry in confirming for sight in entry.sights)]:
            assert books.recognition is not None
            books.expected[books.recognition.identity(identifier)] = _Expected(fingerprint, None, 0)
        books.sights.clear()
        for batch in self._batches:
            for span in batch.spans:
                if span.lane == lane:
                    self._expect(books, span, done=False)

    @staticmethod
    def _expect(lane: _Lane, span: Span, *, done: bool) -> None:
        run, recognition = span.run, lane.recognition
        for index in range(span.first, span.last):
            identifier = run.ids[index]
            if identifier is None:
                continue  # expected already, since an earlier loss
            run.ids[index] = None
            if recognition is not None:
                fingerprint = recognition.fingerprint(run, index)
                lane.expected[recognition.identity(identifier)] = _Expected(fingerprint, None if done else run, index)

    # --- counting ------------------------------------------------------------------------------

    def _add(self, span: Span) -> None:
        self._waiting.append(span)
        self.waiting_messages += len(span)
        self.waiting_octets += span.octets
        self.in_flight_messages += len(span)
        self.in_flight_octets += span.octets

    def _drop(self, spans: list[Span]) -> None:
        self.in_flight_messages -= sum(len(span) for span in spans)
        self.in_flight_octets -= sum(span.octets for span in spans)

    def _require_begun(self, event: str) -> None:
        if not self._begun:
            raise IllegalStateError(f"Event {event} in a ledger that has not begun.")
