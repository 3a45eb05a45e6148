"""The STOMP dialect: one frozen value for each broker, and a broker overrides only what differs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.features import Feature, Refusal
from pyspark_jms.jms.headers import COLUMN_OF_HEADER, HEADERS, SELECTOR_SCHEMA
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, DestinationKind
from pyspark_jms.jms.subscription import ASSUMED_MESSAGE_BYTES
from pyspark_jms.management.attributes import Management
from pyspark_jms.stomp.dialects.addresses import Addresses
from pyspark_jms.stomp.dialects.cannot import OVER_STOMP
from pyspark_jms.stomp.dialects.subscription_headers import DurableSubscriptionHeaders

__all__ = [
    "CHANGED_BY_DELIVERY",
    "MESSAGE_HEADERS",
    "RESERVED_EVERYWHERE",
    "SEND_HEADERS",
    "BodyRule",
    "Dialect",
    "WindowUnit",
]

CHANGED_BY_DELIVERY = frozenset({"subscription", "message-id", "ack", "redelivered"})
"""MESSAGE headers that differ between two deliveries of one message, on every broker."""

MESSAGE_HEADERS = {
    "message-id": "@message-id",
    "destination": "@destination",
    "subscription": "@subscription",
    "ack": "@ack",
    "content-length": "@content-length",
    **COLUMN_OF_HEADER,
    BODY_MARKER: "@body",
    TYPES_MARKER: "@types",
}
"""``Dialect.message_headers`` of every broker."""

SEND_HEADERS = {header.name: header.stomp for header in HEADERS if header.sent and header.stomp is not None}
"""``Dialect.send_headers`` of every broker."""

RESERVED_EVERYWHERE = frozenset(
    {
        *("destination", "content-length", "receipt", "transaction", "message-id"),
        *SEND_HEADERS.values(),
        *SELECTOR_SCHEMA.kinds,
    }
)
"""Names that no broker takes for a property: the headers of a SEND frame, the id of a MESSAGE, the headers of JMS."""

_ID_SEPARATOR = b","
"""Joins the id for ACK and the ``message-id`` where a broker has two; no broker's id for ACK contains it."""


class BodyRule(Enum):
    """The ways in which a MESSAGE frame distinguishes text from bytes."""

    CONTENT_LENGTH_NOT_LAST = "bytes if the first content-length is not the last header, else text"
    CONTENT_LENGTH = "bytes if there is a content-length, unless amq-msg-type is text"
    CONTENT_TYPE = "bytes if the content-type is application/octet-stream, else text"


class WindowUnit(Enum):
    """The unit in which a broker counts its prefetch window."""

    BYTES = "bytes"
    MESSAGES = "messages"


