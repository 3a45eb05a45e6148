"""A ledger queue on the broker: find what a task wrote, forget what nobody will ask for.

Absence is proven, never guessed. The selector also matches a sentinel, a message of the lowest priority that is
sent when the subscription stands: what comes before it is all there was.
"""

import itertools
import time
import uuid
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Self

from pyspark_jms.errors import ReceiptTimeoutError
from pyspark_jms.link.consumer import Consumer, Subscription
from pyspark_jms.link.ledger_entries import (
    LedgerEntry,
    entry_of,
    is_sentinel,
    looks_up,
    or_sentinel,
    sentinel_frame,
)
from pyspark_jms.link.patience import keep_trying
from pyspark_jms.link.settings import ConnectionSettings
from pyspark_jms.model import Destination, DestinationKind
from pyspark_jms.wire.frame import Frame, parse_frame

__all__ = ["find_entries", "find_entries_patiently", "forget_entries"]

_WINDOW_BYTES = 1 << 20
_LATE_COMMIT_SECONDS = 30.0
"""A COMMIT whose connection is gone is carried out within this time, or not at all."""


def find_entries(settings: ConnectionSettings, queue: str, task: str) -> tuple[LedgerEntry, ...]:
    """All entries of a task; they stay where they are. Raises when the broker does not answer within receiptTimeout."""
    with _Sweep(settings, queue, looks_up(task)) as sweep:
        entries = [entry_of(frame) for _, frame in sweep]
    return tuple(entry for entry in entries if entry is not None and entry.task == task)


def find_entries_patiently(
    settings: ConnectionSettings, queue: str, task: str, *, until_found: bool
) -> tuple[LedgerEntry, ...]:
    """Look again for as long as reconnectTimeout says, while the broker is away.

    ``until_found``: and for half a minute of that while there is nothing, since a COMMIT that was on its way may still
    be carried out.
    """
    began = time.monotonic()
    for attempt in itertools.count():
        entries = keep_trying(
            partial(find_entries, settings, queue, task), f"the look-up in {queue}", timeout=settings.reconnect_timeout
        )
        left = began + min(settings.reconnect_timeout, _LATE_COMMIT_SECONDS) - time.monotonic()
        if entries or not until_found or left <= 0:
            return entries
        time.sleep(min(2.0**attempt, left))
    raise AssertionError


def forget_entries(settings: ConnectionSettings, queue: str, selector: str) -> int:
    """Delete what the selector matches; returns how many messages that were."""
    forgotten = 0
    with _Sweep(settings, queue, selector) as sweep:
        for message_id, _ in sweep:
            sweep.delete(message_id)
            forgotten += 1
    return forgotten


class _Sweep:
    """All messages of a queue that a selector matches, by ``message-id`` and frame; what is not deleted stays."""

    def __init__(self, settings: ConnectionSettings, queue: str, selector: str) -> None:
        self._queue, self._timeout, self._sentinel = queue, settings.receipt_timeout, uuid.uuid4().hex
        subscription = Subscription(
            destination=Destination(DestinationKind.QUEUE, queue),
            window_bytes=_WINDOW_BYTES,
            selector=partial(or_sentinel, selector, self._sentinel),
        )
        self._consumer = Consumer(settings, subscription)

    def __iter__(self) -> Iterator[tuple[bytes, Frame]]:
        self._send_sentinel()
        while True:
            for message_id, frame in self._arrived():
                if is_sentinel(frame, self._sentinel):
                    self.delete(message_id)
                    return
                yield message_id, frame

    def _send_sentinel(self) -> None:
        now_ms = int(time.time() * 1000)
        frame = sentinel_frame(self._sentinel, queue=self._queue, dialect=self._consumer.dialect, now_ms=now_ms)
        self._consumer.connection.send(frame)

    def _arrived(self) -> list[tuple[bytes, Frame]]:
        """At least one message."""
        connection = self._consumer.connection
        deadline = time.monotonic() + self._timeout
        with connection.changed:
            while not connection.waiting()[0]:
                connection.check()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ReceiptTimeoutError(
                        f"{connection.address} did not deliver from queue {self._queue} within {self._timeout:g} s.",
                        "Is the queue paused, or its address full? Look at the broker's log.",
                    )
                connection.changed.wait(left)
            runs = connection.take()
        return [(run.ids[i] or b"", parse_frame(run.frame(i))) for run in runs for i in range(len(run))]

    def delete(self, message_id: bytes) -> None:
        """Without waiting: the receipt of UNSUBSCRIBE comes after it."""
        self._consumer.acknowledge([message_id])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._consumer.close()
