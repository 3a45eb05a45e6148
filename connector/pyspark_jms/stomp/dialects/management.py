"""The words of a broker's management over STOMP. Data: ``link.management`` sends requests with them."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_jms.jms.model import BodyType

__all__ = ["ARTEMIS_MANAGEMENT", "ConsumerList", "Management", "QueueAttributes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAttributes:
    """Names of the attributes of a queue."""

    messages: str
    delivering: str
    consumers: str
    scheduled: str
    paused: str
    address: str
    filter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerList:
    """The operation that lists consumers, and the keys of its JSON reply."""

    operation: str
    of_queue: Mapping[str, str]
    """The filter for the consumers of one queue, without its value."""
    value_key: str
    rows_key: str
    session_key: str
    protocol_key: str
    stomp: str
    """The protocol of a consumer over STOMP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Management:
    address: str
    """The address of requests. The broker itself consumes them."""

    reply_address: str
    """The address of replies. It is a topic, so each client has its own subscription, which leaves no queue behind."""

    resource_header: str
    attribute_header: str
    operation_header: str
    success_header: str
    """Header of a reply: ``true``, or the request failed."""

    broker_resource: str
    queue_resource: str
    """Format of the resource of a queue."""

    version: str
    clock: str
    """Attributes of the broker; the clock is in milliseconds since 1970."""
    queue: QueueAttributes

    delete_queue: str
    address_settings: str
    list_messages: str
    list_delivering: str
    """Operations."""
    consumers: ConsumerList

    delivery_attempts_key: str
    dead_letter_key: str
    """Keys of the address settings."""
    default_delivery_attempts: int
    """Of a version that leaves its default out of the address settings."""

    body_type_key: str
    """Key of a listed message: the code of its body."""
    body_types: Mapping[int, BodyType]
    """The broker's codes of bodies."""

    losses: Mapping[BodyType, str]
    """What happens over STOMP to a Java producer's body of this type, if the broker does not transfer it."""


# Codes and losses as measured on 2.44.0 and 2.55.0 (docs/typed-messages.md, "What arrives as what").
ARTEMIS_MANAGEMENT = Management(
    address="activemq.management",
    reply_address="pyspark-jms.management",
    resource_header="_AMQ_ResourceName",
    attribute_header="_AMQ_Attribute",
    operation_header="_AMQ_OperationName",
    success_header="_AMQ_OperationSucceeded",
    broker_resource="broker",
    queue_resource="queue.{}",
    version="version",
    clock="currentTimeMillis",
    queue=QueueAttributes(
        messages="messageCount",
        delivering="deliveringCount",
        consumers="consumerCount",
        scheduled="scheduledCount",
        paused="paused",
        address="address",
        filter="filter",
    ),
    delete_queue="destroyQueue",
    address_settings="getAddressSettingsAsJSON",
    list_messages="listMessages",
    list_delivering="listDeliveringMessages",
    consumers=ConsumerList(
        operation="listConsumers",
        of_queue={"field": "queue", "operation": "EQUALS"},
        value_key="value",
        rows_key="data",
        session_key="session",
        protocol_key="protocol",
        stomp="STOMP",
    ),
    delivery_attempts_key="maxDeliveryAttempts",
    dead_letter_key="deadLetterAddress",
    default_delivery_attempts=10,  # 2.44 leaves it out of the settings that it returns
    body_type_key="type",
    body_types={
        0: BodyType.MESSAGE,
        2: BodyType.OBJECT,
        3: BodyType.TEXT,
        4: BodyType.BYTES,
        5: BodyType.MAP,
        6: BodyType.STREAM,
    },
    losses={
        BodyType.MAP: "arrive as an empty or garbled text",
        BodyType.OBJECT: "arrive as an empty text",
        BodyType.STREAM: "arrive as an empty or garbled text or, mostly, not at all: such a message stays in delivery"
        " until its reader ends",
    },
)
