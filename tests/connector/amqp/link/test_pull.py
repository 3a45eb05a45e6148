import pytest
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.pull import Pull, browse, drain, look
from pyspark_jms.amqp.link.subscriptions import OUTCOMES
from pyspark_jms.amqp.wire.sections import delivery_count
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.errors import JMSSecurityError, ReceiptTimeoutError


@pytest.fixture
def connection(broker, settings_for, opened):
    return opened(connect(settings_for(broker)))


def source(name):
    return Source(address=name, outcomes=OUTCOMES, capabilities=("queue",))


def test_a_browse_shows_each_message_once_and_leaves_all(broker, queue, put, connection):
    put(broker, queue, *map(str, range(3_000)))
    for _ in range(2):
        seen = list(browse(connection, queue))
        assert len(seen) == 3_000
        assert [delivery_count(message) for message in seen] == [0] * 3_000
    await_count(broker, queue, 3_000)
    assert broker.consumer_count(queue) == 0


def test_a_browse_of_an_empty_queue_ends(queue, connection):
    assert list(browse(connection, queue)) == []


def test_everything_is_all_that_is_there(broker, queue, put, connection):
    put(broker, queue, *map(str, range(2_500)))
    pull = Pull(connection, source(queue))
    assert len(pull.everything()) == 2_500
    assert len(pull.everything()) == 0
    pull.detach()
    wait_until(lambda: broker.message_count(queue) == 2_500)
    await_value(lambda: max(broker.delivery_counts(queue)), 0)


def test_available_is_what_is_there_now(broker, queue, put, connection):
    pull = Pull(connection, source(queue))
    assert len(pull.available()) == 0
    put(broker, queue, *map(str, range(500)))
    assert len(pull.available()) == 500


def test_a_request_that_is_under_way_is_not_repeated_at_once(queue, connection):
    """Its answer would prove nothing then."""
    pull = Pull(connection, source(queue))
    with connection.core():
        pull.receiver.drain(5)
    drain(connection, pull.receiver, 5)
    assert pull.receiver.proven_empty >= 1


def test_exactly_takes_no_more(broker, queue, put, connection):
    put(broker, queue, "a", "b", "c")
    pull = Pull(connection, source(queue))
    first = pull.exactly(2, 10)
    assert len(first) == 2
    assert len(pull.exactly(2, 0.3)) == 1  # the time is over
    put(broker, queue, "d")
    assert len(pull.receiver.transfers) == 0  # no credit is left over
    pull.release([each for each in first.ids if each])
    assert len(pull.everything()) == 3


def test_a_message_above_the_limit_of_the_query_is_received(broker, queue, put, settings_for, opened):
    put(broker, queue, "x" * 200_000)
    connection = opened(connect(settings_for(broker, maxMessageBytes="1000")))
    [message] = browse(connection, queue)
    assert len(message) > 200_000


def test_a_drain_of_a_lost_link_ends(broker, queue, connection):
    pull = Pull(connection, source(queue))
    connection.drop()
    with pytest.raises((JMSSecurityError, ReceiptTimeoutError, Exception), match="JMS_CONNECTION_LOST"):
        drain(connection, pull.receiver, 5)


def test_a_look_shows_the_first_messages_and_takes_none(broker, queue, put, connection):
    put(broker, queue, "a", "b", "c")
    shown = Source(address=queue, distribution_mode="copy", outcomes=OUTCOMES, capabilities=("queue",))
    for _ in range(3):
        assert len(look(connection, shown, 2)) == 2
        assert len(look(connection, shown, 9)) == 3
    assert len(Pull(connection, source(queue)).everything()) == 3
