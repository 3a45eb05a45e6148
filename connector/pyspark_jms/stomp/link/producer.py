"""STOMP transactions on a connection of its own. Frames in, the broker's confirmation or an error out."""

import contextlib
import uuid
from collections.abc import Iterable
from dataclasses import replace
from types import TracebackType
from typing import Self

from pyspark_jms.blocks.block import ByteArray
from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    JMSError,
    LinkError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
)
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.wire.frame import Frame, encode_frame

__all__ = ["Producer"]

_ABORT_SECONDS = 5.0
"""After that the connection is closed, which rolls back as well."""


class Producer:
    """``with Producer(settings) as producer: send …; commit()``. Without the commit nothing becomes visible.

    SENDs name the transaction ``producer.transaction`` and carry no receipt: on Artemis it would become a
    property of the message. After a commit the next SEND begins another transaction of that name.
    """

    transaction = "t"
    """One connection has one transaction at a time, so the name never differs (``columns.digest`` relies on it)."""

    trial = "trial"
    """The transaction of frames that are looked at and not kept."""

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0) -> None:
        """``patience``: how many seconds to keep trying while the broker is away."""
        own = replace(settings, client_id=f"pyspark-jms-{uuid.uuid4().hex}")
        self._connection = keep_trying(lambda: connect(own), "connecting", timeout=patience)
        self._open = False

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    def send(self, data: ByteArray) -> None:
        """Write whole SEND frames of this transaction. The broker's refusal of one may show only later."""
        if not self._open:
            self._connection.frame("BEGIN", {"transaction": self.transaction})
            self._open = True
        self._connection.send(data)

    def send_at_once(self, data: ByteArray) -> None:
        """Write whole SEND frames of no transaction; the next commit of one confirms these too.

        Measured on Artemis: after a receipt for BEGIN or DISCONNECT a killed broker had lost some of them.
        """
        self._connection.send(data)

    def await_each(self, receipts: Iterable[str]) -> None:
        """Return when the broker has confirmed each of these frames of no transaction; raise when it has not."""
        for receipt in receipts:
            self._connection.await_receipt(receipt)

    def commit(self) -> None:
        """Return when the broker has confirmed the COMMIT; raise when it has not, whatever became of it."""
        try:
            self.try_commit()
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the COMMIT: {error.fact}",
                "It may have been carried out all the same: a retry can then send these rows twice.",
            ) from None
        except BrokerError as error:
            raise TransactionRolledBackError(
                f"The broker did not commit: {error.fact}", f"No row of this transaction was sent. {error.remedy}"
            ) from None

    def try_commit(self, last: bytes = b"", trial: bytes = b"") -> None:
        """As ``commit``, with the ``LinkError`` as it came: a transient one leaves open what became of the COMMIT.

        ``last``: frames of the transaction that are written with the COMMIT, in one piece. ``trial``: the like of
        them in transaction ``Producer.trial``, by which a broker that must be asked for refusals is asked for theirs.
        After an error the connection is gone, and with it what was not committed.
        """
        if not self._open:
            return
        self._open = False
        try:
            if not self.dialect.commit_checks_sends:
                self._await_refusals(trial)
            receipt = self._connection.new_receipt()
            frame = Frame("COMMIT", (("transaction", self.transaction), ("receipt", receipt)))
            self._connection.send(last + encode_frame(frame))
            self._connection.await_receipt(receipt)
        except LinkError:
            self._connection.drop()
            raise

    def _await_refusals(self, trial: bytes) -> None:
        """Return when the broker has said what it refuses of the SENDs so far, and of ``trial``, which it forgets.

        Artemis keeps an answer back until all is stored that the same session began to store, and each transaction is a
        session of its own. Whether a destination exists or may be created is asked in the connection's own session, so
        only a receipt of that one comes after its ERRORs. To UNSUBSCRIBE from a durable subscription that nobody has is
        answered there, and does nothing else; it takes a ``client-id`` (StompSession.unsubscribe, 2.0 to 2.55).
        """
        receipts = [self._connection.new_receipt()]
        name, nobody = self.dialect.durable.name_header, receipts[0]
        frames = encode_frame(Frame("UNSUBSCRIBE", (("id", nobody), (name, nobody), ("receipt", nobody))))
        if trial:
            receipts.append(self._connection.new_receipt())
            begin = Frame("BEGIN", (("transaction", self.trial),))
            ended = Frame("ABORT", (("transaction", self.trial), ("receipt", receipts[1])))
            frames = encode_frame(begin) + trial + encode_frame(ended) + frames
        self._connection.send(frames)
        self.await_each(receipts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._open:
            with contextlib.suppress(JMSError):
                self._connection.request("ABORT", {"transaction": self.transaction}, _ABORT_SECONDS)
        self._connection.close()
