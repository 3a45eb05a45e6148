"""Encoded messages → the broker, in a transaction or outside of one, on a connection of their own.

Messages are sent unsettled, and every outcome but *accepted* is an error. In a transaction whose discharge fails if a
message was refused they are presettled, which takes a quarter of the time (Artemis).
"""

import mmap
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.constructors import BIN32, DESCRIBED, NULL, SMALL_ULONG, TRUE
from pyspark_jms.amqp.wire.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    HEADER,
    LISTS,
    MAPS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    Buffer,
    MalformedMessageError,
    Section,
    elements,
    sections,
    stable_id,
)
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.amqp.wire.values import Described, TypedValue, decode, encode, encode_list, encode_map
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter, OversizedMessage, not_kept
from pyspark_jms.errors import (
    ConnectionLostError,
    MalformedFrameError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
    UnsupportedError,
)
from pyspark_jms.jms.headers import HeaderField, PropertiesField
from pyspark_jms.jms.model import DEAD_LETTER_PROPERTIES, OCTET_STREAM, DestinationKind
from pyspark_jms.network.connection import OnConnection
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Producer", "pieces_of", "send_dead_letters"]


class Producer(OnConnection[Dialect]):
    """``with Producer(settings) as producer: open(target); send …; commit()``. Without the commit no message becomes
    visible.
    """

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0, container_id: str | None = None) -> None:
        """``patience``: for how many seconds to retry the connection while the broker is away. ``container_id``: the
        owner of the connection's durable subscriptions; without it, a new one.
        """
        self._own, self._patience = replace(settings, client_id=container_id), patience
        self._sender: Sender | None = None
        self._presettles = False
        self._connect()

    def _connect(self) -> None:
        self.connection: Connection = keep_trying(partial(connect, self._own), "connecting", timeout=self._patience)
        self.transactions = Transactions(self.connection)

    @property
    def has_anonymous_relay(self) -> bool:
        """Return whether messages may name their destinations (AMQP Anonymous Terminus for Message Routing)."""
        return "ANONYMOUS-RELAY" in self.connection.capabilities

    def open(self, target: Any) -> None:
        """Attach to where the messages go. Once; the error of a refusal."""
        self._sender = self.connection.attached(Sender, target, f"rows-{uuid.uuid4().hex}")
        self._presettles = self.dialect.refuses_at_discharge and target.address is not None

    @property
    def is_open(self) -> bool:
        return self._sender is not None

    def send(self, block: MessageBlock, *, in_transaction: bool = True) -> None:
        """Send the messages of a block in the open transaction, which the first block opens, or outside of one. That
        the broker refused one of them may show only in ``await_sent`` or at the commit.
        """
        sender, following = self._sender, 0
        assert sender is not None
        txn_id = self.transactions.begin() if in_transaction else None
        while following < len(block):
            self.connection.await_credit(sender, "messages")
            with self.connection.core():
                if txn_id is not None:
                    self.transactions.require_open(txn_id)
                settled = in_transaction and self._presettles
                following = sender.send(block, following, len(block), settled=settled, txn_id=txn_id)
            self.connection.check_refusal(sender)

    def send_pieces(self, pieces: Sequence[Buffer], *, in_transaction: bool) -> None:
        """Send one message, as ``send`` does. Its bytes are in several places and are not copied."""
        sender, txn_id = self._sender, self.transactions.begin() if in_transaction else None
        assert sender is not None
        self.connection.await_credit(sender, "messages")
        with self.connection.core():
            if txn_id is not None:
                self.transactions.require_open(txn_id)
            sender.send_pieces(pieces, settled=in_transaction and self._presettles, txn_id=txn_id)
        self.connection.check_refusal(sender)

    def await_all(self) -> None:
        """Return when the broker has accepted every message that was sent unsettled; raise why it did not."""
        assert self._sender is not None
        self.connection.await_accepted(self._sender, "messages")

    # --- transactions --------------------------------------------------------------------------

    def await_sent(self) -> None:
        """Called before a commit: ``await_all`` of the open transaction. ``TransactionRolledBackError`` if the
        connection was lost.
        """
        if not self.transactions.is_open or self._sender is None:
            return
        try:
            self.await_all()
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the messages of a transaction: {error.fact}",
                f"No row of this transaction was sent. {error.remedy}",
            ) from None

    def commit(self) -> None:
        """Return when the broker has confirmed everything that was sent; otherwise raise, even if the outcome is
        unknown.
        """
        if self.transactions.is_open:
            self.await_sent()
            self.transactions.commit()
        elif self._sender is not None:
            self.await_all()

    def close(self) -> None:
        """Roll back what was not committed, and disconnect."""
        self.transactions.roll_back()
        super().close()


# --- dead letters ----------------------------------------------------------------------------------

_NULL, _TRUE = bytes((NULL,)), bytes((TRUE,))
_SECTION = bytes((DESCRIBED, SMALL_ULONG))
"""What precedes the code of a section."""


@dataclass(frozen=True, slots=True, repr=False)
class _Letter:
    """A ``DeadLetter`` with the bytes of its message."""

    message: Buffer
    properties: Mapping[str, str]
    """Why it is there."""
    dialect: Dialect
    """Of the broker that delivered the message, and may have added properties and annotations to it."""


def _mapped_bytes(message: OversizedMessage) -> memoryview:
    """The bytes of a message that is kept in a file, which need not fit into memory."""
    assert message.body is not None
    try:
        message.body.flush()
        return memoryview(mmap.mmap(message.body.fileno(), 0, prot=mmap.PROT_READ))
    except OSError as error:
        raise not_kept(error) from None


