"""The state of the owner of a staged stream, and the steps that the rules of ``owner.py`` are made of. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pyspark_jms.delivery.register.machine import Machine
from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.owner_table import (
    OWNER,
    Deliver,
    Fenced,
    Loss,
    Phase,
    Plan,
    Planned,
    PoisonLoop,
    Read,
    Shared,
    Stop,
    Wait,
)
from pyspark_jms.delivery.staging.steps import (
    BrowseBlocks,
    Commit,
    CreateToken,
    Drop,
    FindTokens,
    Lock,
    Patience,
    Receive,
    RenewToken,
    TakeFinished,
    TakeTokens,
)
from pyspark_jms.delivery.staging.tokens import SourceToken

__all__ = ["OwnerCommand", "OwnerState", "OwnerSteps", "Span"]

Span: TypeAlias = tuple[int, int]
OwnerCommand: TypeAlias = (
    Lock
    | FindTokens
    | CreateToken[SourceToken]
    | RenewToken[SourceToken]
    | TakeTokens
    | TakeFinished
    | Receive
    | Commit[SourceToken]
    | BrowseBlocks
    | Drop
    | Planned
    | Deliver
    | Wait
    | Stop
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerState:
    phase: Phase = Phase.APART
    request: Plan | Read | None = None
    id: str | None = None
    """The stream whose lock is asked for or held."""

    token: SourceToken | None = None
    """As it was read or committed on this connection."""

    received: int = 0
    memory: Span = (0, 0)
    """The engine has these messages in memory: the broker has confirmed their move, or they were browsed."""

    cuts: tuple[int, ...] = ()
    missing: tuple[Span, ...] = ()
    """Numbers of ``memory`` that no block has; with failOnDataLoss=false."""


class OwnerSteps(Machine[OwnerState, OwnerCommand]):
    """``new_name`` returns a name that nobody has used, for a stream or a token."""

    table = OWNER

    def __init__(self, new_name: Callable[[], str]) -> None:
        super().__init__(OwnerState())
        self._new_name = new_name

    # --- R1: the lock ---------------------------------------------------------------------------------

    def _lock(self) -> OwnerCommand:
        wanted = self._wanted_id()
        if wanted is None and self.state.phase is not Phase.LOCKING:
            wanted = self._new_name()
        self._set(phase=Phase.LOCKING, id=wanted or self.state.id)
        assert self.state.id is not None, "a stream has an id before its lock is asked for"
        return Lock(self.state.id)

    def _wanted_id(self) -> str | None:
        """The stream that Spark names. None: Spark's log names none yet."""
        request = self.state.request
        return request.start.id if isinstance(request, Plan) else request.end.id if request else None

    def _drop(self) -> OwnerCommand:
        self._set(phase=Phase.DROPPING)
        return Drop()

    def _lost(self) -> OwnerCommand:
        """R9: never assume what became of a lost command. Lock again, and read the token."""
        self._set(token=None, received=0)
        if self.state.request is None:
            self._set(phase=Phase.APART)
            return Wait()
        return self._lock()

    # --- the token and the blocks ---------------------------------------------------------------------

    def _look(self) -> OwnerCommand:
        self._set(phase=Phase.LOOKING, token=None)
        named = self._named()
        return FindTokens(Patience.FULL if named else Patience.ONCE, named)

    def _named(self) -> str | None:
        """The token that Spark's offset log names."""
        request = self.state.request
        return request.start.token if isinstance(request, Plan) else request.end.token if request else None

    def _create(self, *, next_: int, floor: int, name: str) -> OwnerCommand:
        assert self.state.id is not None
        token = SourceToken(id=self.state.id, name=name, next=next_, floor=floor)
        self._set(phase=Phase.CREATING, token=token)
        return CreateToken(token)

    def _browse(self, start: int, end: int | None) -> OwnerCommand:
        assert self.state.id is not None
        self._set(phase=Phase.BROWSING)
        return BrowseBlocks(self.state.id, start, end)

    # --- answers and state ----------------------------------------------------------------------------

    def _planned(self, offset: Offset) -> OwnerCommand:
        self._set(phase=Phase.OWNING, request=None, cuts=())
        return Planned(offset)

    def _stop(self, reason: Fenced | Loss | PoisonLoop | Shared) -> Stop:
        self._set(phase=Phase.STOPPED, request=None)
        return Stop(reason)

    def _start(self) -> Offset:
        assert self.state.request is not None
        return self.state.request.start

    def _finished(self) -> int:
        request = self.state.request
        return request.finished if isinstance(request, Plan) else 0

    def _token(self) -> SourceToken:
        assert self.state.token is not None
        return self.state.token
