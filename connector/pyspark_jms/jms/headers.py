"""One row for each header of a message that is a column: what codecs, sinks, dead letters and selectors know of it.

A header that is one value of a usual type needs no more than its row; columns whose text is unusual have a reader in
each codec. The names that a broker gives to headers, and what it adds, stand in its dialect.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum

from jms_selector.syntax.kinds import Kind, Schema

__all__ = [
    "COLUMN_OF_HEADER",
    "HEADERS",
    "JMSX_FIELDS",
    "SELECTOR_SCHEMA",
    "TEXT_FIELDS",
    "Annotation",
    "Header",
    "HeaderField",
    "HeaderType",
    "PropertiesField",
]


class _Field(IntEnum):
    """A field of a section, by its number."""

    def __init__(self, _: int) -> None:
        self.title = self.name.lower().replace("_", "-")
        """The name that AMQP 1.0 gives to the field."""


class HeaderField(_Field):
    """AMQP 1.0 §3.2.1."""

    DURABLE = 0
    PRIORITY = 1
    TTL = 2
    FIRST_ACQUIRER = 3
    DELIVERY_COUNT = 4


class PropertiesField(_Field):
    """AMQP 1.0 §3.2.4."""

    MESSAGE_ID = 0
    USER_ID = 1
    TO = 2
    SUBJECT = 3
    REPLY_TO = 4
    CORRELATION_ID = 5
    CONTENT_TYPE = 6
    CONTENT_ENCODING = 7
    ABSOLUTE_EXPIRY_TIME = 8
    CREATION_TIME = 9
    GROUP_ID = 10
    GROUP_SEQUENCE = 11
    REPLY_TO_GROUP_ID = 12


class Annotation(StrEnum):
    """Message annotations of JMS clients (AMQP-JMS binding §3.1, §3.3)."""

    DESTINATION = "x-opt-jms-dest"
    """The kind of the destination in ``to``, as a place in ``DESTINATION_WORDS``."""
    REPLY_TO = "x-opt-jms-reply-to"
    MESSAGE_TYPE = "x-opt-jms-msg-type"
    """The body type, as a place in ``ANNOTATED_BODY_TYPES``."""
    DELIVERY_TIME = "x-opt-delivery-time"


JMSX_FIELDS = {
    "JMSXGroupID": PropertiesField.GROUP_ID,
    "JMSXGroupSeq": PropertiesField.GROUP_SEQUENCE,
    "JMSXUserID": PropertiesField.USER_ID,
}
"""Properties that are fields of an AMQP message. ``JMSXDeliveryCount`` is one more than the delivery-count."""


class HeaderType(Enum):
    """What a header's values are. The value is the type of the column in Spark's DDL, and AMQP's word for the type."""

    STRING = "string", "string"
    ID = "string", "id"
    SYMBOL = "string", "symbol"
    ADDRESS = "string", "address"
    INT = "int", "int"
    TIME = "timestamp_ltz", "timestamp"
    BOOLEAN = "boolean", "boolean"

    @property
    def ddl(self) -> str:
        return self.value[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    name: str
    """The column."""

    type: HeaderType
    amqp: HeaderField | PropertiesField | Annotation
    """Where an AMQP message has the value."""

    stomp: str | None = None
    """The header of MESSAGE, and of SEND if the sink sends it, on every broker over STOMP, or None where brokers
    differ.
    """

    kind: Kind | None = None
    """The kind of the values in a selector; a time is a number of milliseconds. None if no selector knows the name."""

    in_selector: bool = False
    """Whether a selector may name it (JMS 3.1 §3.8.1.1)."""

    sent: bool = False
    """Whether the sink sends it. Otherwise the provider sets it on send (JMS 3.1 §3.4), and the sink ignores it."""

    in_dead_letter: bool = False
    """Whether it stays on a dead letter over STOMP. An expiry would delete the dead letter, for example."""


_STRING, _ID, _SYMBOL, _ADDRESS, _INT, _TIME, _BOOLEAN = HeaderType

# fmt: off
HEADERS = (
    Header(name="JMSMessageID", type=_ID, amqp=PropertiesField.MESSAGE_ID, kind=Kind.STRING, in_selector=True),
    Header(name="JMSDestination", type=_ADDRESS, amqp=PropertiesField.TO, kind=Kind.STRING),
    Header(name="JMSTimestamp", type=_TIME, amqp=PropertiesField.CREATION_TIME, stomp="timestamp", kind=Kind.LONG,
           in_selector=True),
    Header(name="JMSCorrelationID", type=_ID, amqp=PropertiesField.CORRELATION_ID, stomp="correlation-id",
           kind=Kind.STRING, in_selector=True, sent=True, in_dead_letter=True),
    Header(name="JMSType", type=_STRING, amqp=PropertiesField.SUBJECT, stomp="type", kind=Kind.STRING, in_selector=True,
           sent=True, in_dead_letter=True),
    Header(name="JMSReplyTo", type=_ADDRESS, amqp=PropertiesField.REPLY_TO, stomp="reply-to", kind=Kind.STRING,
           sent=True, in_dead_letter=True),
    # A selector compares with the words PERSISTENT and NON_PERSISTENT.
    Header(name="JMSDeliveryMode", type=_INT, amqp=HeaderField.DURABLE, stomp="persistent", kind=Kind.STRING,
           in_selector=True, sent=True),
    Header(name="JMSPriority", type=_INT, amqp=HeaderField.PRIORITY, stomp="priority", kind=Kind.INT, in_selector=True,
           sent=True, in_dead_letter=True),
    Header(name="JMSExpiration", type=_TIME, amqp=PropertiesField.ABSOLUTE_EXPIRY_TIME, kind=Kind.LONG, sent=True),
    Header(name="JMSDeliveryTime", type=_TIME, amqp=Annotation.DELIVERY_TIME, kind=Kind.LONG, sent=True),
    Header(name="JMSRedelivered", type=_BOOLEAN, amqp=HeaderField.DELIVERY_COUNT, stomp="redelivered",
           kind=Kind.BOOLEAN),
    Header(name="content_type", type=_SYMBOL, amqp=PropertiesField.CONTENT_TYPE, stomp="content-type", sent=True,
           in_dead_letter=True),
)
# fmt: on
"""In the order of the schema, where the columns of properties and of the body stand before the last one."""

COLUMN_OF_HEADER = {header.stomp: header.name for header in HEADERS if header.stomp is not None}
"""Header of MESSAGE on every broker over STOMP → its column."""

TEXT_FIELDS = {
    field: header
    for field in PropertiesField
    for header in HEADERS
    if header.amqp is field and header.type in {_STRING, _ID, _SYMBOL}
}
"""Field of section properties → its header, for columns that are the text of one field."""

SELECTOR_SCHEMA = Schema(
    kinds={header.name: header.kind for header in HEADERS if header.kind is not None},
    nameable=frozenset(header.name for header in HEADERS if header.in_selector),
    ids=frozenset(header.name for header in HEADERS if header.type is _ID),
    times=frozenset(header.name for header in HEADERS if header.type is _TIME),
)
"""What the selector package must know of the headers."""
