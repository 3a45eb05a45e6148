"""The owner of a staged stream: carries out at the broker what ``delivery.staging`` decides, and keeps the messages.

Everything here runs on the one thread that Spark's calls come on.
"""

import logging
import time
import uuid
from typing import Any, assert_never

from pyspark_jms.delivery.staging.owner import SourceOwner
from pyspark_jms.delivery.staging.owner_table import Deliver, Plan, Planned, Read, Stop, Wait
from pyspark_jms.delivery.staging.steps import (
    BlocksSeen,
    BrowseBlocks,
    Commit,
    Committed,
    CreateToken,
    Drop,
    Dropped,
    FindTokens,
    FinishedTaken,
    Lock,
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
from pyspark_jms.delivery.staging.tokens import Sighting, SourceToken
from pyspark_jms.errors import (
    BrokerError,
    JMSError,
    SourceFencedError,
    StoppedError,
    SubscriptionInUseError,
    TransactionRolledBackError,
)
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.staged.connecting import connect_link, subscriptions_of
from pyspark_jms.source.staged.intake import Intake
from pyspark_jms.source.staged.links import StagedLink, StagedProtocol, Stretch
from pyspark_jms.source.staged.memory import Run, StagedMemory, joined
from pyspark_jms.source.staged.move import Move
from pyspark_jms.source.stopping import StopRequest

__all__ = ["StreamOwner"]

_log = logging.getLogger("pyspark_jms.source")

_LOCK_PAUSE_SECONDS = 0.2
_LOOK_PAUSE_SECONDS = 0.25


class StreamOwner:
    def __init__(
        self, options: SourceOptions, protocol: StagedProtocol, stop: StopRequest, intake: Intake, arrivals: Any
    ) -> None:
        self._options = options
        self._protocol = protocol
        self._stop = stop
        self._intake = intake
        self._arrivals = arrivals
        self._machine = SourceOwner(lambda: uuid.uuid4().hex, fail_on_data_loss=options.fail_on_data_loss)
        self._event: object = None
        self._move: Move | None = None
        self._floor = 0
        """Of the token that the next move replaces."""
        self._locked_at = 0.0
        self._waits_since: float | None = None
        self.link: StagedLink | None = None
        self.memory = StagedMemory()
        self.connections = 0
        self.moved = self.retired = 0
        """Messages of this run."""

    @property
    def token(self) -> SourceToken | None:
        return self._machine.state.token

    # --- what Spark asks -----------------------------------------------------------------------

    def plan(self, request: Plan, *, restarted: bool) -> Planned:
        answer = self._ask(request, restarted=restarted)
        assert isinstance(answer, Planned)
        return answer

    def read(self, request: Read) -> Deliver:
        answer = self._ask(request, restarted=True)
        assert isinstance(answer, Deliver)
        return answer

    def _ask(self, request: Plan | Read, *, restarted: bool) -> Planned | Deliver:
        """``restarted``: the query has run before, so it waits for a broker that is away."""
        self._notice_lost()
        self._event = request
        self._waits_since = None
        return keep_trying(
            self._attempt,
            "reading with a staging queue",
            timeout=self._options.connection.reconnect_timeout if restarted else 0.0,
            pause=self._stop.pause,
        )

    def _notice_lost(self) -> None:
        """A connection that ended while Spark asked nothing."""
        if self.link is None:
            return
        try:
            self.link.check()
        except JMSError as error:
            _log.warning("= the connection of the staging queue ended: %s", error.fact)
            self._leave(politely=False)
            self._machine.next(Lost())

    def _attempt(self) -> Planned | Deliver:
        """R9: after any doubt the connection is closed, and the next attempt locks and reads the token again."""
        try:
            return self._run()
        except StoppedError:
            raise
        except JMSError as error:
            self._leave(politely=not error.transient)
            self._event = Lost()
            raise

    def _run(self) -> Planned | Deliver:
        while True:
            command = self._machine.next(self._event)
            match command:
                case Planned() | Deliver():
                    return command
                case Stop():
                    raise command.reason.error()
                case Wait():
                    raise AssertionError("a request is open")
                case _:
                    self._event = self._carry_out(command)

    def _carry_out(self, command: Any) -> object:  # one line for each command
        match command:
            case Lock():
                return self._lock(command.id)
            case FindTokens():
                return self._find_tokens(command)
            case CreateToken():
                self._open.create_token(command.token.text())
                return TokenCreated()
            case RenewToken():
                self._open.renew_token(command.token.text())
                return Renewed()
            case Receive():
                return self._receive(command)
            case TakeTokens():
                self._floor = 0 if self.token is None else self.token.floor
                return TokensTaken(tuple(map(SourceToken.parse, self._open.take_tokens())))
            case TakeFinished():
                self._open.take_finished(command.below)
                return FinishedTaken()
            case Commit():
                return self._commit(command.token)
            case BrowseBlocks():
                return self._browse(command.start, command.end)
            case Drop():
                self._leave(politely=False)
                return Dropped()
            case _:
                assert_never(command)

    # --- the connection ------------------------------------------------------------------------

    @property
    def _open(self) -> StagedLink:
        assert self.link is not None
        return self.link

    def _leave(self, *, politely: bool) -> None:
        """Politely: detached, so that no delivery count rises."""
        link, self.link, self._move = self.link, None, None
        if link is not None:
            link.close() if politely else link.drop()

    def _lock(self, stream: str) -> Locked | LockHeld:
        if self.link is None:
            self.link = connect_link(self._options, self._protocol, self._arrivals, stream)
            self.connections += 1
        try:
            self.link.lock()
        except SubscriptionInUseError as error:
            self._wait_for_lock(error)
            return LockHeld()
        self.link.subscribe(subscriptions_of(self._options, self.link))
        self._locked_at = time.monotonic()
        return Locked()

    def _wait_for_lock(self, error: JMSError) -> None:
        """The broker frees the lock of a dead process at once, and that of a lost machine after its idle time-out."""
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
            _log.warning("= another connection has the staging queue: waiting for its end. %s", error.fact)
        limit = max(self._options.connection.reconnect_timeout, self._open.patience_seconds)
        if now - self._waits_since > limit:
            raise SourceFencedError(
                f"Another connection has used the staging queue for {limit:,.0f} s, and goes on. Nothing was read.",
                "Another run of this query is active: stop one of the two.",
            )
        self._stop.pause(_LOCK_PAUSE_SECONDS)

    # --- tokens and blocks ---------------------------------------------------------------------

    def _find_tokens(self, command: FindTokens) -> TokensSeen[SourceToken]:
        limit = self._open.patience_seconds if command.patience is Patience.FULL else 0.0
        while True:
            seen = tuple(Sighting(SourceToken.parse(each.text), each.deliveries) for each in self._open.tokens())
            wanted = [each for each in seen if command.name in (None, each.token.name)]
            if wanted or not self._may_still_come(limit, "the token of the staging queue is not there"):
                return TokensSeen(seen)

    def _browse(self, start: int, end: int | None) -> BlocksSeen:
        while True:
            found = [block for block in self._open.blocks() if block.end > start]
            wanted = [block for block in found if end is None or block.first < end]
            if _are_whole(wanted, start, end) or not self._may_still_come(
                self._open.patience_seconds, "blocks are missing in the staging queue"
            ):
                break
        self.memory.replace(joined(map(_run_of, wanted)))
        if not _are_whole(wanted, start, end):
            return BlocksSeen(tuple((block.first, block.end) for block in wanted))
        last = max((block.end for block in wanted), default=start) if end is None else end
        begins = [start, *self.memory.cuts(start, last, self._options.partition_bytes)]
        return BlocksSeen(tuple(zip(begins, [*begins[1:], last], strict=True)) if last > start else ())

    def _may_still_come(self, limit: float, what: str) -> bool:
        """Pauses, and returns False when the patience is over."""
        waited = time.monotonic() - self._locked_at
        if waited >= limit:
            return False
        if waited < 2 * _LOOK_PAUSE_SECONDS:
            _log.warning("= %s: waiting up to %.0f s for a transaction of an earlier run to end", what, limit)
        self._stop.pause(_LOOK_PAUSE_SECONDS)
        return True

    # --- the move ------------------------------------------------------------------------------

    def _receive(self, command: Receive) -> Received:
        move = self._move = Move(self._open, command.first, command.finished)
        self._intake.receive(self._open, move)
        return Received(len(move), move.deliveries)

    def _commit(self, token: SourceToken) -> Committed:
        move, self._move = self._move, None
        assert move is not None
        try:
            self._open.move(token.text(), move.accepted)
        except TransactionRolledBackError as error:
            raise _refused(error) from None
        self.moved += len(move)
        self.retired += token.floor - self._floor
        self.memory.add(move.runs)
        return Committed(self.memory.cuts(move.first, move.end, self._options.partition_bytes))

    def close(self) -> None:
        self._leave(politely=True)


def _are_whole(blocks: list[Stretch], start: int, end: int | None) -> bool:
    """Whether the blocks have every number from the start to the end, or to the last one that they have."""
    at = start
    for block in blocks:
        if block.first > at:
            return False
        at = max(at, block.end)
    return end is None or at >= end


def _run_of(stretch: Stretch) -> Run:
    block = stretch.block
    return Run(stretch.first, block.source, block.dialect, block.messages, stretch.moved_ms)


def _refused(error: TransactionRolledBackError) -> BrokerError:
    """The broker's reason stays until somebody removes it, and each attempt costs the messages a delivery."""
    return BrokerError(
        f"The broker refused to move messages to the staging queue: {error.fact} The messages stay where they were.",
        error.remedy,
    )
