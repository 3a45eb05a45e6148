"""A task that receives: the token of its register → its rows are the value that is there, or a new one. Pure.

The machine has the rules; the engine and the simulator of the tests only carry out commands.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.holder import Command, RegisterHolder
from pyspark_jms.delivery.register.outcomes import (
    READER,
    Answer,
    BlocksMissing,
    Phase,
    PoisonLoop,
    Read,
    TokenMissing,
)
from pyspark_jms.delivery.register.token import LoneMessage, StoredToken, Token, needs_renewal

__all__ = ["MAX_SOURCE_DELIVERIES", "ReaderTask"]

MAX_SOURCE_DELIVERIES = 5
"""A message with this delivery-count is received alone, before the broker's limit (10 by default) is reached."""
MAX_SUSPECTS = 1024
FEWER_SUSPECTS = 16
"""Of 1,024 suspected messages, the one that kills is alone after three deaths. The broker allows four more."""


class ReaderTask(RegisterHolder):
    """One attempt: ``next(Read(…))``, and its commands until an ``Answer`` or a ``Stop``."""

    table = READER

    def _handlers(self) -> Mapping[type, Callable[..., Command]]:
        return {
            Read: self._read,
            steps.Locked: lambda _: self._look(),
            steps.LockHeld: lambda _: self._lock(),
            steps.Peeked: self._peeked,
            steps.Proven: lambda _: self._proven(),
            steps.Opened: lambda _: self._take(),
            steps.Taken: self._taken,
            steps.ValueAccepted: lambda _: self._value_accepted(),
            steps.Renewed: lambda _: self._renewed(),
            steps.Received: self._received,
            steps.GivenBack: lambda _: self._lock(),
            steps.Replaced: lambda _: self._answer(self._token()),
            steps.BlocksSeen: self._blocks_seen,
            steps.Dropped: lambda _: self._lost(),
            steps.Lost: lambda _: self._lost(),
        }

    def _read(self, read: Read) -> Command:
        self._set(request=read)
        return self._lock()

    def _request(self) -> Read:
        assert isinstance(self.state.request, Read)
        return self.state.request

    def _look(self) -> Command:
        self._set(phase=Phase.LOOKING)
        return steps.Peek(self._request().name)

    def _answer(self, token: Token) -> Command:
        """L5: after the confirmed transaction only, also if the value is empty."""
        return self._end(Answer(token), token=token)

    # --- L2: the value decides ------------------------------------------------------------------------

    def _peeked(self, seen: steps.Peeked[Token]) -> Command:
        read = self._request()
        if stop := self._later(seen.tokens, read.stream, read.reader, read.batch):
            return stop
        if stop := self._foreign(seen.tokens, read.stream):
            return stop
        stored = self._named(seen.tokens, read.stream, read.name)
        if stored is None:
            return self._prove()
        if stop := self._set_back(stored.token, read.since):
            return stop
        if stored.token.batch == read.batch:
            return self._replay(stored.token)
        return self._receive(stored, self._count(seen.tokens))

    def _replay(self, token: Token) -> Command:
        if not token.blocks:
            return self._answer(token)
        self._set(phase=Phase.BROWSING, token=token)
        return steps.Browse(token.stream, token.batch, token.blocks)

    def _receive(self, stored: StoredToken[Token], messages: int) -> Command:
        """L11: a token that was delivered too often is replaced first. L1: the blocks of its batch are not needed."""
        token = stored.token
        if needs_renewal([stored]) or self.state.note is not None:
            empty = replace(token, blocks=0, first=token.next)
            self._set(renewed=replace(empty, alone=self.state.note or token.alone))
        return self._open(token, messages)

    # --- L7: a value is whole -------------------------------------------------------------------------

    def _blocks_seen(self, seen: steps.BlocksSeen) -> Command:
        read, token = self._request(), self.state.token
        if token is None:
            return self._answer(_without_token(read, seen.blocks))
        if seen.blocks >= token.blocks:
            return self._answer(token)
        self._set(found=seen.blocks)
        return self._prove()

    # --- L8: before a loss is reported, the lock is held ----------------------------------------------

    def _prove(self) -> Command:
        self._set(phase=Phase.PROVING)
        return steps.ProveLink()

    def _proven(self) -> Command:
        read, token, found = self._request(), self.state.token, self.state.found
        if token is None:
            if self._fail_on_data_loss:
                return self._stop(TokenMissing(read.reader, read.name))
            self._set(phase=Phase.BROWSING)
            return steps.Browse(read.stream, read.batch, None)
        assert found is not None
        if self._fail_on_data_loss:
            return self._stop(BlocksMissing(read.reader, read.batch, found, token.blocks))
        return self._answer(replace(token, blocks=found))

    # --- L3: one transaction --------------------------------------------------------------------------

    def _value_accepted(self) -> Command:
        if self.state.renewed is not None:
            return self._renew()
        token = self._token()
        self._set(phase=Phase.RECEIVING)
        alone = token.alone if token.alone and token.alone.message else None
        return steps.Receive(self._request().batch, self._first(token), alone)

    def _first(self, token: Token) -> int:
        """The number of the first message. A token of an older copy of the store knows less than the offset."""
        return max(token.next, self._request().next)

    def _renewed(self) -> Command:
        renewed = self.state.renewed
        assert renewed is not None
        self._set(renewed=None, note=None, noted=renewed.alone)
        return self._open(renewed, 1)

    def _received(self, received: steps.Received) -> Command:
        if command := self._suspected(received):
            return command
        token = self._token()
        first = self._first(token)
        after = replace(
            token,
            batch=self._request().batch,
            blocks=received.blocks,
            first=first,
            next=first + received.messages,
            drained=received.drained,
            alone=self._group_after(received),
            metrics=received.metrics,
        )
        self._set(phase=Phase.REPLACING, token=after)
        return steps.Replace(after)

    # --- L13: a message that many have died with is received alone ------------------------------------

    def _suspected(self, received: steps.Received) -> Command | None:
        """Return None if it is received apart, and the token tells so.

        Several suspected messages are received together. If an attempt dies with them, the next ones try fewer.
        """
        alone = self._token().alone
        if alone is not None and received.suspect == alone.message and received.messages <= alone.many:
            return None if alone == self.state.noted else self._found(alone, received)
        if received.deliveries < MAX_SOURCE_DELIVERIES:
            return None
        limit, passed = (MAX_SUSPECTS, 0) if alone is None else (alone.limit, alone.passed)
        note = LoneMessage(
            message=received.suspect or "",
            deliveries=received.deliveries,
            many=min(received.suspects, limit),
            limit=limit,
            passed=passed,
        )
        return self._give_back(note)

    def _found(self, alone: LoneMessage, received: steps.Received) -> Command | None:
        """Another attempt had begun with these messages, and has ended without a value."""
        if alone.many > 1:
            fewer = max(1, alone.many // FEWER_SUSPECTS)
            return self._give_back(replace(alone, many=fewer, limit=fewer, passed=0))
        # The broker may count from where it likes: it may replace a count that the producer wrote by its own.
        if received.deliveries != alone.deliveries:
            return self._stop(PoisonLoop(alone.message, received.deliveries))
        return None

    def _give_back(self, note: LoneMessage) -> Command:
        self._set(phase=Phase.GIVING_BACK, note=note)
        return steps.GiveBack()

    def _group_after(self, received: steps.Received) -> LoneMessage | None:
        """While suspected messages come, what has killed an attempt among more of them may come next: the limit grows
        when as many have passed as died together. Then another cause has ended the attempt.
        """
        alone = self._token().alone
        if alone is None or received.suspect != alone.message:
            return None
        limit, passed = alone.limit, alone.passed + received.messages
        if passed >= FEWER_SUSPECTS * limit:
            limit, passed = FEWER_SUSPECTS * limit, 0
        if limit >= MAX_SUSPECTS:
            return None
        return LoneMessage(message="", deliveries=0, many=limit, limit=limit, passed=passed)


def _without_token(read: Read, blocks: int) -> Token:
    """Answer with what is there, as failOnDataLoss=false asks for."""
    return Token(stream=read.stream, name=read.name, reader=read.reader, batch=read.batch, blocks=blocks)
