"""When waiting messages become a batch: by bytes, by count, by the time that they wait. The clock is an argument."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.lingering import LINGER_SECONDS, Linger

__all__ = ["IDLE_SECONDS", "Admission", "Verdict", "Waiting"]

IDLE_SECONDS = 0.5
"""Maximum time of a poll that finds no messages. Without this wait Spark would call again every 10 ms."""


class Waiting(NamedTuple):
    """The messages that are not in a batch. ``in_flight``: bytes of all messages that are not acknowledged."""

    messages: int
    size: int
    in_flight: int
    no_room: bool
    """Nothing more can come until something is acknowledged or deleted."""
    one_is_full: bool = False
    """One connection's window is full: if the queue has message groups, others may get nothing."""


class Verdict(Enum):
    CUT = "cut a batch from what waits"
    WAIT = "poll again soon"
    ASK = "as WAIT: much has come and nothing for a moment, so cut a batch if the brokers prove to have no more"
    NONE_YET = "too little waits: no batch for now"
    NOTHING = "nothing waits"


class Admission:
    """Call ``begin`` at the start of each poll for a batch, then ``verdict`` until it is not WAIT or ASK."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float], *, draining: bool) -> None:
        self._options = options
        self._clock = clock
        self._draining = draining
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

    def verdict(self, waiting: Waiting, activity: object) -> Verdict:
        now = self._clock()
        if (current := ((waiting.messages, waiting.size), activity)) != self._activity:
            self._activity, self._last_change = current, now
        if not waiting.messages:
            return Verdict.NOTHING
        lingered = self._linger.should_cut(now, waiting.messages, waiting.size, changed=self._last_change)
        if self._is_full_batch(waiting):
            return Verdict.CUT
        if self._below_minimum(waiting):
            return Verdict.NONE_YET if now - self._began >= IDLE_SECONDS else Verdict.WAIT
        # What is done was acknowledged before, so a full window holds only what waits.
        if lingered or waiting.no_room or waiting.size >= self._options.window_bytes:
            return Verdict.CUT
        return Verdict.ASK if now - self._last_change >= LINGER_SECONDS else Verdict.WAIT

    def restart(self) -> None:
        """All messages that were taken were duplicates."""
        self._linger = Linger(self._last_batch)

    def note_batch(self) -> None:
        """A batch was cut."""
        self._last_batch = self._clock()

    def _is_full_batch(self, waiting: Waiting) -> bool:
        most = self._options.max_messages
        return waiting.size >= self._options.max_bytes or (most is not None and waiting.messages >= most)

    def _below_minimum(self, waiting: Waiting) -> bool:
        """Fewer than minMessagesPerTrigger, and worth waiting for: not with a full window, nor for too long."""
        least = self._options.min_messages
        if least is None or waiting.messages >= least or self._draining:
            return False
        # A broker sends while there is credit, so a full window holds at least ``windowBytes``.
        window = self._options.window_bytes // len(self._options.destinations)
        full = waiting.no_room or waiting.one_is_full or waiting.in_flight >= window
        return not full and self._clock() - self._last_batch < self._options.max_delay
