"""Carries out at the broker what a machine of ``delivery.register`` decides, until its answer. For a task or a plan."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.blocks.block import PartitionSlice, StagedRange
from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.holder import RegisterHolder
from pyspark_jms.delivery.register.outcomes import Answer, Keep, Kept, Read, Stop
from pyspark_jms.delivery.register.token import StoredToken, Token
from pyspark_jms.errors import (
    BrokerError,
    JMSError,
    SourceFencedError,
    SubscriptionInUseError,
    TransactionRolledBackError,
)
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.source.readers.value import RowsOf, ValueRows

__all__ = ["Attempt"]

_log = logging.getLogger("pyspark_jms.source")
_LOCK_PAUSE_SECONDS, _LOOK_PAUSE_SECONDS = 0.2, 0.05


@dataclass(eq=False)
class Attempt:
    """``run`` a request. Afterwards the lock is given back, and ``rows`` are those of an ``Answer``."""

    machine: RegisterHolder
    connect: Callable[[], ReaderLink]
    receive: Callable[[ReaderLink, steps.Receive], tuple[steps.Received, Sequence[PartitionSlice]]] | None = None
    """Only a task has it, and ``rows_of``: the driver, which keeps a register, receives nothing."""
    rows_of: RowsOf | None = None
    _: KW_ONLY
    timeout: float
    peek: Callable[[], tuple[StoredToken[Token], ...]] | None = None
    """On another connection, for a look without the lock."""
    missing: Callable[[ReaderLink], object] | None = None
    """Is called once when the token is not there, and raises if this is another broker."""
    pause: Callable[[float], None] = time.sleep
    rows_first: bool = False
    """An error of a row ends the attempt before its messages are accepted."""

    def __post_init__(self) -> None:
        self._link: ReaderLink | None = None
        self._event: object = None
        self._received = ValueRows()
        """Of what ``Receive`` got: the rows of the value, until it is replaced."""
        self._locked_at = 0.0
        self._undelivered_since: float | None = None
        self.rows = ValueRows()
        self.reconnects = 0
        """How often a connection was lost."""

    def run(self, request: Read | Keep) -> Answer | Kept:
        self._event = request
        try:
            answer = keep_trying(self._run, "reading exactly once", timeout=self.timeout, pause=self.pause)
            self._leave(ReaderLink.finish)
            return answer
        finally:
            self._leave()

    def _run(self) -> Answer | Kept:
        """L6: after any doubt the connection is closed, and the next attempt locks and looks again."""
        try:
            while True:
                command = self.machine.next(self._event)
                if isinstance(command, Answer | Kept):
                    return command
                if isinstance(command, Stop):
                    raise command.reason.error()
                self._event = self._carry_out(command)
        except JMSError as error:
            self.reconnects += error.transient and self._link is not None
            self._leave()
            if error.transient:
                self._event = steps.Lost()
            raise

    def _carry_out(self, command: Any) -> object:
        match command:
            case steps.Lock():
                return self._lock()
            case steps.Peek():
                return self._look(command)
            case steps.Receive():
                assert self.receive is not None
                received, runs = self.receive(self._held, command)
                self._received = ValueRows(runs, self.rows_of)
                return received
            case steps.Browse():
                return self._browse(command)
            case steps.Replace(token):
                return self._replace(token)
            case steps.GiveBack():
                self._leave()
                return steps.GivenBack()
            case steps.Drop():
                self._await_delivery()
                self._leave(ReaderLink.drop)
                return steps.Dropped()
        return _carry_out_at_once(self._held, command)

    # --- the connection ------------------------------------------------------------------------

    @property
    def _held(self) -> ReaderLink:
        assert self._link is not None
        return self._link

    def _leave(self, how: Callable[[ReaderLink], object] = ReaderLink.close) -> None:
        link, self._link = self._link, None
        if link is not None:
            how(link)

    def _lock(self) -> steps.Locked:
        """The broker frees the lock of a dead process at once, and that of a lost machine after its idle time-out."""
        if self._link is None:
            self._link = self.connect()
        patience = self._link.patience_seconds
        try:
            self._link.lock(wait_seconds=patience, longest_pause=_LOCK_PAUSE_SECONDS, sleep=self.pause)
        except SubscriptionInUseError:
            raise SourceFencedError(
                f"Another connection has the register for {patience:,.0f} s, and goes on. Nothing was read.",
                "Another run of this query is active: stop one of the two.",
            ) from None
        self._locked_at = time.monotonic()
        return steps.Locked()

    # --- looking -------------------------------------------------------------------------------

    def _look(self, command: steps.Peek) -> steps.Peeked[Token]:
        while True:
            elsewhere = self.peek if self._link is None else None
            tokens = elsewhere() if elsewhere is not None else self._held.peek()
            is_there = any(command.name in {None, each.token.name} for each in tokens)
            if not is_there and self._link is not None and self.missing is not None:
                self.missing(self._link)
                self.missing = None
            if is_there or not command.patient or not self._may_still_come("the token of a reader is not there"):
                return steps.Peeked(tokens)

    def _browse(self, command: steps.Browse) -> steps.BlocksSeen:
        while True:
            found = self._held.browse(command.stream, command.batch)
            is_whole = command.blocks is not None and len(found) >= command.blocks
            if is_whole or not self._may_still_come("blocks of a reader are missing"):
                break
        self.rows = ValueRows(map(_part_of, found), self.rows_of)
        return steps.BlocksSeen(len(found))

    def _may_still_come(self, what: str) -> bool:
        """Pauses, and returns False when the patience is over."""
        waited, limit = time.monotonic() - self._locked_at, self._held.patience_seconds
        if waited >= limit:
            return False
        if waited < 2 * _LOOK_PAUSE_SECONDS:
            _log.warning("= %s: waiting up to %.0f s for a transaction of an earlier attempt to end", what, limit)
        self.pause(_LOOK_PAUSE_SECONDS)
        return True

    def _await_delivery(self) -> None:
        """The token that a browse showed was not received. A transaction that is ending may have had it meanwhile."""
        now, limit = time.monotonic(), self._held.patience_seconds
        if self._undelivered_since is None:
            self._undelivered_since = now
            _log.warning("= %s shows its token and does not deliver it: waiting up to %.0f s", self._held.queue, limit)
        elif now - self._undelivered_since >= limit:
            raise self._held.not_delivered()

    # --- the transaction -----------------------------------------------------------------------

    def _replace(self, token: Token) -> steps.Replaced:
        """The broker needs a while for the transaction of many messages: time to make their rows."""
        if self.rows_first:
            self._received.make_all()
        try:
            self._held.replace_value(token, self._received.make)
        except TransactionRolledBackError as error:
            raise BrokerError(
                f"The broker refused to move messages to the staging queue: {error.fact} The messages stay where they"
                " were.",
                error.remedy,
            ) from None
        self.rows = self._received
        return steps.Replaced()


def _carry_out_at_once(link: ReaderLink, command: Any) -> object:
    """A command that waits for nothing that an earlier holder of the register may still do."""
    match command:
        case steps.ProveLink():
            link.prove()
            return steps.Proven()
        case steps.Open():
            link.open()
            return steps.Opened()
        case steps.Take(messages):
            return steps.Taken(link.take(messages), link.blocks)
        case steps.AcceptValue():
            link.accept()
            return steps.ValueAccepted()
        case steps.Renew(token):
            link.replace(token)
            return steps.Renewed()
        case steps.Create(token):
            link.require_lock()
            link.create(token)
            return steps.Created()
    raise AssertionError(command)


def _part_of(staged: StagedRange) -> PartitionSlice:
    block = staged.block
    return PartitionSlice(block.source, block.dialect, staged.first, block.messages)
