"""Part of a batch on its way to a task: what its messages are of, and where they are. Pure."""

from dataclasses import dataclass, replace
from typing import Protocol

from pyspark_jms.blocks.block import MessageBlock

__all__ = ["PartitionSlice", "Place"]


class Place(Protocol):
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
    place: Place

    def __len__(self) -> int:
        return len(self.place)

    def load(self) -> "PartitionSlice":
        """The same part with its messages at hand."""
        return replace(self, place=self.place.load())
