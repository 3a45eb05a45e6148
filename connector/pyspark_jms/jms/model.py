"""The terms of JMS 3.1: destinations, delivery modes and body types."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Self

BODY_MARKER = "spark_jms_body"
"""Property of an envelope (docs/typed-messages.md): the body type, if the broker's STOMP cannot state it."""

OCTET_STREAM = "application/octet-stream"
"""The content type of a body of bytes, for brokers that distinguish it from text by nothing else."""

TYPES_MARKER = "spark_jms_types"
"""Property that holds ``property_types``: a JSON object, property name -> JMS type."""

ERROR_PROPERTY = "spark_jms_error"
"""Property of a dead letter: the reason why the message could not become a row."""

SOURCE_PROPERTY = "spark_jms_source"
"""Property of a dead letter: the destination that the message was read from, as ``queue://NAME``."""

MESSAGE_ID_PROPERTY = "spark_jms_message_id"
"""Property of a dead letter: the broker's id of the message at that destination."""

MOVED_PROPERTY = "spark_jms_moved"
"""Property of a message that ``pyspark-jms move`` has moved: the run that moved it."""

DEFAULT_PRIORITY = 4
HIGHEST_PRIORITY = 9
"""The priority of a message without one: JMS 3.1 §3.4.9, AMQP 1.0 §3.2.1."""

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


ANNOTATED_BODY_TYPES = (
    BodyType.MESSAGE,
    BodyType.OBJECT,
    BodyType.MAP,
    BodyType.BYTES,
    BodyType.STREAM,
    BodyType.TEXT,
)
"""By the value of ``x-opt-jms-msg-type``, the annotation of AMQP messages of JMS clients."""

_TEMPORARY = "temp-"


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination: ``queue://NAME`` or ``topic://NAME`` in the schema and in the sink's ``destination``.

    That of one connection (JMS 3.1 §6.2.2), which ends with the connection, is ``temp-queue://NAME`` or
    ``temp-topic://NAME``: ActiveMQ Classic has other addresses for these.
    """

    kind: DestinationKind
    name: str
    temporary: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``queue://NAME``, ``topic://NAME`` or a temporary one; anything else is a ``ValueError``."""
        kind, separator, name = text.partition("://")
        if not separator or kind not in DESTINATION_WORDS or not name:
            raise ValueError(f"{text!r} is neither queue://NAME nor topic://NAME")
        return cls(DestinationKind(kind.removeprefix(_TEMPORARY)), name, kind.startswith(_TEMPORARY))

    @property
    def word(self) -> str:
        """Return what stands before ``://``, one of ``DESTINATION_WORDS``."""
        return f"{_TEMPORARY if self.temporary else ''}{self.kind}"

    def __str__(self) -> str:
        return f"{self.word}://{self.name}"


DESTINATION_WORDS = (*DestinationKind, *(f"{_TEMPORARY}{kind}" for kind in DestinationKind))
"""The place of a word is its number in ``x-opt-jms-dest`` and ``x-opt-jms-reply-to`` (AMQP-JMS binding §3.1)."""


@dataclass(frozen=True, slots=True)
class DurableSubscription:
    """A durable subscription to a topic (JMS 3.1 §4.2.2, §4.2.3).

    ``shared``: several consumers may read the subscription, and each message goes to one of them. An unshared
    subscription needs a ``client_id``, which is part of its name.
    """

    name: str
    client_id: str | None = None
    shared: bool = False

    def __str__(self) -> str:
        """The subscription's full name, which is also the name of its queue on Artemis and RabbitMQ."""
        return ".".join(filter(None, (self.client_id, self.name)))
