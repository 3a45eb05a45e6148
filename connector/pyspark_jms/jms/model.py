"""The words of JMS 3.1 that every station shares: destinations, delivery modes, body types, typed values."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Self

from pyspark_jms.jms.conversions import READABLE_AS, JmsValue, ValueType, convert, render

__all__ = [
    "BODY_MARKER",
    "DEAD_LETTER_PROPERTIES",
    "ERROR_PROPERTY",
    "MESSAGE_ID_PROPERTY",
    "OCTET_STREAM",
    "READABLE_AS",
    "SOURCE_PROPERTY",
    "TYPES_MARKER",
    "BodyType",
    "DeliveryMode",
    "Destination",
    "DestinationKind",
    "DurableSubscription",
    "JmsValue",
    "ValueType",
    "convert",
    "render",
]

BODY_MARKER = "spark_jms_body"
"""Property of an envelope (docs/typed-messages.md): the body type where the broker's STOMP has no word for it."""

OCTET_STREAM = "application/octet-stream"
"""The content type of a body that is no text, for brokers that tell the two apart by nothing else."""

TYPES_MARKER = "spark_jms_types"
"""Property that carries ``property_types``: a JSON object, property name -> JMS type."""

ERROR_PROPERTY = "spark_jms_error"
"""Property of a dead letter: why the message could not become a row."""

SOURCE_PROPERTY = "spark_jms_source"
"""Property of a dead letter: where the message was read from, as ``queue://NAME``."""

MESSAGE_ID_PROPERTY = "spark_jms_message_id"
"""Property of a dead letter: the broker's id of the message there."""

DEAD_LETTER_PROPERTIES = frozenset({ERROR_PROPERTY, SOURCE_PROPERTY, MESSAGE_ID_PROPERTY})


class DestinationKind(StrEnum):
    QUEUE = "queue"
    TOPIC = "topic"


class DeliveryMode(IntEnum):
    """JMS 3.1 §3.4.2: the values of ``jakarta.jms.DeliveryMode``."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


class BodyType(StrEnum):
    """JMS 3.1 §3.11: the five bodies, and a message without one."""

    TEXT = "text"
    BYTES = "bytes"
    MAP = "map"
    STREAM = "stream"
    OBJECT = "object"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Destination:
    """``queue://NAME`` or ``topic://NAME``, the one spelling of the schema and of the sink's ``destination``."""

    kind: DestinationKind
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``queue://NAME`` or ``topic://NAME``; anything else is a ``ValueError``."""
        kind, separator, name = text.partition("://")
        if not separator or kind not in tuple(DestinationKind) or not name:
            raise ValueError(f"{text!r} is neither queue://NAME nor topic://NAME")
        return cls(DestinationKind(kind), name)

    def __str__(self) -> str:
        return f"{self.kind}://{self.name}"


@dataclass(frozen=True, slots=True)
class DurableSubscription:
    """A topic's messages are kept under this name while nobody reads them (JMS 3.1 §4.2.2, §4.2.3).

    ``shared``: several readers may have it at a time, each message goes to one of them. Without that it needs a
    ``client_id``, which is part of its name.
    """

    name: str
    client_id: str | None = None
    shared: bool = False

    def __str__(self) -> str:
        """Also the name of the queue that Artemis keeps it in; RabbitMQ's is given this name."""
        return ".".join(filter(None, (self.client_id, self.name)))
