"""The planner's steps at a register: create a missing token, close a reader whose rows no task read. No I/O.

The planner takes them only when the batch before is in Spark's commit log: nothing needs the value then.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.holder import Command, RegisterHolder
from pyspark_jms.delivery.register.outcomes import KEEPER, Keep, Kept, Phase, TokenMissing
from pyspark_jms.delivery.register.token import Token

__all__ = ["TokenKeeper"]

_MOST_MESSAGES = 1 << 32
"""More than a batch has."""


class TokenKeeper(RegisterHolder):
    """For one reader and one plan: ``next(Keep(…))``, and its commands until ``Kept`` or ``Stop``.

    ``new_name`` returns a name that nobody has used.
    """

    table = KEEPER

    def __init__(self, new_name: Callable[[], str], *, fail_on_data_loss: bool = True) -> None:
        super().__init__(fail_on_data_loss=fail_on_data_loss)
        self._new_name = new_name

    def _handlers(self) -> Mapping[type, Callable[..., Command]]:
        return {
            Keep: self._keep,
            steps.Locked: lambda _: self._look(),
            steps.LockHeld: lambda _: self._lock(),
            steps.Peeked: self._peeked,
            steps.Proven: lambda _: self._proven(),
            steps.Created: lambda _: self._kept(self._token()),
            steps.Opened: lambda _: self._take(),
            steps.Taken: self._taken,
            steps.ValueAccepted: lambda _: self._renew(),
            steps.Renewed: lambda _: self._renewed(),
            steps.Dropped: lambda _: self._lost(),
            steps.Lost: lambda _: self._lost(),
        }

    def _keep(self, keep: Keep) -> Command:
        """A token that is where the log says is kept without the lock, for which a task may be waiting."""
        self._set(request=keep)
        if keep.name is None:
            return self._lock()
        self._set(phase=Phase.PEEKING)
        return steps.Peek(keep.name, patient=False)

    def _request(self) -> Keep:
        assert isinstance(self.state.request, Keep)
        return self.state.request

    def _kept(self, token: Token) -> Command:
        return self._end(Kept(token), token=token)

    def _look(self) -> Command:
        name = self._request().name
        self._set(phase=Phase.LOOKING)
        return steps.Peek(name, patient=name is not None)

    def _peeked(self, seen: steps.Peeked[Token]) -> Command:
        keep, has_lock = self._request(), self.state.phase is Phase.LOOKING
        if stop := self._later(seen.tokens, keep.stream, keep.reader, keep.batch):
            return stop
        if stop := self._foreign(seen.tokens, keep.stream):
            return stop
        stored = self._named(seen.tokens, keep.stream, keep.name)
        if stored is not None and stored.token.batch >= keep.used:
            return self._kept(stored.token)
        if not has_lock:
            return self._lock()
        if keep.name is None:
            return self._create()
        if stored is None:
            self._set(phase=Phase.PROVING)
            return steps.ProveLink()
        return self._close(stored.token, self._count(seen.tokens))

    # --- L9: a token is made when a batch is planned, not by a task -----------------------------------

    def _proven(self) -> Command:
        keep = self._request()
        if self._fail_on_data_loss:
            return self._stop(TokenMissing(keep.reader, keep.name or ""))
        return self._create()

    def _create(self) -> Command:
        keep = self._request()
        first = 0 if keep.name is None else self._beyond_lost()
        name = self._new_name()
        token = Token(stream=keep.stream, name=name, reader=keep.reader, batch=keep.used, first=first, next=first)
        self._set(phase=Phase.CREATING, token=token)
        return steps.Create(token)

    def _beyond_lost(self) -> int:
        """No number comes twice: how many messages the lost token had counted of the last batch is not known."""
        keep = self._request()
        return keep.next + (_MOST_MESSAGES if keep.used == keep.batch else 0)

    # --- L10: a reader that Spark did not read is closed ----------------------------------------------

    def _close(self, token: Token, messages: int) -> Command:
        """A task of the committed batch that still runs then finds an empty value, and receives nothing."""
        keep = self._request()
        if keep.used < keep.batch and (stop := self._set_back(token, keep.used)):
            return stop
        first = token.next if token.next >= keep.next else self._beyond_lost()  # the broker's store is an older copy
        self._set(renewed=replace(token, batch=keep.used, blocks=0, first=first, next=first, metrics=()))
        return self._open(token, messages)

    def _renewed(self) -> Command:
        renewed = self.state.renewed
        assert renewed is not None
        return self._end(Kept(renewed, closed=True), token=renewed)
