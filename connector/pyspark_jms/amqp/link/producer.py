"""Encoded messages → the broker: presettled transfers in a transaction, or unsettled ones outside, on a connection of
their own.
"""

import contextlib
import uuid
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.reasons import error_of
from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.transactions import Answer, Coordinator
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import (
    ConnectionLostError,
    JMSError,
    LinkError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
    UnsupportedError,
)
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Producer"]

_ABORT_SECONDS = 5.0
"""When the rollback takes longer, the connection is closed, which rolls back as well."""


class Producer:
    """``with Producer(settings) as producer: open(target); send …; commit()``. Without the commit no message becomes
    visible.
    """

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0) -> None:
        """``patience``: for how many seconds to retry the connection while the broker is away."""
        own = replace(settings, client_id=f"pyspark-jms-{uuid.uuid4().hex}")
        self._connection = keep_trying(lambda: connect(own), "connecting", timeout=patience)
        self._sender: Sender | None = None
        self._coordinator: Coordinator | None = None
        self._transaction: Answer | None = None

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    @property
    def server(self) -> str | None:
        """The product and version that the broker names."""
        return self._connection.server

    @property
    def has_anonymous_relay(self) -> bool:
        """Whether messages may name their destinations themselves (AMQP Anonymous Terminus for Message Routing)."""
        return "ANONYMOUS-RELAY" in self._connection.capabilities

    def open(self, target: Any) -> None:
        """Attach to where the messages go. Once; the error of a refusal."""
        with self._connection.core() as session:
            self._sender = session.link(Sender, f"rows-{uuid.uuid4().hex}")
            self._sender.attach_to(target)
        self._connection.await_attached(self._sender)

    @property
    def is_open(self) -> bool:
        return self._sender is not None

    def send(self, block: MessageBlock) -> None:
        """Send the messages of a block in the open transaction; the first block opens it. The broker may refuse one of
        them at the commit.
        """
        self._send(block, self._begin())

    def send_at_once(self, block: MessageBlock) -> None:
        """Send the messages of a block outside of a transaction; ``await_all`` waits for their outcomes."""
        self._send(block, None)

    def _send(self, block: MessageBlock, txn_id: bytes | None) -> None:
        sender, following = self._sender, 0
        assert sender is not None
        while following < len(block):
            self._connection.await_(lambda: sender.sendable or not sender.is_attached, "credit for messages")
            self._connection.check_link(sender)
            with self._connection.core():
                if txn_id is not None:
                    assert self._coordinator is not None
                    self._coordinator.require_open(txn_id)
                following = sender.send(block, following, len(block), settled=txn_id is not None, txn_id=txn_id)

    def await_all(self) -> None:
        """Return when the broker has confirmed every message sent outside of a transaction; raise its refusal."""
        sender = self._sender
        assert sender is not None
        self._connection.await_(lambda: not sender.unsettled or not sender.is_attached, "its confirmations")
        self._connection.check_link(sender)
        if sender.rejection is not None:
            raise error_of(self._connection.address, sender.rejection)

    # --- transactions --------------------------------------------------------------------------

    def _begin(self) -> bytes:
        if self._transaction is None:
            coordinator = self._coordinator or self._attach_coordinator()
            with self._connection.core():
                declared = self._transaction = coordinator.declare()
            self._connection.await_(lambda: declared.done, "a transaction")
        assert self._transaction is not None
        if self._transaction.txn_id is None:
            raise error_of(self._connection.address, self._transaction.error or PeerError("amqp:not-implemented"))
        return self._transaction.txn_id

    def _attach_coordinator(self) -> Coordinator:
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
        if self._transaction is None:
            return
        txn_id, coordinator = self._begin(), self._coordinator
        assert coordinator is not None
        self._transaction = None
        try:
            with self._connection.core():
                answer = coordinator.discharge(txn_id)
            self._connection.await_(lambda: answer.done, "the confirmation of the transaction")
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            self._connection.drop()
            raise TransactionRolledBackError(
                f"The broker did not confirm the transaction: {error.fact}",
                "The broker may have committed nevertheless: a retry can then send these rows twice.",
            ) from None
        if answer.error is not None:
            refusal = error_of(self._connection.address, answer.error)
            raise TransactionRolledBackError(
                f"The broker did not commit: {refusal.fact}", f"No row of this transaction was sent. {refusal.remedy}"
            )

    def _roll_back(self) -> None:
        if self._transaction is None or self._transaction.txn_id is None or self._coordinator is None:
            return
        coordinator, txn_id = self._coordinator, self._transaction.txn_id
        with contextlib.suppress(JMSError):
            with self._connection.core():
                answer = coordinator.discharge(txn_id, fail=True)
            self._connection.await_(lambda: answer.done, "the rollback", _ABORT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._roll_back()
        self._connection.close()
