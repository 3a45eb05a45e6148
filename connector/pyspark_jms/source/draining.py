"""AvailableNow: what was sent before the query's start, and no more. Which queues are read to that point."""

import logging
from dataclasses import dataclass, field

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.source.links import MessageSource

__all__ = ["LONGEST_MS", "Drain", "was_sent_later"]

_log = logging.getLogger("pyspark_jms.source")

_CLOCKS_DIFFER_MS = 1_000
"""A timestamp so long after the start ends the reading, one so long after now is ignored: there are two clocks."""

LONGEST_MS = 600_000
"""A subscription ends at the first message without a usable timestamp that is read so long after the start.

Such messages do not show whether they were sent before the start. A producer that goes on sending them would keep the
run open for ever. What is left waits for the next run.
"""


@dataclass(slots=True)
class Drain:
    started_ms: float
    ended: set[int] = field(default_factory=set)
    """Subscriptions that have shown a later message, or nothing more."""

    def sent_before_start(self, subscription: int, link: MessageSource, block: MessageBlock, *, now_ms: float) -> int:
        """Return how many of the block's messages were sent before the start. The first later one ends the
        subscription.

        A message from the future (a producer's clock that is wrong, or a test with a fixed time) ends nothing. What
        was sent since the start is given back at the end, when the query unsubscribes.
        """
        if subscription in self.ended:
            return 0
        for index in range(len(block)):
            if self._is_later(link.sent_ms(block, index), subscription, now_ms):
                self.ended.add(subscription)
                return index
        return len(block)

    def _is_later(self, sent_ms: int | None, subscription: int, now_ms: float) -> bool:
        later = was_sent_later(sent_ms, started_ms=self.started_ms, now_ms=now_ms)
        if later is not None:
            return later
        if self._overdue(now_ms):
            _log.warning(
                "! AvailableNow ends the reading of subscription %d after %d minutes: its messages have no timestamp,"
                " or one in the future, so nothing shows what was sent before the start. The next run reads the rest",
                subscription,
                LONGEST_MS // 60_000,
            )
            return True
        return False

    def _overdue(self, now_ms: float) -> bool:
        return now_ms - self.started_ms >= LONGEST_MS


def was_sent_later(sent_ms: int | None, *, started_ms: float, now_ms: float) -> bool | None:
    """Return whether a message was sent after the start, or None if it has no timestamp, or one in the future."""
    if sent_ms is None or sent_ms > max(started_ms, now_ms) + _CLOCKS_DIFFER_MS:
        return None
    return sent_ms > started_ms + _CLOCKS_DIFFER_MS
