"""Names and addresses of RabbitMQ 4."""

import pytest

from pyspark_jms.amqp.dialects import RABBITMQ
from pyspark_jms.errors import InvalidDestinationError


@pytest.mark.parametrize(
    ("kind", "name", "address"),
    [
        ("queue", "orders", "/queues/orders"),
        ("queue", "a b/c+\u00e4%", "/queues/a%20b%2Fc%2B%C3%A4%25"),
        ("queue", "A-z.0_9~", "/queues/A-z.0_9~"),
        ("queue", "/queues/a%20b", "/queues/a%20b"),
        ("queue", "/queue/orders", "/queues/%2Fqueue%2Forders"),
        ("temp-queue", "amq.gen-1", "/queues/amq.gen-1"),
        ("topic", "orders.de", "/exchanges/amq.topic/orders.de"),
        ("topic", "/exchanges/prices/eur", "/exchanges/prices/eur"),
        ("queue", "/exchanges/prices/eur", "/exchanges/prices/eur"),
    ],
)
def test_a_name_becomes_an_address_and_an_address_stays_one(kind, name, address):
    assert RABBITMQ.send.target_address(kind, name) == address
    RABBITMQ.send.check_name(name, by_row=True)


def test_an_exchange_is_not_read():
    assert RABBITMQ.send.source_address("queue", "/queues/q") == "/queues/q"
    with pytest.raises(InvalidDestinationError, match=r"is an exchange.*Bind a queue"):
        RABBITMQ.send.source_address("queue", "/exchanges/prices/eur")
