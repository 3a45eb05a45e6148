"""What is asked for at a register, the phases of who asks, and how it ends. Values only."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.token import Token
from pyspark_jms.delivery.state_table import StateTable
from pyspark_jms.errors import DataLossError, JMSError, OtherBrokerError, PoisonLoopError, SourceFencedError

__all__ = [
    "KEEPER",
    "READER",
    "Answer",
    "BlocksMissing",
    "Fenced",
    "Keep",
    "Kept",
    "OtherPlace",
    "Phase",
    "PoisonLoop",
    "Read",
    "Reason",
    "SetBack",
    "SharedRegister",
    "Stop",
    "TokenMissing",
]

# --- what is asked ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A task of a batch, which is in Spark's offset log: the batch before it is committed → ``Answer`` or ``Stop``."""

    stream: str
    name: str
    reader: int
    batch: int
    since: int
    """The token has this batch or a later one."""

    next: int = 0
    """The batch's messages have this number or higher ones, whatever the token tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The planner needs the token of a reader; ``batch`` is in Spark's commit log → ``Kept`` or ``Stop``."""

    stream: str
    name: str | None
    """The name of the token, or None if the offset log names no token of this reader: then it is made."""

    reader: int
    batch: int
    used: int
    """The last batch in which the reader received; for a new one ``batch``."""

    next: int = 0
    """The number of the first message of ``used``, or of the next one if that batch is before ``batch``."""


# --- the answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of the task are the value with this token. The engine has its blocks in memory."""

    token: Token


@dataclass(frozen=True, slots=True)
class Kept:
    token: Token
    closed: bool = False
    """Nobody has read the reader in the last batch that used it."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another run of the query has received a later batch."""

    batch: int
    reader: int
    later: int

    def error(self) -> JMSError:
        return SourceFencedError(
            f"Another run of this query has received batch {self.later} with reader {self.reader}, and this run is at"
            f" batch {self.batch}. Nothing was read.",
            "Stop one of the two runs. If the checkpoint was replaced by an older copy, its messages are not at the"
            " broker any more: use a new checkpoint.",
        )


@dataclass(frozen=True, slots=True)
class TokenMissing:
    """Spark's offset log names the token, and the register does not have it."""

    reader: int
    name: str

    def error(self) -> JMSError:
        return DataLossError(
            f"The token {self.name} of reader {self.reader} is not at the broker. Nothing was read.",
            "Somebody deleted it, or this is another broker. failOnDataLoss=false goes on with a new token.",
        )


@dataclass(frozen=True, slots=True)
class BlocksMissing:
    reader: int
    batch: int
    found: int
    wanted: int

    def error(self) -> JMSError:
        return DataLossError(
            f"Reader {self.reader} has {self.found} of the {self.wanted} blocks of batch {self.batch}.",
            "The others were deleted from the queue, or they expired in it. failOnDataLoss=false goes on without them.",
        )


@dataclass(frozen=True, slots=True)
class SetBack:
    """The broker knows less than Spark's offset log, for instance because its store is an older copy."""

    reader: int
    found: int
    since: int

    def error(self) -> JMSError:
        return DataLossError(
            f"The token of reader {self.reader} is of batch {self.found}, and Spark has committed batch {self.since}.",
            "The broker's store is an older copy. failOnDataLoss=false goes on with what is there.",
        )


@dataclass(frozen=True, slots=True)
class PoisonLoop:
    """A message was received alone, and that attempt has died as well."""

    message: str
    deliveries: int

    def error(self) -> JMSError:
        return PoisonLoopError(
            f"The broker has delivered the message {self.message} {self.deliveries} times without an acknowledgement,"
            " the last time alone. It was given back.",
            "Find out why the task dies with this message. Then move it to another queue, and start the query again.",
        )


@dataclass(frozen=True, slots=True)
class SharedRegister:
    """The register has a value of another stream."""

    stream: str

    def error(self) -> JMSError:
        return SourceFencedError(
            f"The staging queue is used by another query (stream {self.stream}). Nothing was read.",
            "Give each query a stagingQueue of its own. If the other query does not exist any more, look at the queue"
            " with pyspark-jms staging show, and delete it with pyspark-jms staging drop.",
        )


