"""Spark's requests and the broker's answers → the next step of the one who owns a staged stream. Pure.

The messages of the sources are moved to a staging queue of the stream, where they have numbers: Spark's offsets. The
machine has the rules; the engine and the simulator of the tests only carry out commands. The letters name the rules of
``docs/internals-exactly-once.md``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.owner_steps import OwnerCommand, OwnerSteps, Span
from pyspark_jms.delivery.staging.owner_table import (
    Deliver,
    Fenced,
    Loss,
    Phase,
    Plan,
    PoisonLoop,
    Read,
    Shared,
    Stop,
)
from pyspark_jms.delivery.staging.steps import (
    BlocksSeen,
    Commit,
    Committed,
    Dropped,
    FindTokens,
    FinishedTaken,
    Locked,
    LockHeld,
    Lost,
    Patience,
    Receive,
    Received,
    Renewed,
    RenewToken,
    TakeFinished,
    TakeTokens,
    TokenCreated,
    TokensSeen,
    TokensTaken,
)
from pyspark_jms.delivery.staging.tokens import Sighting, SourceToken, is_worn

__all__ = ["MAX_SOURCE_DELIVERIES", "SourceOwner"]

MAX_SOURCE_DELIVERIES = 5
"""A source message with this delivery-count stops the query, before the broker's limit (10 by default) is reached."""


