"""What a write does at its commit ledger, whose register has one token. Pure.

The transaction of a task's rows accepts the token that was read, and sends the next one, which has the entry of the
task. So the broker carries out one of two commits that have read the same token, whoever runs them: two attempts of a
task, tasks of an earlier run, the driver. A lost connection ends the request: Spark begins another attempt.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pyspark_jms.delivery.commit_token import KEPT_RUNS, CommitToken, LedgerEntry, LedgerOwner, merged
from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.machine import Machine
from pyspark_jms.delivery.register.outcomes import Phase, Stop
from pyspark_jms.delivery.register.token import StoredToken, needs_renewal
from pyspark_jms.delivery.state_table import StateTable
from pyspark_jms.errors import JMSError, SinkFencedError, TokenMissingError, WriteIdentityError

__all__ = ["Commit", "Committer", "Done", "Failed", "Find", "Finish", "NoToken", "Request"]

# --- what is asked, and how it ends -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Find:
    """Look at the token. By browsing: each attempt that follows a death begins with a look-up."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the rows of the open transaction together with their entry."""

    entry: LedgerEntry


@dataclass(frozen=True, slots=True)
class Finish:
    """Replace the entries of a write's tasks by one entry."""

    write: str


Request: TypeAlias = Find | Commit | Finish


