"""One partition of a batch and the broker's answers → the next step of its commit, exactly once. Pure.

The query's token is the commit ledger as one value. An attempt sends its rows in a transaction, locks, reads the token
and decides; the same transaction then accepts the token and sends the next one. Two attempts of a task, tasks of an
earlier execution, and the driver's commits of held rows exclude one another by this token alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark_jms.delivery.staging.machine import Machine
from pyspark_jms.delivery.staging.sink_decision import (
    Already,
    Attempt,
    Decision,
    Hold,
    Mismatch,
    Missing,
    Overtaken,
    Swap,
    decide,
)
from pyspark_jms.delivery.staging.sink_table import COMMITTER, Begin, CommitPhase, Done, Refuse, Sent
from pyspark_jms.delivery.staging.steps import (
    Commit,
    Committed,
    CreateToken,
    Drop,
    Dropped,
    FindTokens,
    Lock,
    Locked,
    LockHeld,
    Lost,
    Patience,
    Renewed,
    RenewToken,
    RowsSent,
    SendRows,
    TakeTokens,
    TokenCreated,
    TokensSeen,
    TokensTaken,
)
from pyspark_jms.delivery.staging.tokens import SinkToken, is_worn, merged

__all__ = ["CommitCommand", "CommitState", "PartitionCommit"]

CommitCommand: TypeAlias = (
    SendRows
    | Lock
    | FindTokens
    | CreateToken[SinkToken]
    | RenewToken[SinkToken]
    | TakeTokens
    | Commit[SinkToken]
    | Drop
    | Done
    | Refuse
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitState:
    phase: CommitPhase = CommitPhase.NEW
    rows_sent: bool = False
    """The rows are in the open transaction of this connection."""

    in_doubt: bool = False
    """A commit was sent and not answered: the token has the answer."""

    is_new: bool = False
    """The subscription did not exist before this attempt."""


class PartitionCommit(Machine[CommitState, CommitCommand]):
    """``query``: the owner of the token."""

    table = COMMITTER

    def __init__(self, query: str, attempt: Attempt) -> None:
        super().__init__(CommitState())
        self._query, self._attempt = query, attempt

    def _handlers(self) -> Mapping[type, Callable[..., CommitCommand]]:
        return {
            Begin: lambda _: self._send_rows(),
            RowsSent: lambda _: self._rows_sent(),
            Locked: self._locked,
            LockHeld: lambda _: self._lock(),
            TokensSeen: self._tokens_seen,
            TokenCreated: lambda _: self._look(),
            Renewed: lambda _: self._look(),
            TokensTaken: self._tokens_taken,
            Committed: lambda _: self._done(Sent()),
            Dropped: lambda _: self._send_rows(),
            Lost: lambda _: self._lost(),
        }

    # --- the rows -------------------------------------------------------------------------------------

    def _send_rows(self) -> CommitCommand:
        self._set(phase=CommitPhase.SENDING, rows_sent=False)
        return SendRows()

    def _rows_sent(self) -> CommitCommand:
        self._set(rows_sent=True)
        return self._lock()

    def _lost(self) -> CommitCommand:
        """Never assume what became of a lost commit: the token says it, and it is read before rows are sent again."""
        doubt = self.state.in_doubt or self.state.phase is CommitPhase.COMMITTING
        self._set(rows_sent=False, in_doubt=doubt and self.state.phase is not CommitPhase.DROPPING)
        return self._lock() if self.state.in_doubt else self._send_rows()

    # --- the lock and the token -----------------------------------------------------------------------

    def _lock(self) -> CommitCommand:
        self._set(phase=CommitPhase.LOCKING)
        return Lock(self._query)

    def _locked(self, locked: Locked) -> CommitCommand:
        self._set(is_new=self.state.is_new or not locked.existed)
        return self._look()

    def _look(self) -> CommitCommand:
        self._set(phase=CommitPhase.LOOKING)
        return FindTokens(Patience.BRIEF if self.state.is_new else Patience.FULL)

    def _tokens_seen(self, seen: TokensSeen[SinkToken]) -> CommitCommand:
        if not seen.tokens:
            return self._create()
        token = merged([sighting.token for sighting in seen.tokens])
        decision = self._decide(token)
        if not isinstance(decision, Swap):
            return self._finish(decision)
        if is_worn(seen.tokens):
            self._set(phase=CommitPhase.RENEWING)
            return RenewToken(token)
        self._set(in_doubt=False)
        if not self.state.rows_sent:
            self._set(phase=CommitPhase.DROPPING)
            return Drop()
        self._set(phase=CommitPhase.TAKING)
        return TakeTokens()

    def _create(self) -> CommitCommand:
        """Only where there cannot have been a token: otherwise a lost one would make a committed batch new again."""
        batch = self._attempt.batch
        if batch > 0 and not self.state.is_new:
            return self._refuse(Missing(batch))
        self._set(phase=CommitPhase.CREATING)
        return CreateToken(SinkToken())

    # --- the commit -----------------------------------------------------------------------------------

    def _tokens_taken(self, taken: TokensTaken[SinkToken]) -> CommitCommand:
        """Nobody else can take the token now: the decision is made again, with what was taken."""
        if not taken.tokens:
            self._set(phase=CommitPhase.DROPPING)
            return Drop()
        decision = self._decide(merged(taken.tokens))
        if not isinstance(decision, Swap):
            return self._finish(decision)
        self._set(phase=CommitPhase.COMMITTING)
        return Commit(decision.token)

    def _decide(self, token: SinkToken) -> Decision:
        return decide(token, self._attempt)

    def _finish(self, decision: Already | Hold | Overtaken | Mismatch) -> CommitCommand:
        return self._done(decision) if isinstance(decision, Already | Hold) else self._refuse(decision)

    def _done(self, result: Sent | Already | Hold) -> Done:
        self._set(phase=CommitPhase.OVER)
        return Done(result)

    def _refuse(self, reason: Overtaken | Mismatch | Missing) -> Refuse:
        self._set(phase=CommitPhase.OVER)
        return Refuse(reason)

    def _set(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
