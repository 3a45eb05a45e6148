"""The differences between the brokers' AMQP, as data. Does not know sockets, Arrow and Spark."""

from pyspark_jms.amqp.dialects.artemis import ARTEMIS
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.dialects.broker_j import BROKER_J
from pyspark_jms.amqp.dialects.classic import CLASSIC
from pyspark_jms.amqp.dialects.documented import AZURE_SERVICE_BUS, IBM_MQ, SOLACE
from pyspark_jms.amqp.dialects.rabbitmq import RABBITMQ

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
    "dialect_of",
]

AMQP = Dialect(
    name="amqp",
    tested_versions="none",
    selector_dialect="amqp",
    browses=False,
)
"""Any other AMQP 1.0 broker. Its capabilities are used. What only a repeated request would show is not, because a
broker may repeat what it does not do: it gets no selectors, and a batch read receives and gives back."""

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (ARTEMIS, CLASSIC, RABBITMQ, BROKER_J, AZURE_SERVICE_BUS, SOLACE, IBM_MQ, AMQP)
}
"""Every dialect by its name, which is a value of option ``broker``."""


def dialect_of(product: str | None, host: str) -> Dialect:
    """The dialect for ``product`` of the broker's ``open`` (AMQP 1.0 §2.7.1), or that of a hosted broker."""
    for dialect in DIALECTS.values():
        if product and product.startswith(dialect.products or ("\0",)):
            return dialect
    for dialect in DIALECTS.values():
        if host.lower().endswith(dialect.hosts or ("\0",)):
            return dialect
    return AMQP
