"""How each broker's AMQP differs from the others', as data. Does not know sockets, Arrow and Spark."""

from dataclasses import replace

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.dialects.documented import AZURE_SERVICE_BUS, IBM_MQ, SOLACE
from pyspark_jms.amqp.dialects.rabbitmq import RABBITMQ
from pyspark_jms.amqp.dialects.send_rules import ARTEMIS_RULES, CLASSIC_RULES
from pyspark_jms.jms.model import DestinationKind
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

_STOMP_HEADERS = frozenset({"destination", "destination-type", "receipt", "transaction", "content-length"})

_PREFIXES = {
    "queue://": DestinationKind.QUEUE,
    "topic://": DestinationKind.TOPIC,
    "temp-queue://": DestinationKind.QUEUE,
    "temp-topic://": DestinationKind.TOPIC,
}

_ARTEMIS_MANAGEMENT = replace(ARTEMIS_MANAGEMENT, losses={})
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
    added_annotations=("x-opt-ORIG-", "x-opt-ACTUAL-EXPIRY"),
    origin_names=("x-opt-ORIG-QUEUE", "x-opt-ORIG-ADDRESS", "_AMQ_ORIG_QUEUE", "_AMQ_ORIG_ADDRESS"),
    management=_ARTEMIS_MANAGEMENT,
    send=ARTEMIS_RULES,
    refuses_at_discharge=True,
    refused_subscriptions=_REFUSED_BY_ARTEMIS,
    refuses_staging="",
    no_register="",
)

CLASSIC = Dialect(
    name="classic",
    products=("ActiveMQ",),
    tested_versions="6.3.1",
    selector_dialect="classic-amqp",
    ignored_stomp_headers=_STOMP_HEADERS,
    destination_prefixes=_PREFIXES,
    added_properties=("dlqDeliveryFailureCause", "originalExpiration"),
    no_register="admits one connection with a container id, so that only one task of a query could write at a time",
    send=CLASSIC_RULES,
)

BROKER_J = Dialect(
    name="broker-j",
    products=("Apache Qpid Broker-J",),
    tested_versions="10.1.0, 9.2.1",
    selector_dialect="amqp",
    management=BROKER_J_MANAGEMENT,
    no_register="lets a second connection take a durable subscription over from the one that reads it, so that the"
    " subscription is no lock",
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
