"""Owners of a staged stream that break one rule each. A model that finds nothing wrong with them tests nothing."""

from dataclasses import replace

from free_table import FreeTable

from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.owner import SourceOwner
from pyspark_jms.delivery.staging.owner_table import Deliver, Loss, Phase, Planned, Read
from pyspark_jms.delivery.staging.steps import FindTokens, FinishedTaken, Patience, Receive, TakeFinished, TakeTokens


class Mutant(SourceOwner):
    table = FreeTable(SourceOwner.table)


class MovesAtOnce(Mutant):
    """R2: the first batch is not empty. It moves messages before Spark's log has the stream."""

    def _answer_created(self):
        if self._start().id is None:
            self._set(phase=Phase.RECEIVING)
            return Receive(self._first(), self._finished())
        return super()._answer_created()

    def _plan(self, plan):
        if plan.start.id is None and self.state.phase is Phase.OWNING:
            self._set(request=plan)
            return self._proceed()
        return super()._plan(plan)


class UsesAnyToken(Mutant):
    """R3: a new token is used although Spark's log does not name it, and the highest of several counts."""

    def _tokens_seen(self, seen):
        mine = [s.token for s in seen.tokens if s.token.id == self.state.id]
        if mine and self._named() and self.state.phase is Phase.LOOKING:
            self._set(token=max(mine, key=lambda token: token.next))
            return self._fenced(seen.tokens) or self._proceed()
        return super()._tokens_seen(seen)

    def _look(self):
        super()._look()
        return FindTokens(Patience.FULL if self._named() else Patience.ONCE)

    def _answer_created(self):
        if self._start().id is None:
            return super()._answer_created()
        return self._proceed()

    def _plan(self, plan):
        if self.state.phase is Phase.OWNING and self.state.token and self.state.id == plan.start.id:
            self._set(request=plan)
            return self._proceed()
        return super()._plan(plan)


class ForgetsStaged(Mutant):
    """R3: a new token begins at the start, whatever is staged."""

    def _create(self, *, next_, floor, name):
        return super()._create(next_=min(next_, self._start().seq), floor=floor, name=name)


class NeverFences(Mutant):
    """R4: the transaction does not accept the token."""

    def _received(self, received):
        command = super()._received(received)
        return self._take_finished() if self.state.phase is Phase.TAKING else command


class NeverCompares(Mutant):
    """R4: the transaction accepts a token that is not the one that was read."""

    def _tokens_taken(self, taken):
        return self._take_finished()


class TakesBlocksFirst(Mutant):
    """R6: the finished blocks are received before the token."""

    def _received(self, received):
        command = super()._received(received)
        if self.state.phase is not Phase.TAKING or not self._start().seq:
            return command
        self._set(phase=Phase.FINISHING)
        return TakeFinished(self._token().id, self._start().seq)

    def _handlers(self):
        def taken(_):
            self._set(phase=Phase.TAKING)
            return TakeTokens()

        return {**super()._handlers(), FinishedTaken: taken}

    def _take_finished(self):
        return self._commit()


class RetiresEarly(Mutant):
    """R6: staged messages are planned and deleted at once, and not deleted when Spark has committed them."""

    def _whole(self):
        if self.state.token is None or isinstance(self.state.request, Read):
            return super()._whole()
        self._set(phase=Phase.TAKING)
        return TakeTokens()

    def _take_finished(self):
        token = self._token()
        self._set(phase=Phase.FINISHING)
        return TakeFinished(token.id, token.next)

    def _committed(self, committed):
        token = self._token()
        if self.state.received or token.next == self._start().seq:
            return super()._committed(committed)
        return self._planned(Offset(id=token.id, token=token.name, seq=token.next))


class AcceptsParts(Mutant):
    """R7: a batch runs although some of its numbers are missing."""

    def _blocks_seen(self, seen):
        command = super()._blocks_seen(seen)
        return self._whole() if self.state.phase is Phase.RECHECKING else command


class CutsAgain(Mutant):
    """R7: the cuts of a repeated batch are those of the blocks, and not those of its offset."""

    def _whole(self):
        command = super()._whole()
        return replace(command, cuts=self.state.cuts) if isinstance(command, Deliver) else command


class NoFloor(Mutant):
    """R8: the floor is not compared with the start."""

    def _fenced(self, tokens):
        return None

    def _proceed(self):
        token = self.state.token
        if token and token.floor > self._start().seq:
            self._set(token=replace(token, floor=0))
        return super()._proceed()


class AsksFloorOnce(Mutant):
    """R8: a loss is reported without asking for the floor again."""

    def _rechecked(self, seen):
        return self._stop(Loss(self.state.missing, *self.state.memory))


class Assumes(Mutant):
    """R9: a transaction without an answer is taken for committed."""

    def _lost(self):
        state = self.state
        if state.phase is not Phase.COMMITTING or not state.received:
            return super()._lost()
        token, received = self._token(), state.received
        self._set(phase=Phase.APART, token=None, received=0, request=None, memory=(token.next - received, token.next))
        return Planned(Offset(id=token.id, token=token.name, seq=token.next))


class NeverRenews(Mutant):
    """A token near its limit of deliveries is used like any other."""

    def _tokens_seen(self, seen):
        return super()._tokens_seen(replace(seen, tokens=tuple(replace(s, deliveries=0) for s in seen.tokens)))


class TriesOn(Mutant):
    """A source message near its limit of deliveries is moved like any other."""

    def _received(self, received):
        return super()._received(replace(received, deliveries=0))


class SharesQueues(Mutant):
    """R11: a token of another query's stream is ignored."""

    def _foreign(self, tokens, *, mine):
        return None
