"""When waiting messages become a batch: by bytes, by count, by the time that they wait. The clock is an argument."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeVar

from pyspark_jms.options.source import SourceOptions

__all__ = ["IDLE_SECONDS", "LINGER_SECONDS", "BatchDecision", "BatchTrigger", "Waiting", "in_turn"]

T = TypeVar("T")

# --- how long a batch waits for more ----------------------------------------------------------------

# A batch costs Spark some 80 ms of CPU whatever it holds. A batch of a few messages ends soon, for low latency. While
# many messages arrive, the batch grows: the broker sends and the receiver reads meanwhile, so no time is lost.

LINGER_SECONDS = 0.005
"""A batch ends when nothing came for this long …"""
_LONGEST_SECONDS = 0.015
"""… or this long after its first message, whatever still comes."""
_POURING_MESSAGES, _POURING_BYTES = 10_000, 16 << 20
"""A second: more, of either, is a backlog or a flood …"""
_POURING_SECONDS, _POURING_QUIET_SECONDS = 1.0, 0.1
"""… and its batch ends after so long, or when nothing came for so long: a broker may be collecting its garbage."""


@dataclass(slots=True)
class Linger:
    """The wait for one batch. Call ``should_end`` once a message is waiting, until it returns True."""

    last_batch: float
    """When the batch before ended. What waits at the first call came after it, or was left by that batch's limit."""
    _began: float = 0.0
    _at_first: tuple[int, int] | None = None

    def should_end(self, now: float, messages: int, size: int, *, changed: float) -> bool:
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
        return _is_flood(now - self.last_batch, messages, size) or _is_flood(
            now - self._began, messages - messages_then, size - size_then
        )


def _is_flood(seconds: float, messages: int, size: int) -> bool:
    return seconds > 0 and (messages >= _POURING_MESSAGES * seconds or size >= _POURING_BYTES * seconds)


# --- when a batch ends ------------------------------------------------------------------------------

IDLE_SECONDS = 0.5
"""Maximum time of a poll that finds no messages. Without this wait Spark would call again every 10 ms."""


class Waiting(NamedTuple):
    """The messages that are not in a batch."""

    messages: int
    size: int
    no_room: bool
    """Nothing more can come until something is acknowledged or deleted."""


class BatchDecision(Enum):
    BATCH = "what waits is a batch"
    WAIT = "poll again soon"
    ASK = "as WAIT: much has come and nothing for a moment, so it is a batch if the brokers prove to have no more"
    NOTHING = "nothing waits"


class BatchTrigger:
    """Call ``begin`` at the start of each poll for a batch, then ``verdict`` until it is not WAIT or ASK."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self._last_batch = clock()
        self.begin(None)

    def begin(self, activity: object) -> None:
        """``activity``: anything that changes while messages arrive."""
        self._began = self._last_change = self._clock()
        self._activity: object = ((0, 0), activity)
        self._linger = Linger(self._last_batch)

    @property
    def waited(self) -> float:
        """Seconds since the poll began."""
        return self._clock() - self._began

    @property
    def quiet(self) -> float:
        """Seconds since something arrived."""
        return self._clock() - self._last_change

    def verdict(self, waiting: Waiting, activity: object) -> BatchDecision:
        now = self._clock()
        if (current := ((waiting.messages, waiting.size), activity)) != self._activity:
            self._activity, self._last_change = current, now
        if not waiting.messages:
            return BatchDecision.NOTHING
        lingered = self._linger.should_end(now, waiting.messages, waiting.size, changed=self._last_change)
        if self._options.is_full_batch(waiting.messages, waiting.size):
            return BatchDecision.BATCH
        # What is done was acknowledged before, so a full window holds only what waits.
        if lingered or waiting.no_room or waiting.size >= self._options.window_bytes:
            return BatchDecision.BATCH
        return BatchDecision.ASK if now - self._last_change >= LINGER_SECONDS else BatchDecision.WAIT

    def restart(self) -> None:
        """All messages that were taken were duplicates."""
        self._linger = Linger(self._last_batch)

    def note_batch(self) -> None:
        """A batch has ended."""
        self._last_batch = self._clock()


# --- where a batch begins -----------------------------------------------------------------------------


def in_turn(each: Sequence[T], turn: int) -> list[T]:
    """Return them in the order in which a batch takes messages from them. A batch may not have room for all, so each
    begins with another one: ``turn`` grows by one with each batch.
    """
    first = turn % max(1, len(each))
    return [*each[first:], *each[:first]]
