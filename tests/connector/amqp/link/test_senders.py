import pytest

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.senders import Senders, await_credit


@pytest.fixture
def connection(broker, settings_for, opened):
    return opened(connect(settings_for(broker)))


def test_an_address_has_one_link_until_the_link_ends(queue, connection):
    senders = Senders(connection)
    first = senders.attached(queue, "queue")
    assert senders.attached(queue, "queue") is first
    assert senders.attached(f"{queue}.2", "queue") is not first
    with connection.core():
        first.detach()
    connection.await_(lambda: not first.is_attached, "its detach")
    second = senders.attached(queue, "queue")
    assert second is not first
    await_credit(connection, second, "messages")
    assert second.name.startswith("sending-")
    assert second.sendable
