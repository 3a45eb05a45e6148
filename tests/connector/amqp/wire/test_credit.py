import pytest

from pyspark_jms.amqp.wire.credit import MAX_CREDIT, CreditWindow
from pyspark_jms.jms.subscription import ASSUMED_MESSAGE_BYTES


def test_before_the_first_message_a_size_is_assumed():
    assert CreditWindow(10 * ASSUMED_MESSAGE_BYTES).credit() == 10


def test_the_mean_size_counts():
    window = CreditWindow(10_000)
    window.received(4, 4_000)
    assert window.credit() == 6
    window.released(4)
    assert window.credit() == 10


def test_one_message_larger_than_the_window_passes_and_no_second_one():
    window = CreditWindow(100)
    assert window.credit() == 1
    window.received(1, 1_000_000)
    assert window.credit() == 0
    window.released(1)
    assert (window.size, window.credit()) == (0, 1)


def test_a_window_of_messages():
    window = CreditWindow(1 << 30, window_messages=5)
    assert window.credit() == 5
    window.received(3, 30)
    assert window.credit() == 2


def test_credit_has_a_limit():
    window = CreditWindow(1 << 50)
    assert window.credit() == MAX_CREDIT
    for _ in range(20):
        window.try_more()
    assert window.credit() == 2 * MAX_CREDIT  # a broker that sends nothing has lost as much as it had


def test_many_messages_in_flight_do_not_delay_a_grant():
    window = CreditWindow(1 << 40)
    window.received(60_000, 60_000_000)
    assert window.is_worth_a_flow(window.credit(), MAX_CREDIT // 2)
    assert not window.is_worth_a_flow(window.credit(), MAX_CREDIT // 2 + 1)


def test_what_is_released_twice_leaves_no_debt():
    window = CreditWindow(1_000)
    window.received(1, 100)
    window.released(1)
    window.released(1)
    assert (window.messages, window.size) == (0, 0)


@pytest.mark.parametrize(
    ("in_flight", "credit", "left", "worth"),
    [
        (0, 100, 0, True),
        (0, 100, 100, False),
        (90, 10, 5, False),
        (0, 100, 50, True),
        (5, 0, 3, True),
        (5, 2, 3, False),
    ],
)
def test_a_flow_is_sent_when_it_is_worth_a_frame(in_flight, credit, left, worth):
    window = CreditWindow(1_000)
    window.received(in_flight, in_flight)
    assert window.is_worth_a_flow(credit, left) is worth


def test_lost_credit_is_granted_beside_the_rest():
    window = CreditWindow(1 << 20, 10)
    assert window.credit() == 10
    window.try_more()
    window.try_more()
    assert window.credit() == 12
    assert window.has_helped(2, at_once=True) == 2
    assert window.credit() == 12
    window.try_more()
    assert window.has_helped(1, at_once=False) == 0
    assert window.credit() == 12
    window.received(10, 1_000)
    assert window.credit() == 0


def test_no_credit_is_lost_if_more_comes_than_was_granted_to_find_out():
    window = CreditWindow(1 << 20, 10)
    window.try_more()
    assert window.has_helped(2, at_once=True) == 0
    assert window.credit() == 10
