"""Encoded messages → the broker: presettled transfers in a transaction, or unsettled ones outside, on a connection of
their own.
"""

import uuid
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.reasons import error_of
from pyspark_jms.amqp.link.senders import await_credit
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Producer"]


class Producer:
    """``with Producer(settings) as producer: open(target); send …; commit()``. Without the commit no message becomes
    visible.
    """

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0, container_id: str | None = None) -> None:
        """``patience``: for how many seconds to retry the connection while the broker is away. ``container_id``: the
        owner of the connection's durable subscriptions; without it, a new one.
        """
        own = replace(settings, client_id=container_id or f"pyspark-jms-{uuid.uuid4().hex}")
        self.connection = keep_trying(lambda: connect(own), "connecting", timeout=patience)
        self.transactions = Transactions(self.connection)
        self._sender: Sender | None = None

    @property
    def dialect(self) -> Dialect:
        return self.connection.dialect

    @property
    def server(self) -> str | None:
        """The product and version that the broker names."""
        return self.connection.server

    @property
    def has_anonymous_relay(self) -> bool:
        """Whether messages may name their destinations themselves (AMQP Anonymous Terminus for Message Routing)."""
        return "ANONYMOUS-RELAY" in self.connection.capabilities

    def open(self, target: Any) -> None:
        """Attach to where the messages go. Once; the error of a refusal."""
        with self.connection.core() as session:
            self._sender = session.link(Sender, f"rows-{uuid.uuid4().hex}")
            self._sender.attach_to(target)
        self.connection.await_attached(self._sender)

    @property
    def is_open(self) -> bool:
        return self._sender is not None

    def send(self, block: MessageBlock) -> None:
        """Send the messages of a block in the open transaction; the first block opens it. The broker may refuse one of
        them at the commit.
        """
        self._send(block, self.transactions.begin())

    def send_at_once(self, block: MessageBlock) -> None:
        """Send the messages of a block outside of a transaction; ``await_all`` waits for their outcomes."""
        self._send(block, None)

    def _send(self, block: MessageBlock, txn_id: bytes | None) -> None:
        sender, following = self._sender, 0
        assert sender is not None
        while following < len(block):
            await_credit(self.connection, sender, "messages")
            with self.connection.core():
                if txn_id is not None:
                    self.transactions.require_open(txn_id)
                following = sender.send(block, following, len(block), settled=txn_id is not None, txn_id=txn_id)

    def await_all(self) -> None:
        """Return when the broker has confirmed every message sent outside of a transaction; raise its refusal."""
        sender = self._sender
        assert sender is not None
        self.connection.await_(lambda: not sender.unsettled or not sender.is_attached, "its confirmations")
        self.connection.check_link(sender)
        if sender.rejection is not None:
            raise error_of(self.connection.address, sender.rejection)

    # --- transactions --------------------------------------------------------------------------

    def commit(self) -> None:
        """Return when the broker has confirmed the transaction; otherwise raise, even if the outcome is unknown."""
        self.transactions.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.transactions.roll_back()
        self.connection.close()
