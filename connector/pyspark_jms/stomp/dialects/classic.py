"""Apache ActiveMQ Classic, as measured on 6.3.1 (docs/brokers/classic.md)."""

from pyspark_jms.jms import added_names
from pyspark_jms.jms.features import Feature, Refusal
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, DestinationKind
from pyspark_jms.jms.names import CLASSIC_DESTINATIONS, CLASSIC_NAMES, SCHEDULED_PROPERTIES
from pyspark_jms.stomp.dialects.addresses import Addresses
from pyspark_jms.stomp.dialects.base import (
    MESSAGE_HEADERS,
    RESERVED_EVERYWHERE,
    SEND_HEADERS,
    BodyRule,
    Dialect,
    WindowUnit,
)
from pyspark_jms.stomp.dialects.cannot import OVER_STOMP
from pyspark_jms.stomp.dialects.subscription_headers import DurableSubscriptionHeaders

__all__ = ["CLASSIC"]

CLASSIC = Dialect(
    name="classic",
    server_prefix="ActiveMQ/",
    tested_versions="6.3.1",
    addresses=Addresses(
        prefixes={DestinationKind.QUEUE: "/queue/", DestinationKind.TOPIC: "/topic/"},
        # Temporary queues are recognised only by this beginning. The broker drops messages sent to /queue/ID:….
        temporary_prefixes={
            DestinationKind.QUEUE: ("ID:", "/remote-temp-queue/"),
            DestinationKind.TOPIC: ("ID:", "/remote-temp-topic/"),
        },
        refused_names=CLASSIC_NAMES,
        refused_in_rows=(CLASSIC_DESTINATIONS,),
    ),
    durable_subscriptions=DurableSubscriptionHeaders(name_header="activemq.subscriptionName"),
    cannot=OVER_STOMP
    | {
        Feature.SHARED: Refusal(
            "{broker} lets only one connection read a durable subscription, so it cannot be shared.",
            "Use a virtual topic: producers send to topic VirtualTopic.X, and each group of readers sets option"
            " queue=Consumer.GROUP.VirtualTopic.X.",
        )
    },
    selector_dialect="classic",
    window_header="activemq.prefetchSize",
    window_unit=WindowUnit.MESSAGES,
    browses=True,
    browse_is_limited=True,  # by maxBrowsePageSize, as soon as a policy entry matches the queue
    browse_headers={"browser": "true"},
    browse_end_id=b",0",  # the only MESSAGE without a header ack
    # The only transformation that keeps the values of a map (jms-json changes -0.0 and "true").
    transform_headers={"transformation": "jms-xml"},
    unsubscribe_keeps_delivery_count=False,
    limits_redelivery=False,
    ack_header="ack",
    # Three numbers end the ids that the broker gives. At the ACK of another id (of an AMQP client) it ends the
    # connection with a NumberFormatException, and where the id looks like its own, with an ERROR.
    acknowledgeable_ids=r"(:[+-]?[0-9]+){3}$",
    # The broker reads no ACK while it writes a MESSAGE. Many ACKs at once fill its socket, and on Linux 6.18 both sides
    # then waited for ever.
    max_acks_without_receipt=500,
    message_headers=MESSAGE_HEADERS
    | {"expires": "JMSExpiration", "amq-msg-type": "@message-type", "transformation": "@transformation"},
    message_id_is_jms=True,
    unstable_characters=True,
    ignored_headers=added_names.CLASSIC.names | {BODY_MARKER, TYPES_MARKER},
    ignored_header_prefixes=added_names.CLASSIC.prefixes,
    body_rule=BodyRule.CONTENT_LENGTH,
    text_message_type="text",
    transformed_map="jms-map-xml",
    transformed_object="jms-object-xml",
    reply_to_prefixes={
        "/queue/": "queue://",
        "/topic/": "topic://",
        "/remote-temp-queue/": "temp-queue://",
        "/remote-temp-topic/": "temp-topic://",
        "/temp-queue/": "temp-queue://",  # after the first two, which are sent: under these a connection names its own
        "/temp-topic/": "temp-topic://",
    },
    stable_id_separator="",
    send_headers=SEND_HEADERS | {"JMSExpiration": "expires", "delivery_delay": "AMQ_SCHEDULED_DELAY"},
    confirms_single_messages=True,
    reserved_properties=RESERVED_EVERYWHERE
    | SCHEDULED_PROPERTIES
    | {"expires", "timestamp", "amq-msg-type", "subscription", "ack", "redelivered"},
    set_by_broker=frozenset({"original-destination", "transformation"}),  # in messages moved to a dead-letter queue
    envelopes=True,
    origin_headers=("original-destination",),
    added_properties=("dlqDeliveryFailureCause", "originalExpiration"),
    security_errors=("password is invalid", "is not authorized to"),
    in_use_errors=("already connected from", "Durable consumer is in use"),
    # From the source of 6.3. A broker that stops and an operator who stops a connection end it without an ERROR.
    lost_errors=("BrokerStoppedException", "InactivityIOException"),
    ack_errors=("Unexpected ACK received",),
    selector_errors=("InvalidSelectorException",),
    destination_errors=("DestinationDoesNotExistException", "Destination header", "No durable subscription exists"),
    silent_end="ActiveMQ Classic closes a connection without an error when the next message of the queue is an"
    " ObjectMessage that it cannot transform: remove that message with a JMS client, or read with bodyType=text, with"
    " which maps, streams and objects arrive without their content.",
)
