import pytest

from pyspark_jms.errors import UnknownBrokerError
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, DIALECTS, RABBITMQ, dialect_of_server


def test_every_dialect_is_known_by_its_name():
    assert all(name == dialect.name for name, dialect in DIALECTS.items())


@pytest.mark.parametrize(
    "server", ["ActiveMQ-Artemis/2.44.0 ActiveMQ Artemis Messaging Engine", "ActiveMQ-Artemis/3.0"]
)
def test_artemis_is_known_by_its_server_header(server):
    assert dialect_of_server(server) is ARTEMIS


@pytest.mark.parametrize("server", ["ActiveMQ/6.3.1", "ActiveMQ/5.17.2"])
def test_classic_is_known_by_its_server_header(server):
    assert dialect_of_server(server) is CLASSIC


@pytest.mark.parametrize("server", ["RabbitMQ/3.10.8", "RabbitMQ/4.0.0"])
def test_rabbitmq_is_known_by_its_server_header(server):
    assert dialect_of_server(server) is RABBITMQ


@pytest.mark.parametrize("server", ["HornetQ/2.4", "ActiveMQ 6", "", None])
def test_another_broker_is_an_error_with_a_way_out(server):
    with pytest.raises(UnknownBrokerError, match=r"JMS_UNKNOWN_BROKER.*artemis, classic, rabbitmq.*option broker"):
        dialect_of_server(server)
