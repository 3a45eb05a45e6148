"""How a STOMP message that comes again is known: the dialect's stable id, and a digest of what delivery keeps."""

import hashlib

from pyspark_jms.dialect import Dialect
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.journal.recognition import Recognition
from pyspark_jms.model import Destination, DestinationKind
from pyspark_jms.wire.scan import FrameRun

__all__ = ["recognition_if_any", "recognition_of", "redelivered"]

_CHANGES = (b"subscription:", b"message-id:", b"ack:", b"redelivered:")
"""Header lines that differ when a message comes again; a producer's property of such a name goes with them."""


def recognition_if_any(dialect: Dialect, destination: Destination) -> Recognition | None:
    """None where nothing comes again, or cannot be known when it does."""
    if dialect.stable_id_separator is None or destination.kind is DestinationKind.TOPIC:
        return None
    return recognition_of(dialect)


def recognition_of(dialect: Dialect) -> Recognition:
    """For a journal; ``UnsupportedError`` for a dialect that has no stable ids."""
    if dialect.stable_id_separator is None:
        raise UnsupportedError(
            f"{dialect.name} has no message ids that stay the same, so a journal could not recognise a message that"
            " comes again.",
            "Leave journalLocation out: at least once is what this broker allows.",
        )
    mark = dialect.stable_id_separator.encode()
    return Recognition(identity=lambda identifier: identifier.partition(mark)[2], fingerprint=_fingerprint)


def _fingerprint(run: FrameRun, index: int) -> bytes:
    """A digest of the frame without what delivery changes. Sorted: a broker's properties have no order."""
    frame = run.frame(index)
    head = run.heads[index] - run.start(index)
    lines = sorted(line for line in frame[:head].split(b"\n") if not line.startswith(_CHANGES))
    return hashlib.blake2b(b"\n".join(lines) + b"\n\n" + frame[head + 2 :], digest_size=16).digest()


def redelivered(run: FrameRun) -> int:
    """How many messages the broker says it delivered before. Looks at each only if one might say so."""
    line = b"\nredelivered:true\n"
    if not run.octets.count(line):
        return 0
    return sum(run.header(index, b"redelivered") == b"true" for index in range(len(run)))
