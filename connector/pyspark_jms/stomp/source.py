"""STOMP for the engine of reading: the Protocols of ``source.links``, joined from links, columns and recognition.

A redelivery is recognised by the dialect's stable id, and by a digest of what every delivery has in common.
"""

import hashlib
from functools import partial
from typing import Any, Unpack

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.schema import DecodeOptions
from pyspark_jms.delivery.subscription_ledger import Recognition
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import DestinationKind, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import closed_on
from pyspark_jms.stomp.dialects import DIALECTS, Dialect
from pyspark_jms.stomp.link.consumer import Consumer
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.stomp.link.producer import send_dead_letters
from pyspark_jms.stomp.link.subscriptions import end_subscription, require_same_subscription
from pyspark_jms.stomp.wire.frame import header_of

__all__ = ["StompSource", "StompSourceLink"]


class StompSourceLink(Consumer):
    """A ``Consumer`` with the answers that only reading needs."""

    def subscribe(self, subscription: Subscription) -> None:
        durable = subscription.durable
        with closed_on(JMSError, self.close):
            self.dialect.require_subscription(subscription)
            super().subscribe(subscription)
            if durable is not None:
                self._require_same(durable)

    def _require_same(self, durable: DurableSubscription) -> None:
        wanted, headers = self.subscription, self.dialect.durable_subscriptions
        if durable.client_id is not None and headers.ignores_changed_selector:
            require_same_subscription(self._settings, durable, wanted.destination, wanted.selector)

    def sent_ms(self, block: MessageBlock, index: int) -> int | None:
        """Return None also where the producer switched timestamps off (0)."""
        header = self.dialect.header_of("JMSTimestamp")
        sent = None if header is None else header_of(block, index, header)
        return int(sent) * self.dialect.timestamp_unit_ms or None if sent is not None and sent.isdigit() else None

    def unexpired(self, block: MessageBlock, at_ms: float) -> MessageBlock:  # noqa: ARG002  # no broker shows others
        return block

    def shown(self, block: MessageBlock) -> None:
        """An acknowledgement of a browsed message moves the window and nothing else. Without a browse, what was shown
        stays in the window until the end, and so does a message whose acknowledgement would end the connection.
        """
        if not self.dialect.browses:
            return
        shown = [each for each in block.ids if each is not None]
        moving = [each for each in shown if self.dialect.unacknowledgeable([each]) is None]
        if moving:
            self.acknowledge(moving)
        if len(moving) < len(shown) and self.window_is_full():
            self.require_acknowledgeable(shown)

    def redelivered(self, block: MessageBlock) -> int:
        return redelivered(block)

    def message_id(self, identifier: bytes) -> str:
        return self.dialect.message_id(identifier)


class StompSource:
    """Has no state: a value that the adapters of Spark choose by the scheme of ``brokerUrl``."""

    connect = staticmethod(StompSourceLink)
    open_management = staticmethod(StompManagementLink)
    send_dead_letters = staticmethod(send_dead_letters)
    end_subscription = staticmethod(end_subscription)

    def decode(self, block: MessageBlock, *, dialect: str, **how: Unpack[DecodeOptions]) -> Any:
        from pyspark_jms.stomp.columns.decode import decode  # imports pyarrow.compute, needed only where rows are made

        return decode(block, dialect=DIALECTS[dialect], **how)

    def has_unheld_time(self, dialect: str, block: MessageBlock, index: int) -> bool:
        from pyspark_jms.stomp.columns.headers import has_unheld_time  # as decode

        return has_unheld_time(bytes(block.message(index)), DIALECTS[dialect])

    def recognition(self, dialect: str) -> Recognition | None:
        return recognition_of(DIALECTS[dialect])


# --- how a redelivered message is recognised ---------------------------------------------------------

_UNSTABLE = bytes([0, *range(0x80, 0x100)])
"""Bytes of headers that a broker with ``unstable_characters`` may change when it stores them."""


_LARGE_BYTES = 2 << 10
"""From this mean size of messages on, a search of each header block is faster than a search of all bytes."""


def recognition_of(dialect: Dialect) -> Recognition | None:
    """Return how messages are recognised, or None for a dialect without stable ids, whose redeliveries cannot be
    recognised.
    """
    if dialect.stable_id_separator is None:
        return None
    lines = tuple(f"{name}:".encode() for name in sorted(dialect.volatile_headers))
    return Recognition(
        identity=partial(_identity, dialect),
        fingerprint=partial(_fingerprint, _UNSTABLE if dialect.unstable_characters else b"", lines),
        origin=partial(_origin, dialect.addresses.queue_separator),
    )


def _identity(dialect: Dialect, block: MessageBlock, index: int) -> bytes:
    identifier = block.ids[index]
    assert identifier is not None, "the connection that gave the id is alive"
    return dialect.stable_id(identifier)


def _origin(separator: str, source: str) -> str:
    """The queue of a source: ``queue://q`` for ``queue://a::q`` too, because names of queues are unique."""
    kind, _, name = source.partition("://")
    if not separator or kind != DestinationKind.QUEUE:
        return source
    return f"{kind}://{name.rpartition(separator)[2]}"


def _fingerprint(ignored_bytes: bytes, ignored_lines: tuple[bytes, ...], block: MessageBlock, index: int) -> bytes:
    """A digest of the message without what a delivery changes: some bytes of headers, and lines by their beginnings.

    Sorted, because brokers do not keep the order.
    """
    frame, head = block.message(index), block.heads[index] - block.start(index)
    headers = frame[:head].translate(None, ignored_bytes)
    lines = sorted(line for line in headers.split(b"\n") if not line.startswith(ignored_lines))
    return hashlib.blake2b(b"\n".join(lines) + b"\n\n" + frame[head + 2 :], digest_size=16).digest()


def redelivered(block: MessageBlock) -> int:
    """The number of messages with ``redelivered:true``. Headers are read only if these bytes are in the block."""
    if not _may_hold(block, b"\nredelivered:true\n"):
        return 0
    return sum(header_of(block, index, b"redelivered") == b"true" for index in range(len(block)))


def _may_hold(block: MessageBlock, line: bytes) -> bool:
    """Return whether a header block may hold the line. Bodies are passed over where they are most of the bytes."""
    data = bytes(block.data) if isinstance(block.data, memoryview) else block.data
    if len(data) < _LARGE_BYTES * len(block):
        return data.find(line) >= 0
    starts = [0, *block.ends]
    return any(data.find(line, start, head + 1) >= 0 for start, head in zip(starts, block.heads, strict=False))
