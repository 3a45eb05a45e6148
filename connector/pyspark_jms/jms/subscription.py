"""One subscription of a query or a check, without the words of a protocol."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

from pyspark_jms.errors import InvalidDestinationError, SelectorChangedError
from pyspark_jms.jms.model import Destination, DurableSubscription

__all__ = [
    "ASSUMED_MESSAGE_BYTES",
    "FULL_QUEUE_REMEDY",
    "MAX_ELEMENTS",
    "BodyChoice",
    "SharedWindow",
    "SpareConnection",
    "Subscription",
    "another_topic",
    "both_selectors",
    "no_subscription",
    "selector_changed",
    "source_name",
    "too_many",
]

C = TypeVar("C")

ASSUMED_MESSAGE_BYTES = 4 << 10
"""The size of a message where bytes must be converted to messages before the first message arrives."""

MAX_ELEMENTS = 100_000
"""The most properties of a message, and elements of its map or stream, that are decoded. An element takes one byte of
a message, and up to 300 bytes of memory where it is decoded: without this limit, one message could end a task.
"""

BodyChoice: TypeAlias = Literal["auto", "text", "bytes"]
"""Option bodyType: one body type for all messages, or detection for each message."""


class SharedWindow:
    """What the subscriptions of a query have beside their own windows: equal parts for those that fill theirs.

    Every method is called with the lock of the connections held.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._users: set[object] = set()

    def part(self, user: object, *, is_full: bool) -> int:
        """Return the bytes that a subscription has in addition. One that has once filled its window keeps its part."""
        if is_full:
            self._users.add(user)
        return self._size // len(self._users) if user in self._users else 0

    def leave(self, user: object) -> None:
        """The subscription does not fill its own window any more, or has ended."""
        self._users.discard(user)


class SpareConnection:
    """A connection beside those of the subscriptions, from its first use on: what can end it is done on it."""

    def __init__(self) -> None:
        self._connection: Any = None

    def opened(self, connect: Callable[[], C]) -> C:
        """Return the connection, or a new one if it was lost. ``connect`` is the same in each call."""
        if self._connection is None or self._connection.is_down:
            self._connection = connect()
        return cast("C", self._connection)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    destination: Destination
    window_bytes: int
    """The prefetch window: what the broker may have in flight to us. It bounds memory and is the back-pressure."""
    window_messages: int | None = None
    """The same for a broker that counts messages."""
    shared: SharedWindow | None = None
    """What may be added to ``window_bytes`` where a window can grow: over AMQP."""
    transform: bool = False
    """Request the content of maps from a broker that sends the content only on request."""
    browse: bool = False
    """Look at messages without taking them, where the broker can do that."""
    durable: DurableSubscription | None = None
    selector: str | None = None
    """In the broker's words."""
    connections: int = 1
    """How many connections read the destination."""
    probes: bool = False
    """Receive redelivered messages one at a time first, where a message that the broker cannot send ends the
    subscription and costs each message in delivery an attempt.
    """
    spare: SpareConnection | None = None
    """For that, where the subscription shares its connection with others."""


def selector_changed(durable: DurableSubscription) -> SelectorChangedError:
    return SelectorChangedError(
        f"The durable subscription {durable} was created with another selector than this query has. Nothing was read.",
        "Give the old selector, or another subscriptionName; or delete the subscription and its messages with"
        " pyspark-jms unsubscribe.",
    )


FULL_QUEUE_REMEDY = (
    "The queue has as many consumers as its max-consumers allows: stop another one, raise max-consumers, or use fewer"
    " connections or readers."
)
"""Of a query that reads a queue, and no durable subscription."""


def another_topic(durable: DurableSubscription, topic: str) -> InvalidDestinationError:
    """The broker has the subscription, and it belongs to ``topic``: ``topic NAME``, or ``another topic than NAME``."""
    return InvalidDestinationError(
        f"The durable subscription {durable} belongs to {topic}. Nothing was read or deleted.",
        "Give the topic that it belongs to, or another subscriptionName; or delete that subscription with pyspark-jms"
        " unsubscribe.",
    )


def no_subscription(durable: DurableSubscription) -> InvalidDestinationError:
    return InvalidDestinationError(
        f"There is no durable subscription {durable}. Nothing was deleted.",
        "Its name is clientId.subscriptionName of the query that created it, or subscriptionName alone without a"
        " clientId.",
    )


def source_name(destination: Destination, durable: DurableSubscription | None) -> str:
    """The subscription's name in a journal: two subscriptions to a topic get the same messages under the same ids."""
    return str(destination) if durable is None else f"{destination} for {durable}"


def too_many(what: str) -> str:
    """The reason why a message is not decoded that has more of ``what`` than ``MAX_ELEMENTS``."""
    return f"more than {MAX_ELEMENTS:,} {what}"


def both_selectors(selector: str | None, more: str) -> str:
    """Return a selector for both, behind the prefixes of the first one (``convert_string_expressions:``)."""
    if selector is None:
        return more
    prefixes, rest = re.fullmatch(r"((?:[a-z_]+:)*)(.*)", selector, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{prefixes}({rest}) AND ({more})"
