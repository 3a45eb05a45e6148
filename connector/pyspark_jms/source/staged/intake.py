"""From the sources of a staged stream: messages that are moved next, and those that are given back or sent away."""

import logging
import time
from dataclasses import dataclass
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
from pyspark_jms.source.staged.links import StagedLink
from pyspark_jms.source.stopping import StopRequest

__all__ = ["Intake", "Taken"]

_log = logging.getLogger("pyspark_jms.source")
_POLL_SECONDS = 0.05


@dataclass(slots=True, repr=False)
class Taken:
    """Received, and not accepted."""

    spans: list[Span]
    deliveries: int

    def __len__(self) -> int:
        return sum(map(len, self.spans))


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

    def receive(self, link: StagedLink) -> Taken:
        """What is moved next. Nothing: too little, or nothing came for a while, or everything is drained."""
        self._admission.begin(link.received_bytes)
        while True:
            verdict = self._wait(link)
            taken = self._take(link)
            if len(taken) and verdict is Verdict.NONE_YET and len(taken) < (self._options.min_messages or 0):
                _release(link, taken.spans)
                return Taken([], taken.deliveries)
            if len(taken) or self._is_over(link):
                if len(taken):
                    self._admission.note_batch()
                return taken
            self._admission.begin(link.received_bytes)

    def _is_over(self, link: StagedLink) -> bool:
        """Whether no message is an answer: AvailableNow goes on until each source has proven to be drained."""
        drain = self._drain
        if drain is None:
            return True
        for lane in self._open(link):
            if link.lanes[lane].was_empty:
                drain.ended.add(lane)
        return not self._open(link)

    def _open(self, link: StagedLink) -> list[int]:
        """The lanes that are read: of a drain those that have not ended."""
        return [lane for lane in range(len(link.lanes)) if self._drain is None or lane not in self._drain.ended]

    # --- waiting -------------------------------------------------------------------------------

    def _wait(self, link: StagedLink) -> Verdict:
        lanes = [link.lanes[lane] for lane in self._open(link)]
        try:
            for lane in lanes:
                lane.resume()
            while True:
                self._stop.check()
                for lane in lanes:
                    lane.check()
                waiting = self._waiting(link)
                verdict = self._admission.verdict(waiting, link.received_bytes)
                if verdict in {Verdict.CUT, Verdict.NONE_YET} or (
                    verdict is Verdict.NOTHING and self._admission.quiet >= self._patience
                ):
                    return verdict
                if waiting.messages:
                    time.sleep(LINGER_SECONDS / 2)  # and is not woken for each that comes
                else:
                    self._arrivals.pause(_POLL_SECONDS)
        finally:
            for lane in lanes:
                lane.pause()

    @property
    def _patience(self) -> float:
        return IDLE_SECONDS if self._drain is None else self._drain.idle_timeout

    def _waiting(self, link: StagedLink) -> Waiting:
        figures = [link.lanes[lane].waiting() for lane in self._open(link)]
        size = sum(size for _, size in figures)
        return Waiting(sum(messages for messages, _ in figures), size, size, no_room=False)

    # --- taking --------------------------------------------------------------------------------

    def _take(self, link: StagedLink) -> Taken:
        spans: list[Span] = []
        deliveries = 0
        for number in self._open(link):
            lane = link.lanes[number]
            lane.check()
            self._divert_oversized(link, number)
            for block in lane.take():
                deliveries = max(deliveries, lane.most_deliveries(block))
                self._counts.redelivered += lane.redelivered(block)
                spans += self._of_block(link, number, block)
        return Taken(self._fitting(link, spans), deliveries)

    def _of_block(self, link: StagedLink, number: int, block: MessageBlock) -> list[Span]:
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

    def _divert_oversized(self, link: StagedLink, number: int) -> None:
        letters, skipped = divert_oversized(link, number, self._options)
        self.dead_letters += letters
        self.skipped += skipped

    def _fitting(self, link: StagedLink, spans: list[Span]) -> list[Span]:
        """As many as a batch may have, at least one; the rest is given back."""
        messages, size = self._options.max_messages, self._options.max_bytes
        kept: list[Span] = []
        for at, span in enumerate(spans):
            fits = span.fit(size=size, messages=messages, at_least_one=not kept)
            taken, rest = span.cut(fits)
            kept += [taken] if fits else []
            size -= taken.size
            messages = None if messages is None else messages - fits
            if len(rest):
                _release(link, [rest, *spans[at + 1 :]])
                break
        return kept


def _release(link: StagedLink, spans: list[Span]) -> None:
    """Give messages back: they return to the head of their queue, in their order."""
    for span in spans:
        link.lanes[span.lane].release([each for each in span.ids if each is not None])
