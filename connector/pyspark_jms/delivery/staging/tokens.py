"""The token of a staged stream: the one message that every transaction of its owner replaces. A value; knows no broker.

A token is a register for compare-and-swap. A transaction accepts the token that its owner has read, and sends the next
one. The broker carries out only one of two transactions that accept the same message.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

__all__ = ["MAX_TOKEN_DELIVERIES", "Sighting", "SourceToken", "is_token", "is_worn"]

MAX_TOKEN_DELIVERIES = 3
"""A token that was delivered so often without an acknowledgement is replaced in a transaction of its own. The broker
moves a message to its dead-letter queue after 10 deliveries by default, and each death in a transaction is one."""

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


def is_token(text: str) -> bool:
    try:
        SourceToken.parse(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Sighting(Generic[T]):
    """A token as the broker shows it."""

    token: T
    deliveries: int = 0
    """How often the broker delivered it before without an acknowledgement (AMQP's delivery-count)."""


def is_worn(sightings: Iterable[Sighting[T]]) -> bool:
    """Whether the broker may soon move a token to its dead-letter queue."""
    return any(sighting.deliveries >= MAX_TOKEN_DELIVERIES for sighting in sightings)