@dataclass(frozen=True, slots=True)
class OtherPlace:
    """The offset names another broker, or another address."""

    what: str
    named: str
    here: str

    def error(self) -> JMSError:
        if self.what == "address":
            return DataLossError(
                f"The checkpoint has its staging queues below the address {self.named}, and this is {self.here}."
                " Nothing was read.",
                "Use the stagingQueue and the clientId that the query had, or a new checkpoint. failOnDataLoss=false"
                " goes on without what is in the staging queues of the checkpoint.",
            )
        return OtherBrokerError(
            f"The checkpoint is of the broker {self.named}, and {self.here} has answered, which has another store."
            " Nothing was read.",
            "brokerUrl must list addresses of brokers that share a store. Use the broker of the checkpoint, or a new"
            " checkpoint. failOnDataLoss=false goes on without what the other broker has in its staging queues.",
        )


class Reason(Protocol):
    def error(self) -> JMSError: ...


@dataclass(frozen=True, slots=True)
class Stop:
    """The query ends with this error. The engine detaches its links, so that no delivery count rises."""

    reason: Reason


# --- the phases ---------------------------------------------------------------------------------------


class Phase(Enum):
    BEGINNING = "beginning"
    LOCKING = "locking"
    PEEKING = "peeking"
    """The tokens are browsed, without the lock."""
    LOOKING = "looking"
    """The tokens are browsed, with the lock."""
    PROVING = "proving"
    """Something is missing: the lock must be held before that is a loss."""
    MAKING = "making"
    """A register that does not exist is made, on a second connection."""
    OPENING = "opening"
    TAKING = "taking"
    ADMITTING = "admitting"
    ACCEPTING = "accepting"
    RENEWING = "renewing"
    RECEIVING = "receiving"
    GIVING_BACK = "giving back"
    REPLACING = "replacing"
    BROWSING = "browsing"
    CREATING = "creating"
    DROPPING = "dropping"
    ENDED = "ended"


_P = Phase
_Row: TypeAlias = dict[type, tuple[Phase, ...]]
_AGAIN: _Row = {steps.Lost: (_P.LOCKING,)}
_LOCKING: _Row = {steps.Locked: (_P.LOOKING,), steps.LockHeld: (_P.LOCKING,), steps.Lost: (_P.LOCKING,)}
_HOLDING: dict[Enum, _Row] = {
    _P.OPENING: {steps.Opened: (_P.TAKING,), **_AGAIN},
    _P.DROPPING: {steps.Dropped: (_P.LOCKING,), **_AGAIN},
    _P.ENDED: {},
}

READER = StateTable(
    "the task of a reader",
    {
        _P.BEGINNING: {Read: (_P.LOCKING,)},
        _P.LOCKING: _LOCKING,
        _P.LOOKING: {steps.Peeked: (_P.OPENING, _P.BROWSING, _P.PROVING, _P.ENDED), **_AGAIN},
        _P.PROVING: {steps.Proven: (_P.BROWSING, _P.ENDED), **_AGAIN},
        _P.BROWSING: {steps.BlocksSeen: (_P.PROVING, _P.ENDED), **_AGAIN},
        **_HOLDING,
        _P.TAKING: {steps.Taken: (_P.ACCEPTING, _P.DROPPING, _P.ENDED), **_AGAIN},
        _P.ACCEPTING: {steps.ValueAccepted: (_P.RECEIVING, _P.RENEWING), **_AGAIN},
        _P.RENEWING: {steps.Renewed: (_P.OPENING,), **_AGAIN},
        _P.RECEIVING: {steps.Received: (_P.REPLACING, _P.GIVING_BACK, _P.ENDED), **_AGAIN},
        _P.GIVING_BACK: {steps.GivenBack: (_P.LOCKING,), **_AGAIN},
        _P.REPLACING: {steps.Replaced: (_P.ENDED,), **_AGAIN},
    },
)

KEEPER = StateTable(
    "the keeper of a token",
    {
        _P.BEGINNING: {Keep: (_P.PEEKING, _P.LOCKING)},
        _P.PEEKING: {steps.Peeked: (_P.LOCKING, _P.ENDED), **_AGAIN},
        _P.LOCKING: _LOCKING,
        _P.LOOKING: {steps.Peeked: (_P.CREATING, _P.OPENING, _P.PROVING, _P.ENDED), **_AGAIN},
        _P.PROVING: {steps.Proven: (_P.CREATING, _P.ENDED), **_AGAIN},
        _P.CREATING: {steps.Created: (_P.ENDED,), **_AGAIN},
        **_HOLDING,
        _P.TAKING: {steps.Taken: (_P.ACCEPTING, _P.DROPPING, _P.ENDED), **_AGAIN},
        _P.ACCEPTING: {steps.ValueAccepted: (_P.RENEWING,), **_AGAIN},
        _P.RENEWING: {steps.Renewed: (_P.ENDED,), **_AGAIN},
    },
)
