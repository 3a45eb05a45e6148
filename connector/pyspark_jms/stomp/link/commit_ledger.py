"""A ledger queue on the broker: find what the tasks of a write wrote, forget what nobody will ask for.

Absence is proven, never guessed. The selector also matches a sentinel, a message of the lowest priority that is sent
when the subscription stands: what comes before it is all there was. No other look-up holds entries back meanwhile
(``link.ledger_lock``).
"""

import contextlib
import itertools
import logging
import time
import uuid
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Self

from pyspark_jms.errors import JMSError, ReceiptTimeoutError, UnsupportedError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects.refusals import require_duplicate_detection
from pyspark_jms.stomp.link.connection import Connection, connect
from pyspark_jms.stomp.link.ledger_entries import (
    LedgerEntry,
    entry_of,
    is_sentinel,
    or_sentinel,
    sentinel_frame,
)
from pyspark_jms.stomp.link.ledger_lock import LedgerLock, next_frames
from pyspark_jms.stomp.wire.frame import Frame, ack_frames

__all__ = ["find_entries", "find_entries_patiently", "forget_entries"]

_log = logging.getLogger("pyspark_jms.link")
_ID = "entries"
_FORGET_WINDOW_BYTES = 1 << 20
"""What is deleted makes room for more."""

_FIND_WINDOW_BYTES = 64 << 20
"""A look-up keeps what it found until its end: some 150,000 entries, more than a write has tasks."""

_LATE_COMMIT_SECONDS = 30.0
"""A COMMIT whose connection is gone is carried out within this time, or not at all."""


def find_entries(settings: ConnectionSettings, queue: str, selector: str) -> tuple[LedgerEntry, ...]:
    """The entries that the selector matches; they stay where they are.

    Raises when the broker does not answer within receiptTimeout, or other look-ups are under way for as long.
    """
    with (
        contextlib.closing(_connected(settings)) as connection,
        LedgerLock(connection, queue, settings.receipt_timeout),
        _Sweep(connection, settings, queue, selector, _FIND_WINDOW_BYTES) as sweep,
    ):
        entries = [entry_of(frame) for _, frame in sweep]
    return tuple(entry for entry in entries if entry is not None)


def find_entries_patiently(
    settings: ConnectionSettings, queue: str, selector: str, *, until_found: bool
) -> tuple[LedgerEntry, ...]:
    """Look again for as long as reconnectTimeout says, while the broker is away.

    ``until_found``: and for half a minute of that while there is nothing, since a COMMIT that was on its way may still
    be carried out.
    """
    began = time.monotonic()
    for attempt in itertools.count():
        look_up = partial(find_entries, settings, queue, selector)
        entries = keep_trying(look_up, f"the look-up in {queue}", timeout=settings.reconnect_timeout)
        left = began + min(settings.reconnect_timeout, _LATE_COMMIT_SECONDS) - time.monotonic()
        if entries or not until_found or left <= 0:
            return entries
        time.sleep(min(2.0**attempt, left))
    raise AssertionError


def forget_entries(settings: ConnectionSettings, queue: str, selector: str) -> int:
    """Delete what the selector matches; returns how many messages that were."""
    forgotten = 0
    with (
        contextlib.closing(_connected(settings)) as connection,
        _Sweep(connection, settings, queue, selector, _FORGET_WINDOW_BYTES) as sweep,
    ):
        for message_id, _ in sweep:
            sweep.delete(message_id)
            forgotten += 1
    return forgotten


def _connected(settings: ConnectionSettings) -> Connection:
    connection = connect(settings)
    try:
        require_duplicate_detection(connection.dialect)
    except UnsupportedError:
        connection.close()
        raise
    return connection


class _Sweep:
    """All messages of a queue that a selector matches, by ``message-id`` and frame; what is not deleted stays."""

    def __init__(
        self, connection: Connection, settings: ConnectionSettings, queue: str, selector: str, window_bytes: int
    ) -> None:
        self._connection, self._queue, self._timeout = connection, queue, settings.receipt_timeout
        self._selector, self._window_bytes, self._sentinel = selector, window_bytes, uuid.uuid4().hex

    def __enter__(self) -> Self:
        dialect = self._connection.dialect
        headers = {"id": _ID, "destination": self._queue, "ack": "client-individual"}
        headers |= dialect.subscribe_headers[DestinationKind.QUEUE]
        headers |= {
            dialect.window_header: str(dialect.window(self._window_bytes)),
            "selector": or_sentinel(self._selector, self._sentinel, dialect),
        }
        self._connection.request("SUBSCRIBE", headers)
        return self

    def __iter__(self) -> Iterator[tuple[bytes, Frame]]:
        self._send_sentinel()
        while True:
            for message_id, frame in next_frames(self._connection, time.monotonic() + self._timeout, self._late):
                if is_sentinel(frame, self._sentinel):
                    self.delete(message_id)
                    return
                yield message_id, frame

    def _send_sentinel(self) -> None:
        now_ms = int(time.time() * 1000)
        frame = sentinel_frame(self._sentinel, queue=self._queue, dialect=self._connection.dialect, now_ms=now_ms)
        self._connection.send(frame)

    def _late(self) -> ReceiptTimeoutError:
        return ReceiptTimeoutError(
            f"{self._connection.address} did not deliver from queue {self._queue} within {self._timeout:g} s.",
            "Is the queue paused, or its address full? Look at the broker's log.",
        )

    def delete(self, message_id: bytes) -> None:
        """Without waiting: the receipt of UNSUBSCRIBE comes after it."""
        self._connection.send(ack_frames([message_id]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Never raises. Only UNSUBSCRIBE gives entries back without spending one of their delivery attempts."""
        if self._connection.down:
            return
        try:
            self._connection.request("UNSUBSCRIBE", {"id": _ID})
        except JMSError as failure:
            _log.warning("= %s did not confirm UNSUBSCRIBE: %s", self._connection.address, failure.fact)
