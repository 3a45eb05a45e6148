"""A commit ledger over AMQP: the token of an owner in a register, read, and replaced together with the rows of a task.

The transaction of the rows accepts the token that was read and sends the next one. So the broker carries out one of two
commits that have read the same token, whoever runs them: two attempts of a task, tasks of an earlier run, the driver.
Does not decide which commit is right: the caller does, with the entries at hand.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark_jms.amqp.dialects.refusals import require_register
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.register import Register, Token, register_settings
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.delivery.commit_token import KEPT_RUNS, CommitToken, LedgerEntry, merged
from pyspark_jms.delivery.ledger_owner import LedgerOwner
from pyspark_jms.errors import (
    JMSError,
    LinkError,
    SinkFencedError,
    SubscriptionInUseError,
    TokenMissingError,
    TransactionRolledBackError,
    WriteIdentityError,
)
from pyspark_jms.network.settings import ConnectionSettings

__all__ = [
    "MISSING_SECONDS",
    "WORN_DELIVERIES",
    "Admit",
    "TokenLedger",
    "establish",
    "find_token",
    "finish_write",
    "token_address",
]

_log = logging.getLogger("pyspark_jms.link")

Admit = Callable[[tuple[LedgerEntry, ...]], bool]

_LOST_OWNER_SECONDS = 60.0
"""So long after its last sign a broker ends the connection of a lost machine, and frees its lock (Artemis: twice the 30
seconds that its open offers)."""

_ABSENCE_SECONDS = 1.0
"""A new register has no token. The transaction of an owner that died while it made the first one is over by then."""

MISSING_SECONDS = 30.0
"""A register that was there before has a token. Its absence must last so long before it counts."""

WORN_DELIVERIES = 3
"""A token with so many failed deliveries is replaced in a transaction of its own. Each death of an owner may count
one delivery, and after 10 of them a broker moves a message to its dead-letter queue by default."""


def token_address(queue: str) -> str:
    """The topic address of the token of the ledger with this name."""
    return f"{queue}.token"


def find_token(settings: ConnectionSettings, owner: LedgerOwner) -> CommitToken:
    """The token; one without entries if there is none."""
    with _opened(settings, owner) as ledger:
        return ledger.find()


def establish(settings: ConnectionSettings, owner: LedgerOwner) -> None:
    """Create the token, if there is none."""
    with _opened(settings, owner) as ledger:
        ledger.establish()


def finish_write(settings: ConnectionSettings, owner: LedgerOwner, write: str) -> None:
    """Replace the entries of a write's tasks by one entry."""
    with _opened(settings, owner) as ledger:
        ledger.finish(write)


