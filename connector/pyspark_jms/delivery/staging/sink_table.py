"""The phases of the commit of one partition, and its results. Values only."""

from dataclasses import dataclass
from enum import Enum

from pyspark_jms.delivery.staging.sink_decision import Already, Hold, Mismatch, Missing, Overtaken
from pyspark_jms.delivery.staging.steps import (
    Committed,
    Dropped,
    Locked,
    LockHeld,
    Lost,
    Renewed,
    RowsSent,
    TokenCreated,
    TokensSeen,
    TokensTaken,
)
from pyspark_jms.delivery.staging.table import Table

__all__ = ["COMMITTER", "Begin", "CommitPhase", "Done", "Refuse", "Sent"]


@dataclass(frozen=True, slots=True)
class Begin:
    """The attempt begins → ``Done`` or ``Refuse``."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The rows were committed by this attempt."""


@dataclass(frozen=True, slots=True)
class Done:
    """The attempt is over without an error. The engine abandons an open transaction and closes the connection."""

    result: Sent | Already | Hold


@dataclass(frozen=True, slots=True)
class Refuse:
    """The attempt fails with this error. The engine abandons an open transaction and closes the connection."""

    reason: Overtaken | Mismatch | Missing


class CommitPhase(Enum):
    NEW = "new"
    SENDING = "sending"
    """The rows are sent in an open transaction."""
    LOCKING = "locking"
    LOOKING = "looking"
    """The tokens are browsed."""
    CREATING = "creating"
    RENEWING = "renewing"
    TAKING = "taking"
    """The token is received."""
    COMMITTING = "committing"
    DROPPING = "dropping"
    OVER = "over"


_P = CommitPhase

COMMITTER = Table(
    "the commit of a partition",
    {
        _P.NEW: {Begin: (_P.SENDING,)},
        _P.SENDING: {RowsSent: (_P.LOCKING,), Lost: (_P.SENDING,)},
        _P.LOCKING: {Locked: (_P.LOOKING,), LockHeld: (_P.LOCKING,), Lost: (_P.SENDING, _P.LOCKING)},
        _P.LOOKING: {
            TokensSeen: (_P.TAKING, _P.RENEWING, _P.CREATING, _P.DROPPING, _P.OVER),
            Lost: (_P.SENDING, _P.LOCKING),
        },
        _P.CREATING: {TokenCreated: (_P.LOOKING,), Lost: (_P.SENDING, _P.LOCKING)},
        _P.RENEWING: {Renewed: (_P.LOOKING,), Lost: (_P.SENDING, _P.LOCKING)},
        _P.TAKING: {TokensTaken: (_P.COMMITTING, _P.DROPPING, _P.OVER), Lost: (_P.SENDING,)},
        _P.COMMITTING: {Committed: (_P.OVER,), Lost: (_P.LOCKING,)},
        _P.DROPPING: {Dropped: (_P.SENDING,), Lost: (_P.SENDING,)},
        _P.OVER: {},
    },
)
