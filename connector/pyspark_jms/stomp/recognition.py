"""How a redelivery is recognised: by the dialect's stable id, and by a digest of what every delivery has in common."""

import hashlib
from dataclasses import dataclass
from functools import partial

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.subscription_ledger import Recognition
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.wire.frame import header_of

__all__ = ["recognition_of", "redelivered"]

_UNSTABLE = bytes([0, *range(0x80, 0x100)])
"""Bytes of headers that a broker with ``unstable_characters`` may change when it stores them."""


_LARGE_BYTES = 2 << 10
"""From this mean size of messages on, a search of each header block is faster than a search of all bytes."""


@dataclass(frozen=True, slots=True)
class _Ignored:
    """The parts of a frame's headers that a fingerprint ignores."""

    header_bytes: bytes
    lines: tuple[bytes, ...]
    """The beginnings of the ignored lines."""


def recognition_of(dialect: Dialect) -> Recognition | None:
    """None for a dialect without stable ids, whose redeliveries cannot be recognised."""
    if dialect.stable_id_separator is None:
        return None
    return Recognition(
        identity=partial(_identity, dialect),
        fingerprint=partial(_fingerprint, _ignored(dialect)),
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


def _ignored(dialect: Dialect) -> _Ignored:
    lines = tuple(f"{name}:".encode() for name in sorted(dialect.volatile_headers))
    return _Ignored(_UNSTABLE if dialect.unstable_characters else b"", lines)


def _fingerprint(ignored: _Ignored, block: MessageBlock, index: int) -> bytes:
    """A digest of the message without what a delivery changes. Sorted, because brokers do not keep the order."""
    frame, head = block.message(index), block.heads[index] - block.start(index)
    headers = frame[:head].translate(None, ignored.header_bytes)
    lines = sorted(line for line in headers.split(b"\n") if not line.startswith(ignored.lines))
    return hashlib.blake2b(b"\n".join(lines) + b"\n\n" + frame[head + 2 :], digest_size=16).digest()


def redelivered(block: MessageBlock) -> int:
    """The number of messages with ``redelivered:true``. Headers are read only if these bytes are in the block."""
    if not _may_hold(block, b"\nredelivered:true\n"):
        return 0
    return sum(header_of(block, index, b"redelivered") == b"true" for index in range(len(block)))


def _may_hold(block: MessageBlock, line: bytes) -> bool:
    """Whether a header block may hold the line. Bodies are passed over where they are most of the bytes."""
    data = bytes(block.data) if isinstance(block.data, memoryview) else block.data
    if len(data) < _LARGE_BYTES * len(block):
        return data.find(line) >= 0
    starts = [0, *block.ends]
    return any(data.find(line, start, head + 1) >= 0 for start, head in zip(starts, block.heads, strict=False))
