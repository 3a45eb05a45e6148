"""Writes at a commit ledger that break one rule each. A model that finds nothing wrong with them tests nothing."""

from dataclasses import replace

from free_table import FreeTable

from pyspark_jms.delivery.register.committer import Committer, Done
from pyspark_jms.delivery.register.outcomes import Phase
from pyspark_jms.delivery.register.steps import Lock
from pyspark_jms.sink.replay import CommitDecision, admission


class Mutant(Committer):
    table = FreeTable(Committer.table)


class NeverAccepts(Mutant):
    """The transaction does not accept the token that was read."""

    def _accept(self):
        return self._replace()


class KeepsExecution(Mutant):
    """The driver's commits have the execution that began the batch."""

    def _replace(self):
        entry, token = self.state.request.entry, self._token()
        first = next((each.execution for each in token.entries if token.batch == entry.batch), None)
        self._set(request=replace(self.state.request, entry=replace(entry, execution=first or entry.execution)))
        return super()._replace()


class NeverFenced(Mutant):
    """A late attempt commits in a batch that the query has finished."""

    def _later(self, token):
        return None


class FailsWithTheSecond(Mutant):
    """The loss of the connection without rows ends the attempt."""

    def _lost(self):
        self._set(is_making=False)
        return super()._lost()


class NeverRenews(Mutant):
    """A token near its limit of deliveries is used like any other."""

    def _renew(self, token):
        return self._proceed(token)


class Assumes(Mutant):
    """A transaction without a confirmation is taken for committed."""

    def _lost(self):
        if self.state.phase is Phase.REPLACING:
            return Done(self._next(), committed=True)
        return super()._lost()


class MakesWithRows(Mutant):
    """The connection that has the rows makes the register."""

    def _absent_register(self):
        self._set(phase=Phase.LOCKING)
        return Lock()


class SendsOften(Mutant):
    """A register that has had a token gets another first one."""

    def _create(self):
        return replace(super()._create(), once=False)


class TakesOthers(Mutant):
    """The token of another owner is taken for its own."""

    def _foreign(self, tokens):
        return None


def sends_again(known, wanted, **how):
    """A partition that the token has is sent again."""
    admitted = admission(known, wanted, **how)
    return CommitDecision.COMMIT if admitted is CommitDecision.ALREADY else admitted


def never_holds(known, wanted, **how):
    """A task commits in a batch that another execution has begun, or in a write that is finished."""
    admitted = admission(known, wanted, **how)
    return CommitDecision.COMMIT if admitted is CommitDecision.OTHER_EXECUTION else admitted


def never_compares(known, wanted, *, whole=None, **how):
    """The driver commits held rows without comparing the token's entries with its partitions."""
    admitted = admission(known, wanted, whole=whole, **how)
    return CommitDecision.COMMIT if whole and admitted is CommitDecision.MISMATCH else admitted
