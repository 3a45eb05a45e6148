"""Messages that will not become rows: accepted, and sent to the dead-letter queue in the same transaction.

So a dead letter is sent exactly once. ``onBadMessage=deadLetter`` and ``onTooLarge``.
"""

import logging
import time
from collections.abc import Sequence
from itertools import pairwise

from pyspark_jms.amqp.reading import ReaderLink, ReadSource
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter
from pyspark_jms.delivery.message_range import MessageRange
from pyspark_jms.delivery.register.reader import MAX_SOURCE_DELIVERIES
from pyspark_jms.delivery.register.token import LoneMessage
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.diverting import log_dead_letters, log_dropped, oversized_dead_letter, unmappable
from pyspark_jms.source.draining import Drain
from pyspark_jms.source.links import Reading
from pyspark_jms.source.progress import Counts
from pyspark_jms.source.readers.value import NewValue

__all__ = [
    "TaskIntake",
    "divert_oversized",
    "divert_unmappable",
]

# --- messages that will not become rows -------------------------------------------------------------

# They are accepted, and sent to the dead-letter queue, in the transaction of the batch, so a dead letter is sent
# exactly once: onBadMessage=deadLetter and onTooLarge.


def divert_unmappable(
    reading: Reading, link: ReaderLink, number: int, block: MessageBlock, *, upto: int
) -> dict[int, str]:
    """Returns which of the block's first messages went to the dead-letter queue, and why."""
    source, queue = link.sources[number].subscription.destination, reading.options.dead_letter_queue
    bad = unmappable(reading, link.dialect, source, block, upto=upto)
    if bad:
        letters = [DeadLetter.of(block, index, reason, source) for index, reason in bad.items()]
        link.send_away(number, [block.ids[index] or b"" for index in bad], queue, letters)
        log_dead_letters(source, queue, letters)
    return bad


def divert_oversized(link: ReaderLink, number: int, options: SourceOptions) -> tuple[int, int]:
    """Divert the messages above maxMessageBytes. Return how many went to the dead-letter queue, and how many were
    skipped.
    """
    source, letters, skipped = link.sources[number], 0, 0
    for message in source.take_oversized():
        with message:
            if message.is_kept:
                letter = oversized_dead_letter(source.subscription.destination, message, options)
                link.send_away(number, [message.identifier], options.dead_letter_queue, [letter])
                log_dead_letters(source.subscription.destination, options.dead_letter_queue, [letter])
                letters += 1
            else:
                link.send_away(number, [message.identifier], None, [])
                skipped += 1
                log_dropped(source.subscription.destination, message, source.message_id(message.identifier))
    return letters, skipped


# --- messages that will -----------------------------------------------------------------------------

_log = logging.getLogger("pyspark_jms.source")
_MOST = MAX_SOURCE_DELIVERIES
_FLOOD_MESSAGES = 500
"""So many at once are a backlog or a flood: credit stands until no more come, so that the broker never waits."""
_POLL_SECONDS, _QUIET_POLLS = 0.002, 3
_EMPTY_ROUNDS = 2
"""So often nothing came, and no queue is proven to be empty: the window of one is full, and that of another is not."""
_LONGEST_SECONDS = 0.2
"""A source that always has another message ends a value after this time, unless it is a flood."""


