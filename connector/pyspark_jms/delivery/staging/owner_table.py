"""The phases of the owner of a staged stream, and its answers to Spark. Values only."""

from dataclasses import dataclass
from enum import Enum

from pyspark_jms.delivery.register.table import Table
from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.steps import (
    BlocksSeen,
    Committed,
    Dropped,
    FinishedTaken,
    Locked,
    LockHeld,
    Lost,
    Received,
    Renewed,
    TokenCreated,
    TokensSeen,
    TokensTaken,
)
from pyspark_jms.errors import DataLossError, JMSError, PoisonLoopError, SourceFencedError

__all__ = [
    "OWNER",
    "Deliver",
    "Fenced",
    "Loss",
    "Phase",
    "Plan",
    "Planned",
    "PoisonLoop",
    "Read",
    "Shared",
    "Stop",
    "Wait",
]

# --- what Spark asks ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """``latestOffset(start)``: all before ``start`` is in Spark's commit log → ``Planned`` or ``Stop``."""

    start: Offset
    certain: int | None = None
    """Spark's commit log is certainly written up to this number, if not up to ``start``: only these blocks are
    deleted.
    """

    @property
    def finished(self) -> int:
        return self.start.seq if self.certain is None else min(self.certain, self.start.seq)


@dataclass(frozen=True, slots=True)
class Read:
    """``partitions(start, end)``: the batch is in Spark's offset log → ``Deliver`` or ``Stop``."""

    start: Offset
    end: Offset


# --- the answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Planned:
    offset: Offset


@dataclass(frozen=True, slots=True)
class Deliver:
    """The batch is the messages with the numbers [start, end), which the engine has in memory."""

    start: int
    end: int
    cuts: tuple[int, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    """With failOnDataLoss=false: the numbers, as [first, end), that no block has."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do until Spark asks."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another owner of the stream has gone on beyond the start that Spark shows here."""

    floor: int
    start: int

    def error(self) -> JMSError:
        return SourceFencedError(
            f"Another run of this query has finished the messages up to {self.floor}, and this run begins at"
            f" {self.start}. Nothing was read.",
            "Stop one of the two runs. If the checkpoint was replaced by an older copy, its messages are not at the"
            " broker any more: use a new checkpoint.",
        )


@dataclass(frozen=True, slots=True)
class Loss:
    """The staging queue does not have what the offset or the token names."""

    missing: tuple[tuple[int, int], ...]
    start: int
    end: int

    def error(self) -> JMSError:
        named = ", ".join(f"{first} to {end - 1}" for first, end in self.missing)
        return DataLossError(
            f"The staging queue lacks the messages {named} of the messages {self.start} to {self.end - 1}.",
            "They were deleted from the queue, or they expired in it. failOnDataLoss=false goes on without them.",
        )


@dataclass(frozen=True, slots=True)
class PoisonLoop:
    """A source message was delivered so often that the broker will soon move it to its dead-letter queue."""

    deliveries: int

    def error(self) -> JMSError:
        return PoisonLoopError(
            f"The broker has delivered a message {self.deliveries} times without an acknowledgement. It was given"
            " back.",
            "Find out why the query dies while it moves messages. Then give the messages new delivery counts: move them"
            " to another queue and back (pyspark-jms move), and start the query again.",
        )


@dataclass(frozen=True, slots=True)
class Shared:
    """The staging queue has the token of another stream."""

    id: str

    def error(self) -> JMSError:
        return SourceFencedError(
            f"The staging queue is used by another query (stream {self.id}). Nothing was read.",
            "Give each query a stagingQueue of its own. If the other query does not exist any more, look at the queue"
            " with pyspark-jms staging show, and delete it with pyspark-jms staging drop.",
        )


@dataclass(frozen=True, slots=True)
class Stop:
    """The query ends with this error. The engine detaches its links, so that no delivery count rises."""

    reason: Fenced | Loss | PoisonLoop | Shared


# --- the phases ---------------------------------------------------------------------------------------


class Phase(Enum):
    APART = "apart"
    """No connection, and no request of Spark."""
    LOCKING = "locking"
    LOOKING = "looking"
    """The tokens are browsed."""
    CREATING = "creating"
    RENEWING = "renewing"
    OWNING = "owning"
    """The connection has the lock, the token is known, and Spark asks nothing."""
    RECEIVING = "receiving"
    TAKING = "taking"
    """The token is received."""
    FINISHING = "finishing"
    """The blocks of committed batches are received."""
    COMMITTING = "committing"
    BROWSING = "browsing"
    RECHECKING = "rechecking"
    """Blocks are missing: the tokens are browsed again."""
    DROPPING = "dropping"
    STOPPED = "stopped"


_P = Phase
_AFTER_TOKENS = (_P.BROWSING, _P.RECEIVING)

OWNER = Table(
    "the owner of a stream",
    {
        _P.APART: {Plan: (_P.LOCKING,), Read: (_P.APART, _P.LOCKING), Lost: (_P.APART,)},
        _P.LOCKING: {Locked: (_P.LOOKING,), LockHeld: (_P.LOCKING,), Lost: (_P.LOCKING,)},
        _P.LOOKING: {
            TokensSeen: (*_AFTER_TOKENS, _P.CREATING, _P.RENEWING, _P.STOPPED),
            Lost: (_P.LOCKING,),
        },
        _P.CREATING: {TokenCreated: (_P.OWNING,), Lost: (_P.LOCKING,)},
        _P.RENEWING: {Renewed: _AFTER_TOKENS, Lost: (_P.LOCKING,)},
        _P.OWNING: {
            Plan: (*_AFTER_TOKENS, _P.OWNING, _P.LOOKING, _P.DROPPING, _P.STOPPED),
            Read: (_P.OWNING, _P.BROWSING, _P.DROPPING),
            Lost: (_P.APART,),
        },
        _P.RECEIVING: {Received: (_P.OWNING, _P.TAKING, _P.STOPPED), Lost: (_P.LOCKING,)},
        _P.TAKING: {TokensTaken: (_P.FINISHING, _P.COMMITTING, _P.DROPPING, _P.STOPPED), Lost: (_P.LOCKING,)},
        _P.FINISHING: {FinishedTaken: (_P.COMMITTING,), Lost: (_P.LOCKING,)},
        _P.COMMITTING: {Committed: (_P.OWNING,), Lost: (_P.LOCKING,)},
        _P.BROWSING: {BlocksSeen: (_P.OWNING, _P.CREATING, _P.RECHECKING), Lost: (_P.LOCKING,)},
        _P.RECHECKING: {TokensSeen: (_P.OWNING, _P.STOPPED), Lost: (_P.LOCKING,)},
        _P.DROPPING: {Dropped: (_P.LOCKING,), Lost: (_P.LOCKING,)},
        _P.STOPPED: {},
    },
)