class SourceOwner(OwnerSteps):
    """``new_name`` returns a name that nobody has used, for a stream or a token."""

    def __init__(self, new_name: Callable[[], str], *, fail_on_data_loss: bool = True) -> None:
        super().__init__(new_name)
        self._fail_on_data_loss = fail_on_data_loss

    def _handlers(self) -> Mapping[type, Callable[..., OwnerCommand]]:
        return {
            Plan: self._plan,
            Read: self._read,
            Locked: lambda _: self._look(),
            LockHeld: lambda _: self._lock(),
            TokensSeen: self._tokens_seen,
            TokenCreated: lambda _: self._answer_created(),
            Renewed: lambda _: self._proceed(),
            Received: self._received,
            TokensTaken: self._tokens_taken,
            FinishedTaken: lambda _: self._commit(),
            Committed: self._committed,
            BlocksSeen: self._blocks_seen,
            Dropped: lambda _: self._lost(),
            Lost: lambda _: self._lost(),
        }

    # --- requests -------------------------------------------------------------------------------------

    def _plan(self, plan: Plan) -> OwnerCommand:
        state, start = self.state, plan.start
        self._set(request=plan, memory=_above(state.memory, start.seq))
        if state.phase is Phase.APART:
            return self._lock()
        if start.id is None:
            unused = state.token is not None and state.token.next == 0
            return self._answer_created() if unused else self._drop()  # R2: Spark asks again until its log has the id
        if start.id != state.id:
            return self._drop()
        if state.token is None or start.token != state.token.name:
            return self._look()
        return self._proceed()

    def _read(self, read: Read) -> OwnerCommand:
        a, b = read.start.seq, read.end.seq
        known = self.state.memory[0] <= a and b <= self.state.memory[1]
        if a == b or known:
            return Deliver(a, b, read.end.cuts, _within(self.state.missing, a, b))
        self._set(request=read)
        if self.state.phase is Phase.APART:
            return self._lock()
        return self._proceed() if read.end.id == self.state.id else self._drop()

    # --- R3: the token --------------------------------------------------------------------------------

    def _tokens_seen(self, seen: TokensSeen[SourceToken]) -> OwnerCommand:
        if self.state.phase is Phase.RECHECKING:
            return self._rechecked(seen)
        named = self._named()
        token = next((s.token for s in seen.tokens if (s.token.id, s.token.name) == (self.state.id, named)), None)
        if stop := self._foreign((s.token for s in seen.tokens), mine=named is None or token is not None):
            return stop
        if named is None:
            assert self.state.id is not None
            return self._create(next_=0, floor=0, name=self.state.id)
        if stop := self._fenced(seen.tokens):
            return stop
        if token is None:
            return self._proceed()
        if stop := self._set_back(token):
            return stop
        self._set(token=token)
        if is_worn(seen.tokens):
            self._set(phase=Phase.RENEWING)
            return RenewToken(token)
        return self._proceed()

    def _foreign(self, tokens: Iterable[SourceToken], *, mine: bool) -> Stop | None:
        """R11: another query uses this queue. A stream that moved nothing yet gives way to one that has its token."""
        foreign = next((t for t in tokens if t.id != self.state.id and (t.next > 0 or not mine)), None)
        return self._stop(Shared(foreign.id)) if foreign else None

    def _fenced(self, tokens: Iterable[Sighting[SourceToken]]) -> Stop | None:
        """R8: a floor above the start that Spark shows here: Spark has committed more elsewhere."""
        start = self._start().seq
        floor = max((s.token.floor for s in tokens if s.token.id == self.state.id), default=0)
        return self._stop(Fenced(floor, start)) if floor > start else None

    def _set_back(self, token: SourceToken) -> Stop | None:
        """R12: the broker knows less than Spark's log, for instance because its store is an older copy."""
        start = self._start().seq
        if token.next >= start or not self._fail_on_data_loss:
            return None
        return self._stop(Loss(((token.next, start),), token.next, start))

    def _answer_created(self) -> OwnerCommand:
        """R2, R3: the token is used when Spark shows its name, not before. All that is staged is planned with it."""
        token = self._token()
        return self._planned(Offset(id=token.id, token=token.name, seq=token.next, cuts=self.state.cuts))

    # --- the move -------------------------------------------------------------------------------------

    def _proceed(self) -> OwnerCommand:
        """The lock is held, and the tokens were read."""
        request, token, id_ = self.state.request, self.state.token, self.state.id
        assert id_ is not None
        if isinstance(request, Read):
            return self._browse(request.start.seq, request.end.seq)
        start = self._start()
        if token is None:
            return self._browse(start.seq, None)
        if token.floor > start.seq:
            return self._stop(Fenced(token.floor, start.seq))
        if token.next > start.seq:
            return self._browse(start.seq, token.next)
        self._set(phase=Phase.RECEIVING)
        return Receive(self._first(), self._finished())

    def _received(self, received: Received) -> OwnerCommand:
        if received.deliveries >= MAX_SOURCE_DELIVERIES:
            return self._stop(PoisonLoop(received.deliveries))
        if not received.messages and self._token().floor >= self._finished():
            return self._planned(self._start())
        self._set(phase=Phase.TAKING, received=received.messages)
        return TakeTokens()

    def _tokens_taken(self, taken: TokensTaken[SourceToken]) -> OwnerCommand:
        """R4: the transaction accepts the token that was read, or there is none."""
        if stop := self._foreign(taken.tokens, mine=True):
            return stop
        if self._token() not in taken.tokens:
            return self._drop()
        return self._take_finished()

    def _take_finished(self) -> OwnerCommand:
        """After the token, so that who sees the token sees all blocks."""
        token, below = self._token(), self._finished()
        if below == 0:
            return self._commit()
        self._set(phase=Phase.FINISHING)
        return TakeFinished(token.id, below)

    def _commit(self) -> OwnerCommand:
        token, first = self._token(), self._first()
        floor = max(token.floor, self._finished())
        after = replace(token, next=first + self.state.received, floor=floor)
        self._set(phase=Phase.COMMITTING, token=after)
        return Commit(after, first)

    def _first(self) -> int:
        """The number of the next message. With failOnDataLoss=false the token may be below Spark's start."""
        return max(self._token().next, self._start().seq)

    def _committed(self, committed: Committed) -> OwnerCommand:
        token, start, received = self._token(), self._start(), self.state.received
        self._set(received=0)
        if not received:
            return self._planned(start)
        self._set(memory=(token.next - received, token.next), missing=())
        return self._planned(Offset(id=token.id, token=token.name, seq=token.next, cuts=committed.cuts))

    # --- R7: whole batches ----------------------------------------------------------------------------

    def _blocks_seen(self, seen: BlocksSeen) -> OwnerCommand:
        start = self._start().seq
        end = self._end(seen.spans)
        cuts = tuple(first for first, _ in seen.spans if first > start)
        self._set(cuts=cuts, memory=(start, end), missing=_gaps(seen.spans, start, end))
        request, token = self.state.request, self.state.token
        if not self.state.missing:
            return self._whole()
        if isinstance(request, Plan) and token is None:
            self._set(memory=(0, 0))  # Spark's log decides whether this start is stale, and Read finds what is missing
            return self._create(next_=end, floor=self._finished(), name=self._new_name())
        self._set(phase=Phase.RECHECKING)
        return FindTokens(Patience.FULL, self._named())

    def _end(self, spans: tuple[Span, ...]) -> int:
        request, token = self.state.request, self.state.token
        if isinstance(request, Read):
            return request.end.seq
        return token.next if token else max([self._start().seq, *(end for _, end in spans)])

    def _rechecked(self, seen: TokensSeen[SourceToken]) -> OwnerCommand:
        """R8: another owner may have deleted the missing blocks, because Spark has committed them."""
        if stop := self._fenced(seen.tokens):
            return stop
        if self._fail_on_data_loss:
            return self._stop(Loss(self.state.missing, *self.state.memory))
        return self._whole()

    def _whole(self) -> OwnerCommand:
        """Every number is there, or failOnDataLoss=false accepts that some are missing."""
        request, token, (start, end) = self.state.request, self.state.token, self.state.memory
        if isinstance(request, Read):
            self._set(phase=Phase.OWNING, request=None)
            return Deliver(start, end, request.end.cuts, self.state.missing)
        if token is None:
            return self._create(next_=end, floor=self._finished(), name=self._new_name())
        return self._planned(Offset(id=token.id, token=token.name, seq=end, cuts=self.state.cuts))


def _above(memory: Span, start: int) -> Span:
    return (start, memory[1]) if memory[0] <= start <= memory[1] else (0, 0)


def _within(spans: Iterable[Span], start: int, end: int) -> tuple[Span, ...]:
    return tuple((max(a, start), min(b, end)) for a, b in spans if a < end and b > start)


def _gaps(spans: Iterable[Span], start: int, end: int) -> tuple[Span, ...]:
    """The parts of [start, end) that no span covers."""
    gaps, at = [], start
    for first, last in sorted(spans):
        if first > at:
            gaps.append((at, min(first, end)))
        at = max(at, last)
    return (*gaps, (at, end)) if at < end else tuple(gaps)