def _no_headers() -> dict[DestinationKind, dict[str, str]]:
    return {kind: {} for kind in DestinationKind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect(BrokerDialect):
    """Everything that distinguishes one broker's STOMP from another's."""

    server_prefix: str
    """The beginning of the ``server`` header in CONNECTED, by which the broker is detected."""

    tested_versions: str
    """The broker versions on which every value of this dialect was measured."""

    cannot: Mapping[Feature, Refusal] = field(default_factory=lambda: OVER_STOMP)
    """What no broker does over STOMP, unless the dialect says more."""

    # --- destinations ------------------------------------------------------------------------

    addresses: Addresses = field(default=Addresses())
    """How the header ``destination`` names a queue and a topic."""

    # --- subscribing -------------------------------------------------------------------------

    subscribe_headers: Mapping[DestinationKind, dict[str, str]] = field(default_factory=_no_headers)
    """Headers that every SUBSCRIBE to a queue, or to a topic, must have beyond those of STOMP."""

    window_header: str
    """The SUBSCRIBE header that sets the prefetch window: how much the broker may deliver before an acknowledgement."""

    window_unit: WindowUnit = WindowUnit.BYTES
    """The unit of ``window_header``."""

    max_window: int = (1 << 31) - 1  # an int of Java
    """The largest window that the broker accepts, in ``window_unit``."""

    durable_subscriptions: DurableSubscriptionHeaders
    """How frames name a durable topic subscription, and how the broker treats it."""

    browses: bool = False
    """Whether ``browse_headers`` show messages without delivering them."""

    browse_headers: Mapping[str, str] = field(default_factory=dict)
    """SUBSCRIBE headers that browse a queue, if the broker can."""

    transform_headers: Mapping[str, str] = field(default_factory=dict)
    """SUBSCRIBE headers that make the broker send a MapMessage with its content. Empty: there are none."""

    unsubscribe_keeps_delivery_count: bool = True
    """Whether UNSUBSCRIBE returns messages in flight to the queue without counting a delivery."""

    limits_redelivery: bool = True
    """Whether the broker moves a message to the dead-letter queue after too many deliveries to STOMP clients."""

    # --- acknowledging -----------------------------------------------------------------------

    acknowledges_in_transactions: bool = False
    """No broker does over STOMP."""

    ack_header: str | None = None
    """The MESSAGE header whose value an ACK names, or None for ``message-id``."""

    acknowledgeable_ids: str = ""
    """Regular expression for ids of messages. The broker closes the connection at the ACK of another message. Empty:
    it acknowledges all."""

    max_acks_without_receipt: int | None = None
    """The number of ACKs after which the client waits for a receipt before it sends more, or None without a limit."""

    ack_receipts_are_durable: bool = True
    """Whether a message whose ACK has a receipt stays acknowledged when the broker process is killed."""

    # --- MESSAGE frames ------------------------------------------------------------------------

    carries_all_bodies: bool = False
    """No broker does over STOMP."""

    message_headers: dict[str, str]
    """MESSAGE header → the column that it fills, or ``@name`` for a header that other columns are computed from. Where
    two headers fill one column, the first one that a message has counts."""

    last_occurrence_counts: frozenset[str] = frozenset()
    """Headers of which the last occurrence is the broker's. STOMP 1.2 "Repeated Header Entries" wants it to be the
    first one."""

    message_id_is_jms: bool = False
    """Whether ``message-id`` is the JMSMessageID."""

    timestamp_unit_ms: int = 1
    """The unit of JMSTimestamp in frames, in milliseconds."""

    unstable_characters: bool = False
    """Whether the broker's store changes characters outside the Basic Multilingual Plane, and U+0000, in headers. Rows
    with such characters are refused, and such characters are ignored when a redelivery is recognised."""

    volatile_headers: frozenset[str] = CHANGED_BY_DELIVERY
    """MESSAGE headers that may differ between two deliveries of a message. Recognition ignores them."""

    property_names: Mapping[str, str] = field(default_factory=dict)
    """MESSAGE header → the JMS property that it carries, where the names differ (``_AMQ_GROUP_ID`` →
    ``JMSXGroupID``)."""

    ignored_headers: frozenset[str]
    """MESSAGE headers that no application set. They become neither a column nor a property."""

    ignored_header_prefixes: tuple[str, ...] = ()
    """Beginnings of the names of further such headers."""

    body_rule: BodyRule
    """How text is distinguished from bytes."""

    text_message_type: str | None = None
    """The value of the ``@message-type`` header in a text message. None if the broker has no such header."""

    transformed_map: str | None = None
    """The value of the ``@transformation`` header in a MapMessage that the broker has rendered as XML."""

    transformed_object: str | None = None
    """The value of the ``@transformation`` header in an ObjectMessage that the broker has rendered as XML."""

    reply_to_prefixes: dict[str, str]
    """Prefix of a ``reply-to`` header → prefix of column JMSReplyTo (``/queue/`` → ``queue://``)."""

    stable_id_separator: str | None
    """The part of ``message-id`` after this separator is the same in every delivery of a message. Empty, or not in
    ``message-id`` (Artemis 2.19): all of it is. None if no part is, so redeliveries cannot be recognised.
    """

    # --- SEND frames -------------------------------------------------------------------------

    send_destination_headers: Mapping[DestinationKind, dict[str, str]] = field(default_factory=_no_headers)
    """Headers that every SEND to a queue, or to a topic, must have beside ``destination``."""

    non_persistent_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that a SEND of a NON_PERSISTENT message must have in addition."""

    send_headers: Mapping[str, str]
    """Column of the sink → the SEND header that carries it, for columns that the broker has a header for. With a header
    for ``JMSTimestamp``, in units of ``timestamp_unit_ms``, the broker does not set the time of sending itself."""

    max_time_to_live_ms: int = (1 << 63) - 1
    """The largest time to live that the broker accepts, in milliseconds. A longer one is shortened to it."""

    send_property_names: Mapping[str, str] = field(default_factory=dict)
    """JMS property → the SEND header that carries it, where the names differ (``JMSXGroupSeq`` →
    ``_AMQ_GROUP_SEQUENCE``)."""

    commit_checks_sends: bool = True
    """Whether COMMIT fails when a SEND of the transaction was refused and the ERROR has not arrived yet."""

    confirms_single_messages: bool = False
    """Whether every SEND outside a transaction requests a receipt, because nothing else confirms it."""

    sends_null_priority: bool = False
    """A null in JMSPriority is sent as no priority, because a message without one is not one of priority 4."""

    marks_bytes: bool = False
    """Whether a bytes body is sent with the envelope's marker, because the broker does not keep the type of a body."""

    stored_text_overhead: int = 0
    """The bytes that the ``@stored-size`` header counts beyond the text itself, which the broker stores in UTF-16."""

    envelopes: bool = False
    """Whether maps, streams, objects and messages without a body are sent in an envelope (docs/typed-messages.md),
    because the broker's STOMP has no such types."""

    management: Management | None = None
    """How the broker answers management requests. None if it does not."""

    # --- errors: parts of an ERROR frame's ``message``, and what a frame with one of them means ---------

    security_errors: tuple[str, ...] = field(default=())
    """The user is unknown, or lacks a permission."""

    subscribe_errors: tuple[str, ...] = field(default=())
    """A SUBSCRIBE was refused. The frame does not distinguish a missing permission from an address with
    both routing types."""

    lost_errors: tuple[str, ...] = field(default=())
    """The broker ends the connection or the subscription, and the client may connect again. It was idle
    for too long, its consumer was slow, an operator closed it, or the broker stops.
    """

    send_errors: tuple[str, ...] = field(default=())
    """A SEND was refused. The frame does not distinguish a missing permission from a full address."""

    ack_errors: tuple[str, ...] = field(default=())
    """The broker cannot acknowledge this message."""

    conversion_errors: tuple[str, ...] = field(default=())
    """The broker cannot convert a message to STOMP. It closes the connection after such an ERROR."""

    crossed_errors: tuple[str, ...] = field(default=())
    """An ACK crossed the end of its subscription, which an operator has ended, or a message that cannot be converted.
    The broker closes the connection, often before it has sent the reason. Then it is taken for the second, because to
    subscribe again would cost all messages in flight another attempt."""

    selector_identifiers: Mapping[str, str] = field(default_factory=dict)
    """MESSAGE header → the identifier of a selector that has the same value, for headers that differ between messages.
    For a broker with ``conversion_errors``."""

    in_use_errors: tuple[str, ...] = field(default=())
    """Another connection uses this client id, or reads this durable subscription."""

    selector_errors: tuple[str, ...] = field(default=())
    """The selector is invalid."""

    destination_errors: tuple[str, ...] = field(default=())
    """The destination does not exist and may not be created."""

    declaration_errors: tuple[str, ...] = field(default=())
    """The queue was declared with arguments, and a STOMP client declares it without."""

    origin_headers: tuple[str, ...] = ()
    """Headers by which a message in the broker's own dead-letter queue names the queue and the address that it came
    from."""

    message_in_error: str = ""
    """Regular expression: the part of an ERROR's text that repeats a message, or is of the broker's inside, which must
    not be shown."""

    def window(self, size: int, messages: int | None = None) -> int:
        """The value of ``window_header`` for so many bytes, or for so many messages where the broker counts those."""
        wanted = size
        if self.window_unit is WindowUnit.MESSAGES:
            wanted = size // ASSUMED_MESSAGE_BYTES if messages is None else messages
        return max(1, min(wanted, self.max_window))

    def ack_id(self, identifier: bytes) -> bytes:
        """The id that an ACK names, from an id as a received block has it."""
        return identifier if self.ack_header is None else identifier.partition(_ID_SEPARATOR)[0]

    def stable_id(self, identifier: bytes) -> bytes:
        """The part of such an id that is the same in every delivery. Only for a dialect with stable ids."""
        assert self.stable_id_separator is not None
        own = identifier if self.ack_header is None else identifier.partition(_ID_SEPARATOR)[2]
        if not self.stable_id_separator:
            return own
        _, found, stable = own.partition(self.stable_id_separator.encode())
        return stable if found else own

    def message_id(self, identifier: bytes) -> str:
        """The id of a message for people, from such an id."""
        own = identifier if self.stable_id_separator is None else self.stable_id(identifier)
        return own.decode("utf-8", "replace").replace("\\c", ":")  # STOMP 1.2 "Value Encoding"

    def unacknowledgeable(self, identifiers: Iterable[bytes]) -> str | None:
        """Return the id of the first of these messages that the broker cannot acknowledge, or None."""
        named = map(self.message_id, identifiers)
        return next((each for each in named if not re.search(self.acknowledgeable_ids, each)), None)

    def header_of(self, column: str) -> bytes | None:
        """The first MESSAGE header that fills this column."""
        return next((name.encode() for name, target in self.message_headers.items() if target == column), None)
