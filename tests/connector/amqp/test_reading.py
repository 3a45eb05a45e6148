import amqp_sending
import pytest
from waiting import wait_until

from pyspark_jms.amqp.link.pull import AT_ONCE
from pyspark_jms.amqp.reading import Probe
from pyspark_jms.amqp.wire.types import MAX_FRAME_BYTES
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DurableSubscription


@pytest.fixture
def probe(broker, queue, settings_for, opened):
    def probe(selector=None):
        destination = Destination.parse(f"queue://{queue}")
        return opened(Probe(settings_for(broker), [destination], lambda _: selector, base=f"{queue}.base"))

    return probe


def test_a_probe_sees_whether_there_is_a_message_and_takes_none(broker, queue, probe):
    looking = probe()
    assert not looking.has_messages()
    amqp_sending.put(broker, queue, "one")
    for _ in range(3):
        wait_until(looking.has_messages)
    amqp_sending.put(broker, queue, "two")
    wait_until(lambda: broker.message_count(queue) == 2)


@pytest.mark.parametrize("megabytes", [3, pytest.param(100, marks=pytest.mark.deep)])
def test_a_probe_receives_one_frame_of_a_large_message(broker, queue, probe, megabytes):
    amqp_sending.put(broker, queue, "x" * (megabytes << 20))
    looking = probe()
    connection = looking.connection
    for _ in range(3):
        before = connection.received_bytes
        wait_until(looking.has_messages)
        assert connection.received_bytes - before < MAX_FRAME_BYTES + 1_000
    assert not connection.is_down, "the next question needs no new connection"
    assert broker.delivery_counts(queue) == [0]
    assert broker.delivering_count(queue) == 0


def test_many_queues_are_asked_together_and_one_frame_comes(broker, queue, settings_for, opened):
    names = [f"{queue}.{number}" for number in range(AT_ONCE + 5)]
    sources = [Destination.parse(f"queue://{name}") for name in names]
    looking = opened(Probe(settings_for(broker), sources, lambda _: None, base=f"{queue}.base"))
    assert not looking.has_messages()
    for number in (2, 50, 99, AT_ONCE + 1):
        amqp_sending.put(broker, names[number], "x" * (1 << 20))
    before = looking.connection.received_bytes
    wait_until(looking.has_messages)
    assert looking.connection.received_bytes - before < MAX_FRAME_BYTES + 600 * AT_ONCE
    for number in (2, 50, 99):
        assert broker.purge(names[number])
    wait_until(lambda: looking.has_messages() and looking._last.address == names[AT_ONCE + 1])
    before = looking.connection.received_bytes
    assert looking.has_messages()
    assert looking.connection.received_bytes - before < MAX_FRAME_BYTES + 1_000, "it is asked before the others"
    assert broker.purge(names[AT_ONCE + 1])
    wait_until(lambda: not looking.has_messages())
    assert not looking.connection.is_down


def test_a_probe_has_the_selector_of_the_query(broker, queue, probe):
    amqp_sending.put(broker, queue, "one")
    wait_until(probe().has_messages)
    assert not probe("kind = 'none'").has_messages()


def test_a_probe_does_not_take_a_subscription_from_its_topic(broker, queue, settings_for, opened):
    """It is the first that attaches, and an attach to another topic deletes what waits."""
    durable = DurableSubscription(queue.replace(".", "-"), "me")

    def probe(topic):
        destination = Destination.parse(f"topic://{topic}")
        return opened(Probe(settings_for(broker), [destination], lambda _: None, durable, base=f"{queue}.base"))

    probe(queue)
    amqp_sending.put(broker, queue, "one", kind="topic")
    with pytest.raises(InvalidDestinationError, match=f"belongs to topic {queue}"):
        probe(f"{queue}.other")
    wait_until(probe(queue).has_messages)
