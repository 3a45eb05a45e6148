"""Commits of a partition that break one rule each. A model that finds nothing wrong with them tests nothing."""

from dataclasses import replace

from free_table import FreeTable

from pyspark_jms.delivery.staging.committer import PartitionCommit
from pyspark_jms.delivery.staging.sink_decision import Already, Hold, Mismatch, Overtaken, Swap
from pyspark_jms.delivery.staging.sink_table import CommitPhase, Sent
from pyspark_jms.delivery.staging.steps import Commit, CreateToken, TokensTaken
from pyspark_jms.delivery.staging.tokens import SinkToken


class Mutant(PartitionCommit):
    table = FreeTable(PartitionCommit.table)

    def _swap(self, token):
        attempt = self._attempt
        entries = token.entries if token.batch == attempt.batch else frozenset()
        return Swap(SinkToken(batch=attempt.batch, execution=attempt.execution, entries=entries | {attempt.entry}))


class NeverTakes(Mutant):
    """The transaction does not accept the token that was read."""

    def _tokens_seen(self, seen):
        command = super()._tokens_seen(seen)
        return self._tokens_taken(TokensTaken(tuple(s.token for s in seen.tokens))) if self._takes() else command

    def _takes(self):
        return self.state.phase is CommitPhase.TAKING


class DecidesOnce(Mutant):
    """The token that is taken is not compared with the one that was read: here, the later one is overwritten."""

    def _tokens_taken(self, taken):
        self._set(phase=CommitPhase.COMMITTING)
        return Commit(self._swap(max(taken.tokens, key=lambda token: token.batch, default=SinkToken())).token)


class SendsAgain(Mutant):
    """A partition that the token has is sent again."""

    def _decide(self, token):
        decision = super()._decide(token)
        return self._swap(token) if isinstance(decision, Already) else decision


class NeverHolds(Mutant):
    """A task commits in a batch that another execution has begun."""

    def _decide(self, token):
        decision = super()._decide(token)
        return self._swap(token) if isinstance(decision, Hold) else decision


class NeverCompares(Mutant):
    """The driver commits held rows without comparing the token's entries with its partitions."""

    def _decide(self, token):
        decision = super()._decide(token)
        driver = self._attempt.whole is not None
        return self._swap(token) if driver and isinstance(decision, Mismatch) else decision


class KeepsExecution(Mutant):
    """The driver's commit leaves the batch to the execution that began it."""

    def _decide(self, token):
        decision = super()._decide(token)
        if isinstance(decision, Swap) and token.batch == self._attempt.batch:
            return Swap(replace(decision.token, execution=token.execution))
        return decision


class GoesBack(Mutant):
    """A late attempt commits in a batch that the query has finished."""

    def _decide(self, token):
        decision = super()._decide(token)
        return self._swap(SinkToken()) if isinstance(decision, Overtaken) else decision


class AlwaysCreates(Mutant):
    """A missing token is a new beginning."""

    def _create(self):
        self._set(phase=CommitPhase.CREATING)
        return CreateToken(SinkToken())


class NeverRenews(Mutant):
    """A token near its limit of deliveries is used like any other."""

    def _tokens_seen(self, seen):
        return super()._tokens_seen(replace(seen, tokens=tuple(replace(s, deliveries=0) for s in seen.tokens)))


class AssumesSuccess(Mutant):
    """A commit without an answer is taken for carried out."""

    def _lost(self):
        return self._done(Sent()) if self.state.phase is CommitPhase.COMMITTING else super()._lost()
