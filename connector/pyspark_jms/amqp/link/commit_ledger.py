"""Carries out at the broker what ``delivery.register.committer`` decides for a write, until its answer."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark_jms.amqp.dialects.refusals import require_register
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.register import Register, Token, register_settings
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.delivery.commit_token import CommitToken, LedgerEntry
from pyspark_jms.delivery.ledger_owner import LedgerOwner
from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.committer import Commit, Committer, Done, Establish, Failed, Find, Finish, Request
from pyspark_jms.delivery.register.outcomes import Stop
from pyspark_jms.delivery.register.token import Sighting
from pyspark_jms.errors import (
    JMSError,
    LinkError,
    SubscriptionInUseError,
    TokenMissingError,
    TransactionRolledBackError,
)
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["MISSING_SECONDS", "Admit", "TokenLedger", "opened"]

Admit = Callable[[tuple[LedgerEntry, ...]], bool]

_LOST_OWNER_SECONDS = 60.0
"""So long after its last sign a broker ends the connection of a lost machine, and frees its lock (Artemis: twice the 30
seconds that its open offers)."""

_ABSENCE_SECONDS = 1.0
"""A new register has no token. The transaction of an owner that died while it made the first one is over by then."""

MISSING_SECONDS = 30.0
"""A register that was there before has a token. Its absence must last so long before it counts."""


@contextmanager
def opened(settings: ConnectionSettings, owner: LedgerOwner) -> Iterator["TokenLedger"]:
    """A ledger on a connection of its own."""
    connection = connect(register_settings(settings, owner.queue))
    try:
        require_register(connection.dialect)
        yield TokenLedger(connection, Transactions(connection), settings, owner)
    finally:
        connection.close()


class TokenLedger:
    """On a connection with the container id of the ledger (``register_settings``). Each call locks and releases."""

    def __init__(
        self, connection: Connection, transactions: Transactions, settings: ConnectionSettings, owner: LedgerOwner
    ) -> None:
        """``transactions``: those of the rows."""
        self._connection, self._transactions, self._owner = connection, transactions, owner
        self._settings = settings
        self._register = Register(connection, owner.address)
        self._lock_seconds = max(settings.receipt_timeout, settings.reconnect_timeout) + _LOST_OWNER_SECONDS
        self._second: tuple[Connection, Register] | None = None
        """The connection that makes a register, while it is open."""
        self._error: LinkError | None = None

    def find(self) -> CommitToken:
        """Without entries if there is no token. ``MaxConsumersError``: the queue of the token is no lock."""
        return self._run(Find()).token

    def commit(self, entry: LedgerEntry, admit: Admit) -> bool:
        """Commit the rows of the open transaction together with their entry. Returns what ``admit`` returned.

        ``admit`` is called with the entries of the batch, and may raise: then nothing is committed, and the open
        transaction is the caller's to roll back. ``LinkError``: the outcome is unknown.
        """
        return self._run(Commit(entry), admit).committed

    def establish(self) -> None:
        """Create the token, if there is none."""
        self._run(Establish())

    def finish(self, write: str) -> None:
        """Replace the entries of a write's tasks by one entry."""
        self._run(Finish(write))

    def _run(self, request: Request, admit: Admit | None = None) -> Done:
        machine = Committer(self._owner)
        command = machine.next(request)
        try:
            while not isinstance(command, Done):
                if isinstance(command, Stop):
                    raise command.reason.error()
                if isinstance(command, Failed):
                    raise self._failure(request, in_doubt=command.in_doubt)
                command = machine.next(self._event(command, admit))
        finally:
            self._leave()
            _release(self._register)
        return command

    def _failure(self, request: Request, *, in_doubt: bool) -> JMSError:
        error = self._error
        assert error is not None
        if in_doubt or not isinstance(request, Commit):
            return error
        return TransactionRolledBackError(
            f"The rows of {request.entry.task} were not committed: {error.fact}",
            f"No row of this attempt was sent. {error.remedy}",
        )

    def _event(self, command: Any, admit: Admit | None) -> object:
        try:
            return self._carry_out(command, admit)
        except LinkError as error:
            self._error = error
            return steps.Lost()

    def _carry_out(self, command: Any, admit: Admit | None) -> object:
        match command:
            case steps.Lock():
                return self._lock()
            case steps.Make():
                return self._make()
            case steps.Leave():
                self._leave()
                return steps.Left()
            case steps.Peek():
                self._register.require_lock(self._owner.queue)
                return steps.Peeked(self._seen(self._register.peek(self._owner.queue)))
            case steps.TakeTokens(patient):
                seconds = MISSING_SECONDS if patient else _ABSENCE_SECONDS
                return steps.TokensTaken(self._seen(self._current.read(seconds)))
            case steps.Create(token):
                self._current.create(token.body())
                return steps.Created()
            case steps.Admit(known):
                assert admit is not None
                return steps.Admitted() if admit(known) else steps.Declined()
            case _:
                return self._change(command)

    def _change(self, command: Any) -> object:
        match command:
            case steps.Renew(token):
                own = Transactions(self._connection)
                self._register.accept(own)
                self._register.send(token.body(), own)
                own.discharge()
                return steps.Renewed()
            case steps.AcceptValue():
                self._register.accept(self._transactions)
                return steps.ValueAccepted()
            case steps.Replace(token):
                self._register.send(token.body(), self._transactions)
                self._transactions.discharge()
                return steps.Replaced()
        raise AssertionError(command)

    # --- the connections -----------------------------------------------------------------------

    def _lock(self) -> steps.Locked | steps.NoRegister:
        if self._transactions.is_open:
            self._register.attach_sender()  # before the lock is taken, so that others wait less
        found = self._register.lock(self._lock_seconds, create=False)
        return steps.Locked() if found else steps.NoRegister()

    def _make(self) -> steps.Locked | steps.LockHeld:
        connection = connect(register_settings(self._settings, self._owner.queue))
        register = Register(connection, self._owner.address)
        self._second = connection, register
        try:
            register.lock(self._lock_seconds)
        except SubscriptionInUseError:
            return steps.LockHeld()
        return steps.LockHeld() if register.existed else steps.Locked()

    @property
    def _current(self) -> Register:
        return self._register if self._second is None else self._second[1]

    def _leave(self) -> None:
        second, self._second = self._second, None
        if second is not None:
            _release(second[1])
            second[0].close()

    # --- the token -----------------------------------------------------------------------------

    def _seen(self, found: Sequence[Token]) -> tuple[Sighting[CommitToken], ...]:
        try:
            return tuple(Sighting(CommitToken.parse(each.body), each.delivery_count) for each in found)
        except ValueError:
            raise TokenMissingError(
                f"Address {self._owner.address} has a message that is not a token of this release. Nothing was sent.",
                "Remove the message if another program has sent it. Do not go back to an older release in the middle"
                " of a batch.",
            ) from None


def _release(register: Register) -> None:
    """In any case; when the connection is lost, the broker does."""
    with contextlib.suppress(JMSError):
        register.release()
