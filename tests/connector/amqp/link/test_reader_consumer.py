import pytest
from waiting import await_value, wait_until

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.reader_consumer import ReaderConsumer
from pyspark_jms.errors import MessageTooLargeError


@pytest.fixture
def consumer_of(broker, settings_for, subscription_to, opened):
    def attach(name, **options):
        settings = settings_for(broker, **options)
        connection = opened(connect(settings))
        consumer = ReaderConsumer(connection, subscription_to(name, window_messages=10), settings)
        connection.on_received = consumer.grant
        return consumer

    return attach


def texts(blocks):
    return [block.message(index)[-1:].decode() for block in blocks for index in range(len(block))]


def test_nothing_comes_before_resume_or_after_pause(broker, queue, put, consumer_of):
    consumer = consumer_of(queue)
    put(broker, queue, *"abc")
    consumer.pause()
    assert consumer.waiting() == (0, 0)
    consumer.resume()
    wait_until(lambda: consumer.waiting()[0] == 3)
    consumer.pause()
    assert texts(consumer.take()) == ["a", "b", "c"]
    put(broker, queue, "d")
    consumer.pause()
    assert consumer.waiting() == (0, 0)
    await_value(lambda: broker.delivering_count(queue), 3)


def test_released_messages_come_again_in_their_order_without_a_count(broker, queue, put, consumer_of):
    put(broker, queue, *"abcdef")
    consumer = consumer_of(queue)
    for _ in range(3):
        consumer.resume()
        wait_until(lambda: consumer.waiting()[0] == 6)
        consumer.pause()
        blocks = consumer.take()
        assert texts(blocks) == list("abcdef")
        consumer.release([each for block in blocks for each in block.ids if each])
    consumer.detach()
    await_value(lambda: broker.delivery_counts(queue), [0] * 6)


def test_the_window_counts_what_is_neither_accepted_nor_released(broker, queue, put, consumer_of):
    put(broker, queue, *map(str, range(25)))
    consumer = consumer_of(queue)
    consumer.resume()
    wait_until(lambda: consumer.waiting()[0] == 10)
    consumer.pause()
    assert consumer.waiting()[0] == 10
    taken = [each for block in consumer.take() for each in block.ids if each]
    consumer.release(taken[5:])
    consumer.resume()
    wait_until(lambda: consumer.waiting()[0] == 5)
    consumer.pause()
    assert consumer.waiting()[0] == 5


def test_an_empty_source_is_proven(broker, queue, put, consumer_of):
    consumer = consumer_of(queue)
    consumer.resume()
    consumer.pause()
    assert consumer.was_empty
    consumer.resume()
    assert not consumer.was_empty


def test_a_message_that_is_too_large_stops(broker, queue, put, consumer_of):
    put(broker, queue, "x" * 5_000)
    consumer = consumer_of(queue, maxMessageBytes="1000")
    consumer.resume()
    wait_until(lambda: consumer.receiver.received == 1)
    with pytest.raises(MessageTooLargeError):
        consumer.check()
