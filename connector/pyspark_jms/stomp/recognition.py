"""How a redelivered STOMP message is recognised: the dialect's stable id, and a digest of what delivery keeps."""

import hashlib
from dataclasses import dataclass
from functools import partial

from pyspark_jms.delivery.journal.segment import Segment
from pyspark_jms.delivery.recognition import Recognition
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.stomp.dialects import Dialect, dialect_named
from pyspark_jms.stomp.dialects.refusals import require_stable_ids
from pyspark_jms.stomp.wire.scan import FrameRun

__all__ = ["fingerprints_of", "recognition_if_any", "recognition_of", "redelivered"]

_UNSTABLE = bytes([0, *range(0x80, 0x100)])
"""Bytes of header lines that may change in the store of a broker with ``unstable_characters``."""

_CHANGES = (b"subscription:", b"message-id:", b"ack:", b"redelivered:")
"""Header lines that differ in a redelivery, of every broker; a producer's property of such a name goes with them."""


@dataclass(frozen=True, slots=True)
class _Ignored:
    """What a fingerprint leaves out of a frame's headers."""

    octets: bytes
    lines: tuple[bytes, ...]
    """How the ignored lines begin."""


def recognition_if_any(dialect: Dialect) -> Recognition | None:
    """None where what comes again cannot be known."""
    return None if dialect.stable_id_separator is None else recognition_of(dialect)


def recognition_of(dialect: Dialect) -> Recognition:
    """For a journal; ``UnsupportedError`` for a dialect that has no stable ids."""
    require_stable_ids(dialect)
    return Recognition(
        identity=dialect.stable_id,
        fingerprint=partial(_fingerprint, _ignored(dialect)),
        origin=partial(_origin, dialect.addresses.queue_separator),
    )


def _origin(separator: str, source: str) -> str:
    """``queue://q::q`` and ``queue://q`` are one queue where names of queues are unique."""
    kind, _, name = source.partition("://")
    if not separator or kind != DestinationKind.QUEUE:
        return source
    return f"{kind}://{name.rpartition(separator)[2]}"


def fingerprints_of(segment: Segment) -> list[bytes]:
    """Of each message, what ``Recognition.fingerprint`` will say when it comes again."""
    ignored = _ignored(dialect_named(segment.dialect))
    octets, heads, ends = memoryview(segment.octets), segment.heads.tolist(), segment.ends.tolist()
    starts = [0, *ends[:-1]]
    return [
        _digest(ignored, bytes(octets[start:end]), head - start)
        for start, head, end in zip(starts, heads, ends, strict=True)
    ]


def _ignored(dialect: Dialect) -> _Ignored:
    volatile = tuple(f"{name}:".encode() for name in sorted(dialect.volatile_headers))
    return _Ignored(_UNSTABLE if dialect.unstable_characters else b"", _CHANGES + volatile)


def _fingerprint(ignored: _Ignored, run: FrameRun, index: int) -> bytes:
    return _digest(ignored, run.frame(index), run.heads[index] - run.start(index))


def _digest(ignored: _Ignored, frame: bytes, head: int) -> bytes:
    """Of the frame without what delivery changes. Sorted: a broker's properties have no order."""
    block = frame[:head].translate(None, ignored.octets)
    lines = sorted(line for line in block.split(b"\n") if not line.startswith(ignored.lines))
    return hashlib.blake2b(b"\n".join(lines) + b"\n\n" + frame[head + 2 :], digest_size=16).digest()


def redelivered(run: FrameRun) -> int:
    """How many messages the broker says it delivered before. Looks at each only if one might say so."""
    line = b"\nredelivered:true\n"
    if not run.octets.count(line):
        return 0
    return sum(run.header(index, b"redelivered") == b"true" for index in range(len(run)))
