"""Machines at a register that break one rule each. A model that finds nothing wrong with them tests nothing."""

from dataclasses import replace

from free_table import FreeTable

from pyspark_jms.delivery.register import plan
from pyspark_jms.delivery.register.keeper import TokenKeeper
from pyspark_jms.delivery.register.outcomes import Phase, PoisonLoop
from pyspark_jms.delivery.register.reader import ReaderTask
from pyspark_jms.delivery.register.steps import (
    Create,
    Created,
    Opened,
    Peek,
    Receive,
    Received,
    Replaced,
    ValueAccepted,
)
from pyspark_jms.delivery.register.token import Token


class Reader(ReaderTask):
    table = FreeTable(ReaderTask.table)


class Keeper(TokenKeeper):
    table = FreeTable(TokenKeeper.table)


class ReceivesAgain(Reader):
    """L2: a value of the task's batch is replaced by a new one."""

    def _replay(self, token):
        return self._open(token, 1 + token.blocks)


class NeverFenced(Reader):
    """L2: a token of a later batch does not stop the task."""

    def _later(self, tokens, stream, reader, batch):
        return None


class NeverAccepts(Reader):
    """L4: the transaction does not accept the value."""

    def _take(self):
        return self._value_accepted()


class ForgetsEmpty(Reader):
    """L5: an empty answer is given without a transaction."""

    def _received(self, received):
        if received.messages:
            return super()._received(received)
        return self._answer(replace(self._token(), batch=self._request().batch, blocks=0))


class Assumes(Reader):
    """L6: a transaction without an answer is taken for committed, so the rows are given before its confirmation."""

    def _lost(self):
        if self.state.phase is Phase.REPLACING:
            return self._answer(self._token())
        return super()._lost()


class AcceptsParts(Reader):
    """L7: a value is taken although some of its blocks are missing."""

    def _blocks_seen(self, seen):
        return self._answer(self.state.token or self._token())


class NeverProves(Reader):
    """L8: a loss is reported without asking whether the lock is held."""

    def _prove(self):
        return self._proven()


class UsesAnyToken(Reader):
    """L9: a token counts although the offset log does not name it."""

    def _look(self):
        super()._look()
        return Peek(None)

    def _named(self, tokens, stream, name):
        mine = [each for each in tokens if each.token.stream == stream]
        return max(mine, key=lambda each: each.token.batch, default=None)


class MakesTokens(Reader):
    """L9: a task makes the token that it does not find."""

    def _handlers(self):
        return {**super()._handlers(), Created: lambda _: self._look()}

    def _proven(self):
        read = self._request()
        if self.state.token is not None:
            return super()._proven()
        self._set(phase=Phase.CREATING)
        return Create(Token(stream=read.stream, name=read.name, reader=read.reader, batch=read.since))


class NeverCloses(Keeper):
    """L10: a reader that nobody read stays at its earlier batch."""

    def _close(self, token, tokens):
        return self._kept(token)


class NeverRenews(Reader):
    """L11: a token near its limit of deliveries is used like any other."""

    def _receive(self, stored, tokens):
        return super()._receive(replace(stored, deliveries=0), tokens)


class ReceivesOn(Reader):
    """L13: a message near its limit of deliveries is received with others."""

    def _suspected(self, received):
        return None


class StopsAtOnce(Reader):
    """L13: a message with a high delivery-count stops the query, whoever wrote the count."""

    def _suspected(self, received):
        return self._stop(PoisonLoop(received.suspect or "", received.deliveries))


class SharesQueues(Reader):
    """L14: a value of another stream is ignored, and accepted."""

    def _foreign(self, tokens, stream):
        return None


class SharingKeeper(Keeper):
    """L14: a token of another stream does not stop the plan."""

    def _foreign(self, tokens, stream):
        return None


class AnyPlace:
    """L16: the address and the broker of the offset are not compared."""

    keeps, planned, reads = plan.keeps, plan.planned, plan.reads

    @staticmethod
    def require_place(offset, address, broker):
        return None


class ReceivesFirst(Reader):
    """L17: messages are received before the broker has shown that it takes some."""

    def _open(self, token, messages):
        self._set(token=token, messages=messages)
        if self.state.renewed is not None:
            return super()._open(token, messages)
        self._set(phase=Phase.RECEIVING)
        return Receive(self._request().batch, token.next)

    def _handlers(self):
        def opened(_):
            return self._take()

        def accepted(_):
            if self.state.renewed is not None:
                return self._renew()
            return ReaderTask._received(self, self.state.found)

        def received(event):
            self._set(found=event)
            return ReaderTask._open(self, self._token(), self.state.messages)

        return {
            **super()._handlers(),
            Opened: opened,
            ValueAccepted: accepted,
            Received: received,
            Replaced: self._done,
        }

    def _done(self, _):
        return self._answer(self._token())
