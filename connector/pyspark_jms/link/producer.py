"""One STOMP transaction on a connection of its own. Frames in, a COMMIT receipt or an error out."""

import contextlib
from types import TracebackType
from typing import Self

from pyspark_jms.dialect import Dialect
from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    JMSError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
)
from pyspark_jms.link.connection import connect
from pyspark_jms.link.settings import ConnectionSettings

__all__ = ["Producer"]


class Producer:
    """``with Producer(settings) as producer: send …; commit()``. Without the commit nothing becomes visible.

    SENDs name the transaction ``producer.transaction`` and carry no receipt: on Artemis it would become a
    property of the message.
    """

    transaction = "t"

    def __init__(self, settings: ConnectionSettings) -> None:
        self._connection = connect(settings)
        self._open = False

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    def send(self, octets: bytes | memoryview) -> None:
        """Write whole SEND frames of this transaction. The broker's refusal of one may show only later."""
        if not self._open:
            self._connection.frame("BEGIN", {"transaction": self.transaction})
            self._open = True
        self._connection.send(octets)

    def commit(self) -> None:
        """Return when the broker has confirmed the COMMIT; raise when it has not, whatever became of it."""
        if not self._open:
            return
        try:
            self._connection.request("COMMIT", {"transaction": self.transaction})
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the COMMIT: {error.fact}",
                "It may have been carried out all the same: a retry can then send these rows twice.",
            ) from None
        except BrokerError as error:
            raise TransactionRolledBackError(
                f"The broker did not commit: {error.fact}", f"No row of this task was sent. {error.remedy}"
            ) from None
        self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._open:
            with contextlib.suppress(JMSError):
                self._connection.request("ABORT", {"transaction": self.transaction})
        self._connection.close()
