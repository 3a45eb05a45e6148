import contextlib
import time

import pytest
from amqp_messages import block_of, map_, section, string, timestamp
from amqp_sending import put, settings_of
from pyspark.sql.streaming.datasource import ReadMaxBytes
from rawstomp import RawStomp
from streaming import access
from waiting import await_value, wait_until

from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.definitions import Target
from pyspark_jms.errors import SelectorChangedError, UnconvertibleMessageError, UnsupportedError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.offsets import selector_digest
from pyspark_jms.source.peek import peek
from pyspark_jms.source.subscriptions import Subscriptions
from pyspark_jms.spark.stream_reader import JmsStreamReader
from pyspark_jms.stomp.source import StompSource


@contextlib.contextmanager
def subscribed(broker, digest=None, **more):
    options = SourceOptions.parse(access(broker) | more)
    subscriptions = Subscriptions(options, StompSource(), time.sleep)
    try:
        subscriptions.open(digest, 0.0)
        yield subscriptions
    finally:
        subscriptions.close()


def test_a_lost_connection_is_replaced_and_the_others_stay(broker, queue):
    with subscribed(broker, queue=f'["{queue}.a", "{queue}.b"]') as subscriptions:
        first, second = subscriptions.links
        assert subscriptions.lost() == []
        second.drop()
        wait_until(lambda: subscriptions.lost() == [1])
        subscriptions.reconnect(1, subscriptions.end_of(1))
        assert subscriptions.links[0] is first
        assert subscriptions.links[1] is not second
        assert subscriptions.reconnects == 1
        with RawStomp(broker) as client:
            client.send(f"{queue}.b", [([], "x")])
        wait_until(lambda: subscriptions.links[1].waiting()[0] == 1)


def test_the_selector_is_split_for_the_broker_that_answers(broker, queue):
    with subscribed(broker, queue=queue, selector="JMSPriority > 4") as subscriptions:
        assert subscriptions.links[0].subscription.selector == "AMQPriority > 4"
        assert subscriptions.selector_digest is None, "a queue keeps no subscription"


def test_a_durable_subscription_keeps_its_selector(broker, queue):
    durable = {"topic": queue, "subscriptionName": "daily", "clientId": queue}
    red, blue = "color = 'red'", "color = 'blue'"
    with subscribed(broker, **durable, selector=red) as subscriptions:
        digest = subscriptions.selector_digest
        assert digest == selector_digest(subscriptions.links[0].subscription.selector)
    with subscribed(broker, digest, **durable, selector=red) as subscriptions:
        assert subscriptions.selector_digest == digest
    with pytest.raises(SelectorChangedError), subscribed(broker, digest, **durable, selector=blue):
        pass
    with pytest.raises(SelectorChangedError), subscribed(broker, None, **durable, selector=blue):
        pass  # a new checkpoint: the source queries Artemis


def test_what_a_broker_cannot_do_is_refused_before_it_is_asked(broker, queue):
    shared = {"topic": queue, "subscriptionName": "daily", "sharedSubscription": "true", "selector": "a = 1"}
    with pytest.raises(UnsupportedError, match="clientId"), subscribed(broker, **shared):
        pass


def put_unconvertible(broker, queue):
    """A message with a property of type timestamp, which no converter of Artemis knows."""
    properties = section(0x74, map_([(string("t"), timestamp(1_700_000_000_000))]))
    with Producer(settings_of(broker)) as producer:
        producer.open(Target(address=queue, capabilities=("queue",)))
        producer.send(block_of([properties + section(0x77, string("only over AMQP"))]))
        producer.commit()


def test_with_a_window_of_one_message_those_before_it_are_read_and_lose_no_attempt(broker, queue):
    """A message that cannot be sent takes no credit, so the broker has the next one in delivery too."""
    put(broker, queue, *map(str, range(4)))
    put_unconvertible(broker, queue)
    put(broker, queue, "next", "later")
    options, rows = SourceOptions.parse(access(broker) | {"queue": queue, "windowBytes": "1"}), []
    for start in (1, 2, 3):
        with pytest.raises(UnconvertibleMessageError, match="windowBytes=1"):
            read_until_error(options, rows)
        wait_until(lambda: broker.consumer_count(queue) == 0)
        await_value(lambda: broker.delivery_counts(queue), [start, start, 0])
    assert rows[:4] == ["0", "1", "2", "3"]
    assert set(rows[4:]) <= {"next"}
    broker.purge(queue)


def read_until_error(options, rows):
    reader, end = JmsStreamReader(options), {"seq": 0}
    try:
        while True:
            start, end = end, reader.latestOffset(end, ReadMaxBytes(1))
            for part in reader.partitions(start, end) if end != start else ():
                rows += [text for batch in reader.read(part) for text in batch.column("text").to_pylist()]
    finally:
        reader.stop()


@pytest.mark.parametrize("count", [6, 400])
def test_a_message_that_cannot_be_sent_over_stomp_has_a_code_and_one_start_costs_one_attempt(broker, queue, count):
    put(broker, queue, *(f"{number} {'x' * 500}" for number in range(count)))
    put_unconvertible(broker, queue)
    put(broker, queue, "later")
    options = SourceOptions.parse(access(broker) | {"queue": queue})
    with pytest.raises(UnconvertibleMessageError, match=r"\[JMS_UNCONVERTIBLE_MESSAGE\].*over AMQP"):
        read_until_error(options, [])
    wait_until(lambda: broker.consumer_count(queue) == 0)
    await_value(lambda: max(broker.delivery_counts(queue)), 1)
    with pytest.raises(UnconvertibleMessageError):
        list(peek(options, StompSource()))
    broker.purge(queue)
