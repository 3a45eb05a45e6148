"""How each broker's AMQP differs from the others', as data. Does not know sockets, Arrow and Spark."""

from dataclasses import replace
from types import MappingProxyType

from pyspark_jms.amqp.dialects.base import IGNORED_PROPERTIES, Dialect
from pyspark_jms.amqp.dialects.cannot import (
    NO_TRANSACTIONS,
    ONE_ENTITY,
    OTHER_BROKER,
    OVER_AMQP,
    no_exactly_once_writes,
    no_topics,
)
from pyspark_jms.amqp.dialects.send_rules import ARTEMIS_RULES, CLASSIC_RULES, SendRules
from pyspark_jms.jms import added_names
from pyspark_jms.jms.added_names import ANY_BROKER
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import DESTINATION_WORDS
from pyspark_jms.jms.names import JOINING_DOT, RefusedName, RefusedSubscriptions
from pyspark_jms.management.attributes import ARTEMIS_MANAGEMENT, BROKER_J_MANAGEMENT

__all__ = [
    "AMQP",
    "ARTEMIS",
    "AZURE_SERVICE_BUS",
    "BROKER_J",
    "CLASSIC",
    "DIALECTS",
    "IBM_MQ",
    "RABBITMQ",
    "SOLACE",
    "Dialect",
    "dialect_named",
    "dialect_of_host",
    "dialect_of_product",
]

# --- RabbitMQ 4, which speaks AMQP 1.0 without a plugin, as measured on 4.0.5 and 4.3.6 (docs/brokers.md) ---
# It has neither transactions nor durable subscriptions, and its answer to an attach is no proof: 4.0 repeats a selector
# and the distribution mode ``copy``, and delivers every message as to an ordinary consumer.

_QUEUES, _EXCHANGES, _TOPICS = "/queues/", "/exchanges/", "/exchanges/amq.topic/"
_COUNTS = ("x-acquired-count", "x-delivery-count", "x-first-death-", "x-last-death-")
_BIND_A_QUEUE = "Bind a queue to the exchange (rabbitmqadmin declare binding), and read that queue: option queue."

RABBITMQ = Dialect(
    name="rabbitmq",
    products=("RabbitMQ",),
    tested_versions="4.0.5, 4.3.6",
    selector_dialect=None,
    ignored_stomp_headers=added_names.RABBITMQ.names - ANY_BROKER.names,
    destination_prefixes=MappingProxyType(
        {
            "/queues/%2Fqueue%2F": "queue",  # the broker takes what a STOMP client names for a queue of that name
            "/queues/%2Ftopic%2F": "topic",
            "/queues/%2Freply-queue%2F": "temp-queue",
            _QUEUES: "queue",
            _TOPICS: "topic",
        }
    ),
    native_kinds=MappingProxyType({_EXCHANGES: "topic"}),
    virtual_host_prefix="vhost:",
    browses=False,
    cannot={Feature.JOURNAL: OVER_AMQP[Feature.JOURNAL]}
    | NO_TRANSACTIONS
    | {
        Feature.TOPICS: no_topics(
            "Over AMQP, RabbitMQ delivers from queues only, and not from an exchange.",
            "Bind a queue to the exchange amq.topic with the topic as binding key, and read that queue: option queue in"
            " place of topic and subscriptionName.",
        )
    },
    sql_filters_since=(4, 2),
    default_redeliveries=20,
    changes_annotations=True,  # a quorum queue counts in x-acquired-count
    checks_user_id=True,
    # x-cc of a producer names further queues, which would get the dead letter too.
    added_annotations=("x-exchange", "x-routing-key", "x-cc", "x-opt-deaths", *_COUNTS),
    send=SendRules(
        broker="rabbitmq",
        address_prefixes=MappingProxyType(
            {"queue": _QUEUES, "temp-queue": _QUEUES, "topic": _TOPICS, "temp-topic": _TOPICS}
        ),
        percent_encoded=True,
        native_prefixes=(_QUEUES, _EXCHANGES),
        delays_delivery=False,
        needs_body_section=True,  # missing_amqp_message_body, and the session ends
        refused_names=(
            RefusedName(
                pattern=f"^{_EXCHANGES}",
                reason="is an exchange, and over AMQP RabbitMQ delivers from queues only",
                when_sending=False,
                remedy=_BIND_A_QUEUE,
            ),
        ),
    ),
)

