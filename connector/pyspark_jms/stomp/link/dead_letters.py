"""Messages that cannot become rows → a dead-letter queue, with the reason, confirmed by the broker.

A MESSAGE frame is sent as a SEND frame with the same properties and body bytes, without decoding them. Headers that
the broker sets itself are left out, and so are expiration and delay: a dead letter does not expire.
"""

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from pyspark_jms.blocks.oversized import not_kept
from pyspark_jms.jms.model import (
    BODY_MARKER,
    DEAD_LETTER_PROPERTIES,
    ERROR_PROPERTY,
    MESSAGE_ID_PROPERTY,
    SOURCE_PROPERTY,
    TYPES_MARKER,
    Destination,
    DestinationKind,
)
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.producer import Producer
from pyspark_jms.stomp.wire.frame import escape

__all__ = ["StompDeadLetter", "send_dead_letters"]

_MAX_REASON_CHARACTERS = 1000


@dataclass(frozen=True, slots=True, repr=False)
class StompDeadLetter:
    """``head`` is the MESSAGE frame up to its blank line; a body in a file is as long as the file."""

    head: bytes
    body: bytes | BinaryIO
    reason: str
    source: str
    message_id: str


def send_dead_letters(settings: ConnectionSettings, queue: str, letters: Sequence[StompDeadLetter]) -> None:
    """Return when the broker has confirmed all of them; raise the ``JMSError`` that prevented it."""
    with Producer(settings) as producer:
        for letter in letters:
            _send(producer, queue, letter)
        producer.try_commit()


def _send(producer: Producer, queue: str, letter: StompDeadLetter) -> None:
    transacted = producer.dialect.has_transactions
    confirmed_by = {"transaction": producer.transaction} if transacted else {"receipt": "dead-letter"}
    receipt = confirmed_by.get("receipt")
    if isinstance(letter.body, bytes):
        head = _head(producer.dialect, queue, letter, len(letter.body), confirmed_by)
        _send_frame(producer, head + letter.body + b"\0", receipt)
        return
    try:
        frame = _mapped(producer.dialect, queue, letter, letter.body, confirmed_by)
    except OSError as error:
        raise not_kept(error) from None
    _send_frame(producer, frame, receipt)


def _mapped(
    dialect: Dialect, queue: str, letter: StompDeadLetter, body: BinaryIO, confirmed_by: Mapping[str, str]
) -> memoryview:
    """The whole SEND frame in a file, mapped so that it need not fit into memory.

    The frame is one piece, because a heart-beat must not be sent between two parts of it. With TLS another thread
    writes it later; the last reference to the mapping closes it.
    """
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    with tempfile.TemporaryFile() as whole:
        whole.write(_head(dialect, queue, letter, size, confirmed_by))
        shutil.copyfileobj(body, whole)
        whole.write(b"\0")
        whole.flush()
        return memoryview(mmap.mmap(whole.fileno(), 0, prot=mmap.PROT_READ))


def _send_frame(producer: Producer, frame: bytes | memoryview, receipt: str | None) -> None:
    if receipt is None:
        producer.send(frame)
    else:
        producer.send_at_once(frame)
        producer.await_each([receipt])


def _head(dialect: Dialect, queue: str, letter: StompDeadLetter, size: int, confirmed_by: Mapping[str, str]) -> bytes:
    """The SEND frame up to and including its blank line. The length is sent, because a body may contain a NUL."""
    destination = Destination(DestinationKind.QUEUE, queue)
    headers = {
        "destination": dialect.addresses.header_value(destination, sending=True),
        **dialect.send_destination_headers[DestinationKind.QUEUE],
        "persistent": "true",
        **confirmed_by,
        "content-length": str(size),
        ERROR_PROPERTY: letter.reason[:_MAX_REASON_CHARACTERS],
        SOURCE_PROPERTY: letter.source,
        MESSAGE_ID_PROPERTY: letter.message_id,
    }
    lines = [f"{name}:{escape(value)}".encode() for name, value in headers.items()]
    return b"\n".join([b"SEND", *lines, *_kept(dialect, letter.head.split(b"\n")[1:])]) + b"\n\n"


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
    """The name in SEND of a header of MESSAGE. None: the header is not sent."""
    if name in (BODY_MARKER, TYPES_MARKER):
        return name
    if (column := dialect.message_headers.get(name)) is not None:
        return _headers_kept(dialect).get(column)
    withheld = dialect.ignored_headers | dialect.set_by_broker | dialect.reserved_properties
    if (
        name in withheld | dialect.property_names.keys()
        or name in DEAD_LETTER_PROPERTIES
        or name.startswith((*dialect.reserved_prefixes, *dialect.ignored_header_prefixes))
    ):
        return None
    return name


def _headers_kept(dialect: Dialect) -> dict[str, str | None]:
    headers = dialect.send_headers
    return {
        "JMSCorrelationID": headers.correlation_id,
        "JMSReplyTo": headers.reply_to,
        "JMSType": headers.type,
        "JMSPriority": headers.priority,
        "content_type": headers.content_type,
    }
