"""Connections that end as soon as they have subscribed, again and again → the error that says what may cause it.

For brokers that give no reason then. Knows lanes and a clock that is handed in, no connection.
"""

from dataclasses import dataclass, field

from pyspark_jms.errors import ConnectionLostError
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.address import Address

__all__ = ["MAX_SHORT_SESSIONS", "ShortSessions"]

MAX_SHORT_SESSIONS = 5
"""After so many in a row the query stops: a broker that is away does not end connections at once."""

_SHORT_SECONDS = 2.0
"""The messages to be delivered may be what ended a subscription that ended sooner."""


@dataclass(slots=True)
class ShortSessions:
    """``began`` when a lane has subscribed, ``ended`` when its connection is lost."""

    _since: dict[int, float] = field(default_factory=dict)
    _consecutive: dict[int, int] = field(default_factory=dict)

    def began(self, lane: int, now: float) -> None:
        self._since[lane] = now

    def consecutive(self, lane: int) -> int:
        """How many connections of the lane in a row, the last one included, ended at once."""
        return self._consecutive.get(lane, 0)

    def ended(
        self, lane: int, now: float, *, silent_end: str, address: Address, destination: Destination
    ) -> ConnectionLostError | None:
        """The error to raise if there are no more attempts; None when this end is like any other.

        ``silent_end``: what the broker may mean by an end without a reason; empty if it gives reasons.
        """
        at_once = bool(silent_end) and now - self._since[lane] < _SHORT_SECONDS
        self._consecutive[lane] = self.consecutive(lane) + 1 if at_once else 0
        if not at_once:
            return None
        return ConnectionLostError(
            f"{address} ended {self.consecutive(lane)} connections in a row, each soon after it had subscribed to"
            f" {destination}.",
            silent_end,
        )
