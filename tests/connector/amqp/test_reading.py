import amqp_sending
import pytest
from waiting import wait_until

from pyspark_jms.amqp.reading import AmqpProbe
from pyspark_jms.jms.model import Destination


@pytest.fixture
def probe(broker, queue, settings_for, opened):
    def probe(selector=None):
        destination = Destination.parse(f"queue://{queue}")
        return opened(AmqpProbe(settings_for(broker), [destination], lambda _: selector))

    return probe


def test_a_probe_sees_whether_there_is_a_message_and_takes_none(broker, queue, probe):
    looking = probe()
    assert not looking.has_messages()
    amqp_sending.put(broker, queue, "one")
    for _ in range(3):
        wait_until(looking.has_messages)
    amqp_sending.put(broker, queue, "two")
    wait_until(lambda: broker.message_count(queue) == 2)


def test_a_probe_has_the_selector_of_the_query(broker, queue, probe):
    amqp_sending.put(broker, queue, "one")
    wait_until(probe().has_messages)
    assert not probe("kind = 'none'").has_messages()