# --- brokers that no test of this project has run ------------------------------------------------------
# From their documentation, each fact with its source. ``pyspark-jms check --conformance`` compares them with a broker.
# What their documentation does not state is as for an unknown broker: no selectors, and a batch read receives messages
# and gives them back.

AZURE_SERVICE_BUS = Dialect(
    name="azure-service-bus",
    hosts=(".servicebus.windows.net",),
    tested_versions="none",
    selector_dialect=None,
    browses=False,
    cannot=OTHER_BROKER
    | {
        # A subscription is an entity with an address of its own:
        # https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response
        Feature.TOPICS: no_topics(
            "Azure Service Bus has no durable subscriptions of JMS over plain AMQP.",
            "Read the subscription as a queue: option queue=TOPIC/Subscriptions/NAME.",
        ),
        # "Local transactions cannot span multiple top-level entities":
        # https://github.com/jmstoolbox/jmstoolbox/issues/137, https://github.com/Azure/azure-sdk-for-java/issues/39046
        Feature.RELAY: ONE_ENTITY,
    },
    # A message in delivery is locked for at most 5 minutes, by default for 1:
    # https://learn.microsoft.com/dotnet/api/azure.messaging.servicebus.administration.createqueueoptions.lockduration
    # Afterwards it has one attempt more and is delivered again:
    # https://learn.microsoft.com/dotnet/api/azure.messaging.servicebus.servicebusreceivedmessage.lockeduntil
    # So a large prefetch window loses locks: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-prefetch
    max_unacknowledged=200,
    send=SendRules(
        broker="Azure Service Bus",
        # It schedules by x-opt-scheduled-enqueue-time: https://github.com/Azure/azure-sdk-for-net/issues/42316
        delays_delivery=False,
    ),
)

SOLACE = Dialect(
    name="solace",
    tested_versions="none",
    selector_dialect=None,
    browses=False,
    # docs.solace.com, "AMQP Client Support": neither local nor XA transactions are supported.
    # https://docs.solace.com/API/AMQP/AMQP-Protocol-Conformance.htm, section 2.1.2: no state of a link outlives its
    # connection, and a durable subscription over AMQP is such a state.
    cannot=OVER_AMQP
    | NO_TRANSACTIONS
    | {
        Feature.TOPICS: no_topics(
            "Over AMQP, Solace keeps no state of a link after its connection, and so no durable subscription.",
            "Add the topic as a subscription of a queue at the broker, and read that queue: option queue.",
        )
    },
    send=SendRules(broker="Solace"),
)

IBM_MQ = Dialect(
    name="ibm-mq",
    tested_versions="none",
    selector_dialect=None,
    browses=False,
    # https://www.ibm.com/support/knowledgecenter/SSFKSJ_9.2.0/com.ibm.mq.dev.doc/amqp_support.html: an attach to a
    # coordinator and a declare are rejected; a container id has letters, digits and % / . _, at most 256 of them; the
    # name of a link is the topic that it subscribes to; queues need the capability queue, which this connector sends.
    cannot=OVER_AMQP
    | NO_TRANSACTIONS
    | {
        Feature.TOPICS: no_topics(
            "The AMQP channel of IBM MQ takes the name of a link for the topic of its subscription.",
            "Define an administrative subscription that puts the topic's messages on a queue, and read that queue:"
            " option queue.",
        )
    },
    refused_in_container_ids=r"[^A-Za-z0-9%/._]",
    send=SendRules(broker="IBM MQ"),
)

# --- Artemis, Classic, Broker-J, and any other broker ---------------------------------------------------

_STOMP_HEADERS = frozenset({"destination", "destination-type", "receipt", "transaction", "content-length"})

_PREFIXES = MappingProxyType({f"{word}://": word for word in DESTINATION_WORDS})

assert ARTEMIS_MANAGEMENT.inspection is not None
_ARTEMIS_MANAGEMENT = replace(ARTEMIS_MANAGEMENT, inspection=replace(ARTEMIS_MANAGEMENT.inspection, losses={}))
"""All body types arrive."""

