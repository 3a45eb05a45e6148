"""Apache Qpid Broker-J, as measured on 9.2.1 and 10.1.0 (docs/brokers/others.md)."""

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.dialects.cannot import OTHER_BROKER, no_exactly_once_writes
from pyspark_jms.jms.features import Feature
from pyspark_jms.management.attributes import BROKER_J_MANAGEMENT

__all__ = ["BROKER_J"]

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
