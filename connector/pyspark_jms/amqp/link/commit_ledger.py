"""Carries out at the broker what ``delivery.register.committer`` decides for a write, until its answer."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.management import open_amqp_management
from pyspark_jms.amqp.link.register import Place, Register, not_delivered
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.delivery.commit_token import CommitToken, LedgerEntry, LedgerOwner
from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.committer import Commit, Committer, Done, Failed, Find, Finish, NoToken, Request
from pyspark_jms.delivery.register.outcomes import Reason, Stop
from pyspark_jms.errors import (
    BrokerError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    LinkError,
    TransactionRolledBackError,
)
from pyspark_jms.jms.features import Feature
from pyspark_jms.management.queue_rules import require_own
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Admit", "TokenLedger", "ledger_register", "opened"]

_log = logging.getLogger("pyspark_jms.link")

Admit = Callable[[tuple[LedgerEntry, ...]], bool]

_LOST_OWNER_SECONDS = 60.0
"""So long after its last sign a broker ends the connection of a lost machine, and frees its lock (Artemis: twice the 30
seconds that its open offers)."""

_ABSENCE_SECONDS = 1.0
"""So long a look-up waits for a token that a browse does not show, and the end of a write."""

MISSING_SECONDS = 30.0
"""A register that was there before has a token. Its absence must last so long before it counts."""


@contextmanager
def opened(settings: ConnectionSettings, owner: LedgerOwner) -> Iterator["TokenLedger"]:
    """A ledger on a connection of its own."""
    with contextlib.closing(_connected(settings, owner)) as connection:
        connection.dialect.require(Feature.EXACTLY_ONCE_WRITE)
        yield TokenLedger(connection, Transactions(connection), settings, owner)


def _connected(settings: ConnectionSettings, owner: LedgerOwner) -> Connection:
    """The container id names the durable subscription, which is the register."""
    return connect(replace(settings, client_id=owner.queue))


def ledger_register(
    connection: Connection, owner: LedgerOwner, transactions: Transactions | None = None
) -> Register[CommitToken]:
    """``connection`` has the container id ``owner.queue``. ``transactions``: those of the rows."""
    place = Place(owner.address, owner.queue, "token")
    return Register(connection, place, transactions or Transactions(connection), CommitToken)


class TokenLedger:
    """Each call locks and releases."""

    def __init__(
        self, connection: Connection, transactions: Transactions, settings: ConnectionSettings, owner: LedgerOwner
    ) -> None:
        self._transactions, self._owner, self._settings = transactions, owner, settings
        self._register = ledger_register(connection, owner, transactions)
        self._lock_seconds = max(settings.receipt_timeout, settings.reconnect_timeout) + _LOST_OWNER_SECONDS
        self._second: Register[CommitToken] | None = None
        """On the connection that makes a register, while it is open."""
        self._error: LinkError | None = None

    def find(self) -> CommitToken:
        """Return the ledger, without entries if there is no token. Raise ``MaxConsumersError`` if the queue of the
        token is no lock.
        """
        return self._run(Find()).token

    def commit(self, entry: LedgerEntry, admit: Admit) -> bool:
        """Commit the rows of the open transaction together with their entry. Returns what ``admit`` returned.

        ``admit`` is called with the entries of the batch, and may raise: then nothing is committed, and the open
        transaction is the caller's to roll back. ``LinkError``: the outcome is unknown.
        """
        return self._run(Commit(entry), admit).committed

    def finish(self, write: str) -> None:
        """Replace the entries of a write's tasks by one entry."""
        self._run(Finish(write))

    def _run(self, request: Request, admit: Admit | None = None) -> Done:
        machine = Committer(self._owner)
        command = machine.next(request)
        try:
            while not isinstance(command, Done):
                if isinstance(command, Stop):
                    self._require_delivery(command.reason)
                    raise command.reason.error()
                if isinstance(command, Failed):
                    raise self._failure(request, in_doubt=command.in_doubt)
                command = machine.next(self._event(command, admit))
        finally:
            self._leave()
            _release(self._register)
        return command

    def _require_delivery(self, reason: Reason) -> None:
        """``NotDeliveredError`` if the token that is missing is at the broker."""
        if not isinstance(reason, NoToken):
            return
        with contextlib.suppress(LinkError):
            if self._current.peek():
                raise not_delivered(self._settings, self._current.queue)

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
            case steps.Peek():
                return self._peek()
            case steps.Take(_, patient):
                return steps.Taken(self._current.take(wait_seconds=MISSING_SECONDS if patient else _ABSENCE_SECONDS))
            case steps.Create(token, once):
                self._current.create(token, once=once)
                return steps.Created()
            case steps.Admit(known):
                assert admit is not None
                return steps.Admitted() if admit(known) else steps.Declined()
            case steps.Renew(token):
                own = Transactions(self._register.connection)
                self._register.accept(own)
                self._replace(token, own)
                return steps.Renewed()
            case steps.AcceptValue():
                self._register.accept()
                return steps.ValueAccepted()
            case steps.Replace(token):
                self._replace(token, self._transactions)
                return steps.Replaced()
        raise AssertionError(command)

    def _replace(self, token: CommitToken, transactions: Transactions) -> None:
        self._register.send(token, transactions)
        transactions.discharge()

    def _peek(self) -> steps.Peeked[CommitToken]:
        """Look at the token. What the broker does not show, without the permission ``browse``, is received."""
        self._register.require_lock()
        try:
            return steps.Peeked(self._register.peek())
        except (JMSSecurityError, InvalidDestinationError, BrokerError) as error:
            _log.debug("= the tokens of %s are received, not browsed: %s", self._owner.address, error.fact)
            return steps.Peeked(())

    # --- the connections -----------------------------------------------------------------------

    def _lock(self) -> steps.Locked | steps.NoRegister:
        self._leave()
        if self._transactions.is_open:
            self._register.attach_sender()  # before the lock is taken, so that others wait less
        found = self._register.lock(create=False, wait_seconds=self._lock_seconds)
        return steps.Locked() if found else steps.NoRegister()

    def _make(self) -> steps.Locked:
        uses = {self._register.place.queue: Feature.COMMIT_LEDGER}
        require_own(open_amqp_management, self._settings, uses)
        self._second = ledger_register(_connected(self._settings, self._owner), self._owner)
        self._second.lock(wait_seconds=self._lock_seconds)
        return steps.Locked()

    @property
    def _current(self) -> Register[CommitToken]:
        return self._register if self._second is None else self._second

    def _leave(self) -> None:
        second, self._second = self._second, None
        if second is not None:
            _release(second)
            second.connection.close()


def _release(register: Register[CommitToken]) -> None:
    """Release the lock. If the connection is lost, the broker does."""
    with contextlib.suppress(JMSError):
        register.release()
