"""Consecutive received messages: what the ledgers move from state to state, and batches are made of. Pure."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from pyspark_jms.blocks.block import MessageBlock, fit
from pyspark_jms.delivery.states import MessageState

__all__ = ["Backlog", "Batch", "Bounds", "MessageRange"]


@dataclass(slots=True)
class MessageRange:
    """Messages ``first`` to ``last`` (not included) of one block of one subscription, all in one state.

    The block is shared, not copied: ledgers write the new ids of redelivered messages into it, with ``bind``.
    """

    subscription: int
    block: MessageBlock
    first: int
    last: int
    state: MessageState = MessageState.RECEIVED
    moved: dict[int, int] | None = None
    """By index, the subscription of each message that not ``subscription`` but another one redelivered last."""

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def size(self) -> int:
        """Bytes of its messages."""
        return self.block.start(self.last) - self.block.start(self.first)

    @property
    def ids(self) -> list[bytes | None]:
        return self.block.ids[self.first : self.last]

    def bind(self, index: int, identifier: bytes | None, subscription: int) -> None:
        """The message was redelivered: only ``identifier``, on ``subscription``, can acknowledge it now."""
        self.block.ids[index] = identifier
        if subscription != self.subscription:
            self.moved = (self.moved or {}) | {index: subscription}
        elif self.moved is not None:
            self.moved.pop(index, None)

    def of_subscription(self, subscription: int) -> Iterable[int]:
        """The messages, by index, that ``subscription`` delivered last."""
        if not self.moved:
            return range(self.first, self.last) if subscription == self.subscription else ()
        return [
            index for index in range(self.first, self.last) if self.moved.get(index, self.subscription) == subscription
        ]

    @property
    def own_ids(self) -> list[bytes | None]:
        """The ids of the messages that its own subscription delivered last."""
        return [self.block.ids[index] for index in self.of_subscription(self.subscription)] if self.moved else self.ids

    def messages(self) -> MessageBlock:
        """Its part of the block."""
        return self.block.slice(self.first, self.last)

    def fit(self, *, size: int | None, messages: int | None = None, at_least_one: bool) -> int:
        """Return what ``blocks.block.fit`` returns for the messages of the range."""
        return fit(self.block.ends, self.first, self.last, size=size, messages=messages, at_least_one=at_least_one)

    def split(self, messages: int) -> tuple[Self, Self]:
        """Return the first messages, and the others. No message of a range that is split has ``moved``."""
        middle = self.first + messages
        return replace(self, last=middle), replace(self, first=middle)


R = TypeVar("R", bound=MessageRange)


_NO_LIMIT = 1 << 62


class Bounds:
    """What is left of the limits of a batch, or of a batch read."""

    def __init__(self, messages: int | None, size: int | None, *, at_least_one: bool = True) -> None:
        """Set a limit to None for none. ``at_least_one``: the first message of all has room, whatever its size."""
        self.messages, self.size = (_NO_LIMIT if most is None else most for most in (messages, size))
        self._at_least_one = at_least_one
        self.is_used_up = False
        """Whether a message was left out, or one more would be."""

    @property
    def is_left(self) -> bool:
        return self.messages > 0 and self.size > 0

    def take(self, waiting: deque[R]) -> list[R]:
        """Remove the first messages that have room, and return them."""
        found: list[R] = []
        while waiting and not self.is_used_up:
            range_ = waiting.popleft()
            fits = range_.fit(size=self.size, messages=self.messages, at_least_one=self._at_least_one)
            taken, rest = range_.split(fits)
            if len(taken):
                found.append(taken)
                self._at_least_one = False
                self.messages -= len(taken)
                self.size -= taken.size
            if len(rest):
                waiting.appendleft(rest)
            self.is_used_up = len(rest) > 0 or not self.is_left
        return found


class Backlog(Generic[R]):
    """What waits for a batch, the oldest first: so many ``messages``, with ``size`` bytes together."""

    def __init__(self) -> None:
        self._ranges: deque[R] = deque()
        self.messages = self.size = 0

    @property
    def first(self) -> R | None:
        return self._ranges[0] if self._ranges else None

    def add(self, range_: R) -> None:
        self._ranges.append(range_)
        self._count([range_], 1)

    def take(self, bounds: Bounds) -> list[R]:
        """Remove what has room in the next batch, and return it."""
        return self._count(bounds.take(self._ranges), -1)

    def forget(self, subscription: int) -> list[R]:
        """Remove what was received on this subscription, and return it."""
        forgotten = [range_ for range_ in self._ranges if range_.subscription == subscription]
        self._ranges = deque(range_ for range_ in self._ranges if range_.subscription != subscription)
        return self._count(forgotten, -1)

    def _count(self, ranges: list[R], sign: int) -> list[R]:
        self.messages += sign * sum(map(len, ranges))
        self.size += sign * sum(range_.size for range_ in ranges)
        return ranges


@dataclass(frozen=True, slots=True)
class Batch:
    """The sequences from ``start`` to ``end`` (not included)."""

    start: int
    end: int
    ranges: tuple[MessageRange, ...]
