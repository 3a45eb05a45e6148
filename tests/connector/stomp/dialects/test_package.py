import pytest

from pyspark_jms.errors import UnknownBrokerError
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, DIALECTS, RABBITMQ, dialect_of_server


def test_every_dialect_is_known_by_its_name():
    assert all(name == dialect.name for name, dialect in DIALECTS.items())


@pytest.mark.parametrize(
    ("server", "dialect"),
    [
        ("ActiveMQ-Artemis/2.44.0 ActiveMQ Artemis Messaging Engine", ARTEMIS),
        ("ActiveMQ-Artemis/3.0", ARTEMIS),
        ("ActiveMQ/6.3.1", CLASSIC),
        ("ActiveMQ/5.17.2", CLASSIC),
        ("RabbitMQ/3.10.8", RABBITMQ),
        ("RabbitMQ/4.0.0", RABBITMQ),
    ],
)
def test_a_broker_is_known_by_its_server_header(server, dialect):
    assert dialect_of_server(server) is dialect


@pytest.mark.parametrize("server", ["HornetQ/2.4", "ActiveMQ 6", "", None])
def test_another_broker_is_an_error_with_a_way_out(server):
    with pytest.raises(UnknownBrokerError, match=r"JMS_UNKNOWN_BROKER.*artemis, classic, rabbitmq.*option broker"):
        dialect_of_server(server)
