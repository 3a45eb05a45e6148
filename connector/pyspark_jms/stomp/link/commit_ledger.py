"""A commit ledger on the broker: settings, queue and selector → the matching entries, found or deleted.

A look-up does not rely on a timeout to conclude that there is no entry. Its selector also matches a sentinel: a message
of the lowest priority, sent once the subscription exists. Every entry of the queue arrives before the sentinel. The
lock (``link.ledger_lock``) ensures that no entry is in flight to another look-up at the same time.
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

from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.errors import JMSError, ReceiptTimeoutError, UnsupportedError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects.refusals import require_duplicate_detection
from pyspark_jms.stomp.link.connection import Connection, connect
from pyspark_jms.stomp.link.ledger_entries import add_sentinel, encode_sentinel, is_sentinel, parse_entry
from pyspark_jms.stomp.link.ledger_lock import LedgerLock, next_messages
from pyspark_jms.stomp.wire.frame import Frame, ack_frames

__all__ = ["delete_entries", "find_entries", "find_late_entries"]

_log = logging.getLogger("pyspark_jms.link")
_ID = "entries"
_DELETE_WINDOW_BYTES = 1 << 20
"""A small prefetch window is enough: each deleted message makes room for another one."""

_FIND_WINDOW_BYTES = 64 << 20
"""A look-up keeps all entries in flight until its end. The window takes some 150,000: more than a write has tasks."""

_LATE_COMMIT_SECONDS = 30.0
"""The broker carries out a COMMIT whose connection is lost within this time, or never."""


def find_entries(settings: ConnectionSettings, queue: str, selector: str) -> tuple[LedgerEntry, ...]:
    """The entries that the selector matches. They stay in the queue.

    Raises if the broker does not answer within receiptTimeout, or if other look-ups have the lock for as long.
    """
    with (
        contextlib.closing(_connected(settings)) as connection,
        LedgerLock(connection, queue, settings.receipt_timeout),
        _Reading(connection, settings, queue, selector, _FIND_WINDOW_BYTES) as reading,
    ):
        entries = [parse_entry(frame) for _, frame in reading]
    return tuple(entry for entry in entries if entry is not None)


def find_late_entries(
    settings: ConnectionSettings, queue: str, selector: str, *, may_arrive: bool
) -> tuple[LedgerEntry, ...]:
    """The entries after a COMMIT without confirmation. While the broker is away, retry for reconnectTimeout.

    ``may_arrive``: the broker may still receive the COMMIT, so repeat an empty look-up for up to 30 seconds of that.
    """
    began = time.monotonic()
    for attempt in itertools.count():
        look_up = partial(find_entries, settings, queue, selector)
        entries = keep_trying(look_up, f"the look-up in {queue}", timeout=settings.reconnect_timeout)
        left = began + min(settings.reconnect_timeout, _LATE_COMMIT_SECONDS) - time.monotonic()
        if entries or not may_arrive or left <= 0:
            return entries
        time.sleep(min(2.0**attempt, left))
    raise AssertionError


def delete_entries(settings: ConnectionSettings, queue: str, selector: str) -> int:
    """Delete the messages that the selector matches. Returns how many there were."""
    deleted = 0
    with (
        contextlib.closing(_connected(settings)) as connection,
        _Reading(connection, settings, queue, selector, _DELETE_WINDOW_BYTES) as reading,
    ):
        for message_id, _ in reading:
            reading.delete(message_id)
            deleted += 1
    return deleted


def _connected(settings: ConnectionSettings) -> Connection:
    connection = connect(settings)
    try:
        require_duplicate_detection(connection.dialect)
    except UnsupportedError:
        connection.close()
        raise
    return connection


class _Reading:
    """All messages of a queue that a selector matches, as ``message-id`` and frame. They stay unless deleted."""

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
            "selector": add_sentinel(self._selector, self._sentinel, dialect),
        }
        self._connection.request("SUBSCRIBE", headers)
        return self

    def __iter__(self) -> Iterator[tuple[bytes, Frame]]:
        self._send_sentinel()
        while True:
            for message_id, frame in next_messages(self._connection, time.monotonic() + self._timeout, self._timed_out):
                if is_sentinel(frame, self._sentinel):
                    self.delete(message_id)
                    return
                yield message_id, frame

    def _send_sentinel(self) -> None:
        now_ms = int(time.time() * 1000)
        sentinel = encode_sentinel(self._sentinel, queue=self._queue, dialect=self._connection.dialect, now_ms=now_ms)
        self._connection.send(sentinel)

    def _timed_out(self) -> ReceiptTimeoutError:
        return ReceiptTimeoutError(
            f"{self._connection.address} did not deliver from queue {self._queue} within {self._timeout:g} s.",
            "Is the queue paused, or its address full? Look at the broker's log.",
        )

    def delete(self, message_id: bytes) -> None:
        """Does not wait: the receipt of UNSUBSCRIBE confirms the ACK too."""
        self._connection.send(ack_frames([message_id]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Never raises. UNSUBSCRIBE gives the entries back without spending one of their delivery attempts."""
        if self._connection.down:
            return
        try:
            self._connection.request("UNSUBSCRIBE", {"id": _ID})
        except JMSError as failure:
            _log.warning("= %s did not confirm UNSUBSCRIBE: %s", self._connection.address, failure.fact)
