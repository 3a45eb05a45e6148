"""The words of a broker's management: names of attributes and operations, and the keys of their replies. Data."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_jms.jms.headers import Annotation
from pyspark_jms.jms.model import ANNOTATED_BODY_TYPES, BodyType, DestinationKind

__all__ = [
    "ARTEMIS_MANAGEMENT",
    "BROKER_J_MANAGEMENT",
    "READ",
    "Inspection",
    "Listing",
    "Management",
    "QueueAttributes",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAttributes:
    """The broker's names of the attributes of a queue, by the fields of ``QueueFacts``, which says what they are. None:
    the broker does not show it.
    """

    messages: str
    delivering: str
    consumers: str
    address: str
    scheduled: str | None = None
    paused: str | None = None
    filter: str | None = None
    routing_type: str | None = None
    durable: str | None = None
    non_destructive: str | None = None
    purge_on_no_consumers: str | None = None
    ring_size: str | None = None
    last_value: str | None = None
    exclusive: str | None = None
    max_consumers: str | None = None
    consumers_before_dispatch: str | None = None
    auto_delete: str | None = None
    multicast: str = ""
    """The value of ``routing_type`` for a topic subscription."""

    def kind(self, routing_type: str) -> DestinationKind:
        return DestinationKind.TOPIC if routing_type == self.multicast else DestinationKind.QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """An operation that lists what the broker has, and the keys of its JSON reply."""

    operation: str
    filter: Mapping[str, str]
    """The filter that selects some of the rows, without its value."""

    value_key: str = "value"
    """The key of the filter's value."""

    rows_key: str = "data"
    """The key of the list of rows in the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The words for what a broker answers beside the metrics of a queue: its messages, consumers and settings.

    The defaults here and in ``Listing`` are the words of Artemis.
    """

    address_resource: str = "address.{}"
    """A template of the resource of an address, with the address's name."""

    paging: str = "paging"
    """The attribute of an address: whether its messages are paged."""

    address_routing_types: str = "routingTypes"
    """The attribute of an address with its routing types."""

    address_queues: str = "queueNames"
    """The attribute of an address with the names of its queues."""

    address_settings: str = "getAddressSettingsAsJSON"
    """The operation of the broker that shows the settings of an address."""

    id_cache_size: str = "IDCacheSize"
    """The attribute of the broker: how many duplicate ids of each address it remembers."""

    acceptors: str = "acceptorsAsJSON"
    """The attribute of the broker with its acceptors and their options."""

    detects_duplicates: str = "amqpDuplicateDetection"
    """The option of an acceptor: whether the broker looks at duplicate ids of AMQP messages."""

    persists_id_cache: str = "persistIDCache"
    """The attribute of the broker: whether it remembers them after a restart."""

    topology: str = "listNetworkTopology"
    """The operation of the broker that lists the nodes of its cluster."""

    list_messages: str = "listMessages"
    """The operation of a queue that lists its messages."""

    list_delivering: str = "listDeliveringMessages"
    """The operation of a queue that lists its messages in flight."""

    consumers: Listing
    """The operation of the broker that lists the consumers of one queue."""

    session_key: str = "session"
    """The key, in a listed consumer, of its session."""

    protocol_key: str = "protocol"
    """The key, in a listed consumer, of its protocol, as ``STOMP``."""

    connections: Listing
    """The operation of the broker that lists the connections of one client id."""

    delivery_attempts_key: str = "maxDeliveryAttempts"
    """The key, in the settings of an address, of the maximum number of deliveries of a message."""

    dead_letter_key: str = "deadLetterAddress"
    """The key, in the settings of an address, of its dead-letter address."""

    default_delivery_attempts: int = 10  # Artemis 2.44 leaves it out of the settings that it returns
    """The maximum number of deliveries where the broker leaves its default out of the settings."""

    new_queue: Mapping[str, str]
    """Field of ``QueueFacts`` → the key, in the settings of an address, of what a queue gets that is created there."""

    last_value_key: str = "defaultLastValueKey"
    """The key, in the settings of an address, of the property by which new queues replace messages."""

    full_policy: str = "addressFullMessagePolicy"
    """The key, in the settings of an address, of what the broker does with messages when the address is full."""

    page_full_policy: str = "pageFullMessagePolicy"
    """The key, in the settings of an address, of what it does when the pages have reached a limit."""

    page_limits: tuple[str, ...] = ("pageLimitBytes", "pageLimitMessages")
    """Those limits; negative or absent without one."""

    message_id_key: str = "messageID"
    """The key, in a listed message, of the broker's number of it."""

    body_type_key: str = "type"
    """The key, in a listed message, of the code for the type of its body."""

    body_types: Mapping[int, BodyType]
    """The broker's code for the type of a message's body → the body type."""

    amqp_body_type_key: str = Annotation.MESSAGE_TYPE
    """The key, in a listed message of an AMQP client, of the code for the type of its body."""

    amqp_body_types: tuple[BodyType, ...] = ANNOTATED_BODY_TYPES
    """The body type by the value of that annotation."""

    losses: Mapping[BodyType, str]
    """Body type → the rest of the sentence "Map bodies …", for bodies of Java producers that the protocol (here STOMP)
    does not carry.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Management:
    """The addresses of a broker's management requests, and their headers (STOMP) or application properties (AMQP)."""

    address: str
    """The address of requests. The broker itself consumes them."""

    reply_address: str
    """The address of replies. It is a topic, so each client has its own subscription, gone with its connection.
    Empty: replies arrive in a temporary queue.
    """

    resource_header: str
    """The request header that names the managed resource: a queue, an address, the broker."""

    attribute_header: str
    """The request header that names the attribute to read."""

    operation_header: str
    """The request header that names the operation to call."""

    success_header: str
    """The answer header that is ``true`` unless the request failed."""

    broker_resource: str
    """The resource of the broker itself."""

    queue_resource: str
    """A template of the resource of a queue, with the queue's name."""

    version: str
    """The attribute of the broker with its version."""

    queue: QueueAttributes
    """The attributes of a queue."""

    queue_separator: str = "::"
    """What separates address and queue in the fully qualified name of a queue."""

    identity: str | None = None
    """The attribute of the broker with its id, which belongs to its store, or None if it has none."""

    clock: str | None = None
    """The attribute of the broker with its time, in milliseconds since the epoch, or None if the broker does not show
    it.
    """

    queues: Listing | None = None
    """The operation that lists the queue with a name, and its attributes by their names, or None if each attribute of
    each queue is asked for."""

    queues_containing: Listing | None = None
    """The operation that lists the queues whose names contain a text, where there is ``queues``."""

    queue_name_key: str = "name"
    """The key, in a listed queue, of its name."""

    queue_names: str | None = None
    """The attribute of the broker with the names of all queues."""

    delete_queue: str | None = None
    """The operation of the broker that deletes a queue."""

    inspection: Inspection | None = None
    """What else it answers, or None if it answers only for the metrics of a queue."""


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
    queue_separator="::",
    version="version",
    identity="nodeID",
    clock="currentTimeMillis",
    queue=QueueAttributes(
        messages="messageCount",
        delivering="deliveringCount",
        consumers="consumerCount",
        scheduled="scheduledCount",
        paused="paused",
        address="address",
        filter="filter",
        routing_type="routingType",
        multicast="MULTICAST",
        durable="durable",
        purge_on_no_consumers="purgeOnNoConsumers",
        ring_size="ringSize",
        last_value="lastValue",
        exclusive="exclusive",
        max_consumers="maxConsumers",
        consumers_before_dispatch="consumersBeforeDispatch",
        auto_delete="autoDelete",  # 2.19 does not have it
    ),
    queues=Listing(operation="listQueues", filter={"field": "name", "operation": "EQUALS"}),
    queues_containing=Listing(operation="listQueues", filter={"field": "name", "operation": "CONTAINS"}),
    queue_names="queueNames",
    delete_queue="destroyQueue",
    inspection=Inspection(
        consumers=Listing(operation="listConsumers", filter={"field": "queue", "operation": "EQUALS"}),
        connections=Listing(operation="listConnections", filter={"field": "clientID", "operation": "EQUALS"}),
        new_queue={
            "non_destructive": "defaultNonDestructive",
            "purge_on_no_consumers": "defaultPurgeOnNoConsumers",
            "ring_size": "defaultRingSize",
            "last_value": "defaultLastValueQueue",
            "max_consumers": "defaultMaxConsumers",
            "consumers_before_dispatch": "defaultConsumersBeforeDispatch",
        },
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
            BodyType.STREAM: "arrive as an empty or garbled text or, mostly, not at all: such a message stays in"
            " delivery until its reader ends",
        },
    ),
)

READ = "READ "
"""A prefix of an attribute of a managed object. Names without it are statistics of ``getStatistics``."""

# The AMQP management node of Qpid Broker-J (plugin qpid-broker-plugins-management-amqp), measured on 10.1.0 and 9.2.1.
BROKER_J_MANAGEMENT = Management(
    address="$management",
    reply_address="",
    resource_header="key",
    attribute_header="statistics",
    operation_header="operation",
    success_header="statusCode",
    broker_resource="org.apache.qpid.VirtualHost ",
    queue_resource="org.apache.qpid.Queue {}",
    queue_separator="\0",  # a name has no second part
    version=f"{READ}modelVersion",
    queue=QueueAttributes(
        messages="queueDepthMessages",
        delivering="unacknowledgedMessages",
        consumers="consumerCount",
        address=f"{READ}name",
    ),
)
