"""The transactions of one connection, one at a time: begun, committed or rolled back. Knows no messages.

Whoever sends or accepts inside a transaction takes its id from ``begin``, on the same connection.
"""

import contextlib
import uuid

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.reasons import error_of
from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.amqp.wire.transactions import Answer, Coordinator
from pyspark_jms.errors import (
    ConnectionLostError,
    JMSError,
    LinkError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
    UnsupportedError,
)

__all__ = ["Transactions"]

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
        """The id of the open transaction; opens one if none is open."""
        if self._declared is None:
            coordinator = self._coordinator or self._attach()
            with self._connection.core():
                declared = self._declared = coordinator.declare()
            self._connection.await_(lambda: declared.done, "a transaction")
        assert self._declared is not None
        if self._declared.txn_id is None:
            raise error_of(self._connection.address, self._declared.error or PeerError("amqp:not-implemented"))
        return self._declared.txn_id

    def require_open(self, txn_id: bytes) -> None:
        """Called with the connection's core at hand, right before each frame that names the transaction."""
        assert self._coordinator is not None
        self._coordinator.require_open(txn_id)

    def _attach(self) -> Coordinator:
        with self._connection.core() as session:
            coordinator = session.link(Coordinator, f"transactions-{uuid.uuid4().hex}")
            coordinator.attach_to_coordinator()
        try:
            self._connection.await_attached(coordinator)
        except LinkError as error:
            self._connection.check()
            raise UnsupportedError(
                f"{self._connection.address} has no transactions: {error.fact}", "Set transaction=none."
            ) from None
        self._connection.await_(lambda: coordinator.sendable, "credit for transactions")
        self._coordinator = coordinator
        return coordinator

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
        if answer.error is not None:
            refusal = error_of(self._connection.address, answer.error)
            raise TransactionRolledBackError(
                f"The broker did not commit: {refusal.fact}", f"No row of this transaction was sent. {refusal.remedy}"
            )

    def roll_back(self) -> None:
        """Never raises: the end of the connection rolls back too."""
        declared, self._declared = self._declared, None
        if declared is None or declared.txn_id is None or self._coordinator is None:
            return
        with contextlib.suppress(JMSError):
            with self._connection.core():
                answer = self._coordinator.discharge(declared.txn_id, fail=True)
            self._connection.await_(lambda: answer.done, "the rollback", _ABORT_SECONDS)
