"""The words of a broker's management: names of attributes and operations, and the keys of their replies. Data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_jms.jms.model import BodyType, DestinationKind

__all__ = ["ARTEMIS_MANAGEMENT", "BROKER_J_MANAGEMENT", "READ", "Management", "QueueAttributes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAttributes:
    """The broker's names of the attributes of a queue, by the fields of ``QueueFacts``, which says what they are, or
    None for one that the broker does not show.
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
    acknowledged: str | None = None
    multicast: str = ""
    """The value of ``routing_type`` for a topic subscription."""

    def kind(self, routing_type: str) -> DestinationKind:
        return DestinationKind.TOPIC if routing_type == self.multicast else DestinationKind.QUEUE


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

    queues: str | None = None
    """The operation that lists queues with their attributes, or None if each attribute of each queue is asked for."""

    queue_names: str | None = None
    """The attribute of the broker with the names of all queues."""

    delete_queue: str | None = None
    """The operation of the broker that deletes a queue."""

    inspects: bool = False
    """Whether it answers, too, for addresses and their settings, messages and consumers. Only Artemis does: its words
    for them stand where they are used.
    """

    losses: Mapping[BodyType, str] = field(default_factory=dict)
    """Body type → the rest of the sentence "Map bodies …", for bodies of Java producers that the protocol (here STOMP)
    does not carry.
    """


# Losses as measured on 2.44.0 and 2.55.0 (docs/brokers/artemis.md, "What arrives as what").
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
        acknowledged="messagesAcked",  # of the listing: the attribute has another name
    ),
    queues="listQueues",
    queue_names="queueNames",
    delete_queue="destroyQueue",
    inspects=True,
    losses={
        BodyType.MAP: "arrive as an empty or garbled text",
        BodyType.OBJECT: "arrive as an empty text",
        BodyType.STREAM: "arrive as an empty or garbled text or, mostly, not at all: such a message stays in"
        " delivery until its reader ends",
    },
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
