"""Apache ActiveMQ Artemis, as measured on 2.44.0 and 2.55.0 (docs/brokers/artemis.md)."""

from pyspark_jms.jms import added_names
from pyspark_jms.jms.added_names import NATIVE_ID
from pyspark_jms.jms.features import Feature, Refusal
from pyspark_jms.jms.model import BODY_MARKER, DESTINATION_WORDS, TYPES_MARKER, DestinationKind
from pyspark_jms.jms.names import (
    ARTEMIS_PROPERTIES,
    ARTEMIS_QUEUES,
    JOINING_DOT,
    TWO_COLONS,
    RefusedName,
    RefusedSubscriptions,
)
from pyspark_jms.management.attributes import ARTEMIS_MANAGEMENT
from pyspark_jms.stomp.dialects.addresses import Addresses
from pyspark_jms.stomp.dialects.base import (
    CHANGED_BY_DELIVERY,
    MESSAGE_HEADERS,
    RESERVED_EVERYWHERE,
    SEND_HEADERS,
    BodyRule,
    Dialect,
)
from pyspark_jms.stomp.dialects.cannot import OVER_STOMP
from pyspark_jms.stomp.dialects.subscription_headers import DurableSubscriptionHeaders

__all__ = ["ARTEMIS"]

_PARSED = (
    TWO_COLONS,
    RefusedName(
        pattern=r"^\s|\s$",
        reason="begins or ends with a blank, which Artemis removes",
        remedy="Remove the blank.",
    ),
)

ARTEMIS = Dialect(
    name="artemis",
    server_prefix="ActiveMQ-Artemis/",
    tested_versions="2.44.0, 2.55.0",
    addresses=Addresses(
        queue_separator="::",
        refused_in_rows=(ARTEMIS_QUEUES,),
    ),
    # Without the type a new address becomes MULTICAST, and the broker confirms and drops messages sent to it.
    subscribe_headers={
        DestinationKind.QUEUE: {"subscription-type": "ANYCAST"},
        DestinationKind.TOPIC: {"subscription-type": "MULTICAST"},
    },
    # A subscription with a client id has the queue CLIENTID.NAME. Without one, a fully qualified queue name reads it:
    # as MULTICAST such a name takes no selector.
    durable_subscriptions=DurableSubscriptionHeaders(
        name_header="durable-subscription-name",
        destination_without_client_id="{}::{}",
        ignores_changed_selector=True,
    ),
    widens_again=True,
    refused_subscriptions=RefusedSubscriptions(topics=_PARSED, names=(*_PARSED, JOINING_DOT), client_ids=_PARSED),
    cannot=OVER_STOMP
    | {
        Feature.SELECTOR_WITHOUT_CLIENT_ID: Refusal(
            "{broker} ignores the selector of a shared subscription that has no client id.",
            "Set clientId, the same in every query that shares the subscription, or filter the DataFrame.",
        )
    },
    selector_dialect="artemis",
    window_header="consumer-window-size",
    message_headers=MESSAGE_HEADERS
    | {"expires": "JMSExpiration", "_AMQ_SCHED_DELIVERY": "JMSDeliveryTime", "_AMQ_LARGE_SIZE": "@stored-size"},
    # The scheduled time is not stored: a restart of the broker removes it, and a redelivery-delay sets a new one.
    volatile_headers=CHANGED_BY_DELIVERY | {"_AMQ_SCHED_DELIVERY"},
    last_occurrence_counts=frozenset({"ack"}),  # after a property ``ack`` of the producer
    property_names={"_AMQ_GROUP_ID": "JMSXGroupID", "_AMQ_GROUP_SEQUENCE": "JMSXGroupSeq"},
    ignored_headers=added_names.ARTEMIS.names | {BODY_MARKER, TYPES_MARKER},
    ignored_header_prefixes=added_names.ARTEMIS.prefixes,
    # content-length is the second header of a BytesMessage, stands among the properties if it was sent over STOMP with
    # content-length:0, is the last header of a TextMessage, and is absent if the text is empty. Nothing else in the
    # frame depends on the type.
    body_rule=BodyRule.CONTENT_LENGTH_NOT_LAST,
    stored_text_overhead=5,
    reply_to_prefixes={f"{word}://": f"{word}://" for word in DESTINATION_WORDS},
    stable_id_separator=",",
    send_destination_headers={
        DestinationKind.QUEUE: {"destination-type": "ANYCAST"},
        DestinationKind.TOPIC: {"destination-type": "MULTICAST"},
    },
    send_headers=SEND_HEADERS
    | {
        "JMSExpiration": "expires",
        "delivery_delay": "AMQ_SCHEDULED_DELAY",
        "JMSDeliveryTime": "AMQ_SCHEDULED_TIME",
    },
    send_property_names={"JMSXGroupSeq": "_AMQ_GROUP_SEQUENCE"},
    reserved_properties=RESERVED_EVERYWHERE
    | {"destination-type", "expires", "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME", "_AMQ_GROUP_SEQUENCE"},
    # The broker executes such properties as management requests, or routes messages by them.
    reserved_prefixes=("_AMQ_", "__AMQ_"),
    set_by_broker=ARTEMIS_PROPERTIES,
    set_by_client=frozenset({"_AMQ_LVQ_NAME"}),  # the key of a last-value queue
    # A COMMIT that is on its way while a SEND is refused, because its address may not be created, commits the other
    # rows (447 of 1,500).
    commit_checks_sends=False,
    envelopes=True,
    origin_headers=("_AMQ_ORIG_QUEUE", "_AMQ_ORIG_ADDRESS"),
    management=ARTEMIS_MANAGEMENT,
    security_errors=(
        "Security Error occurred",
        "AMQ229032",  # user does not have permission
        "AMQ229031",  # unable to validate user
        "AMQ229213",  # may not create what is not there
    ),
    subscribe_errors=("AMQ339016",),
    lost_errors=(
        "AMQ229014",  # nothing came within the connection TTL
        "AMQ229005",  # closed by its address, and a slow consumer that is killed
        "AMQ229107",  # closed by the address that it consumes
        "AMQ229108",  # closed by its user
        "AMQ229120",  # closed by its id
        "AMQ229078",  # closed by its metadata
        "terminated by session expiry plugin",
        # An operator closed the consumer or its session, or deleted the queue. At a message that cannot be converted,
        # the broker has closed the consumer first: closed=true.
        "closed=false] disconnected by server",
    ),  # a broker that stops sends no ERROR (2.55)
    send_errors=("AMQ339011",),
    # The second: an UNSUBSCRIBE crossed the first.
    conversion_errors=("disconnected by server", "no subscription exists for id: "),
    crossed_errors=("AMQ339018", "AMQ339025"),  # no such subscription; it has no such message any more
    selector_identifiers={"timestamp": "AMQTimestamp", NATIVE_ID: "AMQUserID"},
    in_use_errors=("AMQ339017",),  # error unsubscribing: the frame gives no reason, and no other reason was observed
    selector_errors=("Invalid selector", "Selector cannot be empty"),
    destination_errors=("AMQ339001",),
    # The refused message, properties included; a consumer's queue and selector.
    message_in_error=r"\s*\b(?:Core|Large|Server)\w*Message(?:Impl)?\[.*|ServerConsumerImpl \[.*(?=closed=)",
)
