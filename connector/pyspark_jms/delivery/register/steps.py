"""Commands at a register, and events: what an engine carries out at the broker, and reports. Values.

The engine answers each command with the event that stands beside it. ``Lost`` answers every command but ``Admit``: the
connection is closed, or the broker did not answer in time. Before it reports ``Lost``, the engine has given back what
it received from the sources, as far as the broker lets it, and has closed its end of the connection.

*Patience* is the one clock of the protocol, and the engine has it: the time after ``Locked`` in which the broker
certainly ends every connection that had the lock before, and makes redelivered messages visible again. Artemis needs
twice its idle time-out (60 s) plus the ``redelivery-delay`` of the address. Something that is not there by then is
taken for lost; nothing else depends on a time.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark_jms.delivery.commit_token import LedgerEntry
from pyspark_jms.delivery.register.token import LoneMessage, StoredToken

__all__ = [
    "AcceptValue",
    "Admit",
    "Admitted",
    "BlocksSeen",
    "Browse",
    "Create",
    "Created",
    "Declined",
    "Drop",
    "Dropped",
    "GiveBack",
    "GivenBack",
    "Lock",
    "LockHeld",
    "Locked",
    "Lost",
    "Make",
    "NoRegister",
    "Open",
    "Opened",
    "Peek",
    "Peeked",
    "ProveLink",
    "Proven",
    "Receive",
    "Received",
    "Renew",
    "Renewed",
    "Replace",
    "Replaced",
    "Take",
    "Taken",
    "ValueAccepted",
]

T = TypeVar("T")
"""A token: of a read, or of a commit ledger."""


# --- commands -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lock:
    """Open a connection if there is none, close that of ``Make``, and become the one consumer of the register.

    → ``Locked``, ``LockHeld``: the broker refuses a second consumer. The engine waits before it repeats the command,
    and decides for how long it repeats it.
    """

    create: bool = True
    """False: → ``NoRegister`` if the register does not exist."""


@dataclass(frozen=True, slots=True)
class Make:
    """Open a second connection, and on it become the one consumer of a register that did not exist → ``Locked``.

    It is made if it does not exist meanwhile. The next commands are for this connection, until ``Lock``.
    """


@dataclass(frozen=True, slots=True)
class Peek:
    """Browse all tokens → ``Peeked``, as soon as the token of this name is there, or the patience is over.

    No delivery count rises.
    """

    name: str | None = None
    """The token, or None for any token."""

    patient: bool = True
    """False: do not wait for the token."""


@dataclass(frozen=True, slots=True)
class ProveLink:
    """Ask something of the broker on the link that is the lock → ``Proven``, or ``Lost``: the lock is not held."""


@dataclass(frozen=True, slots=True)
class Open:
    """Begin a transaction, and wait until the broker lets a message be sent to the register → ``Opened``.

    So a broker that takes no messages is noticed before any message is received, and costs none of them a delivery.
    """


@dataclass(frozen=True, slots=True)
class Take:
    """Receive all messages of the register without accepting them → ``Taken``."""

    messages: int | None = None
    """How many there should be, or None for any number: then the event has no token only after the engine's patience.
    """

    patient: bool = True
    """False: the engine waits for a token for a moment only."""


@dataclass(frozen=True, slots=True)
class Admit:
    """Ask the writer whether the rows are to be committed → ``Admitted``, ``Declined``."""

    known: tuple[LedgerEntry, ...]
    """The entries of the batch, which nobody else can change now."""


@dataclass(frozen=True, slots=True)
class AcceptValue:
    """In the open transaction accept what was taken → ``ValueAccepted``, when the broker has confirmed that.

    A broker that has taken the messages back would ignore the acceptance, and commit the rest of the transaction.
    """


@dataclass(frozen=True, slots=True)
class Receive:
    """Receive messages of the sources without accepting them → ``Received``.

    Their blocks are sent in the open transaction, numbered from ``first`` on, for the batch ``batch``.
    """

    batch: int
    first: int
    alone: LoneMessage | None = None
    """The message to receive, with the suspected ones that follow it, if it is there. Else, or without one: everything
    before the first suspected message of each source.
    """


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Give the messages of the sources back, which costs no delivery, and close the connection → ``GivenBack``."""


@dataclass(frozen=True, slots=True)
class Renew(Generic[T]):
    """In the open transaction send this token, discharge; messages of the sources are not in it → ``Renewed``."""

    token: T


@dataclass(frozen=True, slots=True)
class Replace(Generic[T]):
    """In the open transaction, after the blocks: send the token, accept the messages of the sources, discharge.

    → ``Replaced``, when the broker has confirmed the transaction.
    """

    token: T


@dataclass(frozen=True, slots=True)
class Create(Generic[T]):
    """Send the token, outside of a transaction, and wait for the broker's confirmation → ``Created``."""

    token: T
    once: bool = False
    """The broker drops it, and confirms it all the same, if a token was sent so to this register before."""


@dataclass(frozen=True, slots=True)
class Browse:
    """Browse the blocks of a batch → ``BlocksSeen``. No delivery count rises.

    The event has fewer blocks than asked for only after the engine's patience.
    """

    stream: str
    batch: int
    blocks: int | None
    """The messages, or None for those that are there."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection without waiting for the broker → ``Dropped``."""


# --- events -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Locked:
    """The connection has the lock."""


@dataclass(frozen=True, slots=True)
class LockHeld:
    """Another connection has the lock."""


@dataclass(frozen=True, slots=True)
class NoRegister:
    """There is nothing to lock."""


@dataclass(frozen=True, slots=True)
class Peeked(Generic[T]):
    tokens: tuple[StoredToken[T], ...]


@dataclass(frozen=True, slots=True)
class Proven:
    """The broker has answered on the link that is the lock."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A transaction is open, and the broker takes messages."""


@dataclass(frozen=True, slots=True)
class Taken(Generic[T]):
    tokens: tuple[StoredToken[T], ...]
    """Also those that were taken before and not replaced."""

    blocks: tuple[tuple[str, int], ...] = ()
    """The streams and batches that the blocks are of, each once."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The rows are to be committed."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The rows are not to be committed."""


@dataclass(frozen=True, slots=True)
class ValueAccepted:
    """The broker has confirmed that what was taken is in the transaction."""


@dataclass(frozen=True, slots=True)
class Received:
    messages: int
    blocks: int
    deliveries: int = 0
    """The highest delivery-count of these messages."""

    suspect: str | None = None
    """Identifies the message that has this count, if it is not 0. With other messages: the first of its queue."""

    suspects: int = 1
    """How many messages with such a count come one after the other, this one included."""

    drained: bool = False
    """The sources have no more messages."""

    metrics: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The connection is closed."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The broker has confirmed the transaction."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The broker has confirmed the transaction."""


@dataclass(frozen=True, slots=True)
class Created:
    """The broker has confirmed the token."""


@dataclass(frozen=True, slots=True)
class BlocksSeen:
    blocks: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """The connection is closed."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is closed, or no answer came. What was asked for may have happened, or may still happen."""
