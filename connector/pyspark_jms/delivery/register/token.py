"""The values of a read whose tasks receive, and their texts: the token of a register, and the offset in Spark's log.

A *register* is a queue of a read partition with one consumer, the lock. Its *value* is what one batch received: blocks
of messages, then one token. A transaction accepts the whole value that its task has read, and sends the next one. The
broker carries out only one of two transactions that accept the same message.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Generic, Self, TypeVar

from pyspark_jms.errors import DataLossError, JMSError

__all__ = ["MAX_VALUE_DELIVERIES", "LoneMessage", "Offset", "StoredToken", "Token", "needs_renewal"]

T = TypeVar("T")
"""A token: of a read, or of a commit ledger."""

MAX_VALUE_DELIVERIES = 3
"""A token that was delivered so often without an acknowledgement is replaced in a transaction of its own. The broker
moves a message to its dead-letter queue after 10 deliveries by default, and each death in a transaction is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneMessage:
    """A message that many attempts have died with, or whose producer wrote such a count: it is received alone."""

    message: str
    """What identifies it."""

    deliveries: int
    """Its delivery-count when this note was written."""

    many: int = 1
    """Maximum number of suspected messages to receive together. With an empty ``message``: of the next ones."""

    limit: int = 1
    """What deaths have left of that number. ``many`` is less where fewer messages came."""

    passed: int = 0
    """How many of them were received since the last death, under this limit."""


_LEFT_OUT = frozenset({"drained", "alone", "metrics"})
"""Fields that the text of a token does not have if they are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The last message of a value: what the reader received in its last batch."""

    stream: str
    name: str
    """Of this token and those that replace it. The offset names it: a token that was made anew has another name."""

    reader: int
    batch: int
    """The value is the reader's answer for this batch of Spark."""

    blocks: int = 0
    """How many blocks the value has. 0 after a renewal, which drops the blocks of a committed batch."""

    first: int = 0
    next: int = 0
    """The numbers of the messages in the value are [first, next). They count within the reader."""

    drained: bool = False
    """The source had no more messages."""

    alone: LoneMessage | None = None
    metrics: tuple[tuple[str, int], ...] = ()
    """For the progress of the query."""

    def text(self) -> str:
        values = asdict(self) | {"metrics": dict(self.metrics)}
        given = {name: value for name, value in values.items() if value or name not in _LEFT_OUT}
        return json.dumps(given, separators=(",", ":"))

    def body(self) -> bytes:
        return self.text().encode()

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Raise ``ValueError`` if the text is not a token."""
        match json.loads(text):
            case {
                "stream": str(),
                "name": str(),
                "reader": int(),
                "batch": int(),
                "blocks": int(),
                "first": int(),
                "next": int(),
                **rest,
            } as found:
                return cls(
                    **{name: value for name, value in found.items() if name not in rest},
                    drained=rest.get("drained") is True,
                    alone=_alone(rest.get("alone")),
                    metrics=_metrics(rest.get("metrics", {})),
                )
        raise ValueError("not a token of a read partition")

    @staticmethod
    def foreign(address: str) -> JMSError:
        """The error for another message in the register."""
        return DataLossError(
            f"The queue {address} has a message that is not a token of this connector.",
            "Something else sends to this queue. Look at it with pyspark-jms staging show.",
        )


def _alone(value: Any) -> LoneMessage | None:
    match value:
        case None:
            return None
        case {"message": str(message), "deliveries": int(deliveries)}:
            many, passed = value.get("many", 1), value.get("passed", 0)
            limit = value.get("limit", many)
            if all(isinstance(each, int) for each in (many, limit, passed)):
                return LoneMessage(message=message, deliveries=deliveries, many=many, limit=limit, passed=passed)
    raise ValueError("not a token of a read partition")


def _metrics(value: Any) -> tuple[tuple[str, int], ...]:
    if isinstance(value, dict) and all(isinstance(each, int) for each in value.values()):
        return tuple(value.items())
    raise ValueError("not a token of a read partition")


@dataclass(frozen=True, slots=True)
class StoredToken(Generic[T]):
    """A token as the broker shows it."""

    token: T
    deliveries: int = 0
    """How often the broker delivered it before without an acknowledgement (AMQP's delivery-count)."""


def needs_renewal(tokens: Iterable[StoredToken[Any]]) -> bool:
    """Return whether the broker may soon move a token to its dead-letter queue."""
    return any(stored.deliveries >= MAX_VALUE_DELIVERIES for stored in tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """A number of a batch, and what its tasks need. ``Offset()`` is what ``initialOffset`` answers."""

    stream: str | None = None
    """One query's reading of its sources, or None if there is no register yet."""

    address: str | None = None
    """The registers of the stream are below this address, and at no other one."""

    broker: str | None = None
    """The identity of the broker that has them, if it tells one."""

    batch: int = 0
    names: tuple[str, ...] = ()
    """The name of each reader's token, of all readers that were ever made."""

    used: tuple[int, ...] = ()
    """The last batch in which each reader received; that of its token, if the batch is committed."""

    next: tuple[int, ...] = ()
    """The number of each reader's first message in this batch, or in its next one. None of readers beyond the end."""

    def next_of(self, reader: int) -> int:
        return self.next[reader] if reader < len(self.next) else 0

    @property
    def readers(self) -> tuple[int, ...]:
        return tuple(reader for reader, batch in enumerate(self.used) if batch == self.batch and self.batch)

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Raise ``ValueError`` if the JSON value is not an offset."""
        match value:
            case {
                "stream": str() | None as stream,
                "address": str() | None as address,
                "broker": str() | None as broker,
                "batch": int(batch),
                "names": [*names],
                "used": [*used],
                **rest,
            } if all(isinstance(name, str) for name in names) and len(names) == len(used):
                return cls(
                    stream=stream,
                    address=address,
                    broker=broker,
                    batch=batch,
                    names=tuple(names),
                    used=_numbers(used),
                    next=_numbers(rest.get("next", [])),
                )
        raise ValueError("not an offset of a read whose tasks receive")


def _numbers(value: Any) -> tuple[int, ...]:
    if isinstance(value, list | tuple) and all(isinstance(each, int) for each in value):
        return tuple(value)
    raise ValueError("not an offset of a read whose tasks receive")
