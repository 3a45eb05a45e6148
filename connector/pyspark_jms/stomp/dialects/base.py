"""The questions a dialect answers. One frozen value per broker; a broker overrides what differs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.stomp.dialects.addresses import Addresses
from pyspark_jms.stomp.dialects.management import Management
from pyspark_jms.stomp.dialects.subscription_headers import DurableWords

__all__ = ["ASSUMED_MESSAGE_BYTES", "RESERVED_EVERYWHERE", "BodyRule", "Dialect", "SendHeaders", "WindowUnit"]

ASSUMED_MESSAGE_BYTES = 4 << 10
"""Where bytes must be told in messages or the other way round, before any message was seen: so many each."""

RESERVED_EVERYWHERE = frozenset(
    {
        "destination",
        "content-length",
        "content-type",
        "receipt",
        "transaction",
        "persistent",
        "priority",
        "correlation-id",
        "reply-to",
        "type",
        "JMSCorrelationID",
        "JMSDeliveryMode",
        "JMSDeliveryTime",
        "JMSDestination",
        "JMSExpiration",
        "JMSMessageID",
        "JMSPriority",
        "JMSRedelivered",
        "JMSReplyTo",
        "JMSTimestamp",
        "JMSType",
    }
)
"""Names that no broker takes for a property: what a SEND frame has itself, and the headers of JMS."""

_BEFORE_THE_ID = b","
"""Between an id for ACK and the message's own, where they are two; no broker's id for ACK holds it."""


class BodyRule(Enum):
    """How a MESSAGE frame tells text from bytes."""

    CONTENT_LENGTH_NOT_LAST = "bytes if the first content-length is not the last header, else text"
    CONTENT_LENGTH = "bytes if there is a content-length, unless amq-msg-type says text"
    CONTENT_TYPE = "bytes if the content-type is application/octet-stream, else text"


class WindowUnit(Enum):
    """What a broker counts that is in flight."""

    BYTES = "bytes"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendHeaders:
    """Names under which a SEND frame carries a JMS header. None: this broker has no such header."""

    correlation_id: str | None = "correlation-id"
    reply_to: str | None = "reply-to"
    type: str | None = "type"
    priority: str | None = "priority"
    expiration: str | None = "expires"
    """Absolute, milliseconds since the epoch."""
    time_to_live: str | None = None
    """Relative, milliseconds: for a broker that has no absolute one."""
    delivery_delay: str | None = None
    """Relative, milliseconds."""
    delivery_time: str | None = None
    """Absolute, milliseconds since the epoch."""
    content_type: str | None = "content-type"
    timestamp: str | None = None
    """The time of sending, for a broker that does not set it; in the unit of ``Dialect.timestamp_ms``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    name: str
    """The value of option ``broker``."""

    server_prefix: str
    """How the ``server`` header of CONNECTED begins."""

    measured_on: str
    """The versions that what stands here was measured on."""

    # --- destinations ------------------------------------------------------------------------

    addresses: Addresses = field(default=Addresses())
    """How a queue and a topic are spelled in ``destination``."""

    # --- subscribing -------------------------------------------------------------------------

    subscribe_headers: dict[DestinationKind, dict[str, str]]
    """What SUBSCRIBE must say for a queue and for a topic, beyond what STOMP asks."""

    window_header: str
    """The SUBSCRIBE header that bounds what the broker sends ahead of acknowledgements."""

    window_unit: WindowUnit = WindowUnit.BYTES

    largest_window: int = (1 << 31) - 1  # an int of Java

    unacknowledged: int | None = None
    """So many messages come without an acknowledgement of others, however large the window. None: all of the window."""

    selector_dialect: str | None
    """The dialect of ``jms_selector`` that this broker's selectors are. None: its STOMP has none."""

    durable: DurableWords
    """How it names durable topic subscriptions."""

    browse_headers: Mapping[str, str] | None = None
    """With these, SUBSCRIBE shows a queue and takes nothing from it. None: it cannot."""

    browse_end: bytes = b""
    """The id, as a received block has it, of the MESSAGE that ends such a look."""

    transform_headers: Mapping[str, str] = field(default_factory=dict)
    """With these, SUBSCRIBE requests map messages with their content, on a broker that needs the request."""

    unsubscribe_is_free: bool = True
    """Whether UNSUBSCRIBE gives messages back without counting a delivery attempt."""

    attempts_limited: bool = True
    """Whether a message that was delivered too often to STOMP clients goes to the dead-letter queue."""

    # --- acknowledging -----------------------------------------------------------------------

    ack_header: str | None = None
    """The MESSAGE header whose value ACK takes. None: ``message-id``."""

    ack_burst: int | None = None
    """ACKs to send before a receipt for them is waited for. None: no bound."""

    honest_ack_receipts: bool = True
    """Whether a message whose ACK was confirmed stays away when the broker is killed."""

    # --- MESSAGE frames: header name -> column of the schema -----------------------------------

    message_headers: dict[str, str]
    """Frame header -> schema column (or ``@name`` for what is not a column of its own)."""

    last_counts: frozenset[str] = frozenset()
    """Headers of which the last is the broker's own (STOMP 1.2 "Repeated Header Entries": the first one should be)."""

    jms_message_id: bool = False
    """Whether ``message-id`` is the JMSMessageID."""

    timestamp_ms: int = 1
    """Milliseconds in one unit of the header that fills JMSTimestamp."""

    unstable_characters: bool = False
    """Whether characters outside the Basic Multilingual Plane, and U+0000, change in headers when the broker stores
    them: then they are not sent, and not looked at when a message is recognised."""

    volatile_headers: frozenset[str] = frozenset()
    """Headers that a redelivered message may have gained or lost: not compared when it is recognised."""

    property_names: dict[str, str]
    """Frame header -> the JMS name of the property it carries (``_AMQ_GROUP_ID`` -> ``JMSXGroupID``)."""

    noise: frozenset[str]
    """Frame headers that are plumbing, ours or the broker's: neither a column nor a property."""

    body_rule: BodyRule
    """How text is told from bytes."""

    reply_to_prefixes: dict[str, str]
    """Prefix of a ``reply-to`` value -> prefix of JMSReplyTo (``queue://`` both ways on Artemis)."""

    stable_id_separator: str | None
    """``message-id`` after this is the broker's own id, the same over redelivery; empty: all of it. None: no stable
    id."""

    # --- SEND frames -------------------------------------------------------------------------

    send_types: dict[DestinationKind, dict[str, str]]
    """What every SEND to a queue or a topic must say."""

    non_persistent_headers: Mapping[str, str] = field(default_factory=dict)
    """What a SEND of a non-persistent message must say besides."""

    send_headers: SendHeaders
    """JMS header -> SEND header."""

    send_property_names: dict[str, str]
    """JMS property -> SEND header, where they differ (``JMSXGroupSeq`` -> ``_AMQ_GROUP_SEQUENCE``)."""

    reserved_properties: frozenset[str]
    """Names a row's ``properties`` must not use: this broker reads them as a header of SEND, or drops them."""

    reserved_prefixes: tuple[str, ...] = ()
    """A row's property whose name begins so is refused: this broker keeps such names for itself."""

    set_by_broker: frozenset[str] = frozenset()
    """Properties that this broker sets in what it delivers. The sink leaves them out, so that a row can be written as
    it was read; they come before the two fields above."""

    set_by_client: frozenset[str] = frozenset()
    """Names with a reserved prefix by which a client speaks to this broker: sent as they are given."""

    transactions: bool = True
    """Whether a COMMIT is carried out as a whole, and its receipt says that it was."""

    commit_checks_sends: bool = True
    """Whether a COMMIT fails when a SEND before it was refused, though the broker has not said so yet."""

    send_receipts: bool = False
    """Whether rows outside of a transaction are each confirmed by a receipt: where nothing else confirms them."""

    marks_bytes: bool = False
    """Whether bytes are sent with the marker of an envelope: this broker's messages are neither text nor bytes."""

    stored_prefix: int = 0
    """Bytes that ``@stored-size`` has beyond a text, which this broker stores in UTF-16, two bytes for each unit."""

    envelopes: bool = False
    """Whether a map, a stream, an object and a message without a body go in an envelope (docs/typed-messages.md): this
    broker's STOMP has no words for them."""

    duplicate_id_header: str | None = None
    """The SEND header by which this broker drops a message, or refuses a transaction, that it had before. None: it
    does not tell."""

    numbers_selector: str = "{}"
    """A selector in which a property that was sent over STOMP, always a text, compares as a number."""

    management: Management | None = None
    """How it answers questions about itself. None: it does not."""

    # --- errors ------------------------------------------------------------------------------

    security_errors: tuple[str, ...] = field(default=())
    """Texts in an ERROR frame's ``message`` that mean: the user is unknown or may not do this."""

    idle_errors: tuple[str, ...] = field(default=())
    """… that mean: nothing came from us for too long, and the connection is closed. It can be made again."""

    send_errors: tuple[str, ...] = field(default=())
    """… that mean: a SEND was refused, and the frame does not say whether for lack of permission or of space."""

    in_use_errors: tuple[str, ...] = field(default=())
    """… that mean: another connection has this client id, or reads this durable subscription."""

    selector_errors: tuple[str, ...] = field(default=())
    """… that mean: the selector is not valid."""

    destination_errors: tuple[str, ...] = field(default=())
    """… that mean: there is no such destination, and it may not be created."""

    message_in_error: str = ""
    """Regular expression: the part of an ERROR's text that repeats a message, which must not be shown."""

    silent_end: str = ""
    """What it may mean that the broker ends connections again and again and says nothing: the remedy."""

    def window(self, octets: int, messages: int | None = None) -> int:
        """What ``window_header`` says for so many bytes, or for so many messages where those are counted."""
        wanted = octets
        if self.window_unit is WindowUnit.MESSAGES:
            wanted = octets // ASSUMED_MESSAGE_BYTES if messages is None else messages
        return max(1, min(wanted, self.largest_window))

    def ack_id(self, identifier: bytes) -> bytes:
        """What ACK takes, of an id as a received block has it."""
        return identifier if self.ack_header is None else identifier.partition(_BEFORE_THE_ID)[0]

    def stable_id(self, identifier: bytes) -> bytes:
        """The part that stays when the message comes again; only where there are stable ids."""
        assert self.stable_id_separator is not None
        own = identifier if self.ack_header is None else identifier.partition(_BEFORE_THE_ID)[2]
        return own.partition(self.stable_id_separator.encode())[2] if self.stable_id_separator else own

    def header_of(self, column: str) -> bytes | None:
        """The MESSAGE header that fills a column of the schema."""
        return next((name.encode() for name, target in self.message_headers.items() if target == column), None)