@dataclass(frozen=True, slots=True)
class Done:
    token: CommitToken
    """As it is at the broker. Without entries if there is none."""

    committed: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The connection is lost."""

    in_doubt: bool
    """The transaction may have been carried out. False: it was not, and never will be."""


@dataclass(frozen=True, slots=True)
class LaterBatch:
    entry: LedgerEntry
    later: int

    def error(self) -> JMSError:
        return SinkFencedError(
            f"Another run of this query has written batch {self.later}, and {self.entry.task} is of batch"
            f" {self.entry.batch}. Nothing was sent.",
            "Stop one of the two runs. If the checkpoint was replaced by an older copy, use a new checkpoint. With"
            " a new checkpoint, give write_id another name of the query.",
        )


@dataclass(frozen=True, slots=True)
class NoToken:
    """A lost token must never be taken for a new beginning: committed rows would be sent again."""

    owner: LedgerOwner
    task: str

    def error(self) -> JMSError:
        return TokenMissingError(
            f"The commit ledger {self.owner.queue} has no token, so it is not known whether {self.task} was already"
            " sent. Nothing was sent.",
            f"Look for the token in the dead-letter queue of address {self.owner.address}, and move it back. To begin"
            " anew, delete the queue of that address: rows that were committed before may then be sent again.",
        )


@dataclass(frozen=True, slots=True)
class OtherOwner:
    owner: LedgerOwner
    other: str

    def error(self) -> JMSError:
        return WriteIdentityError(
            f"Address {self.owner.address} has the commit ledger of {self.other}, and this write is of {self.owner}."
            " Nothing was sent.",
            f"Move the token back to where it belongs, or delete it if {self.other} is no more.",
        )


# --- the machine --------------------------------------------------------------------------------------

Command: TypeAlias = (
    steps.Lock
    | steps.Make
    | steps.Peek
    | steps.Take
    | steps.Create[CommitToken]
    | steps.Renew[CommitToken]
    | steps.Admit
    | steps.AcceptValue
    | steps.Replace[CommitToken]
    | Done
    | Failed
    | Stop
)

_P = Phase
_ENDS: dict[type, tuple[Phase, ...]] = {steps.Lost: (_P.ENDED,)}
_SECOND: dict[type, tuple[Phase, ...]] = {steps.Lost: (_P.LOCKING, _P.ENDED)}
_REQUEST = (_P.LOCKING,)

COMMITTER = StateTable(
    "a write at its commit ledger",
    {
        _P.BEGINNING: {Find: _REQUEST, Commit: _REQUEST, Finish: _REQUEST},
        _P.LOCKING: {steps.Locked: (_P.LOOKING, _P.TAKING), steps.NoRegister: (_P.MAKING, _P.ENDED), **_ENDS},
        _P.MAKING: {steps.Locked: (_P.CREATING,), **_SECOND},
        _P.LOOKING: {steps.Peeked: (_P.TAKING, _P.ENDED), **_ENDS},
        _P.TAKING: {
            steps.Taken: (_P.CREATING, _P.RENEWING, _P.ADMITTING, _P.ACCEPTING, _P.ENDED),
            **_ENDS,
        },
        _P.CREATING: {steps.Created: (_P.LOCKING, _P.TAKING), **_SECOND},
        _P.RENEWING: {steps.Renewed: (_P.TAKING, _P.ENDED), **_ENDS},
        _P.ADMITTING: {steps.Admitted: (_P.ACCEPTING,), steps.Declined: (_P.ENDED,)},
        _P.ACCEPTING: {steps.ValueAccepted: (_P.REPLACING,), **_ENDS},
        _P.REPLACING: {steps.Replaced: (_P.ENDED,), **_ENDS},
        _P.ENDED: {},
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitState:
    phase: Enum = Phase.BEGINNING
    request: Request | None = None
    is_making: bool = False
    """Whether the commands are for the second connection."""

    lost_second: bool = False
    began: bool = False
    """Whether the broker has confirmed the first token: it is there, or there was another one."""

    token: CommitToken | None = None
    """As it was taken."""

    renewed: bool = False


class Committer(Machine[CommitState, Command]):
    """One request of one attempt: ``next(Commit(…))``, and its commands until ``Done``, ``Failed`` or ``Stop``."""

    table = COMMITTER

    def __init__(self, owner: LedgerOwner) -> None:
        super().__init__(CommitState())
        self._owner = owner

    def _handlers(self) -> Mapping[type, Callable[..., Command]]:
        return {
            **dict.fromkeys((Find, Commit, Finish), self._begin),
            steps.NoRegister: lambda _: self._absent_register(),
            steps.Locked: lambda _: self._locked(),
            steps.Peeked: self._peeked,
            steps.Taken: self._taken,
            steps.Created: lambda _: self._created(),
            steps.Renewed: lambda _: self._renewed(),
            steps.Admitted: lambda _: self._accept(),
            steps.Declined: lambda _: self._done(self._token()),
            steps.ValueAccepted: lambda _: self._replace(),
            steps.Replaced: lambda _: self._done(self._next(), committed=True),
            steps.Lost: lambda _: self._lost(),
        }

    def _begin(self, request: Request) -> Command:
        self._set(request=request)
        return self._lock()

    def _done(self, token: CommitToken, *, committed: bool = False) -> Command:
        return self._end(Done(token, committed))

    def _lost(self) -> Command:
        """Nothing is assumed: without a confirmation, the transaction may have been carried out, or may still be.

        The second connection has no rows: its loss costs the request nothing, once.
        """
        if self.state.is_making and not self.state.lost_second:
            self._set(lost_second=True)
            return self._lock()
        return self._end(Failed(in_doubt=self.state.phase is Phase.REPLACING))

    def _empty(self) -> CommitToken:
        return CommitToken(owner=str(self._owner))

    def _token(self) -> CommitToken:
        assert self.state.token is not None
        return self.state.token

    # --- the lock -------------------------------------------------------------------------------------

    def _lock(self) -> Command:
        self._set(phase=Phase.LOCKING, is_making=False)
        return steps.Lock(create=False)

    def _locked(self) -> Command:
        if self.state.is_making:
            return self._create()
        if isinstance(self.state.request, Find):
            self._set(phase=Phase.LOOKING)
            return steps.Peek(patient=False)
        return self._take(patient=self.state.began)

    def _absent_register(self) -> Command:
        """Artemis may end the connection of one of two that make a register at the same moment, so this is not the
        connection that has the rows.
        """
        if isinstance(self.state.request, Find | Finish):
            return self._done(self._empty())
        self._set(phase=Phase.MAKING, is_making=True)
        return steps.Make()

    # --- the token ------------------------------------------------------------------------------------

    def _peeked(self, seen: steps.Peeked[CommitToken]) -> Command:
        """Take what cannot be browsed: the user may lack the permission, or a transaction has the token."""
        if seen.tokens and not needs_renewal(seen.tokens):
            return self._foreign(seen.tokens) or self._done(merged(stored.token for stored in seen.tokens))
        return self._take(patient=bool(seen.tokens))

    def _take(self, *, patient: bool) -> Command:
        self._set(phase=Phase.TAKING)
        return steps.Take(patient=patient)

    def _taken(self, taken: steps.Taken[CommitToken]) -> Command:
        if not taken.tokens:
            return self._absent_token()
        if stop := self._foreign(taken.tokens):
            return stop
        token = merged(stored.token for stored in taken.tokens)
        self._set(token=token, lost_second=False)
        if stop := self._later(token):
            return stop
        if needs_renewal(taken.tokens) and not self.state.renewed:
            return self._renew(token)
        return self._proceed(token)

    def _foreign(self, tokens: Sequence[StoredToken[CommitToken]]) -> Stop | None:
        """No entry answers for the rows of somebody else."""
        other = next((each.token.owner for each in tokens if each.token.owner != str(self._owner)), None)
        return None if other is None else self._stop(OtherOwner(self._owner, other))

    def _later(self, token: CommitToken) -> Stop | None:
        request = self.state.request
        if isinstance(request, Commit) and token.batch > request.entry.batch:
            return self._stop(LaterBatch(request.entry, token.batch))
        return None

    def _absent_token(self) -> Command:
        request = self.state.request
        if not isinstance(request, Commit):
            return self._done(self._empty())
        return self._stop(NoToken(self._owner, request.entry.task)) if self.state.began else self._create()

    def _create(self) -> Command:
        """Nothing else tells whether the register ever had a token: an attach does not tell whether it has made the
        queue, its maker may have died before it made the token, and a transaction may have the token when its lock is
        free already. If there was one, the broker drops this one, and the patient look that follows finds what became
        of the other, or that it is lost. So the first look is not a patient one: another attempt that has just made the
        register may wait for this lock, to send the first token.
        """
        self._set(phase=Phase.CREATING)
        return steps.Create(self._empty(), once=True)

    def _created(self) -> Command:
        self._set(began=True)
        return self._lock() if self.state.is_making else self._take(patient=True)

    def _renew(self, token: CommitToken) -> Command:
        """So that its delivery count is 0 again."""
        self._set(phase=Phase.RENEWING, renewed=True)
        return steps.Renew(token)

    def _renewed(self) -> Command:
        if isinstance(self.state.request, Find):
            return self._done(self._token())
        return self._take(patient=True)

    # --- one transaction ------------------------------------------------------------------------------

    def _proceed(self, token: CommitToken) -> Command:
        match self.state.request:
            case Commit(entry):
                self._set(phase=Phase.ADMITTING)
                return steps.Admit(token.entries if token.batch == entry.batch else ())
            case Finish() if self._next() != token:
                return self._accept()
        return self._done(token)

    def _accept(self) -> Command:
        self._set(phase=Phase.ACCEPTING)
        return steps.AcceptValue()

    def _replace(self) -> Command:
        self._set(phase=Phase.REPLACING)
        return steps.Replace(self._next())

    def _next(self) -> CommitToken:
        token = self._token()
        match self.state.request:
            case Commit(entry):
                return token.with_entry(entry, kept_runs=KEPT_RUNS if self._owner.kind == "job" else None)
            case Finish(write):
                return token.with_finished(write)
        return token
