import pytest
from streaming import left

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.testing import User


def numbered(*numbers):
    return [f"text {number}" for number in range(*numbers)]


def test_no_batch_is_planned_below_a_minimum(broker, queue, put, query):
    running = query(minMessagesPerTrigger=3, maxTriggerDelay="10m")
    put(broker, queue, *numbered(2))
    for _ in range(2):
        assert not running.plan()
    assert broker.delivery_counts(queue) == [0, 0]
    put(broker, queue, *numbered(2, 4))
    assert running.texts(4) == numbered(4)
    assert len(running.log) == 1
    put(broker, queue, "later")
    assert not running.plan()


def test_a_batch_of_too_few_is_planned_after_the_delay(broker, queue, put, query):
    put(broker, queue, *numbered(2))
    running = query(minMessagesPerTrigger=3, maxTriggerDelay="700ms")
    assert running.texts(2) == numbered(2)


def test_available_now_does_not_wait_for_a_minimum(broker, queue, put, query):
    put(broker, queue, *numbered(2))
    running = query(minMessagesPerTrigger=3, maxTriggerDelay="10m")
    running.source.drain()
    assert running.texts(2) == numbered(2)
    assert not running.plan()


def test_a_subscription_is_counted_by_its_queue(broker, queue, put, query):
    named = {"queue": None, "topic": queue, "sharedSubscription": "true", "subscriptionName": queue.replace(".", "-")}
    running = query(**named, minMessagesPerTrigger=3, maxTriggerDelay="10m", selector="JMSMessageID <> 'ID:0'")
    running.begin()
    put(broker, queue, *numbered(3), kind="topic")
    assert not running.plan()
    put(broker, queue, *numbered(3), kind="topic")
    assert sorted(running.texts(4)) == sorted(2 * numbered(1, 3))


@pytest.mark.deep
def test_who_may_not_ask_the_broker_is_told(fresh_broker, put, query):
    permissions = {"send", "consume", "browse", "createAddress", "createDurableQueue"}
    broker = fresh_broker(users=[User("worker", "pw", permissions=permissions)])
    put(broker, "q", "one")
    worker = {"user": "worker", "password": "pw", "queue": "q", "brokerUrl": broker.amqp_url}
    running = query(**worker, minMessagesPerTrigger=2)
    with pytest.raises(UnsupportedError, match="minMessagesPerTrigger needs the number"):
        running.plan()
    assert left(broker, "q", 1) == 1