@contextmanager
def _opened(settings: ConnectionSettings, owner: LedgerOwner) -> Iterator["TokenLedger"]:
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
        self._settings, self._queue = settings, owner.queue
        self._register = Register(connection, transactions, token_address(owner.queue))
        self._lock_seconds = max(settings.receipt_timeout, settings.reconnect_timeout) + _LOST_OWNER_SECONDS

    def find(self) -> CommitToken:
        """By browsing: each attempt that follows a death begins with a look-up, so a token is renewed in time.

        ``MaxConsumersError``: the queue of the token is no lock. Each run of a query begins with a look-up.
        """
        if not self._register.lock(self._lock_seconds, create=False):
            return self._empty()
        with self._released():
            self._register.require_lock(self._queue)
            found = self._register.peek(self._queue) or self._register.read(_ABSENCE_SECONDS)
            if not found:
                return self._empty()
            token = self._read(found)
            if _is_worn(found):
                self._register.read(MISSING_SECONDS)
                self._renew(token)
            return token

    def commit(self, entry: LedgerEntry, admit: Admit) -> bool:
        """Commit the rows of the open transaction together with their entry. Returns what ``admit`` returned.

        ``admit`` is called with the entries of the batch, and may raise: then nothing is committed, and the open
        transaction is the caller's to roll back. ``LinkError``: the outcome is unknown.
        """
        try:
            self._lock()
            self._transactions.begin()
            with self._released():
                if not self._prepare(entry, admit):
                    return False
                self._transactions.discharge()
                return True
        except LinkError as error:
            if not self._transactions.is_open:
                raise
            raise TransactionRolledBackError(
                f"The rows of {entry.task} were not committed: {error.fact}",
                f"No row of this attempt was sent. {error.remedy}",
            ) from None

    def _lock(self) -> None:
        self._register.attach_sender()
        while not self._register.lock(self._lock_seconds, create=False):
            with contextlib.suppress(SubscriptionInUseError), _opened(self._settings, self._owner) as other:
                other.begin()

    def establish(self) -> None:
        """For batch 0, which is repeated if this fails. So in a later batch no token is missing unless it was lost,
        also if batch 0 had no rows and a task died while it made the token.
        """
        self._lock()
        with self._released():
            if not self._register.read(MISSING_SECONDS):
                self._register.create(self._empty().body())

    def begin(self) -> None:
        """Create the register and its first token. Artemis may end the connection of one of two that do it at the same
        moment, so this is not the connection that has the rows.
        """
        register = self._register
        register.lock(self._lock_seconds)
        with self._released():
            if not (register.existed or register.read(_ABSENCE_SECONDS)):
                register.create(self._empty().body())

    def _prepare(self, entry: LedgerEntry, admit: Admit) -> bool:
        """Do every step whose failure leaves no doubt about the outcome."""
        token, worn = self._current(entry)
        if token.batch > entry.batch:
            raise SinkFencedError(
                f"Another run of this query has written batch {token.batch}, and {entry.task} is of batch"
                f" {entry.batch}. Nothing was sent.",
                "Stop one of the two runs. If the checkpoint was replaced by an older copy, use a new checkpoint. With"
                " a new checkpoint, give write_id another name of the query.",
            )
        if not admit(token.entries if token.batch == entry.batch else ()):
            return False
        if worn:
            self._renew(token)
        kept_runs = KEPT_RUNS if self._owner.kind == "job" else None
        self._register.replace(token.with_entry(entry, kept_runs=kept_runs).body())
        return True

    def finish(self, write: str) -> None:
        if not self._register.lock(self._lock_seconds, create=False):
            return
        with self._released():
            found = self._register.read(_ABSENCE_SECONDS)
            if found:
                token = self._read(found)
                if (shorter := token.with_finished(write)) != token:
                    self._register.replace(shorter.body())
                    self._transactions.commit()

    # --- the token -----------------------------------------------------------------------------

    def _current(self, entry: LedgerEntry) -> tuple[CommitToken, bool]:
        """The token, and whether it should be renewed. Creates the first one if ``begin`` died before it did."""
        register = self._register
        found = register.read(MISSING_SECONDS)
        if not found:
            self._require_new(entry)
            register.create(self._empty().body())
            found = register.read(MISSING_SECONDS)
        return self._read(found), _is_worn(found)

    def _require_new(self, entry: LedgerEntry) -> None:
        """A lost token must never be taken for a new beginning: committed rows would be sent again."""
        if entry.batch == 0 and self._owner.kind == "query":
            return
        raise TokenMissingError(
            f"The commit ledger {self._queue} has no token, so it is not known whether {entry.task} was already sent."
            " Nothing was sent.",
            f"Look for the token in the dead-letter queue of address {self._register.address}, and move it back. If"
            " nothing was ever written exactly once with this ledger, delete the queue of that address.",
        )

    def _empty(self) -> CommitToken:
        return CommitToken(owner=str(self._owner))

    def _read(self, found: Sequence[Token]) -> CommitToken:
        try:
            tokens = [CommitToken.parse(each.body) for each in found]
        except ValueError:
            raise TokenMissingError(
                f"Address {self._register.address} has a message that is not a token of this release."
                " Nothing was sent.",
                "Remove the message if another program has sent it. Do not go back to an older release in the middle"
                " of a batch.",
            ) from None
        other = next((each.owner for each in tokens if each.owner != str(self._owner)), None)
        if other is not None:
            raise WriteIdentityError(
                f"Address {self._register.address} has the commit ledger of {other}, and this write is of"
                f" {self._owner}. Nothing was sent.",
                f"Move the token back to where it belongs, or delete it if {other} is no more.",
            )
        return merged(tokens)

    def _renew(self, token: CommitToken) -> None:
        """So that its delivery count is 0 again."""
        own = Transactions(self._connection)
        self._register.replace(token.body(), own)
        own.discharge()
        self._register.read(MISSING_SECONDS)

    @contextmanager
    def _released(self) -> Iterator[None]:
        """Release the lock in any case; when the connection is lost, the broker does."""
        try:
            yield
        finally:
            with contextlib.suppress(JMSError):
                self._register.release()


def _is_worn(found: Sequence[Token]) -> bool:
    return any(each.delivery_count >= WORN_DELIVERIES for each in found)
