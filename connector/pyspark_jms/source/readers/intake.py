"""What a task receives: messages for its value, up to the limits of a batch. What will not become a row is diverted."""

import logging
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from pyspark_jms.amqp.reading import ReaderLink, ReadSource
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter
from pyspark_jms.delivery.message_range import Bounds, MessageRange
from pyspark_jms.delivery.register.reader import MAX_SOURCE_DELIVERIES
from pyspark_jms.delivery.register.token import LoneMessage
from pyspark_jms.source.admission import in_turn
from pyspark_jms.source.diverting import Diverter
from pyspark_jms.source.end_of_queue import Drain
from pyspark_jms.source.links import Reading
from pyspark_jms.source.readers.value import NewValue

__all__ = ["TaskIntake"]

_log = logging.getLogger("pyspark_jms.source")
_MOST = MAX_SOURCE_DELIVERIES
_FLOOD_MESSAGES = 500
"""So many at once are a backlog or a flood: credit stands until no more come, so that the broker never waits."""
_POLL_SECONDS, _QUIET_POLLS = 0.002, 3
_EMPTY_ROUNDS = 2
"""So often nothing came, and no queue is proven to be empty: the window of one is full, and that of another is not."""
_LONGEST_SECONDS = 0.2
"""A source that always has another message ends a value after this time, unless it is a flood."""


class _TaskDiverter(Diverter):
    """Accepts messages in the transaction that sends their dead letters, so each is sent exactly once."""

    def __init__(self, reading: Reading, link: ReaderLink) -> None:
        super().__init__(reading)
        self._link = link

    def _send(self, source: ReadSource, ids: Sequence[bytes], letters: Sequence[DeadLetter]) -> None:
        self._link.send_away(self._link.sources.index(source), list(ids), self._options.dead_letter_queue, letters)


