"""Messages that cannot become rows → a dead-letter queue, with the reason, confirmed by the broker.

A MESSAGE frame is sent as a SEND frame with the same properties and body bytes, without decoding them. Headers that
the broker sets itself are left out, and so are expiration and delay: a dead letter does not expire.
"""

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO, NamedTuple

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter, OversizedMessage, not_kept
from pyspark_jms.jms.headers import HEADERS
from pyspark_jms.jms.model import (
    BODY_MARKER,
    DEAD_LETTER_PROPERTIES,
    TYPES_MARKER,
    Destination,
    DestinationKind,
)
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.producer import Producer
from pyspark_jms.stomp.wire.frame import escape

__all__ = ["send_dead_letters"]

_KEPT = frozenset(header.name for header in HEADERS if header.in_dead_letter)


class _Parts(NamedTuple):
    """A MESSAGE frame up to its blank line, its body, and the id of the message. A body in a file is as long as it."""

    head: bytes
    body: bytes | BinaryIO
    identifier: bytes


def _parts(message: MessageBlock | OversizedMessage) -> _Parts:
    if isinstance(message, OversizedMessage):
        assert message.body is not None
        return _Parts(message.head, message.body, message.identifier)
    frame, head = message.message(0), message.heads[0]
    return _Parts(frame[:head], frame[head + 2 : -2], message.ids[0] or b"")  # without NUL LF


def send_dead_letters(settings: ConnectionSettings, queue: str, letters: Sequence[DeadLetter]) -> None:
    """Return when the broker has confirmed all of them; raise the ``JMSError`` that prevented it."""
    with Producer(settings) as producer:
        for letter in letters:
            _send(producer, queue, letter)
        producer.try_commit()


def _send(producer: Producer, queue: str, letter: DeadLetter) -> None:
    dialect, parts = producer.dialect, _parts(letter.message)
    confirmed_by = {"transaction": producer.transaction} if dialect.has_transactions else {"receipt": "dead-letter"}
    receipt = confirmed_by.get("receipt")
    destination = Destination(DestinationKind.QUEUE, queue)
    headers = {
        "destination": dialect.addresses.header_value(destination, sending=True),
        **dialect.send_destination_headers[DestinationKind.QUEUE],
        "persistent": "true",
        **confirmed_by,
        **letter.properties(dialect.message_id(parts.identifier)),
    }
    if isinstance(parts.body, bytes):
        _send_frame(producer, _head(dialect, headers, parts.head, len(parts.body)) + parts.body + b"\0", receipt)
        return
    try:
        frame = _mapped(dialect, headers, parts.head, parts.body)
    except OSError as error:
        raise not_kept(error) from None
    _send_frame(producer, frame, receipt)


def _mapped(dialect: Dialect, headers: Mapping[str, str], head: bytes, body: BinaryIO) -> memoryview:
    """The whole SEND frame in a file, mapped so that it need not fit into memory.

    The frame is one piece, because a heart-beat must not be sent between two parts of it. With TLS another thread
    writes it later; the last reference to the mapping closes it.
    """
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    with tempfile.TemporaryFile() as whole:
        whole.write(_head(dialect, headers, head, size))
        shutil.copyfileobj(body, whole)
        whole.write(b"\0")
        whole.flush()
        return memoryview(mmap.mmap(whole.fileno(), 0, prot=mmap.PROT_READ))


def _send_frame(producer: Producer, frame: bytes | memoryview, receipt: str | None) -> None:
    producer.send_frames(frame, in_transaction=receipt is None)
    if receipt is not None:
        producer.await_each([receipt])


def _head(dialect: Dialect, headers: Mapping[str, str], head: bytes, size: int) -> bytes:
    """The SEND frame up to and including its blank line. The length is sent, because a body may contain a NUL."""
    lines = [f"{name}:{escape(value)}".encode() for name, value in {**headers, "content-length": str(size)}.items()]
    return b"\n".join([b"SEND", *lines, *_kept(dialect, head.split(b"\n")[1:])]) + b"\n\n"


def _kept(dialect: Dialect, lines: Iterable[bytes]) -> list[bytes]:
    """The header lines to send on. Of two lines with the same name, the first one counts."""
    kept: dict[bytes, bytes] = {}
    for line in lines:
        name = line.partition(b":")[0]
        sent = _sent_as(dialect, name.decode("utf-8", "replace"))
        if sent is not None and b"\0" not in line:
            kept.setdefault(name, sent.encode() + line[len(name) :])
    return list(kept.values())


def _sent_as(dialect: Dialect, name: str) -> str | None:
    """Return the name in SEND of a header of MESSAGE, or None if the header is not sent."""
    if name in (BODY_MARKER, TYPES_MARKER):
        return name
    if (column := dialect.message_headers.get(name)) is not None:
        return dialect.send_headers.get(column) if column in _KEPT else None
    withheld = dialect.ignored_headers | dialect.set_by_broker | dialect.reserved_properties
    if (
        name in withheld | dialect.property_names.keys()
        or name in DEAD_LETTER_PROPERTIES
        or name.startswith((*dialect.reserved_prefixes, *dialect.ignored_header_prefixes))
    ):
        return None
    return name
