"""What is in the sources now → one value. A task does not wait: the planner has seen that there are messages."""

import time

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.register.reader import MAX_SOURCE_DELIVERIES
from pyspark_jms.delivery.span import Span
from pyspark_jms.source.admission import Verdict
from pyspark_jms.source.staged.intake import Intake, release_spans, waiting_of
from pyspark_jms.source.staged.links import SourcesLink, StagedLane
from pyspark_jms.source.staged.move import Move

__all__ = ["TaskIntake"]

_FLOOD_MESSAGES = 500
"""So many at once are a backlog or a flood: credit stands until no more come, so that the broker never waits."""
_POLL_SECONDS, _QUIET_POLLS = 0.002, 3
_EMPTY_ROUNDS = 2
"""So often nothing came, and no queue is proven to be empty: the window of one is full, and that of another is not."""
_LONGEST_SECONDS = 0.2
"""A source that always has another message ends a value after this time, unless it is a flood."""


class TaskIntake(Intake):
    """``receive`` adds what the sources have, perhaps nothing."""

    alone = False
    """Whether to receive one message: it is suspected to have killed other attempts."""
    is_cut = False
    """Whether messages were given back because the value is full."""
    suspect: str | None = None
    """Identifies the message with the highest delivery-count, if that is a reason to receive it alone."""

    def receive(self, link: SourcesLink, move: Move) -> None:
        lanes = self._open(link)
        if self.alone:
            self._receive_one(link, move)
            return
        self._wait(link, lanes, move)
        self._add(link, self._take(link, lanes, move), move)

    def _wait(self, link: SourcesLink, numbers: list[int], move: Move) -> Verdict:
        lanes, ends_at = [link.lanes[number] for number in numbers], time.monotonic() + _LONGEST_SECONDS
        before, rounds = 0, 0
        while True:
            for lane in lanes:
                lane.check()
                lane.resume()
            for lane in lanes:
                lane.pause()
            there = waiting_of(lanes, move)
            if self._is_full(there.messages, there.size) or all(lane.was_empty for lane in lanes):
                return Verdict.CUT
            rounds, before = (rounds + 1, before) if there.messages == before else (0, there.messages)
            if rounds >= _EMPTY_ROUNDS:
                return Verdict.CUT
            if there.messages >= _FLOOD_MESSAGES:
                if not self._flood(link, numbers, move):
                    return Verdict.CUT
            elif time.monotonic() >= ends_at:
                return Verdict.CUT

    def _flood(self, link: SourcesLink, numbers: list[int], move: Move) -> bool:
        """Returns whether there is room for more when no more come."""
        lanes = [link.lanes[number] for number in numbers]
        for lane in lanes:
            lane.resume()
        try:
            quiet, last = 0, 0
            while quiet < _QUIET_POLLS:
                time.sleep(_POLL_SECONDS)
                if not self._add_full(link, numbers, move):
                    return False
                there = waiting_of(lanes, move)
                if self._is_full(there.messages, there.size):
                    return False
                quiet, last = (quiet + 1, last) if there.messages == last else (0, there.messages)
            return True
        finally:
            for lane in lanes:
                lane.pause()

    def _is_full(self, messages: int, size: int) -> bool:
        most = self._options.max_messages
        return size >= self._options.max_bytes or (most is not None and messages >= most)

    def _add(self, link: SourcesLink, spans: list[Span], move: Move) -> bool:
        is_whole = super()._add(link, spans, move)
        self.is_cut = self.is_cut or not is_whole
        return is_whole

    def _receive_one(self, link: SourcesLink, move: Move) -> None:
        lanes: list[StagedLane] = list(link.lanes)
        for number, lane in enumerate(lanes):
            lane.resume()
            lane.pause()
            spans = self._take(link, [number], move)
            if spans:
                first, rest = spans[0].cut(1)
                move.add(first)
                release_spans(link, [each for each in (rest, *spans[1:]) if len(each)])
                return

    def _spans(self, link: SourcesLink, blocks: list[tuple[int, MessageBlock]], move: Move) -> list[Span]:
        before = move.deliveries
        spans = super()._spans(link, blocks, move)
        if move.deliveries > before and move.deliveries >= MAX_SOURCE_DELIVERIES:
            found = [link.lanes[number].suspect(block) for number, block in blocks]
            self.suspect = max(found)[1]
        return spans
