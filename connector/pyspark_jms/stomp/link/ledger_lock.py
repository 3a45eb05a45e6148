"""One look-up of a commit ledger at a time: a connection in, the lock of a ledger held on it.

A queue delivers an entry to one consumer. Look-ups at the same time would each see some of the entries: of 160, with 8
at a time, 150 did. A look-up whose machine is gone keeps what it received until the broker ends its connection, and the
lock for as long.
"""

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pyspark_jms.errors import JMSError, ReceiptTimeoutError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.stomp.link.connection import Connection
from pyspark_jms.stomp.link.ledger_entries import lock_frame, lock_queue
from pyspark_jms.stomp.wire.frame import Frame, ack_frames, parse_frame

__all__ = ["LedgerLock", "next_frames"]

_log = logging.getLogger("pyspark_jms.link")
_ID = "lock"
_ONE_MESSAGE = 1
"""Window in bytes: the broker sends one message, and the next after its ACK."""

_RETURN_SECONDS = 1.0
"""A look-up that died with the lock had entries, too. They come back moments after the lock: measured below 50 ms."""


class LedgerLock:
    """``with LedgerLock(connection, ledger, timeout): …``: no other look-up of this ledger reads meanwhile.

    ``ReceiptTimeoutError`` when others have it for all of ``timeout`` seconds.
    """

    def __init__(self, connection: Connection, ledger: str, timeout: float) -> None:
        self._connection, self._ledger, self._timeout = connection, ledger, timeout
        self._message_id = b""

    def __enter__(self) -> Self:
        dialect = self._connection.dialect
        headers = {"id": _ID, "destination": lock_queue(self._ledger), "ack": "client-individual"}
        headers |= dialect.subscribe_headers[DestinationKind.QUEUE] | {dialect.window_header: str(_ONE_MESSAGE)}
        self._connection.request("SUBSCRIBE", headers)  # before the SEND: no broker deletes a queue that is read
        self._connection.send(lock_frame(ledger=self._ledger, dialect=dialect))
        self._await_lock()
        return self

    def _await_lock(self) -> None:
        """A message that was delivered before is the lock of a look-up that died. It goes, and the next one comes."""
        deadline = time.monotonic() + self._timeout
        while True:
            ((self._message_id, frame),) = next_frames(self._connection, deadline, self._busy)
            if frame.header("redelivered") != "true":
                return
            self._connection.send(ack_frames([self._message_id]))
            time.sleep(_RETURN_SECONDS)

    def _busy(self) -> ReceiptTimeoutError:
        return ReceiptTimeoutError(
            f"Other look-ups had the lock of queue {lock_queue(self._ledger)} for {self._timeout:g} s.",
            "A look-up whose machine is gone has the lock until the broker ends its connection: some 20 s.",
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Never raises: the lock ends with the connection at the latest."""
        if self._connection.down:
            return
        try:
            self._connection.send(ack_frames([self._message_id]))
            self._connection.request("UNSUBSCRIBE", {"id": _ID})
        except JMSError as failure:
            _log.warning("= the lock of %s was not given back: %s", self._ledger, failure.fact)


def next_frames(
    connection: Connection, deadline: float, late: Callable[[], ReceiptTimeoutError]
) -> list[tuple[bytes, Frame]]:
    """At least one message, by ``message-id`` and frame; raises ``late()`` at ``deadline``."""
    with connection.changed:
        while not connection.waiting()[0]:
            connection.check()
            left = deadline - time.monotonic()
            if left <= 0:
                raise late()
            connection.changed.wait(left)
        blocks = connection.take()
    return [(block.ids[i] or b"", parse_frame(block.message(i))) for block in blocks for i in range(len(block))]
