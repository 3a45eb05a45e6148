import pytest
from waiting import await_value, wait_until

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.lane import Lane
from pyspark_jms.errors import MessageTooLargeError


@pytest.fixture
def lane_of(broker, settings_for, subscription_to, opened):
    def attach(name, **options):
        settings = settings_for(broker, **options)
        connection = opened(connect(settings))
        lane = Lane(connection, subscription_to(name, window_messages=10), settings)
        connection.on_received = lane.grant
        return lane

    return attach


def texts(blocks):
    return [block.message(index)[-1:].decode() for block in blocks for index in range(len(block))]


def test_nothing_comes_before_resume_or_after_pause(broker, queue, put, lane_of):
    lane = lane_of(queue)
    put(broker, queue, *"abc")
    lane.pause()
    assert lane.waiting() == (0, 0)
    lane.resume()
    wait_until(lambda: lane.waiting()[0] == 3)
    lane.pause()
    assert texts(lane.take()) == ["a", "b", "c"]
    put(broker, queue, "d")
    lane.pause()
    assert lane.waiting() == (0, 0)
    await_value(lambda: broker.delivering_count(queue), 3)


def test_released_messages_come_again_in_their_order_without_a_count(broker, queue, put, lane_of):
    put(broker, queue, *"abcdef")
    lane = lane_of(queue)
    for _ in range(3):
        lane.resume()
        wait_until(lambda: lane.waiting()[0] == 6)
        lane.pause()
        blocks = lane.take()
        assert texts(blocks) == list("abcdef")
        lane.release([each for block in blocks for each in block.ids if each])
    lane.detach()
    await_value(lambda: broker.delivery_counts(queue), [0] * 6)


def test_the_window_counts_what_is_neither_accepted_nor_released(broker, queue, put, lane_of):
    put(broker, queue, *map(str, range(25)))
    lane = lane_of(queue)
    lane.resume()
    wait_until(lambda: lane.waiting()[0] == 10)
    lane.pause()
    assert lane.waiting()[0] == 10
    taken = [each for block in lane.take() for each in block.ids if each]
    lane.release(taken[5:])
    lane.resume()
    wait_until(lambda: lane.waiting()[0] == 5)
    lane.pause()
    assert lane.waiting()[0] == 5


def test_an_empty_source_is_proven(broker, queue, put, lane_of):
    lane = lane_of(queue)
    lane.resume()
    lane.pause()
    assert lane.was_empty
    lane.resume()
    assert not lane.was_empty


def test_a_message_that_is_too_large_stops(broker, queue, put, lane_of):
    put(broker, queue, "x" * 5_000)
    lane = lane_of(queue, maxMessageBytes="1000")
    lane.resume()
    wait_until(lambda: lane.receiver.received == 1)
    with pytest.raises(MessageTooLargeError):
        lane.check()
