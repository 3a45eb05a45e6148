"""When a broker has ignored the prefetch window: a bound for what was received and is not acknowledged.

STOMP has no credit. The window is a header of SUBSCRIBE, which each broker counts in its own way, and a broker that
ignores it would fill the memory of the driver. So the bound is a multiple of the value of that header, in the unit
that the broker counts.
"""

from collections import deque
from dataclasses import dataclass

from pyspark_jms.errors import PrefetchExceededError
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.dialects.base import WindowUnit

__all__ = ["NOT_SUBSCRIBED", "PrefetchLimit", "Unacknowledged", "limit_of"]

_WINDOWS = 4
"""Three more than the one that the broker fills: brokers count a message in other ways than by its bytes here."""

_ALWAYS_BYTES = 64 << 20
"""So much memory is there for any window, so that a small one is never exceeded by how a broker counts it."""

_ALWAYS_MESSAGES = 1
"""Brokers that count bytes send the message that crosses the window, whatever its size."""

_PROBED_MESSAGES = 100
"""As many subscriptions to one message each as the conversion probe makes on a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchLimit:
    """The limit of one subscription. It is exceeded if both values are."""

    messages: int
    size: int
    window: str
    """The window that the connector asked for, as a text for the error."""

    def is_exceeded(self, messages: int, size: int) -> bool:
        return size > self.size and messages > self.messages

    def require(self, messages: int, size: int, *, max_message_bytes: int) -> None:
        """Raise the error if so much is received and not acknowledged. Each window may have one message more."""
        if self.is_exceeded(messages, size - (_WINDOWS - 1) * max_message_bytes):
            raise self.error(messages, size)

    def error(self, messages: int, size: int) -> PrefetchExceededError:
        return PrefetchExceededError(
            f"The broker delivered {messages:,} messages ({size:,} bytes) that are not acknowledged, to a subscription"
            f" with a prefetch window of {self.window}.",
            "The connector ended the connection, because its memory would have no limit. Check option broker if it is"
            " set. If brokerUrl leads to a broker of docs/brokers, report this with its version. Otherwise look at"
            " what is between the broker and Spark.",
        )


def limit_of(dialect: Dialect, window: int) -> PrefetchLimit:
    """``window``: the value of the header that sets it."""
    if dialect.window_unit is WindowUnit.MESSAGES:
        return PrefetchLimit(messages=_WINDOWS * window, size=_ALWAYS_BYTES, window=f"{window:,} messages")
    size = max(_WINDOWS * window, _ALWAYS_BYTES)
    return PrefetchLimit(messages=_ALWAYS_MESSAGES, size=size, window=f"{window:,} bytes")


NOT_SUBSCRIBED = PrefetchLimit(messages=_PROBED_MESSAGES, size=_ALWAYS_BYTES, window="one message")
"""The limit of a connection before its subscription, which receives replies and single messages of probes."""


class Unacknowledged:
    """``messages`` and ``size`` of what was taken from a connection and is not acknowledged.

    The sizes are those of the oldest messages first, which is the order of acknowledgements, apart from a few.
    """

    def __init__(self) -> None:
        self.messages = self.size = 0
        self._parts: deque[tuple[int, int]] = deque()

    def add(self, messages: int, size: int) -> None:
        if messages:
            self._parts.append((messages, size))
            self.messages, self.size = self.messages + messages, self.size + size

    def remove(self, messages: int) -> None:
        left = messages
        while left and self._parts:
            count, size = self._parts.popleft()
            gone = min(count, left)
            part = size * gone // count
            if gone < count:
                self._parts.appendleft((count - gone, size - part))
            self.messages, self.size, left = self.messages - gone, self.size - part, left - gone
