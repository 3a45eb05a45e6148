"""Encoded messages → the broker, in a transaction or outside of one, on a connection of their own.

Messages are sent unsettled, and every outcome but *accepted* is an error. In a transaction whose discharge fails if a
message was refused they are presettled, which takes a quarter of the time (Artemis).
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import ConnectionLostError, ReceiptTimeoutError, TransactionRolledBackError
from pyspark_jms.network.connection import OnConnection
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Producer"]


class Producer(OnConnection[Dialect]):
    """``with Producer(settings) as producer: open(target); send …; commit()``. Without the commit no message becomes
    visible.
    """

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0, container_id: str | None = None) -> None:
        """``patience``: for how many seconds to retry the connection while the broker is away. ``container_id``: the
        owner of the connection's durable subscriptions; without it, a new one.
        """
        self._own, self._patience = replace(settings, client_id=container_id), patience
        self._sender: Sender | None = None
        self._presettles = False
        self._connect()

    def _connect(self) -> None:
        self.connection: Connection = keep_trying(partial(connect, self._own), "connecting", timeout=self._patience)
        self.transactions = Transactions(self.connection)

    @property
    def has_anonymous_relay(self) -> bool:
        """Return whether messages may name their destinations (AMQP Anonymous Terminus for Message Routing)."""
        return "ANONYMOUS-RELAY" in self.connection.capabilities

    def open(self, target: Any) -> None:
        """Attach to where the messages go. Once; the error of a refusal."""
        self._sender = self.connection.attached(Sender, target, f"rows-{uuid.uuid4().hex}")
        self._presettles = self.dialect.refuses_at_discharge and target.address is not None

    @property
    def is_open(self) -> bool:
        return self._sender is not None

    def send(self, block: MessageBlock, *, in_transaction: bool = True) -> None:
        """Send the messages of a block in the open transaction, which the first block opens, or outside of one. That
        the broker refused one of them may show only in ``await_sent`` or at the commit.
        """
        sender, following = self._sender, 0
        assert sender is not None
        txn_id = self.transactions.begin() if in_transaction else None
        while following < len(block):
            self.connection.await_credit(sender, "messages")
            with self.connection.core():
                if txn_id is not None:
                    self.transactions.require_open(txn_id)
                settled = in_transaction and self._presettles
                following = sender.send(block, following, len(block), settled=settled, txn_id=txn_id)
            self.connection.check_refusal(sender)

    def send_pieces(self, pieces: Sequence[Buffer], *, in_transaction: bool) -> None:
        """Send one message, as ``send`` does. Its bytes are in several places and are not copied."""
        sender, txn_id = self._sender, self.transactions.begin() if in_transaction else None
        assert sender is not None
        self.connection.await_credit(sender, "messages")
        with self.connection.core():
            if txn_id is not None:
                self.transactions.require_open(txn_id)
            sender.send_pieces(pieces, settled=in_transaction and self._presettles, txn_id=txn_id)
        self.connection.check_refusal(sender)

    def await_all(self) -> None:
        """Return when the broker has accepted every message that was sent unsettled; raise why it did not."""
        assert self._sender is not None
        self.connection.await_accepted(self._sender, "messages")

    # --- transactions --------------------------------------------------------------------------

    def await_sent(self) -> None:
        """Called before a commit: ``await_all`` of the open transaction. ``TransactionRolledBackError`` if the
        connection was lost.
        """
        if not self.transactions.is_open or self._sender is None:
            return
        try:
            self.await_all()
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the messages of a transaction: {error.fact}",
                f"No row of this transaction was sent. {error.remedy}",
            ) from None

    def commit(self) -> None:
        """Return when the broker has confirmed everything that was sent; otherwise raise, even if the outcome is
        unknown.
        """
        if self.transactions.is_open:
            self.await_sent()
            self.transactions.commit()
        elif self._sender is not None:
            self.await_all()

    def close(self) -> None:
        """Roll back what was not committed, and disconnect."""
        self.transactions.roll_back()
        super().close()