_TWO_COLONS = RefusedName(
    pattern="::",
    reason="has two colons: Artemis takes what is before them for an address",
    remedy="Use another character.",
)

_VERTICAL_BAR = RefusedName(
    pattern=r"\|",
    reason="has a vertical bar: Artemis leaves out what follows it when it looks for the subscription",
    remedy="Use another character.",
)

_REFUSED_BY_ARTEMIS = RefusedSubscriptions(
    topics=(_TWO_COLONS,),
    names=(
        _TWO_COLONS,
        _VERTICAL_BAR,
        RefusedName(
            pattern=":(global|shared-volatile)$",
            reason="ends as Artemis ends the names of shared subscriptions that have no client id or are not durable",
        ),
    ),
    names_after_client_id=(JOINING_DOT,),  # without a client id, the queue is NAME:global
    client_ids=(_TWO_COLONS, _VERTICAL_BAR),
)

ARTEMIS = Dialect(
    name="artemis",
    products=("apache-activemq-artemis",),
    tested_versions="2.55.0, 2.44.0",
    selector_dialect="artemis-amqp",
    ignored_stomp_headers=_STOMP_HEADERS,
    browse_shows_expired=True,
    added_annotations=("x-opt-ORIG-", "x-opt-ACTUAL-EXPIRY"),
    origin_names=("x-opt-ORIG-QUEUE", "x-opt-ORIG-ADDRESS", "_AMQ_ORIG_QUEUE", "_AMQ_ORIG_ADDRESS"),
    management=_ARTEMIS_MANAGEMENT,
    send=ARTEMIS_RULES,
    refuses_at_discharge=True,
    refused_subscriptions=_REFUSED_BY_ARTEMIS,
    cannot=OVER_AMQP,
)

CLASSIC = Dialect(
    name="classic",
    products=("ActiveMQ",),
    browse_is_limited=True,  # by maxBrowsePageSize, as soon as a policy entry matches the queue
    tested_versions="6.3.1",
    selector_dialect="classic-amqp",
    ignored_properties=IGNORED_PROPERTIES | {"content-type", "transformation"},
    ignored_stomp_headers=_STOMP_HEADERS,
    destination_prefixes=_PREFIXES,
    added_properties=("dlqDeliveryFailureCause", "originalExpiration"),
    cannot=OTHER_BROKER
    | {
        Feature.EXACTLY_ONCE_WRITE: no_exactly_once_writes(
            "admits one connection with a container id, so that only one task of a query could write at a time"
        )
    },
    send=CLASSIC_RULES,
)

BROKER_J = Dialect(
    name="broker-j",
    products=("Apache Qpid Broker-J",),
    tested_versions="10.1.0, 9.2.1",
    selector_dialect="amqp",
    management=BROKER_J_MANAGEMENT,
    cannot=OTHER_BROKER
    | {
        Feature.EXACTLY_ONCE_WRITE: no_exactly_once_writes(
            "lets a second connection take a durable subscription over from the one that reads it, so that the"
            " subscription is no lock"
        )
    },
)

AMQP = Dialect(
    name="amqp",
    tested_versions="none",
    selector_dialect="amqp",
    browses=False,
)
"""Any other AMQP 1.0 broker. Its capabilities are used. What only a repeated request would show is not, because a
broker may repeat what it does not do: it gets no selectors, and a batch read receives and gives back."""

_DOCUMENTED = (AZURE_SERVICE_BUS, SOLACE, IBM_MQ)
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (ARTEMIS, CLASSIC, RABBITMQ, BROKER_J, *_DOCUMENTED, AMQP)
}
"""Every dialect by its name, which is a value of option ``broker``."""


def dialect_named(name: str) -> Dialect:
    return DIALECTS[name]


def dialect_of_product(product: str | None) -> Dialect:
    """The dialect for ``product`` of the broker's ``open`` (AMQP 1.0 §2.7.1)."""
    for dialect in DIALECTS.values():
        if product and product.startswith(dialect.products or ("\0",)):
            return dialect
    return AMQP


def dialect_of_host(host: str) -> Dialect:
    """The dialect of a hosted broker, for a product that is not known."""
    for dialect in DIALECTS.values():
        if host.lower().endswith(dialect.hosts or ("\0",)):
            return dialect
    return AMQP
