"""RabbitMQ with its STOMP plugin, as measured on 3.10.8 (docs/brokers/rabbitmq.md)."""

from pyspark_jms.jms import added_names
from pyspark_jms.jms.features import Feature, Refusal
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, DestinationKind
from pyspark_jms.jms.names import JOINING_DOT, RefusedName, RefusedSubscriptions
from pyspark_jms.stomp.dialects.addresses import Addresses
from pyspark_jms.stomp.dialects.base import (
    MESSAGE_HEADERS,
    RESERVED_EVERYWHERE,
    SEND_HEADERS,
    BodyRule,
    Dialect,
    WindowUnit,
)
from pyspark_jms.stomp.dialects.cannot import NO_STABLE_IDS, OVER_STOMP
from pyspark_jms.stomp.dialects.subscription_headers import DurableSubscriptionHeaders

__all__ = ["RABBITMQ"]

RABBITMQ = Dialect(
    name="rabbitmq",
    server_prefix="RabbitMQ/",
    tested_versions="3.10.8, 4.3.6",
    addresses=Addresses(
        prefixes={DestinationKind.QUEUE: "/queue/", DestinationKind.TOPIC: "/topic/"},
        percent_encoded=True,
        topic_wildcards="#*",  # percent-encoded, they match nothing
        temporary_prefixes={DestinationKind.QUEUE: ("amq.", "/reply-queue/")},
        # /amq/queue/ declares no queue, so it alone can read a queue that was declared with arguments.
        native_prefixes={DestinationKind.QUEUE: ("/amq/queue/",), DestinationKind.TOPIC: ("/exchange/",)},
        refused_names=(
            RefusedName(
                pattern="^/amq/queue/",
                reason="is for reading only: RabbitMQ confirms and drops what is sent to a missing queue there",
                when_reading=False,
            ),
        ),
        refused_in_rows=(
            RefusedName(
                pattern="^/exchange/",
                reason="is an exchange, but a row must name a queue or a topic",
                remedy="Set option topic to the exchange.",
            ),
        ),
    ),
    durable_subscriptions=DurableSubscriptionHeaders(
        name_header="x-queue-name",
        subscribe_headers={"durable": "true", "auto-delete": "false"},
        unsubscribe_headers={"durable": "true"},
        name_is_queue=True,
        ended_by_subscriber=True,
        existing_destination="/amq/queue/{}",
    ),
    refused_subscriptions=RefusedSubscriptions(names=(JOINING_DOT,)),
    cannot=OVER_STOMP
    | {
        Feature.JOURNAL: NO_STABLE_IDS,
        Feature.REGISTER: NO_STABLE_IDS,
        Feature.TRANSACTIONS: Refusal(
            "{broker} can confirm a STOMP transaction of which only a part took effect, or none was stored.",
            "Set transaction=none: the broker then confirms each row. The confirmed rows of a failed task stay, and its"
            " next attempt sends them again.",
        ),
    },
    # The broker accepts a header selector, and ignores it.
    selector_dialect=None,
    window_header="prefetch-count",
    window_unit=WindowUnit.MESSAGES,
    max_window=65_535,  # 16 bits in AMQP: the broker takes 65536 for 0, which is no limit
    unsubscribe_keeps_delivery_count=False,
    counted_return=b"\nx-delivery-count:",  # of a quorum queue. A NACK counts, too (4.3)
    limits_redelivery=False,
    ack_receipts_are_durable=False,
    message_headers=MESSAGE_HEADERS | {"amqp-message-id": "JMSMessageID"},
    timestamp_unit_ms=1000,
    # The header expiration is a time to live from the time of sending, not JMSExpiration: so it is a property.
    property_names={"expiration": "JMS_AMQP_TTL", "app-id": "JMSXAppID", "user-id": "JMSXUserID"},
    ignored_headers=added_names.RABBITMQ.names | {BODY_MARKER, TYPES_MARKER},
    ignored_header_prefixes=added_names.RABBITMQ.prefixes,
    body_rule=BodyRule.CONTENT_TYPE,
    # Every queue that a client of AMQP 0.9.1 names is a /reply-queue/: a SEND there declares nothing. The last two are
    # addresses of AMQP 1.0.
    reply_to_prefixes={
        "/queue/": "queue://",
        "/topic/": "topic://",
        "/reply-queue/": "temp-queue://",
        "/queues/": "queue://",
        "/exchanges/amq.topic/": "topic://",
    },
    stable_id_separator=None,
    # Without these, a SEND that is not persistent declares a queue of its connection, which is deleted with the
    # connection: the message is confirmed and lost. If there is a durable queue of that name, the SEND is refused.
    non_persistent_headers={"durable": "true", "auto-delete": "false", "exclusive": "false"},
    send_headers=SEND_HEADERS | {"time_to_live": "expiration", "JMSTimestamp": "timestamp"},
    max_time_to_live_ms=(1 << 32) - 1,  # 49 days
    confirms_single_messages=True,
    sends_null_priority=True,  # in a queue with x-max-priority it comes last
    marks_bytes=True,
    reserved_properties=RESERVED_EVERYWHERE
    | {
        "durable",
        "auto-delete",
        "exclusive",
        "expiration",
        "timestamp",
        "amqp-message-id",
        "user-id",
        "app-id",
        "subscription",
        "ack",
        "redelivered",
        "CC",
        "BCC",
        # The queue of a SEND is declared with these arguments.
        "x-dead-letter-exchange",
        "x-dead-letter-routing-key",
        "x-expires",
        "x-max-age",
        "x-max-length",
        "x-max-length-bytes",
        "x-max-priority",
        "x-message-ttl",
        "x-queue-name",
        "x-queue-type",
        "x-stream-max-segment-size-bytes",
    },
    # The time to live, and headers of messages moved to a dead-letter exchange.
    set_by_broker=frozenset(
        {
            "JMS_AMQP_TTL",
            "content-encoding",
            "cluster-id",
            "x-reply-to-topic",
            "x-death",
            "x-delivery-count",
            *(f"x-{which}-death-{what}" for which in ("first", "last") for what in ("exchange", "queue", "reason")),
        }
    ),
    envelopes=True,
    security_errors=("ACCESS_REFUSED", "Access refused for user", "access denied"),
    lost_errors=(
        "delivery acknowledgement on channel",  # the broker waits 30 minutes for an acknowledgement
        "AMQP channel died: Reason: {shutdown",  # an operator closed the connection (4.3)
        "connection_forced",
        "CONNECTION_FORCED",
        "Server cancelled subscription",  # the queue was deleted, or moved to another node
    ),  # a broker that stops sends no ERROR (4.3)
    destination_errors=("NOT_FOUND", "Invalid destination", "Unknown destination"),
    declaration_errors=("inequivalent arg",),
)
