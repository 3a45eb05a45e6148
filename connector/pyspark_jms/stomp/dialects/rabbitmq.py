"""RabbitMQ with its STOMP plugin, as measured on 3.10.8 (docs/brokers.md)."""

from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, DestinationKind
from pyspark_jms.stomp.dialects.addresses import Addresses, Refused
from pyspark_jms.stomp.dialects.base import RESERVED_EVERYWHERE, BodyRule, Dialect, SendHeaders, WindowUnit
from pyspark_jms.stomp.dialects.subscription_headers import DurableWords

__all__ = ["RABBITMQ"]

RABBITMQ = Dialect(
    name="rabbitmq",
    server_prefix="RabbitMQ/",
    measured_on="3.10.8",
    addresses=Addresses(
        prefixes={DestinationKind.QUEUE: "/queue/", DestinationKind.TOPIC: "/topic/"},
        percent_encoded=True,
        wildcards="#*",  # encoded, they match nothing
        temporary={DestinationKind.QUEUE: ("amq.gen-", "/reply-queue/")},
        # A queue that was declared with arguments can only be read under the first of these, which declares nothing.
        literal={DestinationKind.QUEUE: ("/amq/queue/",), DestinationKind.TOPIC: ("/exchange/",)},
        refused=(
            Refused(
                pattern="^/amq/queue/",
                because="is for reading only: RabbitMQ confirms and drops what is sent there when the queue is missing",
                when_reading=False,
            ),
        ),
        closed_to_rows=(
            Refused(
                pattern="^/exchange/",
                because="is an exchange, and a row names a queue or a topic",
                remedy="Give the exchange as option topic.",
            ),
        ),
    ),
    subscribe_headers={kind: {} for kind in DestinationKind},
    durable=DurableWords(
        name_header="x-queue-name",
        subscribe_headers={"durable": "true", "auto-delete": "false"},
        unsubscribe_headers={"durable": "true"},
        named_by_queue=True,
        ended_by_reader=True,
        readable_at="/amq/queue/{}",
    ),
    # A header selector is taken, and ignored.
    selector_dialect=None,
    window_header="prefetch-count",
    window_unit=WindowUnit.MESSAGES,
    largest_window=65_535,  # 16 bits of AMQP: 65536 is 0, and that is no bound
    unsubscribe_is_free=False,
    attempts_limited=False,
    honest_ack_receipts=False,
    message_headers={
        "message-id": "@message-id",
        "destination": "@destination",
        "subscription": "@subscription",
        "ack": "@ack",
        "content-length": "@content-length",
        "amqp-message-id": "JMSMessageID",
        "correlation-id": "JMSCorrelationID",
        "redelivered": "JMSRedelivered",
        "priority": "JMSPriority",
        "persistent": "JMSDeliveryMode",
        "reply-to": "JMSReplyTo",
        "timestamp": "JMSTimestamp",
        "type": "JMSType",
        "content-type": "content_type",
        BODY_MARKER: "@body",
        TYPES_MARKER: "@types",
    },
    timestamp_ms=1000,
    # A time to live is not counted down: without the time of sending it says nothing of the expiration.
    property_names={"expiration": "JMS_AMQP_TTL", "app-id": "JMSXAppID", "user-id": "JMSXUserID"},
    noise=frozenset(
        {
            "content-length",
            "receipt",
            "transaction",
            "durable",
            "auto-delete",
            "exclusive",
            BODY_MARKER,
            TYPES_MARKER,
        }
    ),
    body_rule=BodyRule.CONTENT_TYPE,
    reply_to_prefixes={"/queue/": "queue://", "/topic/": "topic://", "/reply-queue/": "queue://"},
    stable_id_separator=None,
    send_types={kind: {} for kind in DestinationKind},
    # Without these, a SEND that is not persistent declares a queue that belongs to its connection and ends with it: the
    # message is confirmed and gone. A durable queue of that name refuses the SEND.
    non_persistent_headers={"durable": "true", "auto-delete": "false", "exclusive": "false"},
    send_headers=SendHeaders(expiration=None, time_to_live="expiration", timestamp="timestamp"),
    send_property_names={},
    transactions=False,
    send_receipts=True,
    marks_bytes=True,
    reserved_properties=RESERVED_EVERYWHERE
    | {
        "content-encoding",
        "durable",
        "auto-delete",
        "exclusive",
        "expiration",
        "timestamp",
        "amqp-message-id",
        "message-id",
        "user-id",
        "app-id",
        "cluster-id",
        "subscription",
        "ack",
        "redelivered",
        "CC",
        "BCC",
    },
    # Of a time to live, and of what it moved to a dead-letter exchange.
    set_by_broker=frozenset(
        {
            "JMS_AMQP_TTL",
            "x-death",
            "x-delivery-count",
            "x-first-death-exchange",
            "x-first-death-queue",
            "x-first-death-reason",
            "x-last-death-exchange",
            "x-last-death-queue",
            "x-last-death-reason",
        }
    ),
    envelopes=True,
    security_errors=("ACCESS_REFUSED", "Access refused for user", "access denied"),
    idle_errors=("delivery acknowledgement on channel",),  # it waits 30 minutes for one
    destination_errors=("NOT_FOUND", "inequivalent arg", "Invalid destination", "Unknown destination"),
)
