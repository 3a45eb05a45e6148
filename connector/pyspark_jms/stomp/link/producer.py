"""SEND frames → messages at the broker: STOMP transactions and their confirmations, on a connection of their own."""

import contextlib
import mmap
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

from pyspark_jms.blocks.block import ByteArray, MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter, OversizedMessage, not_kept
from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    JMSError,
    LinkError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
)
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.headers import HEADERS
from pyspark_jms.jms.model import BODY_MARKER, DEAD_LETTER_PROPERTIES, TYPES_MARKER, Destination, DestinationKind
from pyspark_jms.network.connection import OnConnection
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import Connection, connect
from pyspark_jms.stomp.wire.frame import Frame, encode_frame, escape

__all__ = ["Producer", "send_dead_letters"]


_ABORT_SECONDS = 5.0
"""When the ABORT takes longer, the connection is closed, which rolls back as well."""


class Producer(OnConnection[Dialect]):
    """``with Producer(settings) as producer: send_frames …; commit()``. Without the commit no message becomes visible.

    SEND frames name the transaction ``producer.transaction``. They have no receipt header: Artemis would make it a
    property of the message. The first ``send_frames`` after a commit begins another transaction of the same name.
    """

    transaction = "t"
    """One connection has one transaction at a time, so one name is enough."""

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0) -> None:
        """``patience``: for how many seconds to retry the connection while the broker is away."""
        own = replace(settings, client_id=f"pyspark-jms-{uuid.uuid4().hex}")
        self.connection: Connection = keep_trying(lambda: connect(own), "connecting", timeout=patience)
        self._open = False

    def send_frames(self, data: ByteArray, *, in_transaction: bool = True) -> None:
        """Write whole SEND frames, of this transaction or outside of one. The broker may refuse one of them later.

        The next commit also confirms the messages that were sent outside of a transaction. A receipt for BEGIN or
        DISCONNECT does not: Artemis, killed after such a receipt, lost some.
        """
        if in_transaction and not self._open:
            self.dialect.require(Feature.TRANSACTIONS)
            self.connection.frame("BEGIN", {"transaction": self.transaction})
            self._open = True
        self.connection.send(data)

    def await_each(self, receipts: Iterable[str]) -> None:
        """Return when the broker has sent each of these receipts; raise when one does not come."""
        for receipt in receipts:
            self.connection.await_receipt(receipt)

    def commit(self) -> None:
        """Return when the broker has confirmed the COMMIT; otherwise raise, even if the outcome is unknown."""
        try:
            self.try_commit()
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the COMMIT: {error.fact}",
                "The broker may have committed nevertheless: a retry can then send these rows twice.",
            ) from None
        except BrokerError as error:
            raise TransactionRolledBackError(
                f"The broker did not commit: {error.fact}", f"No row of this transaction was sent. {error.remedy}"
            ) from None

    def try_commit(self) -> None:
        """Commit, and raise the original ``LinkError``. If it is transient, the outcome of the COMMIT is unknown.

        After an error the connection is closed, and the transaction with it.
        """
        if not self._open:
            return
        self._open = False
        try:
            if not self.dialect.commit_checks_sends:
                self._await_refusals()
            receipt = self.connection.new_receipt()
            frame = Frame("COMMIT", (("transaction", self.transaction), ("receipt", receipt)))
            self.connection.send(encode_frame(frame))
            self.connection.await_receipt(receipt)
        except LinkError:
            self.connection.drop()
            raise

    def _await_refusals(self) -> None:
        """Return when the broker has accepted all SENDs so far, or raise its refusal.

        Artemis withholds an answer until everything is stored that the same session began to store, and each
        transaction is a session of its own. The connection's own session checks whether a destination exists or may be
        created, so only a receipt of that session comes after its ERRORs. UNSUBSCRIBE from a durable subscription that
        does not exist is answered by that session and has no other effect. It needs a ``client-id``
        (StompSession.unsubscribe, 2.0 to 2.55).
        """
        name, nonexistent = self.dialect.durable_subscriptions.name_header, self.connection.new_receipt()
        headers = (("id", nonexistent), (name, nonexistent), ("receipt", nonexistent))
        self.connection.send(encode_frame(Frame("UNSUBSCRIBE", headers)))
        self.connection.await_receipt(nonexistent)

    def close(self) -> None:
        """Abort what was not committed, and disconnect."""
        if self._open:
            with contextlib.suppress(JMSError):
                self.connection.request("ABORT", {"transaction": self.transaction}, _ABORT_SECONDS)
        super().close()


# --- dead letters ----------------------------------------------------------------------------------

# A MESSAGE frame is sent as a SEND frame with the same properties and body bytes, without decoding them. Headers that
# the broker sets itself are left out, and so are expiration and delay: a dead letter does not expire.

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
        frame: ByteArray = _head(dialect, headers, parts.head, len(parts.body)) + parts.body + b"\0"
    else:
        frame = _mapped(dialect, headers, parts.head, parts.body)
    producer.send_frames(frame, in_transaction=receipt is None)
    if receipt is not None:
        producer.await_each([receipt])


def _mapped(dialect: Dialect, headers: Mapping[str, str], head: bytes, body: BinaryIO) -> memoryview:
    """The whole SEND frame in a file, mapped so that it need not fit into memory.

    The frame is one piece, because a heart-beat must not be sent between two parts of it. With TLS another thread
    writes it later; the last reference to the mapping closes it.
    """
    try:
        size = body.seek(0, os.SEEK_END)
        body.seek(0)
        with tempfile.TemporaryFile() as whole:
            whole.write(_head(dialect, headers, head, size))
            shutil.copyfileobj(body, whole)
            whole.write(b"\0")
            whole.flush()
            return memoryview(mmap.mmap(whole.fileno(), 0, prot=mmap.PROT_READ))
    except OSError as error:
        raise not_kept(error) from None


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
