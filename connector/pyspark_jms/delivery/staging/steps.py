"""Commands of the owner of a staged stream, and events: what an engine carries out at the broker, and reports. Values.

The engine answers each command with one of the events that stand beside it. ``Lost`` answers every command: the
connection is closed, or the broker did not answer in time. The engine has closed its end of the connection before it
reports ``Lost``.

*Patience* is the one clock of the protocol, and the engine has it: the time after ``Locked`` in which the broker
certainly ends every connection that had the lock before, and makes redelivered messages visible again. Artemis needs
twice its idle time-out (60 s) plus the ``redelivery-delay`` of the address. Something that is not there by then is
taken for lost; nothing else depends on a time.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from pyspark_jms.delivery.register.steps import Drop, Dropped, Locked, LockHeld, Lost, Renewed
from pyspark_jms.delivery.staging.tokens import Sighting

__all__ = [
    "BlocksSeen",
    "BrowseBlocks",
    "Commit",
    "Committed",
    "CreateToken",
    "Drop",
    "Dropped",
    "FindTokens",
    "FinishedTaken",
    "Lock",
    "LockHeld",
    "Locked",
    "Lost",
    "Patience",
    "Receive",
    "Received",
    "RenewToken",
    "Renewed",
    "TakeFinished",
    "TakeTokens",
    "TokenCreated",
    "TokensSeen",
    "TokensTaken",
]

T = TypeVar("T")


class Patience(Enum):
    ONCE = "browse once"
    """Nobody else knows the stream."""
    FULL = "full"
    """As above: 60 s and the ``redelivery-delay``."""


# --- commands -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lock:
    """Open a connection if there is none, and attach the unshared durable subscription of the stream.

    → ``Locked``, ``LockHeld``: the broker refuses a second consumer. The engine waits before it repeats the command,
    and decides for how long it repeats it.
    """

    id: str


@dataclass(frozen=True, slots=True)
class FindTokens:
    """Browse all tokens → ``TokensSeen``, as soon as there is one or the patience is over."""

    patience: Patience
    name: str | None = None
    """Wait for the token with this name. None: for any. The event has all tokens."""


@dataclass(frozen=True, slots=True)
class CreateToken(Generic[T]):
    """Send the token, outside of a transaction, and wait for the broker's confirmation → ``TokenCreated``."""

    token: T


@dataclass(frozen=True, slots=True)
class RenewToken(Generic[T]):
    """In a transaction of its own: receive and accept all tokens, send this one → ``Renewed``."""

    token: T


@dataclass(frozen=True, slots=True)
class TakeTokens:
    """Receive all tokens that are there, without accepting them → ``TokensTaken``."""


@dataclass(frozen=True, slots=True)
class Receive:
    """Receive messages of the sources, as many as Spark's limits allow, without accepting them → ``Received``.

    Their blocks may be sent meanwhile, numbered from ``first`` on, in the transaction that ``Commit`` ends. Once one is
    sent, the broker may be asked for the blocks below ``finished``: ``TakeFinished`` follows.
    """

    first: int
    finished: int


@dataclass(frozen=True, slots=True)
class TakeFinished:
    """Receive the blocks of the stream that lie wholly below a number, without accepting them → ``FinishedTaken``.

    After ``TokensTaken`` only: who sees the token sees all blocks.
    """

    id: str
    below: int


@dataclass(frozen=True, slots=True)
class Commit(Generic[T]):
    """One transaction: accept all that was received (tokens, messages, blocks), send the token, discharge.

    The messages are sent as blocks before that, and numbered from ``first`` on → ``Committed``. ``Lost`` also if the
    broker refuses the discharge for a reason that a repetition may cure.
    """

    token: T
    first: int = 0


@dataclass(frozen=True, slots=True)
class BrowseBlocks:
    """Browse the blocks of the stream from ``start`` up to ``end`` → ``BlocksSeen``.

    The event is incomplete only after the engine's patience.

    ``end`` None: up to the last one that is there.
    """

    id: str
    start: int
    end: int | None


# --- events -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TokensSeen(Generic[T]):
    tokens: tuple[Sighting[T], ...]


@dataclass(frozen=True, slots=True)
class TokenCreated:
    """The broker has confirmed the token."""


@dataclass(frozen=True, slots=True)
class TokensTaken(Generic[T]):
    tokens: tuple[T, ...]


@dataclass(frozen=True, slots=True)
class Received:
    messages: int
    deliveries: int = 0
    """The highest delivery-count of these messages."""


@dataclass(frozen=True, slots=True)
class FinishedTaken:
    """The engine holds the blocks that were there, perhaps none."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The broker has confirmed the transaction."""

    cuts: tuple[int, ...] = ()
    """The numbers at which the blocks begin that were sent, without the first."""


@dataclass(frozen=True, slots=True)
class BlocksSeen:
    """The blocks from the start asked for on, in order: [first, end) of each."""

    spans: tuple[tuple[int, int], ...]
