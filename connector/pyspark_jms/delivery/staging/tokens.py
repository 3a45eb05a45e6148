"""The tokens: the one message that every transaction of an owner replaces. Values with text forms; know no broker.

A token is a register for compare-and-swap. A transaction accepts the token that its owner has read, and sends the next
one. The broker carries out only one of two transactions that accept the same message.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

__all__ = ["MAX_TOKEN_DELIVERIES", "NO_BATCH", "Entry", "Sighting", "SinkToken", "SourceToken", "is_worn", "merged"]

MAX_TOKEN_DELIVERIES = 3
"""A token that was delivered so often without an acknowledgement is replaced in a transaction of its own. The broker
moves a message to its dead-letter queue after 10 deliveries by default, and each death in a transaction is one."""

NO_BATCH = -1
"""The batch of a sink's token that was created and not used yet."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceToken:
    """Where the stream ends. ``id`` and ``name`` as in the offset: ``Offset.id``, ``Offset.token``."""

    id: str
    name: str
    next: int
    """The number that the next message gets."""

    floor: int
    """Spark has committed everything below, and the blocks below are deleted."""

    def text(self) -> str:
        values = {"id": self.id, "name": self.name, "next": self.next, "floor": self.floor}
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ``ValueError`` if the text is not a token."""
        match json.loads(text):
            case {"id": str(id_), "name": str(name), "next": int(next_), "floor": int(floor)}:
                return cls(id=id_, name=name, next=next_, floor=floor)
        raise ValueError("not a token of a staged stream")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Entry:
    """A committed partition: which rows were sent."""

    partition: int
    rows: int
    digest: str
    """Of the rows' messages, the same in any order of the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkToken:
    """The commit ledger of a streaming query: the partitions of its current batch that were committed."""

    batch: int = NO_BATCH
    execution: str = ""
    """The run of all tasks of the batch that may commit partitions without asking the driver."""

    entries: frozenset[Entry] = frozenset()

    def text(self) -> str:
        entries = [[entry.partition, entry.rows, entry.digest] for entry in sorted(self.entries)]
        values = {"batch": self.batch, "execution": self.execution, "entries": entries}
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ``ValueError`` if the text is not a token."""
        match json.loads(text):
            case {"batch": int(batch), "execution": str(execution), "entries": [*entries]}:
                return cls(batch=batch, execution=execution, entries=frozenset(map(_entry, entries)))
        raise ValueError("not a token of a sink")


def _entry(value: object) -> Entry:
    match value:
        case [int(partition), int(rows), str(digest)]:
            return Entry(partition=partition, rows=rows, digest=digest)
    raise ValueError("not an entry of a sink's token")


@dataclass(frozen=True, slots=True)
class Sighting(Generic[T]):
    """A token as the broker shows it."""

    token: T
    deliveries: int = 0
    """How often the broker delivered it before without an acknowledgement (AMQP's delivery-count)."""


def merged(tokens: Sequence[SinkToken]) -> SinkToken:
    """What several tokens of one query say together; there is one, unless the broker's guarantee was broken.

    If they disagree about the execution, no task may commit without the driver.
    """
    batch = max(token.batch for token in tokens)
    current = [token for token in tokens if token.batch == batch]
    executions = {token.execution for token in current}
    return SinkToken(
        batch=batch,
        execution=executions.pop() if len(executions) == 1 else "",
        entries=frozenset().union(*(token.entries for token in current)),
    )


def is_worn(sightings: Iterable[Sighting[T]]) -> bool:
    """Whether the broker may soon move a token to its dead-letter queue."""
    return any(sighting.deliveries >= MAX_TOKEN_DELIVERIES for sighting in sightings)
