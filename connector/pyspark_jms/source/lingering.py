"""How long received messages wait for more, until their batch is cut. The clock is handed in.

A batch costs Spark some 80 ms of CPU whatever it holds. A batch of a few messages is cut soon, for low latency. While
many messages arrive, the batch grows: the broker sends and the receiver reads meanwhile, so no time is lost.
"""

from dataclasses import dataclass

__all__ = ["LINGER_SECONDS", "Linger"]

LINGER_SECONDS = 0.005
"""A batch is cut when nothing came for this long …"""
_LONGEST_SECONDS = 0.015
"""… or this long after its first message, whatever still comes."""
_POURING_MESSAGES, _POURING_BYTES = 10_000, 16 << 20
"""A second: more, of either, is a backlog or a flood …"""
_POURING_SECONDS, _POURING_QUIET_SECONDS = 1.0, 0.1
"""… and its batch is cut after so long, or when nothing came for so long: a broker may be collecting its garbage."""


@dataclass(slots=True)
class Linger:
    """The wait for one batch. Call ``should_cut`` once a message is waiting, until it returns True."""

    last_cut: float
    """When the batch before was cut. What waits at the first call came after it, or was left by that batch's limit."""
    _began: float = 0.0
    _at_first: tuple[int, int] | None = None

    def should_cut(self, now: float, messages: int, size: int, *, changed: float) -> bool:
        """``now`` in seconds; how much waits, which only grows; when bytes came last, also of a message on its way."""
        if self._at_first is None:
            self._began, self._at_first = now, (messages, size)
        age, quiet = now - self._began, now - max(changed, self._began)
        if self._pours(now, messages, size):
            return quiet >= _POURING_QUIET_SECONDS or age >= _POURING_SECONDS
        return quiet >= LINGER_SECONDS or age >= _LONGEST_SECONDS

    def _pours(self, now: float, messages: int, size: int) -> bool:
        """On average since the last batch, or since the first call: a flood can begin after a while of silence."""
        assert self._at_first is not None
        messages_then, size_then = self._at_first
        return _is_flood(now - self.last_cut, messages, size) or _is_flood(
            now - self._began, messages - messages_then, size - size_then
        )


def _is_flood(seconds: float, messages: int, size: int) -> bool:
    return seconds > 0 and (messages >= _POURING_MESSAGES * seconds or size >= _POURING_BYTES * seconds)
