"""Consecutive received messages: what the ledgers move from state to state, and batches are made of. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark_jms.blocks.block import MessageBlock, fit
from pyspark_jms.delivery.states import MessageState

__all__ = ["Batch", "MessageRange"]


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

    def split(self, messages: int) -> "tuple[MessageRange, MessageRange]":
        middle = self.first + messages
        return (
            MessageRange(self.subscription, self.block, self.first, middle, self.state),
            MessageRange(self.subscription, self.block, middle, self.last, self.state),
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """The sequences from ``start`` to ``end`` (not included)."""

    start: int
    end: int
    ranges: tuple[MessageRange, ...]
