"""Apache ActiveMQ Artemis, as measured on 2.44.0 and 2.55.0 (ARCHITECTURE.md, "What Artemis does")."""

from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, DestinationKind
from pyspark_jms.stomp.dialects.addresses import Addresses, Refused
from pyspark_jms.stomp.dialects.base import RESERVED_EVERYWHERE, BodyRule, Dialect, SendHeaders
from pyspark_jms.stomp.dialects.management import ARTEMIS_MANAGEMENT
from pyspark_jms.stomp.dialects.subscription_headers import DurableWords

__all__ = ["ARTEMIS"]

ARTEMIS = Dialect(
    name="artemis",
    server_prefix="ActiveMQ-Artemis/",
    measured_on="2.44.0, 2.55.0",
    addresses=Addresses(
        queue_separator="::",
        closed_to_rows=(
            # The default names. An acceptor may take a prefix off, "/queue/" for example, so they stand anywhere.
            Refused(
                pattern=r"activemq\.(management|notifications)(::|$)",
                because="is reserved for management requests and notifications of Artemis, so rows must not name it",
            ),
        ),
    ),
    # Always given: without it a new address becomes MULTICAST, and what is sent to it is confirmed and dropped.
    subscribe_headers={
        DestinationKind.QUEUE: {"subscription-type": "ANYCAST"},
        DestinationKind.TOPIC: {"subscription-type": "MULTICAST"},
    },
    # Named by client-id and this, its queue is client-id.name. A fully qualified queue name needs neither, and takes no
    # selector as MULTICAST.
    durable=DurableWords(name_header="durable-subscription-name", unnamed="{}::{}", keeps_filter=True),
    selector_dialect="artemis",
    window_header="consumer-window-size",
    message_headers={
        "message-id": "@message-id",
        "destination": "@destination",
        "subscription": "@subscription",
        "ack": "@ack",
        "content-length": "@content-length",
        "correlation-id": "JMSCorrelationID",
        "expires": "JMSExpiration",
        "redelivered": "JMSRedelivered",
        "priority": "JMSPriority",
        "persistent": "JMSDeliveryMode",
        "reply-to": "JMSReplyTo",
        "timestamp": "JMSTimestamp",
        "type": "JMSType",
        "content-type": "content_type",
        "_AMQ_SCHED_DELIVERY": "JMSDeliveryTime",
        BODY_MARKER: "@body",
        TYPES_MARKER: "@types",
        "_AMQ_LARGE_SIZE": "@stored-size",
    },
    # Not stored: gone after a restart of the broker. A redelivery-delay sets it anew.
    volatile_headers=frozenset({"_AMQ_SCHED_DELIVERY"}),
    last_counts=frozenset({"ack"}),  # behind what the producer set
    property_names={"_AMQ_GROUP_ID": "JMSXGroupID", "_AMQ_GROUP_SEQUENCE": "JMSXGroupSeq"},
    # A SEND's own headers come back as properties (destination-type even twice); __AMQ_CID is the id of a
    # Java producer's connection, _AMQ_LARGE_SIZE a large message's length, which a producer may have compressed.
    noise=frozenset(
        {
            "content-length",
            "destination",
            "destination-type",
            "receipt",
            "transaction",
            "__AMQ_CID",
            "_AMQ_LARGE_COMPRESSED",
            "_AMQ_LARGE_SIZE",
            BODY_MARKER,
            TYPES_MARKER,
        }
    ),
    # BytesMessage: second header; sent over STOMP with content-length:0: among the properties; TextMessage:
    # last header, or none when the text is empty. The frame has nothing else that would tell.
    body_rule=BodyRule.CONTENT_LENGTH_NOT_LAST,
    stored_prefix=5,
    reply_to_prefixes={
        "queue://": "queue://",
        "topic://": "topic://",
        "temp-queue://": "queue://",
        "temp-topic://": "topic://",
    },
    stable_id_separator=",",
    send_types={
        DestinationKind.QUEUE: {"destination-type": "ANYCAST"},
        DestinationKind.TOPIC: {"destination-type": "MULTICAST"},
    },
    send_headers=SendHeaders(delivery_delay="AMQ_SCHEDULED_DELAY", delivery_time="AMQ_SCHEDULED_TIME"),
    send_property_names={"JMSXGroupSeq": "_AMQ_GROUP_SEQUENCE"},
    reserved_properties=RESERVED_EVERYWHERE
    | {
        "destination-type",
        "expires",
        "AMQ_SCHEDULED_DELAY",
        "AMQ_SCHEDULED_TIME",
        "AMQ_SCHEDULED_REPEAT",
        "AMQ_SCHEDULED_PERIOD",
        "AMQ_SCHEDULED_CRON",
        "_AMQ_GROUP_SEQUENCE",
    },
    # Properties of such names are orders to its management, or steer how a message is routed.
    reserved_prefixes=("_AMQ_", "__AMQ_"),
    # What a consumer may find in a message: the id of a Java producer's connection, where a message of a dead-letter or
    # expiry queue comes from, what bridges and AMQP add, the size of a large message. The broker drops a row whose
    # duplicate id it knows, or refuses the transaction.
    set_by_broker=frozenset(
        {
            "__AMQ_CID",
            "_AMQ_ACTUAL_EXPIRY",
            "_AMQ_BRIDGE_DUP",
            "_AMQ_CONTENT_TYPE",
            "_AMQ_DUPL_ID",
            "_AMQ_INGRESS_TIMESTAMP",
            "_AMQ_LARGE_COMPRESSED",
            "_AMQ_LARGE_SIZE",
            "_AMQ_ORIG_ADDRESS",
            "_AMQ_ORIG_MESSAGE_ID",
            "_AMQ_ORIG_QUEUE",
            "_AMQ_ORIG_ROUTING_TYPE",
            "_AMQ_PREFIX",
            "_AMQ_ROUTING_TYPE",
            "_AMQ_SCHED_DELIVERY",
            "_AMQ_VALIDATED_USER",
        }
    ),
    set_by_client=frozenset({"_AMQ_LVQ_NAME"}),  # the key of a last-value queue
    # A COMMIT that is on its way when an address may not be created is carried out with the rest (447 of 1,500).
    commit_checks_sends=False,
    envelopes=True,
    duplicate_id_header="_AMQ_DUPL_ID",
    numbers_selector="convert_string_expressions:{}",
    management=ARTEMIS_MANAGEMENT,
    security_errors=(
        "Security Error occurred",
        "AMQ229032",  # user does not have permission
        "AMQ229031",  # unable to validate user
        "AMQ339016",  # error creating subscription: no permission to consume; the frame gives no reason
    ),
    idle_errors=("AMQ229014",),
    send_errors=("AMQ339011",),
    in_use_errors=("AMQ339017",),  # error unsubscribing; the frame gives no reason, and knows no other
    selector_errors=("Invalid selector", "Selector cannot be empty"),
    destination_errors=("AMQ339001",),
    # The refused message, properties included.
    message_in_error=r"\s*\b(?:Core|Large|Server)\w*Message(?:Impl)?\[.*",
)
