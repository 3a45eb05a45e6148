"""What the sink's options give to a row whose own columns are null. A checked value; knows no protocol."""

from dataclasses import dataclass
from typing import Self

from pyspark_jms.errors import InvalidOptionError
from pyspark_jms.jms.model import DeliveryMode, Destination

__all__ = ["SendDefaults"]

_MAX_PRIORITY = 9  # JMS 3.1 §3.4.9
_PRIORITY = 4  # the same section, for a message without one


@dataclass(frozen=True, slots=True, kw_only=True)
class SendDefaults:
    destination: Destination | None
    delivery_mode: DeliveryMode
    priority: int
    time_to_live_ms: int
    """0: the message never expires."""
    delivery_delay_ms: int

    @classmethod
    def of_jms(cls, destination: Destination) -> Self:
        """What a JMS producer gives to a message if nobody sets anything."""
        return cls(
            destination=destination,
            delivery_mode=DeliveryMode.PERSISTENT,
            priority=_PRIORITY,
            time_to_live_ms=0,
            delivery_delay_ms=0,
        )

    def __post_init__(self) -> None:
        if not 0 <= self.priority <= _MAX_PRIORITY:
            raise InvalidOptionError(f"priority is {self.priority}.", "JMS has the priorities 0 to 9.")
        if self.time_to_live_ms < 0 or self.delivery_delay_ms < 0:
            raise InvalidOptionError("timeToLive or deliveryDelay is negative.", "Give milliseconds from 0 on.")
