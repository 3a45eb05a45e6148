"""The commit of one task in steps that a model can interleave: the order of ``amqp.link.commit_ledger.TokenLedger``.

What is committed is decided by the functions of the package itself: ``sink.replay.admission`` under the token, and
``CommitToken`` for what the next token says. A lost connection ends an attempt; Spark begins the next one.
"""

from dataclasses import dataclass, replace

import sink_steps as steps
from sink_steps import Sighting

from pyspark_jms.delivery.commit_token import CommitToken, LedgerEntry, merged
from pyspark_jms.sink.replay import Admission, admission

OWNER = "query:q"
WORN = 3


@dataclass(frozen=True)
class Attempt:
    batch: int
    execution: str
    entry: LedgerEntry
    whole: tuple[LedgerEntry, ...] | None = None
    """The entries of all partitions, which only the driver has."""
    send_on_mismatch: bool = False


@dataclass(frozen=True)
class SendRows:
    """Send the rows in an open transaction → ``RowsSent``."""


@dataclass(frozen=True)
class RowsSent:
    pass


@dataclass(frozen=True)
class Locked:
    existed: bool
    """Whether the subscription existed before: asked with an attach without a source, just before the lock."""


@dataclass(frozen=True)
class TakeTokens:
    """Receive the tokens that are there → ``Taken``, with none only after the engine's patience."""


@dataclass(frozen=True)
class Taken:
    tokens: tuple[Sighting, ...]


@dataclass(frozen=True)
class Ended:
    """The attempt is over: committed, already, held, failed (and begun again), mismatch, fenced or missing."""

    result: str


class CommitProtocol:
    """``state``: what the last command was, and whether the subscription is new."""

    def __init__(self, attempt):
        self.attempt = attempt
        self.state = ("new", False)

    def next(self, event):
        match event:
            case "begin":
                return self._go("sending", SendRows())
            case RowsSent() | steps.LockHeld():
                return self._go("locking", steps.Lock())
            case Locked(existed):
                self.state = ("locking", not existed)
                return self._go("taking", TakeTokens())
            case Taken(tokens):
                return self._taken(tokens)
            case steps.TokenCreated() | steps.Renewed():
                return self._go("taking", TakeTokens())
            case steps.Committed():
                return self._end("committed")
            case steps.Lost():
                return self._lost()
        raise AssertionError(event)

    def _taken(self, sightings):
        if not sightings:
            return self._create()
        token = merged(sighting.token for sighting in sightings)
        if (refused := self._refused(token)) is not None:
            return self._end(refused)
        if any(sighting.deliveries >= WORN for sighting in sightings):
            return self._go("renewing", steps.RenewToken(token))
        return self._commit(token)

    def _refused(self, token):
        """Why the rows are not committed; None: they are."""
        attempt = self.attempt
        if token.batch > attempt.batch:
            return "fenced"
        known = token.entries if token.batch == attempt.batch else ()
        mismatch = attempt.send_on_mismatch
        match admission(known, attempt.entry, whole=attempt.whole, send_on_mismatch=mismatch):
            case Admission.ALREADY:
                return "already"
            case Admission.OTHER_EXECUTION:
                return "held"
            case Admission.MISMATCH:
                return "mismatch"
        return None

    def _create(self):
        if self.attempt.batch > 0 and not self.state[1]:
            return self._end("missing")
        return self._go("creating", steps.CreateToken(CommitToken(owner=OWNER)))

    def _commit(self, token):
        return self._go("committing", steps.Commit(token.with_entry(self.attempt.entry)))

    def _lost(self):
        return self._end("failed")

    def _go(self, stage, command):
        self.state = (stage, self.state[1])
        return command

    def _end(self, result):
        return self._go("ended", Ended(result))


# --- commits that break one rule each ----------------------------------------------------------------


class NeverTakes(CommitProtocol):
    """The transaction does not accept the token that was read. (The model leaves it where it is.)"""


class SendsAgain(CommitProtocol):
    """A partition that the token has is sent again."""

    def _refused(self, token):
        refused = super()._refused(token)
        return None if refused == "already" else refused


class NeverHolds(CommitProtocol):
    """A task commits in a batch that another execution has begun."""

    def _refused(self, token):
        refused = super()._refused(token)
        return None if refused == "held" else refused


class NeverCompares(CommitProtocol):
    """The driver commits held rows without comparing the token's entries with its partitions."""

    def _refused(self, token):
        refused = super()._refused(token)
        return None if self.attempt.whole and refused == "mismatch" else refused


class KeepsExecution(CommitProtocol):
    """The driver's commits have the execution that began the batch."""

    def _commit(self, token):
        first = next((each.execution for each in token.entries if token.batch == self.attempt.batch), None)
        entry = replace(self.attempt.entry, execution=first or self.attempt.execution)
        return self._go("committing", steps.Commit(token.with_entry(entry)))


class GoesBack(CommitProtocol):
    """A late attempt commits in a batch that the query has finished."""

    def _refused(self, token):
        refused = super()._refused(token)
        return None if refused == "fenced" else refused


class AlwaysCreates(CommitProtocol):
    """A missing token is a new beginning."""

    def _create(self):
        return self._go("creating", steps.CreateToken(CommitToken(owner=OWNER)))


class NeverRenews(CommitProtocol):
    """A token near its limit of deliveries is used like any other."""

    def _taken(self, sightings):
        return super()._taken(tuple(replace(sighting, deliveries=0) for sighting in sightings))


class AssumesSuccess(CommitProtocol):
    """A commit without an answer is taken for carried out."""

    def _lost(self):
        return self._end("committed" if self.state[0] == "committing" else "failed")
