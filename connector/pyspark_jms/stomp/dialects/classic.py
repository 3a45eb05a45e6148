"""Apache ActiveMQ Classic, as measured on 6.3.1 (docs/brokers.md)."""

from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, DestinationKind
from pyspark_jms.stomp.dialects.addresses import Addresses, Refused
from pyspark_jms.stomp.dialects.base import RESERVED_EVERYWHERE, BodyRule, Dialect, SendHeaders, WindowUnit
from pyspark_jms.stomp.dialects.subscription_headers import DurableWords

__all__ = ["CLASSIC"]

CLASSIC = Dialect(
    name="classic",
    server_prefix="ActiveMQ/",
    measured_on="6.3.1",
    addresses=Addresses(
        prefixes={DestinationKind.QUEUE: "/queue/", DestinationKind.TOPIC: "/topic/"},
        # What a temporary queue is called is known by this beginning only; sent to /queue/ID:… it goes nowhere.
        temporary={
            DestinationKind.QUEUE: ("ID:", "/remote-temp-queue/"),
            DestinationKind.TOPIC: ("ID:", "/remote-temp-topic/"),
        },
        refused=(
            Refused(pattern=",", because="has a comma: ActiveMQ Classic reads several destinations"),
            Refused(pattern=r"\?", because="has a question mark: ActiveMQ Classic reads options behind it"),
            Refused(pattern=r"^\s|\s$", because="begins or ends with a blank, which ActiveMQ Classic takes off"),
            Refused(
                pattern="[\U00010000-\U0010ffff\0]",
                because="has a character outside the Basic Multilingual Plane, or U+0000, which its store spoils",
            ),
            Refused(pattern=r"[*>]", because="is a wildcard, which only a reader may use", when_reading=False),
        ),
        closed_to_rows=(
            Refused(
                # Its plugins compare without case. ActiveMQ.DLQ, the dead-letter queue, is one like others.
                pattern=r"(?i)(^|/)ActiveMQ\.(Advisory|Agent|Scheduler|Statistics)(\.|$)",
                because="is reserved for requests to ActiveMQ Classic and for its advisories, so rows must not name it",
            ),
        ),
    ),
    subscribe_headers={kind: {} for kind in DestinationKind},
    durable=DurableWords(name_header="activemq.subscriptionName", shared=False),
    selector_dialect="classic",
    window_header="activemq.prefetchSize",
    window_unit=WindowUnit.MESSAGES,
    # A queue pages in 200 messages at a time, and looks for more when something is acknowledged.
    unacknowledged=200,
    browse_headers={"browser": "true"},
    browse_end=b",0",  # it is the only MESSAGE without an ack
    # The one of its transformations that keeps a map's values as they were (jms-json spoils -0.0 and "true").
    transform_headers={"transformation": "jms-xml"},
    unsubscribe_is_free=False,
    attempts_limited=False,
    ack_header="ack",
    # It reads no ACK while it writes a MESSAGE. Many ACKs at once fill its socket, and on Linux 6.18 neither side
    # came out of that again.
    ack_burst=500,
    message_headers={
        "message-id": "@message-id",
        "destination": "@destination",
        "subscription": "@subscription",
        "ack": "@ack",
        "content-length": "@content-length",
        "amq-msg-type": "@message-type",
        "transformation": "@transformation",
        "correlation-id": "JMSCorrelationID",
        "expires": "JMSExpiration",
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
    jms_message_id=True,
    unstable_characters=True,
    property_names={},
    noise=frozenset({"content-length", "amq-msg-type", "transformation", BODY_MARKER, TYPES_MARKER}),
    body_rule=BodyRule.CONTENT_LENGTH,
    reply_to_prefixes={
        "/queue/": "queue://",
        "/topic/": "topic://",
        "/temp-queue/": "queue://",
        "/temp-topic/": "topic://",
        "/remote-temp-queue/": "queue://",
        "/remote-temp-topic/": "topic://",
    },
    stable_id_separator="",
    send_types={kind: {} for kind in DestinationKind},
    send_headers=SendHeaders(delivery_delay="AMQ_SCHEDULED_DELAY"),
    send_property_names={},
    send_receipts=True,
    reserved_properties=RESERVED_EVERYWHERE
    | {
        "expires",
        "timestamp",
        "amq-msg-type",
        "transformation",
        "message-id",
        "subscription",
        "ack",
        "redelivered",
        "AMQ_SCHEDULED_DELAY",
        "AMQ_SCHEDULED_REPEAT",
        "AMQ_SCHEDULED_PERIOD",
        "AMQ_SCHEDULED_CRON",
    },
    set_by_broker=frozenset({"original-destination"}),  # of what it moved to a dead-letter queue
    envelopes=True,
    security_errors=("password is invalid", "is not authorized to"),
    in_use_errors=("already connected from", "Durable consumer is in use"),
    selector_errors=("InvalidSelectorException",),
    destination_errors=("DestinationDoesNotExistException", "Destination header", "No durable subscription exists"),
    silent_end="ActiveMQ Classic ends a connection without a word when it cannot transform an ObjectMessage that is"
    " next in the queue: take it off with a JMS client, or read with bodyType=text, where maps, streams and objects"
    " arrive without their content.",
)
