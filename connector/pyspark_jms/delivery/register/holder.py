"""The steps that the task of a reader and the keeper of a token have in common: lock, look, take, accept. Pure.

L1 and so on name the rules of ``tests/support/register_worlds.py``, which has a world for each.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.machine import Machine
from pyspark_jms.delivery.register.outcomes import (
    Answer,
    Fenced,
    Keep,
    Kept,
    Phase,
    Read,
    SetBack,
    SharedRegister,
    Stop,
)
from pyspark_jms.delivery.register.token import LoneMessage, StoredToken, Token

__all__ = ["Command", "RegisterHolder"]

Command: TypeAlias = (
    steps.Lock
    | steps.Peek
    | steps.ProveLink
    | steps.Open
    | steps.Take
    | steps.AcceptValue
    | steps.Receive
    | steps.GiveBack
    | steps.Renew[Token]
    | steps.Replace[Token]
    | steps.Create[Token]
    | steps.Browse
    | steps.Drop
    | Answer
    | Kept
    | Stop
)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    phase: Phase = Phase.BEGINNING
    request: Read | Keep | None = None
    token: Token | None = None
    """As it was read, made or renewed on this connection."""

    messages: int = 0
    """How many messages the register should have."""

    renewed: Token | None = None
    """What replaces the token in a transaction of its own, before anything is received."""

    note: LoneMessage | None = None
    """A message that has to be received alone, and the token does not tell yet."""

    noted: LoneMessage | None = None
    """What this attempt has written into the token: another attempt has not died with it."""

    found: int | None = None
    """Of the blocks of the value, how many were seen; fewer than there should be."""


class RegisterHolder(Machine[State, Command]):
    """Whoever holds the lock of a register, for one request."""

    def __init__(self, *, fail_on_data_loss: bool = True) -> None:
        super().__init__(State())
        self._fail_on_data_loss = fail_on_data_loss

    # --- L6: nothing is assumed -----------------------------------------------------------------------

    def _lock(self) -> Command:
        """After a lost answer, everything is read again under the lock."""
        self._set(phase=Phase.LOCKING, token=None, renewed=None, found=None)
        return steps.Lock()

    def _lost(self) -> Command:
        self._set(note=None)
        return self._lock()

    def _drop(self) -> Command:
        self._set(phase=Phase.DROPPING)
        return steps.Drop()

    # --- the tokens -----------------------------------------------------------------------------------

    def _named(self, tokens: Iterable[StoredToken[Token]], stream: str, name: str | None) -> StoredToken[Token] | None:
        """L9: a token counts if the offset log names it."""
        mine = (each for each in tokens if (each.token.stream, each.token.name) == (stream, name))
        return max(mine, key=lambda each: each.token.batch, default=None)

    def _foreign(self, tokens: Iterable[StoredToken[Token]], stream: str) -> Stop | None:
        """L14: a register has one stream. A stream that has received nothing gives way."""
        others = (each.token for each in tokens if each.token.stream != stream)
        moved = next((token for token in others if token.batch or token.next), None)
        return self._stop(SharedRegister(moved.stream)) if moved else None

    def _later(self, tokens: Iterable[StoredToken[Token]], stream: str, reader: int, batch: int) -> Stop | None:
        """L2: a token of a later batch stops this run."""
        later = max((each.token.batch for each in tokens if each.token.stream == stream), default=batch)
        return self._stop(Fenced(batch, reader, later)) if later > batch else None

    def _set_back(self, token: Token, since: int) -> Stop | None:
        """L15: the broker does not know less than the offset log."""
        if token.batch >= since or not self._fail_on_data_loss:
            return None
        return self._stop(SetBack(token.reader, token.batch, since))

    # --- L3, L4: the value in the transaction ---------------------------------------------------------

    def _open(self, token: Token, messages: int) -> Command:
        """``messages``: of the register. With too few, what is received may lack the token, and costs a delivery."""
        self._set(phase=Phase.OPENING, token=token, messages=messages)
        return steps.Open()

    def _count(self, tokens: Iterable[StoredToken[Token]]) -> int:
        """Return how many messages a register has that shows these tokens, of which one may have been made beside
        another.
        """
        return sum(1 + each.token.blocks for each in tokens)

    def _take(self) -> Command:
        self._set(phase=Phase.TAKING)
        return steps.Take(self.state.messages)

    def _taken(self, taken: steps.Taken[Token]) -> Command:
        """L4: the transaction accepts the token that was read, or there is none.

        With the lock nothing else can come. The comparison does not rely on that.
        """
        token = self._token()
        foreign = next((stream for stream, _ in taken.blocks if stream != token.stream), None)
        if foreign is not None:
            return self._stop(SharedRegister(foreign))
        if token not in {each.token for each in taken.tokens}:
            return self._drop()
        if stop := self._set_back(token, max((batch for _, batch in taken.blocks), default=0)):
            return stop
        self._set(phase=Phase.ACCEPTING)
        return steps.AcceptValue()

    def _renew(self) -> Command:
        assert self.state.renewed is not None
        self._set(phase=Phase.RENEWING)
        return steps.Renew(self.state.renewed)

    def _token(self) -> Token:
        assert self.state.token is not None
        return self.state.token