def send_dead_letters(settings: ConnectionSettings, queue: str, letters: Sequence[DeadLetter]) -> None:
    """Return when the broker has confirmed all of them: they are one transaction, where the broker has transactions.
    Elsewhere each is confirmed, and those before a refused one stay.
    """
    try:
        _send(settings, queue, letters, in_transaction=True)
    except UnsupportedError:  # before the first message, and the session may have ended
        _send(settings, queue, letters, in_transaction=False)


def _send(settings: ConnectionSettings, queue: str, letters: Sequence[DeadLetter], *, in_transaction: bool) -> None:
    with Producer(settings) as producer:
        if in_transaction:
            producer.transactions.begin()
        address = producer.dialect.send.target_address(DestinationKind.QUEUE, queue)
        producer.open(Target(address=address, capabilities=("queue",)))
        for letter in letters:
            producer.send_pieces(pieces_of(letter, producer.dialect), in_transaction=in_transaction)
        producer.commit()


def pieces_of(letter: DeadLetter, dialect: Dialect) -> list[Buffer]:
    """The message to send, not joined: a large one stays in its file.

    ``dialect``: of the broker that delivered the message, which is the one that it is sent to.
    """
    found = letter.message
    message = found.message(0) if isinstance(found, MessageBlock) else _mapped_bytes(found)
    identifier = (stable_id(message) or b"").decode()
    return _pieces(_Letter(message, letter.properties(identifier), dialect))


def _pieces(letter: _Letter) -> list[Buffer]:
    """The message with the reason as properties, without its expiry, which would delete a dead letter, and without what
    the broker added: some of it would make the broker drop the message, or ``move`` return it to an earlier queue.
    """
    try:
        found = list(sections(letter.message))
        begins = [0, *(section.end for section in found)]
        kept = [_kept(letter, section, begin) for section, begin in zip(found, begins, strict=False)]
        after = sum(section.code < APPLICATION_PROPERTIES for section in found)
        if not any(section.code == APPLICATION_PROPERTIES for section in found):
            kept.insert(after, _reasons(letter, []))
        return [_header(letter.message, found), *kept]
    except MalformedMessageError:
        return [encode(Described(HEADER, [True])), *_unreadable(letter)]


def _header(message: Buffer, found: Sequence[Section]) -> bytes:
    """Make a durable header with the priority of the message, without a time to live and a delivery count (§3.2.1)."""
    fields = next((_cut(message, section, LISTS) for section in found if section.code == HEADER), [])
    return _SECTION + bytes((HEADER,)) + encode_list([_TRUE, *fields[HeaderField.PRIORITY : HeaderField.PRIORITY + 1]])


def _kept(letter: _Letter, section: Section, begin: int) -> Buffer:
    if section.code in {HEADER, DELIVERY_ANNOTATIONS}:
        return b""
    changed = {
        MESSAGE_ANNOTATIONS: _annotations,
        PROPERTIES: _properties,
        APPLICATION_PROPERTIES: _application_properties,
    }.get(section.code)
    return letter.message[begin : section.end] if changed is None else changed(letter, section)


def _cut(message: Buffer, section: Section, codes: bytes) -> list[bytes]:
    """The elements of a section's list or map, as they stand."""
    starts = [*elements(message, section.value, codes), section.end]
    return [bytes(message[begin:end]) for begin, end in pairwise(starts)]


def _properties(letter: _Letter, section: Section) -> bytes:
    fields = _cut(letter.message, section, LISTS)
    dropped = [PropertiesField.TO, PropertiesField.ABSOLUTE_EXPIRY_TIME]
    if not letter.dialect.send.takes_message_ids:
        dropped.append(PropertiesField.MESSAGE_ID)  # property spark_jms_message_id has it
    if letter.dialect.checks_user_id:
        dropped.append(PropertiesField.USER_ID)
    for number in dropped:
        if number < len(fields):
            fields[number] = _NULL
    return _SECTION + bytes((PROPERTIES,)) + encode_list(fields)


def _annotations(letter: _Letter, section: Section) -> bytes:
    kept = _without(letter.message, section, lambda name: name.startswith(letter.dialect.added_annotations))
    return _SECTION + bytes((MESSAGE_ANNOTATIONS,)) + encode_map(kept)


def _application_properties(letter: _Letter, section: Section) -> bytes:
    def left_out(name: str) -> bool:
        return letter.dialect.adds(name) or name in DEAD_LETTER_PROPERTIES  # these have the reason of an earlier time

    return _reasons(letter, _without(letter.message, section, left_out))


def _without(message: Buffer, section: Section, left_out: Callable[[str], bool]) -> list[bytes]:
    """The keys and values of a section's map, without those with some names."""
    entries = _cut(message, section, MAPS)
    pairs = zip(entries[::2], entries[1::2], strict=True)
    return [each for key, value in pairs if not left_out(_name(key)) for each in (key, value)]


def _name(key: bytes) -> str:
    """Empty for a key that is no text."""
    try:
        name = decode(key, 0, len(key))[0]
    except MalformedFrameError:
        return ""
    return name if isinstance(name, str) else ""


def _reasons(letter: _Letter, entries: list[bytes]) -> bytes:
    own = [encode(each) for pair in letter.properties.items() for each in pair]
    return _SECTION + bytes((APPLICATION_PROPERTIES,)) + encode_map([*entries, *own])


def _unreadable(letter: _Letter) -> list[Buffer]:
    """Bytes that are not a message become the body of one."""
    properties = [None] * PropertiesField.CONTENT_TYPE + [TypedValue("symbol", OCTET_STREAM)]
    size = len(letter.message).to_bytes(4, "big")
    return [
        encode(Described(PROPERTIES, properties)) + _reasons(letter, []),
        _SECTION + bytes((DATA, BIN32)) + size,
        letter.message,
    ]