class TaskIntake:
    """``receive`` adds what the sources have, perhaps nothing. No message is in flight while it does not run."""

    def __init__(
        self,
        reading: Reading,
        *,
        counts: Counts,
        drain: Drain | None,
        alone: LoneMessage | None = None,
    ) -> None:
        """``alone``: what to receive apart, because it is suspected to have killed other attempts."""
        self._reading = reading
        self._options = reading.options
        self._counts = counts
        self._drain = drain
        self._alone = alone
        self.dead_letters = 0
        self.skipped = 0
        self.gave_back = False
        """Whether messages were given back because the value is full."""
        self._begun = set[int]()
        self._cut = set[int]()
        """Sources of which messages are received, and those whose first suspected message was reached."""
        self.suspect: str | None = None
        self.deliveries, self.suspects = 0, 1
        """As of ``steps.Received``."""

    def receive(self, link: ReaderLink, value: NewValue) -> None:
        ended = set[int]() if self._drain is None else self._drain.ended
        open_ = [number for number in range(len(link.sources)) if number not in ended]
        if self._alone is None:
            self._wait(link, open_, value)
        else:
            for number in open_:
                link.sources[number].resume()
            _pause([link.sources[number] for number in open_])
        ranges = self._take(link, open_)
        if self._alone is None or not self._add_alone(link, ranges, value, self._alone):
            self._add(link, self._before_suspects(link, ranges), value)

    # --- waiting -------------------------------------------------------------------------------

    def _wait(self, link: ReaderLink, numbers: list[int], value: NewValue) -> None:
        sources, ends_at = [link.sources[number] for number in numbers], time.monotonic() + _LONGEST_SECONDS
        before, rounds = 0, 0
        while True:
            for source in sources:
                source.check()
                source.resume()
            _pause(sources)
            messages, size = _waiting(sources, value)
            if self._is_full(messages, size) or all(source.was_empty for source in sources):
                return
            rounds, before = (rounds + 1, before) if messages == before else (0, messages)
            if rounds >= _EMPTY_ROUNDS:
                return
            if messages >= _FLOOD_MESSAGES:
                if not self._flood(link, numbers, value):
                    return
            elif time.monotonic() >= ends_at:
                return

    def _flood(self, link: ReaderLink, numbers: list[int], value: NewValue) -> bool:
        """Returns whether there is room for more when no more come."""
        sources = [link.sources[number] for number in numbers]
        for source in sources:
            source.resume()
        try:
            quiet, last = 0, 0
            while quiet < _QUIET_POLLS:
                time.sleep(_POLL_SECONDS)
                if not self._add_full(link, numbers, value):
                    return False
                messages, size = _waiting(sources, value)
                if self._is_full(messages, size):
                    return False
                quiet, last = (quiet + 1, last) if messages == last else (0, messages)
            return True
        finally:
            _pause(sources)

    def _is_full(self, messages: int, size: int) -> bool:
        most = self._options.max_messages
        return size >= self._options.max_bytes or (most is not None and messages >= most)

    # --- taking --------------------------------------------------------------------------------

    def _add_alone(self, link: ReaderLink, ranges: list[MessageRange], value: NewValue, alone: LoneMessage) -> bool:
        """Add the message with the suspected ones that follow it; give the rest back. Return False if it is gone."""
        for at, range_ in enumerate(ranges):
            source = link.sources[range_.subscription]
            for index, deliveries in _of(range_, source.suspects(range_.block, 1)).items():
                if source.identity_of(range_.block, index) == alone.message:
                    before, rest = range_.split(index - range_.first)
                    many = min(alone.many, max(1, self._suspects_at(link, rest)))
                    chosen, after = rest.split(many)
                    self.suspect, self.deliveries, self.suspects = alone.message, deliveries, many
                    _release(link, [each for each in (*ranges[:at], before, after, *ranges[at + 1 :]) if len(each)])
                    self._add(link, [chosen], value)
                    self.gave_back = True
                    return True
        return False

    def _before_suspects(self, link: ReaderLink, ranges: list[MessageRange]) -> list[MessageRange]:
        """Take of each source what comes before its first suspected message, and give the rest back.

        So a message whose producer has written a high count is reached in its order, and costs two batches.
        """
        found = list[MessageRange]()
        for range_ in ranges:
            number = range_.subscription
            suspected = () if number in self._cut else _of(range_, link.sources[number].suspects(range_.block, _MOST))
            if not suspected and number not in self._cut:
                self._begun.add(number)
                found.append(range_)
                continue
            before, rest = range_.split(min(suspected, default=range_.first) - range_.first)
            if len(before):
                self._begun.add(number)
                found.append(before)
            if number not in self._begun and self.suspect is None:
                self._suspect(link, rest)
            self._cut.add(number)
            _release(link, [rest])
            self.gave_back = True
        return found

    def _suspect(self, link: ReaderLink, range_: MessageRange) -> None:
        source = link.sources[range_.subscription]
        self.suspect = source.identity_of(range_.block, range_.first)
        self.deliveries = source.suspects(range_.block, _MOST)[range_.first]
        self.suspects = self._suspects_at(link, range_)
        _log.warning(
            "! a message of %s was delivered %d times without an acknowledgement, as its header says: it is received"
            " apart, with %d more",
            source.subscription.destination,
            self.deliveries,
            self.suspects - 1,
        )

    def _suspects_at(self, link: ReaderLink, range_: MessageRange) -> int:
        """Return how many suspected messages the range begins with."""
        suspected = link.sources[range_.subscription].suspects(range_.block, _MOST)
        return next((at - range_.first for at in range(range_.first, range_.last) if at not in suspected), len(range_))

    def _add_full(self, link: ReaderLink, numbers: list[int], value: NewValue) -> bool:
        """Add what can be taken without cutting a block short, so that the broker stores it while more is received.

        Returns whether there is room for more.
        """
        blocks = [(number, block) for number in numbers for block in link.sources[number].take(only_full=True)]
        return self._add(link, self._before_suspects(link, self._ranges(link, blocks)), value)

    def _take(self, link: ReaderLink, numbers: list[int]) -> list[MessageRange]:
        ranges: list[MessageRange] = []
        for number in numbers:
            link.sources[number].check()
            letters, skipped = divert_oversized(link, number, self._options)
            self.dead_letters += letters
            self.skipped += skipped
            ranges += self._ranges(link, [(number, block) for block in link.sources[number].take()])
        return ranges

    def _ranges(self, link: ReaderLink, blocks: list[tuple[int, MessageBlock]]) -> list[MessageRange]:
        ranges = list[MessageRange]()
        for number, block in blocks:
            self._counts.redelivered += link.sources[number].redelivered(block)
            ranges += self._of_block(link, number, block)
        return ranges

    def _of_block(self, link: ReaderLink, number: int, block: MessageBlock) -> list[MessageRange]:
        """The messages of a block that become rows, in runs between those that do not."""
        source, drain = link.sources[number], self._drain
        upto = drain.sent_before_start(number, source, block, now_ms=time.time() * 1000) if drain else len(block)
        if upto < len(block):
            source.release([each for each in block.ids[upto:] if each is not None])
        bad = divert_unmappable(self._reading, link, number, block, upto=upto)
        self.dead_letters += len(bad)
        edges = [-1, *sorted(bad), upto]
        ranges = [MessageRange(number, block, a + 1, b) for a, b in pairwise(edges)]
        return [range_ for range_ in ranges if len(range_)]

    def _add(self, link: ReaderLink, ranges: list[MessageRange], value: NewValue) -> bool:
        """Add as many as a batch may have, at least one, and give the rest back. Return whether there is no rest."""
        for at, range_ in enumerate(ranges):
            size, most = self._options.max_bytes - value.size, self._options.max_messages
            left = None if most is None else most - len(value)
            taken, rest = range_.split(range_.fit(size=size, messages=left, at_least_one=not len(value)))
            if len(taken):
                value.add(taken)
            if len(rest):
                _release(link, [rest, *ranges[at + 1 :]])
                self.gave_back = True
                return False
        return True


def _pause(sources: Sequence[ReadSource]) -> None:
    """Return when no more messages can come."""
    for source in sources:
        source.begin_pause()
    for source in sources:
        source.pause()


def _waiting(sources: Sequence[ReadSource], value: NewValue) -> tuple[int, int]:
    """Messages and bytes: of the value so far, and those received and not taken."""
    sizes = [(len(value), value.size), *(source.waiting() for source in sources)]
    return sum(messages for messages, _ in sizes), sum(size for _, size in sizes)


def _of(range_: MessageRange, by_index: dict[int, int]) -> dict[int, int]:
    return {index: deliveries for index, deliveries in by_index.items() if range_.first <= index < range_.last}


def _release(link: ReaderLink, ranges: list[MessageRange]) -> None:
    """Give messages back: they return to the head of their queue, in their order."""
    for range_ in ranges:
        link.sources[range_.subscription].release([each for each in range_.ids if each is not None])
