"""Connections that end as soon as they have subscribed, again and again → the error that says what may cause it.

For brokers that say nothing then (``Dialect.silent_end``). Knows lanes and a clock that is handed in, no connection.
"""

from dataclasses import dataclass, field

from pyspark_jms.errors import ConnectionLostError
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.address import Address
from pyspark_jms.stomp.dialects import Dialect

__all__ = ["MOST_IN_VAIN", "ShortLives"]

MOST_IN_VAIN = 5
"""After so many in a row the query stops: what ends a connection at once is not a broker that is away."""

_SHORT_SECONDS = 2.0
"""A subscription that ended sooner may have ended by what was to be delivered."""


@dataclass(slots=True)
class ShortLives:
    """``began`` when a lane has subscribed, ``ended`` when its connection is lost."""

    _since: dict[int, float] = field(default_factory=dict)
    _in_vain: dict[int, int] = field(default_factory=dict)

    def began(self, lane: int, now: float) -> None:
        self._since[lane] = now

    def in_vain(self, lane: int) -> int:
        """So many connections of the lane in a row, the last one included, have ended at once."""
        return self._in_vain.get(lane, 0)

    def ended(
        self, lane: int, now: float, *, dialect: Dialect, address: Address, destination: Destination
    ) -> ConnectionLostError | None:
        """What to raise should there be no more attempts; None when this end is like any other."""
        at_once = bool(dialect.silent_end) and now - self._since[lane] < _SHORT_SECONDS
        self._in_vain[lane] = self.in_vain(lane) + 1 if at_once else 0
        if not at_once:
            return None
        return ConnectionLostError(
            f"{address} ended {self.in_vain(lane)} connections in a row, each soon after it had subscribed to"
            f" {destination}.",
            dialect.silent_end,
        )
