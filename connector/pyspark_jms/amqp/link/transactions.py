"""The transactions of one connection, one at a time: begun, committed or rolled back. Knows no messages.

Whoever sends or accepts inside a transaction takes its id from ``begin``, on the same connection.
"""

import contextlib
import uuid

from pyspark_jms.amqp.dialects.refusals import no_transactions, require_transactions
from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.reasons import error_of
from pyspark_jms.amqp.link.senders import await_credit
from pyspark_jms.amqp.wire.transactions import Answer, Coordinator
from pyspark_jms.errors import (
    ConnectionLostError,
    JMSError,
    LinkError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
)

__all__ = ["Transactions", "attach_coordinator", "await_declared"]

_ABORT_SECONDS = 5.0
"""When the rollback takes longer, the connection is closed, which rolls back as well."""


class Transactions:
    def __init__(self, connection: Connection) -> None:
        """Attaches to the coordinator with the first transaction."""
        self._connection = connection
        self._coordinator: Coordinator | None = None
        self._declared: Answer | None = None

    @property
    def is_open(self) -> bool:
        return self._declared is not None

    def begin(self) -> bytes:
        """The id of the open transaction; opens one if none is open. ``UnsupportedError`` if the broker has none."""
        if self._declared is None:
            is_first = self._coordinator is None
            try:
                self._declare()
            except LinkError as error:
                if error.transient or not is_first:
                    raise
                raise no_transactions(self._connection.address, error.fact) from None
        assert self._declared is not None
        assert self._declared.txn_id is not None
        return self._declared.txn_id

    def _declare(self) -> None:
        coordinator = self._coordinator or attach_coordinator(self._connection, "transactions")
        with self._connection.core():
            declared = coordinator.declare()
        await_declared(self._connection, coordinator, declared)
        self._coordinator, self._declared = coordinator, declared

    def require_open(self, txn_id: bytes) -> None:
        """Called with the connection's core at hand, right before each frame that names the transaction."""
        assert self._coordinator is not None
        self._coordinator.require_open(txn_id)

    def commit(self) -> None:
        """Return when the broker has confirmed the transaction; otherwise raise, even if the outcome is unknown."""
        try:
            self.discharge()
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the transaction: {error.fact}",
                "The broker may have committed nevertheless: a retry can then send these rows twice.",
            ) from None

    def discharge(self) -> None:
        """As ``commit``, but a ``LinkError`` means that the outcome is unknown. Then the connection is closed."""
        if self._declared is None:
            return
        error = self._discharged().error
        if error is not None:
            self._await_rolled_back()
            refusal = error_of(self._connection.address, error)
            raise TransactionRolledBackError(
                f"The broker did not commit: {refusal.fact}", f"No row of this transaction was sent. {refusal.remedy}"
            )

    def _discharged(self) -> Answer:
        txn_id, coordinator = self.begin(), self._coordinator
        assert coordinator is not None
        self._declared = None
        try:
            with self._connection.core():
                answer = coordinator.discharge(txn_id)
            self._connection.await_(lambda: answer.done, "the confirmation of the transaction")
        except (ConnectionLostError, ReceiptTimeoutError):
            self._connection.drop()
            raise
        return answer

    def _await_rolled_back(self) -> None:
        """Artemis tells a refusal before it has given the messages of the transaction back to their links. Those of a
        link that is detached in between stay in delivery, for nobody. It answers an empty transaction afterwards.
        """
        with contextlib.suppress(JMSError):
            self._discharged()

    def roll_back(self) -> None:
        """Never raises: the end of the connection rolls back too."""
        declared, self._declared = self._declared, None
        if declared is None or declared.txn_id is None or self._coordinator is None:
            return
        with contextlib.suppress(JMSError):
            with self._connection.core():
                answer = self._coordinator.discharge(declared.txn_id, fail=True)
            self._connection.await_(lambda: answer.done, "the rollback", _ABORT_SECONDS)


def attach_coordinator(connection: Connection, prefix: str) -> Coordinator:
    """The error of a refusal, after which the session may have ended. ``prefix``: of the link's name."""
    require_transactions(connection.dialect)
    with connection.core() as session:
        coordinator = session.link(Coordinator, f"{prefix}-{uuid.uuid4().hex}")
        coordinator.attach_to_coordinator()
    connection.await_attached(coordinator)
    await_credit(connection, coordinator, "transactions")
    return coordinator


def await_declared(connection: Connection, coordinator: Coordinator, declared: Answer) -> None:
    """Return when a transaction has begun; the error of a refusal."""
    connection.await_(lambda: declared.done or not coordinator.is_attached, "a transaction")
    connection.check_link(coordinator)
    if declared.error is not None:
        raise error_of(connection.address, declared.error)
