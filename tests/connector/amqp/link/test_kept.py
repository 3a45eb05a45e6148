import pytest
from waiting import wait_until

from pyspark_jms.amqp.link.kept import connected, keep


@pytest.fixture
def settings(broker, settings_for):
    return settings_for(broker)


def test_a_connection_that_was_kept_is_used_by_one_at_a_time(settings):
    connection, transacted = connected(settings)
    keep(settings, connection, transacted)
    first, _ = connected(settings)
    assert first is connection
    second, others = connected(settings)
    assert second is not connection
    keep(settings, first, transacted)
    keep(settings, second, others)  # one is enough
    wait_until(lambda: first.is_down)
    assert connected(settings)[0] is second
    second.close()


def test_a_connection_that_has_ended_is_not_used(settings):
    connection, transacted = connected(settings)
    keep(settings, connection, transacted)
    connection.drop()
    other, _ = connected(settings)
    assert other is not connection
    other.close()
