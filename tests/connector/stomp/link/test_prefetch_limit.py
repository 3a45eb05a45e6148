import pytest

from pyspark_jms.errors import PrefetchExceededError
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.stomp.link.prefetch_limit import NOT_SUBSCRIBED, Unacknowledged, limit_of

MB = 1 << 20


@pytest.mark.parametrize(
    ("dialect", "told", "messages", "size", "exceeded"),
    [
        (ARTEMIS, 100 * MB, 1_000_000, 400 * MB, False),
        (ARTEMIS, 100 * MB, 1_000_000, 400 * MB + 1, True),
        # a small window: what every driver has room for is not compared
        (ARTEMIS, 1, 1_000_000, 64 * MB, False),
        (ARTEMIS, 1, 1_000_000, 64 * MB + 1, True),
        # the message that crosses the window may have any size
        (ARTEMIS, 1, 1, 1_000 * MB, False),
        (ARTEMIS, 1, 2, 1_000 * MB, True),
        # Classic and RabbitMQ count messages, of any size
        (CLASSIC, 1_000, 4_000, 4_000 * MB, False),
        (CLASSIC, 1_000, 4_001, 4_001 * MB, True),
        (CLASSIC, 1_000, 4_001, 64 * MB, False),
        (RABBITMQ, 1, 4, 400 * MB, False),
        (RABBITMQ, 1, 5, 500 * MB, True),
    ],
)
def test_a_multiple_of_the_window_in_the_unit_that_the_broker_counts(dialect, told, messages, size, exceeded):
    assert limit_of(dialect, told).is_exceeded(messages, size) is exceeded


def test_before_a_subscription_only_probes_and_replies_come():
    assert not NOT_SUBSCRIBED.is_exceeded(100, 1_000 * MB)
    assert NOT_SUBSCRIBED.is_exceeded(101, 65 * MB)


def test_three_windows_may_be_in_flight_each_with_the_message_that_crosses_it():
    limit = limit_of(ARTEMIS, 100 * MB)
    limit.require(1_000_000, 3 * (100 + 100) * MB, max_message_bytes=100 * MB)
    limit.require(6, 3 * (1 + 100) * MB, max_message_bytes=100 * MB)
    with pytest.raises(PrefetchExceededError, match=r"1,000,000 messages .* window of 104,857,600 bytes"):
        limit.require(1_000_000, 701 * MB, max_message_bytes=100 * MB)


def test_the_error_has_its_code_the_window_and_a_remedy():
    error = str(limit_of(CLASSIC, 244).error(1_000, 65 * MB))
    assert error.startswith("[JMS_PREFETCH_EXCEEDED] The broker delivered 1,000 messages (68,157,440 bytes)")
    assert "window of 244 messages" in error
    assert "Check option broker" in error


def test_what_is_acknowledged_is_counted_off_from_the_oldest_on():
    taken = Unacknowledged()
    taken.add(0, 0)
    taken.add(2, 20)
    taken.add(4, 400)
    taken.remove(1)
    assert (taken.messages, taken.size) == (5, 410)
    taken.remove(3)
    assert (taken.messages, taken.size) == (2, 200)
    taken.remove(3)
    assert (taken.messages, taken.size) == (0, 0)
