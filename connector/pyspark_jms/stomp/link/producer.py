"""SEND frames → messages at the broker: STOMP transactions and their confirmations, on a connection of their own."""

import contextlib
import uuid
from collections.abc import Iterable
from dataclasses import replace

from pyspark_jms.blocks.block import ByteArray
from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    JMSError,
    LinkError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
)
from pyspark_jms.jms.features import Feature
from pyspark_jms.network.connection import OnConnection
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import Connection, connect
from pyspark_jms.stomp.wire.frame import Frame, encode_frame

__all__ = ["Producer"]

_ABORT_SECONDS = 5.0
"""When the ABORT takes longer, the connection is closed, which rolls back as well."""


class Producer(OnConnection[Dialect]):
    """``with Producer(settings) as producer: send_frames …; commit()``. Without the commit no message becomes visible.

    SEND frames name the transaction ``producer.transaction``. They have no receipt header: Artemis would make it a
    property of the message. The first ``send_frames`` after a commit begins another transaction of the same name.
    """

    transaction = "t"
    """One connection has one transaction at a time, so one name is enough."""

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0) -> None:
        """``patience``: for how many seconds to retry the connection while the broker is away."""
        own = replace(settings, client_id=f"pyspark-jms-{uuid.uuid4().hex}")
        self.connection: Connection = keep_trying(lambda: connect(own), "connecting", timeout=patience)
        self._open = False

    def send_frames(self, data: ByteArray, *, in_transaction: bool = True) -> None:
        """Write whole SEND frames, of this transaction or outside of one. The broker may refuse one of them later.

        The next commit also confirms the messages that were sent outside of a transaction. A receipt for BEGIN or
        DISCONNECT does not: Artemis, killed after such a receipt, lost some.
        """
        if in_transaction and not self._open:
            self.dialect.require(Feature.TRANSACTIONS)
            self.connection.frame("BEGIN", {"transaction": self.transaction})
            self._open = True
        self.connection.send(data)

    def await_each(self, receipts: Iterable[str]) -> None:
        """Return when the broker has sent each of these receipts; raise when one does not come."""
        for receipt in receipts:
            self.connection.await_receipt(receipt)

    def commit(self) -> None:
        """Return when the broker has confirmed the COMMIT; otherwise raise, even if the outcome is unknown."""
        try:
            self.try_commit()
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the COMMIT: {error.fact}",
                "The broker may have committed nevertheless: a retry can then send these rows twice.",
            ) from None
        except BrokerError as error:
            raise TransactionRolledBackError(
                f"The broker did not commit: {error.fact}", f"No row of this transaction was sent. {error.remedy}"
            ) from None

    def try_commit(self) -> None:
        """Commit, and raise the original ``LinkError``. If it is transient, the outcome of the COMMIT is unknown.

        After an error the connection is closed, and the transaction with it.
        """
        if not self._open:
            return
        self._open = False
        try:
            if not self.dialect.commit_checks_sends:
                self._await_refusals()
            receipt = self.connection.new_receipt()
            frame = Frame("COMMIT", (("transaction", self.transaction), ("receipt", receipt)))
            self.connection.send(encode_frame(frame))
            self.connection.await_receipt(receipt)
        except LinkError:
            self.connection.drop()
            raise

    def _await_refusals(self) -> None:
        """Return when the broker has accepted all SENDs so far, or raise its refusal.

        Artemis withholds an answer until everything is stored that the same session began to store, and each
        transaction is a session of its own. The connection's own session checks whether a destination exists or may be
        created, so only a receipt of that session comes after its ERRORs. UNSUBSCRIBE from a durable subscription that
        does not exist is answered by that session and has no other effect. It needs a ``client-id``
        (StompSession.unsubscribe, 2.0 to 2.55).
        """
        name, nonexistent = self.dialect.durable_subscriptions.name_header, self.connection.new_receipt()
        headers = (("id", nonexistent), (name, nonexistent), ("receipt", nonexistent))
        self.connection.send(encode_frame(Frame("UNSUBSCRIBE", headers)))
        self.connection.await_receipt(nonexistent)

    def close(self) -> None:
        """Abort what was not committed, and disconnect."""
        if self._open:
            with contextlib.suppress(JMSError):
                self.connection.request("ABORT", {"transaction": self.transaction}, _ABORT_SECONDS)
        super().close()
