"""AvailableNow: what was sent before the query's start, and no more. Which queues are read to that point."""

from dataclasses import dataclass, field

from pyspark_jms.wire.scan import FrameRun

__all__ = ["Drain"]

_CLOCKS_DIFFER_MS = 1_000
"""A message sent after the start ends the reading: by this much, since the clocks are two."""


@dataclass(slots=True)
class Drain:
    started_ms: float
    idle_timeout: float
    ended: set[int] = field(default_factory=set)
    """Lanes that have shown a later message, or nothing more."""

    def before_the_cut(self, lane: int, run: FrameRun, sent_header: bytes | None, unit_ms: int = 1) -> int:
        """How many of the run's messages were sent before the start; the first later one ends the lane's reading.

        What came since is given back at the end, by UNSUBSCRIBE. ``unit_ms``: what that header counts.
        """
        if lane in self.ended:
            return 0
        if sent_header is None:
            return len(run)
        latest = self.started_ms + _CLOCKS_DIFFER_MS
        for index in range(len(run)):
            sent = run.header(index, sent_header)
            if sent is not None and sent.isdigit() and int(sent) * unit_ms > latest:
                self.ended.add(lane)
                return index
        return len(run)
