"""The AMQP dialects: found by the product that a broker names in ``open``, or by its host."""

import pytest

from pyspark_jms.amqp.dialects import (
    AMQP,
    ARTEMIS,
    AZURE_SERVICE_BUS,
    BROKER_J,
    CLASSIC,
    RABBITMQ,
    dialect_of,
)


@pytest.mark.parametrize(
    ("product", "dialect"),
    [
        ("apache-activemq-artemis", ARTEMIS),
        ("ActiveMQ", CLASSIC),
        ("RabbitMQ", RABBITMQ),
        ("Apache Qpid Broker-J", BROKER_J),
        ("qpid", AMQP),
        ("", AMQP),
        (None, AMQP),
    ],
)
def test_a_broker_is_detected_by_its_product(product, dialect):
    assert dialect_of(product, "localhost") is dialect


def test_a_hosted_broker_is_detected_by_its_host():
    assert dialect_of(None, "orders.ServiceBus.windows.net") is AZURE_SERVICE_BUS
    assert dialect_of("RabbitMQ", "orders.servicebus.windows.net") is RABBITMQ
    for host in ("localhost", "servicebus.windows.net", "x.servicebus.windows.net.example"):
        assert dialect_of("other", host) is AMQP
