"""The AMQP dialects: found by the product that a broker names in ``open``."""

import pytest

from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, CLASSIC, RABBITMQ, dialect_of_product


@pytest.mark.parametrize(
    ("product", "dialect"),
    [
        ("apache-activemq-artemis", ARTEMIS),
        ("ActiveMQ", CLASSIC),
        ("RabbitMQ", RABBITMQ),
        ("qpid", AMQP),
        ("", AMQP),
        (None, AMQP),
    ],
)
def test_a_broker_is_detected_by_its_product(product, dialect):
    assert dialect_of_product(product) is dialect
