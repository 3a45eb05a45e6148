"""From the sources of a staged stream: messages that are moved next, and those that are given back or sent away."""

import logging
import time
from collections.abc import Sequence
from itertools import pairwise

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.span import Span
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.admission import IDLE_SECONDS, Admission, Verdict, Waiting
from pyspark_jms.source.draining import Drain
from pyspark_jms.source.lingering import LINGER_SECONDS
from pyspark_jms.source.links import Arrivals
from pyspark_jms.source.progress import Counts
from pyspark_jms.source.staged.diverting import divert_oversized, divert_unmappable
from pyspark_jms.source.staged.links import SourcesLink, StagedLane
from pyspark_jms.source.staged.move import Move
from pyspark_jms.source.stopping import StopRequest

__all__ = ["Intake", "release_spans", "waiting_of"]

_log = logging.getLogger("pyspark_jms.source")
_POLL_SECONDS = 0.05


class Intake:
    """``receive`` waits a while for messages. No message is in flight while it does not run."""

    def __init__(
        self, options: SourceOptions, *, stop: StopRequest, arrivals: Arrivals, counts: Counts, drain: Drain | None
    ) -> None:
        self._options = options
        self._stop = stop
        self._arrivals = arrivals
        self._counts = counts
        self._drain = drain
        self._admission = Admission(options, time.monotonic, draining=drain is not None)
        self.dead_letters = 0
        self.skipped = 0

    def receive(self, link: SourcesLink, move: Move) -> None:
        """Adds what is moved next. Nothing: too little, or nothing came for a while, or everything is drained."""
        self._admission.begin(link.received_bytes)
        while True:
            lanes = self._open(link)
            verdict = self._wait(link, lanes, move)
            spans = self._take(link, lanes, move)
            if verdict is Verdict.NONE_YET and 0 < sum(map(len, spans)) < (self._options.min_messages or 0):
                release_spans(link, spans)
                return
            self._add(link, spans, move)
            if len(move) or self._is_over(link):
                if len(move):
                    self._admission.note_batch()
                return
            self._admission.begin(link.received_bytes)

    def _is_over(self, link: SourcesLink) -> bool:
        """Whether no message is an answer: AvailableNow goes on until each source has proven to be drained."""
        drain = self._drain
        if drain is None:
            return True
        for lane in self._open(link):
            if link.lanes[lane].was_empty:
                drain.ended.add(lane)
        return not self._open(link)

    def _open(self, link: SourcesLink) -> list[int]:
        """The lanes that are read: of a drain those that have not ended."""
        return [lane for lane in range(len(link.lanes)) if self._drain is None or lane not in self._drain.ended]

    # --- waiting -------------------------------------------------------------------------------

    def _wait(self, link: SourcesLink, numbers: list[int], move: Move) -> Verdict:
        lanes = [link.lanes[number] for number in numbers]
        try:
            for lane in lanes:
                lane.resume()
            while True:
                self._stop.check()
                for lane in lanes:
                    lane.check()
                if not self._add_full(link, numbers, move):
                    return Verdict.CUT
                waiting = waiting_of(lanes, move)
                verdict = self._admission.verdict(waiting, link.received_bytes)
                if verdict in {Verdict.CUT, Verdict.NONE_YET} or (
                    verdict is Verdict.NOTHING and self._admission.quiet >= self._patience
                ):
                    return verdict
                if not waiting.messages:
                    self._arrivals.pause(_POLL_SECONDS)
                elif verdict is Verdict.ASK and self._is_drained(lanes):
                    return Verdict.CUT
                else:
                    time.sleep(LINGER_SECONDS / 2)  # and is not woken for each that comes
        finally:
            for lane in lanes:
                lane.pause()

    def _is_drained(self, lanes: Sequence[StagedLane]) -> bool:
        """In a flood that has stopped: whether the sources are proven to have no more. Silence would take longer."""
        if self._options.min_messages is not None:
            return False
        for lane in lanes:
            lane.pause()
        if all(lane.was_empty for lane in lanes):
            return True
        for lane in lanes:
            lane.resume()
        return False

    @property
    def _patience(self) -> float:
        return IDLE_SECONDS if self._drain is None else self._drain.idle_timeout

    def _add_full(self, link: SourcesLink, numbers: list[int], move: Move) -> bool:
        """Add what can be taken without cutting a block short, so that the broker stores it while more is received.

        Not below a minimum, which may give everything back. Returns whether there is room for more.
        """
        if self._options.min_messages is not None:
            return True
        blocks = [(number, block) for number in numbers for block in link.lanes[number].take(only_full=True)]
        return self._add(link, self._spans(link, blocks, move), move)

    # --- taking --------------------------------------------------------------------------------

    def _take(self, link: SourcesLink, numbers: list[int], move: Move) -> list[Span]:
        spans: list[Span] = []
        for number in numbers:
            link.lanes[number].check()
            self._divert_oversized(link, number)
            spans += self._spans(link, [(number, block) for block in link.lanes[number].take()], move)
        return spans

    def _spans(self, link: SourcesLink, blocks: list[tuple[int, MessageBlock]], move: Move) -> list[Span]:
        spans: list[Span] = []
        for number, block in blocks:
            lane = link.lanes[number]
            move.deliveries = max(move.deliveries, lane.most_deliveries(block))
            self._counts.redelivered += lane.redelivered(block)
            spans += self._of_block(link, number, block)
        return spans

    def _of_block(self, link: SourcesLink, number: int, block: MessageBlock) -> list[Span]:
        """The messages of a block that become rows, in runs between those that do not."""
        lane, drain = link.lanes[number], self._drain
        upto = drain.sent_before_start(number, lane, block, now_ms=time.time() * 1000) if drain else len(block)
        if upto < len(block):
            lane.release([each for each in block.ids[upto:] if each is not None])
        bad = divert_unmappable(link, number, block, upto, self._options)
        self.dead_letters += len(bad)
        edges = [-1, *sorted(bad), upto]
        spans = [Span(number, block, a + 1, b) for a, b in pairwise(edges)]
        return [span for span in spans if len(span)]

    def _divert_oversized(self, link: SourcesLink, number: int) -> None:
        letters, skipped = divert_oversized(link, number, self._options)
        self.dead_letters += letters
        self.skipped += skipped

    def _add(self, link: SourcesLink, spans: list[Span], move: Move) -> bool:
        """As many as a batch may have, at least one; the rest is given back. Returns whether there is no rest."""
        for at, span in enumerate(spans):
            size, most = self._options.max_bytes - move.size, self._options.max_messages
            left = None if most is None else most - len(move)
            taken, rest = span.cut(span.fit(size=size, messages=left, at_least_one=not len(move)))
            if len(taken):
                move.add(taken)
            if len(rest):
                release_spans(link, [rest, *spans[at + 1 :]])
                return False
        return True


def waiting_of(lanes: Sequence[StagedLane], move: Move) -> Waiting:
    figures = [(len(move), move.size), *(lane.waiting() for lane in lanes)]
    size = sum(size for _, size in figures)
    return Waiting(sum(messages for messages, _ in figures), size, size, no_room=False)


def release_spans(link: SourcesLink, spans: list[Span]) -> None:
    """Give messages back: they return to the head of their queue, in their order."""
    for span in spans:
        link.lanes[span.lane].release([each for each in span.ids if each is not None])
