"""Whole messages, one after the other: their bytes, where each message ends, and what the broker calls it. Pure.

Received, kept in a journal, on the way to a task, or about to be sent: it is the same block. Does not know any
protocol.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pyspark_jms.errors import IllegalStateError

__all__ = [
    "ByteArray",
    "MessageBlock",
    "PartitionSlice",
    "Positions",
    "StagedBlock",
    "StagedRange",
    "block_of",
    "fit",
    "index_of",
    "joined",
    "part_starts",
    "positions_of",
    "wrong_index",
]

ByteArray: TypeAlias = bytes | bytearray | memoryview
Index: TypeAlias = "array[int]"
"""One 64-bit position for each message (type code ``q``), counted from the first byte of the block."""
Positions: TypeAlias = npt.NDArray[np.int64]


def _new_index() -> Index:
    return array("q")


@dataclass(slots=True, repr=False)
class MessageBlock:
    """Consecutive messages without a gap: message i is ``data[ends[i - 1]:ends[i]]``, the first one begins at 0.

    A scanner appends to the fields while messages arrive. Once the block is taken, its bytes do not change, and slices
    share them.
    """

    data: ByteArray = field(default_factory=bytearray)
    heads: Index = field(default_factory=_new_index)
    """A position inside each message that its protocol needs to read it, for STOMP the blank line (its first LF).
    Empty where the protocol or the reader needs none."""
    ends: Index = field(default_factory=_new_index)
    ids: list[bytes | None] = field(default_factory=list)
    """The id under which each message can be acknowledged, or None if the connection of that id is gone. Empty where
    nothing is acknowledged by this block, as in a task.
    """

    def __len__(self) -> int:
        return len(self.ends)

    def __repr__(self) -> str:
        return f"MessageBlock(messages={len(self)}, bytes={len(self.data)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A view cannot be pickled: what travels is a copy of the bytes that the block shows.
        return MessageBlock, (bytes(self.data), self.heads, self.ends, self.ids)

    def start(self, index: int) -> int:
        """The position at which message ``index`` begins, or the end of the block."""
        return self.ends[index - 1] if index else 0

    def message(self, index: int) -> bytes:
        return bytes(memoryview(self.data)[self.start(index) : self.ends[index]])

    def slice(self, first: int, last: int) -> "MessageBlock":
        """Messages ``first`` to ``last`` (not included) without their ids. Their bytes are shared, not copied."""
        begin, end = self.start(first), self.start(last)
        heads, ends = (
            index_of(positions_of(index)[first:last] - begin) if index else _new_index()
            for index in (self.heads, self.ends)
        )
        return MessageBlock(memoryview(self.data)[begin:end], heads, ends)

    def load(self) -> "MessageBlock":
        """The block itself: it is at hand already."""
        return self


def wrong_index() -> IllegalStateError:
    return IllegalStateError(
        "The index of a block does not fit its bytes.", "This is a fault of pyspark-jms: report it."
    )


def positions_of(index: Index) -> Positions:
    """The index as a numpy array, not copied. While the array lives, the index cannot grow."""
    return np.frombuffer(index, np.int64)


def index_of(positions: Positions) -> Index:
    index = _new_index()
    index.frombytes(positions.astype(np.int64, copy=False).tobytes())
    return index


def block_of(*messages: bytes) -> MessageBlock:
    """The messages without heads and ids."""
    return MessageBlock(b"".join(messages), ends=index_of(np.cumsum([len(message) for message in messages])))


def joined(blocks: Sequence[MessageBlock]) -> MessageBlock:
    """The messages of all blocks, one after the other, without ids."""
    if len(blocks) == 1:
        return blocks[0]
    starts = np.cumsum([0, *(len(block.data) for block in blocks)])
    heads, ends = _new_index(), _new_index()
    for block, start in zip(blocks, starts.tolist(), strict=False):
        heads += index_of(positions_of(block.heads) + start) if block.heads else _new_index()
        ends += index_of(positions_of(block.ends) + start)
    return MessageBlock(b"".join(block.data for block in blocks), heads, ends)


# --- how many messages fit into so many bytes -------------------------------------------------------


def fit(
    ends: "Index | Positions",
    first: int = 0,
    last: int | None = None,
    *,
    size: int | None = None,
    messages: int | None = None,
    at_least_one: bool = False,
) -> int:
    """Return how many of the messages ``first`` to ``last`` (not included) fit: into ``size`` bytes, at most
    ``messages``.

    None is no limit. ``at_least_one``: the first message fits, however large it is.
    """
    last = len(ends) if last is None else last
    fits = last - first
    if size is not None:
        begin = int(ends[first - 1]) if first else 0
        fits = bisect_right(ends, begin + size, first, last) - first
    if messages is not None:
        fits = min(fits, messages)
    return max(fits, min(1, last - first)) if at_least_one else max(fits, 0)


def part_starts(ends: "Index | Positions", size: int) -> list[int]:
    """Return where each part begins, after the first one, when the messages are split into parts of at most ``size``
    bytes.

    A message that is larger is a part of its own.
    """
    found, at = [], fit(ends, size=size, at_least_one=True)
    while at < len(ends):
        found.append(at)
        at += fit(ends, at, size=size, at_least_one=True)
    return found


# --- messages on their way to a task ----------------------------------------------------------------


class BlockPlace(Protocol):
    """Where the messages are: in the part itself (``MessageBlock``), in a journal, or in memory of this machine."""

    def __len__(self) -> int: ...

    def load(self) -> MessageBlock:
        """The messages, in any process that can see the place; else an error that names it."""
        ...


@dataclass(frozen=True, slots=True)
class PartitionSlice:
    """Consecutive messages of one subscription, with sequences from ``first_sequence`` on."""

    source: str
    dialect: str
    first_sequence: int
    place: BlockPlace
    delivered_ms: int | None = None
    """A time at which the messages had been delivered, in milliseconds since the epoch. None where the rows must be the
    same whenever they are made."""

    def __len__(self) -> int:
        return len(self.place)

    def load(self) -> "PartitionSlice":
        """Return this part with its messages at hand."""
        return replace(self, place=self.place.load())


# --- messages in a register --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class StagedBlock:
    """Messages of one source, in the order in which they were received."""

    source: str
    """The destination, as ``Destination`` spells it."""

    dialect: str
    messages: MessageBlock

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(frozen=True, slots=True, repr=False)
class StagedRange:
    """A block in a register: the messages with the numbers ``first`` to ``end`` (not included)."""

    stream: str
    first: int
    end: int
    block: StagedBlock
