"""The lock of a commit ledger: one look-up reads the ledger at a time. A connection → the lock, held on it.

A queue delivers an entry to one consumer, so concurrent look-ups would each see a part of the entries: with 8 at a
time, 150 of 160 look-ups missed some. A look-up whose machine is lost keeps its entries, and the lock, until the broker
ends its connection.
"""

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pyspark_jms.errors import JMSError, ReceiptTimeoutError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.stomp.link.connection import Connection
from pyspark_jms.stomp.link.ledger_entries import encode_lock, lock_queue
from pyspark_jms.stomp.wire.frame import Frame, ack_frames, parse_frame

__all__ = ["LedgerLock", "next_messages"]

_log = logging.getLogger("pyspark_jms.link")
_ID = "lock"
_ONE_MESSAGE = 1
"""The prefetch window in bytes: the broker sends one message, and the next one after its ACK."""

_RETURN_SECONDS = 1.0
"""A killed look-up also had entries in flight. They return to the queue within 50 ms after the lock, as measured."""


class LedgerLock:
    """``with LedgerLock(connection, ledger, timeout): …``: no other look-up reads this ledger at the same time.

    Raises ``ReceiptTimeoutError`` if other look-ups have the lock for ``timeout`` seconds.
    """

    def __init__(self, connection: Connection, ledger: str, timeout: float) -> None:
        self._connection, self._ledger, self._timeout = connection, ledger, timeout
        self._message_id = b""

    def __enter__(self) -> Self:
        dialect = self._connection.dialect
        headers = {"id": _ID, "destination": lock_queue(self._ledger), "ack": "client-individual"}
        headers |= dialect.subscribe_headers[DestinationKind.QUEUE] | {dialect.window_header: str(_ONE_MESSAGE)}
        self._connection.request("SUBSCRIBE", headers)  # before the SEND: no broker deletes a queue that has a consumer
        self._connection.send(encode_lock(ledger=self._ledger, dialect=dialect))
        self._await_lock()
        return self

    def _await_lock(self) -> None:
        """A redelivered message is the lock of a look-up that was killed: delete it, and wait for the next one."""
        deadline = time.monotonic() + self._timeout
        redelivered = (self._connection.dialect.header_of("JMSRedelivered") or b"").decode()
        while True:
            ((self._message_id, frame),) = next_messages(self._connection, deadline, self._timed_out)
            if frame.header(redelivered) != "true":
                return
            self._connection.send(ack_frames([self._message_id]))
            time.sleep(_RETURN_SECONDS)

    def _timed_out(self) -> ReceiptTimeoutError:
        return ReceiptTimeoutError(
            f"Other look-ups had the lock of queue {lock_queue(self._ledger)} for {self._timeout:g} s.",
            "A look-up whose machine is lost keeps the lock until the broker ends its connection, after about 20 s.",
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Never raises: the end of the connection releases the lock at the latest."""
        if self._connection.down:
            return
        try:
            self._connection.send(ack_frames([self._message_id]))
            self._connection.request("UNSUBSCRIBE", {"id": _ID})
        except JMSError as failure:
            _log.warning("= the lock of %s was not released: %s", self._ledger, failure.fact)


def next_messages(
    connection: Connection, deadline: float, timed_out: Callable[[], ReceiptTimeoutError]
) -> list[tuple[bytes, Frame]]:
    """At least one message, as its ``message-id`` and its frame; raises ``timed_out()`` at ``deadline``."""
    with connection.changed:
        while not connection.waiting()[0]:
            connection.check()
            left = deadline - time.monotonic()
            if left <= 0:
                raise timed_out()
            connection.changed.wait(left)
        blocks = connection.take()
    return [(block.ids[i] or b"", parse_frame(block.message(i))) for block in blocks for i in range(len(block))]