class TaskIntake:
    """``receive`` adds what the sources have, perhaps nothing. No message is in flight while it does not run."""

    def __init__(
        self,
        reading: Reading,
        link: ReaderLink,
        value: NewValue,
        drain_since_ms: float | None,
        alone: LoneMessage | None = None,
        *,
        turn: int = 0,
    ) -> None:
        """``alone``: what to receive apart, because it is suspected to have killed other attempts. ``turn``: as of
        ``in_turn``.
        """
        self._options, self._sources = reading.options, link.sources
        self._dialect = link.dialect
        self._value, self._bounds = value, Bounds(reading.options.max_messages, reading.options.max_bytes)
        self._drain = Drain(drain_since_ms)
        self._alone = alone
        self._turn = turn
        self.diverter = _TaskDiverter(reading, link)
        self.redelivered = 0
        self.gave_back = False
        """Whether messages were given back because the value is full."""
        self._begun = set[int]()
        self._cut = set[int]()
        """Sources of which messages are received, and those whose first suspected message was reached."""
        self.suspect: str | None = None
        self.deliveries, self.suspects = 0, 1
        """As of ``steps.Received``."""

    def receive(self) -> None:
        numbers = in_turn(range(len(self._sources)), self._turn)
        open_ = {number: self._sources[number] for number in numbers if number not in self._drain.ended}
        if self._alone is None:
            self._wait(open_)
        else:
            _let_send(open_.values())
        ranges = self._take(open_)
        if self._alone is None or not self._add_alone(ranges, self._alone):
            self._add(self._before_suspects(ranges))

    @property
    def is_drained(self) -> bool:
        """Return whether each source had no more messages, or one that was sent after the start."""
        ended = self._drain.ended
        return not self.gave_back and all(at in ended or each.was_empty for at, each in enumerate(self._sources))

    # --- waiting -------------------------------------------------------------------------------

    def _wait(self, open_: Mapping[int, ReadSource]) -> None:
        ends_at, before, rounds = time.monotonic() + _LONGEST_SECONDS, 0, 0
        while True:
            _let_send(open_.values())
            messages, is_full = self._waiting(open_)
            if is_full or all(source.was_empty for source in open_.values()):
                return
            rounds, before = (rounds + 1, before) if messages == before else (0, messages)
            if rounds >= _EMPTY_ROUNDS:
                return
            if messages >= _FLOOD_MESSAGES:
                if not self._flood(open_):
                    return
            elif time.monotonic() >= ends_at:
                return

    def _flood(self, open_: Mapping[int, ReadSource]) -> bool:
        """Returns whether there is room for more when no more come."""
        for source in open_.values():
            source.resume()
        try:
            quiet, last = 0, 0
            while quiet < _QUIET_POLLS:
                time.sleep(_POLL_SECONDS)
                # What can be taken without cutting a block short: the broker stores it while more is received.
                if not self._add(self._before_suspects(self._take(open_, only_full=True))):
                    return False
                messages, is_full = self._waiting(open_)
                if is_full:
                    return False
                quiet, last = (quiet + 1, last) if messages == last else (0, messages)
            return True
        finally:
            _pause(open_.values())

    def _waiting(self, open_: Mapping[int, ReadSource]) -> tuple[int, bool]:
        """Return the messages of the value and those received and not taken, and whether they are a full batch."""
        sizes = [(len(self._value), self._value.size), *(source.waiting() for source in open_.values())]
        messages = sum(messages for messages, _ in sizes)
        return messages, self._options.is_full_batch(messages, sum(size for _, size in sizes))

    # --- taking --------------------------------------------------------------------------------

    def _add_alone(self, ranges: list[MessageRange], alone: LoneMessage) -> bool:
        """Add the message with the suspected ones that follow it; give the rest back. Return False if it is gone."""
        for at, range_ in enumerate(ranges):
            source = self._sources[range_.subscription]
            for index, deliveries in _of(range_, source.suspects(range_.block, 1)).items():
                if source.identity_of(range_.block, index) == alone.message:
                    before, rest = range_.split(index - range_.first)
                    many = min(alone.many, max(1, self._suspects_at(rest)))
                    chosen, after = rest.split(many)
                    self.suspect, self.deliveries, self.suspects = alone.message, deliveries, many
                    self._release([each for each in (*ranges[:at], before, after, *ranges[at + 1 :]) if len(each)])
                    self._add([chosen])
                    self.gave_back = True
                    return True
        return False

    def _before_suspects(self, ranges: list[MessageRange]) -> list[MessageRange]:
        """Take of each source what comes before its first suspected message, and give the rest back.

        So a message whose producer has written a high count is reached in its order, and costs two batches.
        """
        found = list[MessageRange]()
        for range_ in ranges:
            number = range_.subscription
            suspected = () if number in self._cut else _of(range_, self._sources[number].suspects(range_.block, _MOST))
            if not suspected and number not in self._cut:
                self._begun.add(number)
                found.append(range_)
                continue
            before, rest = range_.split(min(suspected, default=range_.first) - range_.first)
            if len(before):
                self._begun.add(number)
                found.append(before)
            if number not in self._begun and self.suspect is None:
                self._suspect(rest)
            self._cut.add(number)
            self._release([rest])
            self.gave_back = True
        return found

    def _suspect(self, range_: MessageRange) -> None:
        source = self._sources[range_.subscription]
        self.suspect = source.identity_of(range_.block, range_.first)
        self.deliveries = source.suspects(range_.block, _MOST)[range_.first]
        self.suspects = self._suspects_at(range_)
        _log.warning(
            "! a message of %s was delivered %d times without an acknowledgement, as its header says: it is received"
            " apart, with %d more",
            source.subscription.destination,
            self.deliveries,
            self.suspects - 1,
        )

    def _suspects_at(self, range_: MessageRange) -> int:
        """Return how many suspected messages the range begins with."""
        suspected = self._sources[range_.subscription].suspects(range_.block, _MOST)
        return next((at - range_.first for at in range(range_.first, range_.last) if at not in suspected), len(range_))

    def _take(self, numbers: Iterable[int], *, only_full: bool = False) -> list[MessageRange]:
        ranges: list[MessageRange] = []
        for number in numbers:
            source = self._sources[number]
            if not only_full:
                source.check()
                self.diverter.divert_oversized(source)
            for block in source.take(only_full=only_full):
                self.redelivered += source.redelivered(block)
                ranges += self._of_block(number, block)
        return ranges

    def _of_block(self, number: int, block: MessageBlock) -> list[MessageRange]:
        """The messages of a block that become rows, in runs between those that do not."""
        source = self._sources[number]
        upto = self._drain.sent_before_start(number, source, block, now_ms=time.time() * 1000)
        if upto < len(block):
            source.release([each for each in block.ids[upto:] if each is not None])
        bad = self.diverter.unmappable(self._dialect, source.subscription.destination, block, upto)
        if bad:
            self.diverter.divert(source, block, bad)
        edges = [-1, *sorted(bad), upto]
        ranges = [MessageRange(number, block, a + 1, b) for a, b in pairwise(edges)]
        return [range_ for range_ in ranges if len(range_)]

    def _add(self, ranges: list[MessageRange]) -> bool:
        """Add as many as a batch may have, at least one, and give the rest back. Return whether there is no rest."""
        waiting = deque(ranges)
        for taken in self._bounds.take(waiting):
            self._value.add(taken)
        if waiting:
            self._release(waiting)
            self.gave_back = True
        return not waiting

    def _release(self, ranges: Iterable[MessageRange]) -> None:
        """Give messages back: they return to the head of their queue, in their order."""
        for range_ in ranges:
            self._sources[range_.subscription].release([each for each in range_.ids if each is not None])


def _let_send(sources: Collection[ReadSource]) -> None:
    """Return when the sources have sent what they had room for."""
    for source in sources:
        source.check()
        source.resume()
    _pause(sources)


def _pause(sources: Collection[ReadSource]) -> None:
    """Return when no more messages can come."""
    for source in sources:
        source.begin_pause()
    for source in sources:
        source.pause()


def _of(range_: MessageRange, by_index: dict[int, int]) -> dict[int, int]:
    return {index: deliveries for index, deliveries in by_index.items() if range_.first <= index < range_.last}
