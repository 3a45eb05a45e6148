"""The questions a dialect answers. One frozen value per broker; a broker overrides what differs."""

from dataclasses import dataclass, field
from enum import Enum

from pyspark_jms.model import DestinationKind

__all__ = ["BodyRule", "Dialect", "SendHeaders"]


class BodyRule(Enum):
    """How a MESSAGE frame tells text from bytes."""

    CONTENT_LENGTH_NOT_LAST = "bytes if the first content-length is not the last header, else text"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendHeaders:
    """Names under which a SEND frame carries a JMS header. None: this broker has no such header."""

    correlation_id: str | None = "correlation-id"
    reply_to: str | None = "reply-to"
    type: str | None = "type"
    priority: str | None = "priority"
    expiration: str | None = "expires"
    """Absolute, milliseconds since the epoch."""
    delivery_delay: str | None = None
    """Relative, milliseconds."""
    delivery_time: str | None = None
    """Absolute, milliseconds since the epoch."""
    content_type: str | None = "content-type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    name: str
    """The value of option ``broker``."""

    server_prefix: str
    """How the ``server`` header of CONNECTED begins."""

    # --- subscribing -------------------------------------------------------------------------

    subscribe_headers: dict[DestinationKind, dict[str, str]]
    """What SUBSCRIBE must say for a queue and for a topic, beyond what STOMP asks."""

    window_header: str
    """The SUBSCRIBE header that bounds what the broker sends ahead of acknowledgements, in bytes."""

    selector_dialect: str
    """The dialect of ``jms_selector`` that this broker's selectors are."""

    # --- MESSAGE frames: header name -> column of the schema -----------------------------------

    message_headers: dict[str, str]
    """Frame header -> schema column (or ``@name`` for what is not a column of its own)."""

    property_names: dict[str, str]
    """Frame header -> the JMS name of the property it carries (``_AMQ_GROUP_ID`` -> ``JMSXGroupID``)."""

    noise: frozenset[str]
    """Frame headers that are plumbing, ours or the broker's: neither a column nor a property."""

    body_rule: BodyRule
    """How text is told from bytes."""

    reply_to_prefixes: dict[str, str]
    """Prefix of a ``reply-to`` value -> prefix of JMSReplyTo (``queue://`` both ways on Artemis)."""

    stable_id_separator: str | None
    """``message-id`` after this is the broker's own id, the same over redelivery. None: no stable id."""

    # --- SEND frames -------------------------------------------------------------------------

    send_types: dict[DestinationKind, dict[str, str]]
    """What every SEND to a queue or a topic must say."""

    send_headers: SendHeaders
    """JMS header -> SEND header."""

    send_property_names: dict[str, str]
    """JMS property -> SEND header, where they differ (``JMSXGroupSeq`` -> ``_AMQ_GROUP_SEQUENCE``)."""

    reserved_properties: frozenset[str]
    """Names a row's ``properties`` must not use: this broker reads them as a header of SEND, or drops them."""

    duplicate_id_header: str | None = None
    """The SEND header by which this broker drops a message, or refuses a transaction, that it had before. None: it
    does not tell."""

    numbers_selector: str = "{}"
    """A selector in which a property that was sent over STOMP, always a text, compares as a number."""

    # --- errors ------------------------------------------------------------------------------

    security_errors: tuple[str, ...] = field(default=())
    """Texts in an ERROR frame's ``message`` that mean: the user is unknown or may not do this."""

    idle_errors: tuple[str, ...] = field(default=())
    """… that mean: nothing came from us for too long, and the connection is closed. It can be made again."""

    send_errors: tuple[str, ...] = field(default=())
    """… that mean: a SEND was refused, and the frame does not say whether for lack of permission or of space."""

    selector_errors: tuple[str, ...] = field(default=())
    """… that mean: the selector is not valid."""

    destination_errors: tuple[str, ...] = field(default=())
    """… that mean: there is no such destination, and it may not be created."""

    def header_of(self, column: str) -> bytes | None:
        """The MESSAGE header that fills a column of the schema."""
        return next((name.encode() for name, target in self.message_headers.items() if target == column), None)
