import time

import pytest
from waiting import await_count, wait_until

from pyspark_jms.amqp.link import connection
from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.prefetch import LOST_CREDIT, MAX_CREDIT, CreditWindow
from pyspark_jms.jms.model import BodyType
from pyspark_jms.jms.subscription import ASSUMED_MESSAGE_BYTES
from pyspark_jms.testing import JmsClient


def test_the_broker_stops_at_the_window_and_goes_on_after_an_acknowledgement(
    broker, queue, put, subscription_to, consume
):
    put(broker, queue, *["x" * 1_000] * 200)
    link = consume(broker, subscription_to(queue, window_bytes=50_000))
    wait_until(lambda: link.waiting()[1] >= 40_000)
    blocks = link.take()
    ids = [one for block in blocks for one in block.ids]
    assert len(ids) < 100
    link.has_receipt(link.acknowledge(ids), wait=True)
    wait_until(lambda: link.waiting()[1] >= 30_000)


def test_a_probe_of_an_empty_queue_is_answered_and_changes_nothing(broker, queue, put, subscription_to, consume):
    link = consume(broker, subscription_to(queue))
    link.has_receipt(link.probe(), wait=True)
    assert link.waiting() == (0, 0)
    put(broker, queue, "later")
    wait_until(lambda: link.waiting()[0] == 1)


def test_a_probe_ends_when_there_is_a_message(broker, queue, put, subscription_to, consume):
    put(broker, queue, *map(str, range(5_000)))
    link = consume(broker, subscription_to(queue, window_bytes=100_000))
    seen = 0
    while True:
        link.has_receipt(link.probe(), wait=True)
        blocks = link.take()
        if not blocks:
            break
        ids = [one for block in blocks for one in block.ids]
        seen += len(ids)
        link.has_receipt(link.acknowledge(ids), wait=True)
    assert seen == 5_000
    await_count(broker, queue, 0)


def test_blocks_are_closed_at_some_megabytes(broker, queue, put, subscription_to, consume):
    put(broker, queue, *["x" * 100_000] * 400)
    link = consume(broker, subscription_to(queue, window_bytes=200 << 20))
    wait_until(lambda: link.waiting()[0] == 400)
    blocks = link.take()
    assert sum(map(len, blocks)) == 400
    assert len(blocks) >= 2
    assert all(len(block.data) < 20 << 20 for block in blocks)


def test_credit_that_the_broker_lost_is_granted_again(
    broker, queue, subscription_to, consume, settings_for, opened, caplog, monkeypatch
):
    """Artemis cannot convert a stream with bytes, nor an object of null: they go, and so does their credit."""
    monkeypatch.setattr(connection, "QUIET_SECONDS", 0.6)
    link = consume(broker, subscription_to(queue, window_bytes=1 << 20, window_messages=3))
    dead = len(broker.dead_letters())
    with JmsClient(broker) as java:
        for poison in ([b"x"], None, [b"y"]):
            java.send(queue, poison, body_type=BodyType.OBJECT if poison is None else BodyType.STREAM)
        wait_until(lambda: len(broker.dead_letters()) == dead + 3, what="what cannot be converted to be moved")
        for n in range(20):
            java.send(queue, f"after it {n}")
    seen = 0
    while seen < 20:
        wait_until(lambda: link.waiting()[0], seconds=30, what="the next message")
        ids = [one for block in link.take() for one in block.ids]
        seen += len(ids)
        link.has_receipt(link.acknowledge(ids), wait=True)
    counts = link.connection.condition.counts
    assert 1 <= counts[LOST_CREDIT] <= 4
    counted = counts[LOST_CREDIT]
    opened(Consumer(settings_for(broker), link.connection.condition)).subscribe(subscription_to(queue))
    assert counts[LOST_CREDIT] == counted, "the connection after a lost one counts on"
    assert "used up credit for messages that it did not deliver" in caplog.text


def test_a_quiet_queue_does_not_widen_the_window(broker, queue, put, subscription_to, consume):
    link = consume(broker, subscription_to(queue, window_messages=10))
    link.prefetch.try_more()
    time.sleep(0.5)
    put(broker, queue, *map(str, range(40)))
    wait_until(lambda: link.waiting()[0] >= 10)
    time.sleep(0.3)
    assert link.waiting()[0] <= 11
    ids = [one for block in link.take() for one in block.ids]
    link.has_receipt(link.acknowledge(ids), wait=True)
    wait_until(lambda: link.waiting()[0] >= 10)
    time.sleep(0.3)
    assert link.waiting()[0] == 10


def test_more_is_tried_less_often_the_longer_nothing_arrives(broker, queue, put, subscription_to, consume):
    link = consume(broker, subscription_to(queue, window_messages=10))
    granted = []
    for _ in range(8):
        with link.connection.core():
            link.prefetch.try_more()
            granted.append(link.prefetch.receiver.credit)
    assert granted == [11, 12, 12, 14, 14, 14, 14, 18]


def test_messages_that_arrive_right_after_a_try_by_chance_cost_no_credit(
    broker, queue, put, subscription_to, consume, caplog
):
    link = consume(broker, subscription_to(queue, window_messages=10))
    for n in range(1, 9):
        with link.connection.core():
            link.prefetch.try_more()
        put(broker, queue, str(n))
        wait_until(lambda n=n: link.waiting()[0] == n)
    assert link.connection.condition.counts[LOST_CREDIT] == 0
    assert "used up credit" not in caplog.text


# --- from a window to credit, without a broker ------------------------------------------------------


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
        (5, 0, 3, False),
        (5, 2, 3, False),
    ],
)
def test_a_flow_is_sent_when_it_is_worth_a_frame(in_flight, credit, left, worth):
    window = CreditWindow(1_000)
    window.received(in_flight, in_flight)
    assert window.is_worth_a_flow(credit, left) is worth


@pytest.mark.parametrize(("size", "worth"), [(1_000, False), (1 << 20, True)])
def test_credit_is_taken_back_from_large_messages_only(size, worth):
    """A peer may have used it before it reads the flow. Artemis then sends messages beyond it."""
    window = CreditWindow(1 << 27)
    window.received((1 << 27) // size, 1 << 27)
    assert window.credit() == 0
    assert window.is_worth_a_flow(0, MAX_CREDIT) is worth


def tried(window, messages, *, extra=1, at_once=True, left=0):
    """Try until ``extra`` (a power of two) is granted, and then so many messages come."""
    for _ in range(extra.bit_length()):
        window.try_more()
    return window.has_helped(messages, at_once=at_once, left=left)


def test_a_try_grants_more_until_messages_come():
    window = CreditWindow(1 << 20, 10)
    assert window.credit() == 10
    window.try_more()
    window.try_more()
    assert window.credit() == 12
    window.has_helped(1, at_once=False, left=0)
    assert window.credit() == 10


def test_credit_is_lost_if_messages_come_only_after_a_try():
    window = CreditWindow(1 << 20, 10)
    assert [tried(window, 2, extra=2) for _ in range(3)] == [0, 0, 2]
    assert (window.lost, window.credit()) == (2, 12)
    assert tried(window, 1, at_once=False) == 0
    assert window.credit() == 12
    window.received(10, 1_000)
    assert window.credit() == 0


@pytest.mark.parametrize(
    ("messages", "at_once"),
    [pytest.param(2, True, id="more than was granted to find out"), pytest.param(1, False, id="not right after a try")],
)
def test_no_credit_is_lost_if_messages_come_anyway(messages, at_once):
    window = CreditWindow(1 << 20, 10)
    for _ in range(3):
        assert tried(window, 1) == tried(window, 1) == 0
        assert tried(window, messages, at_once=at_once) == 0
    assert (window.helped, window.credit()) == (0, 10)


def test_the_messages_of_one_try_may_come_one_by_one():
    window = CreditWindow(1 << 20, 10)
    for _ in range(2):
        assert tried(window, 1, extra=2) == window.has_helped(1, at_once=True, left=0) == 0
    assert window.helped == 2
    assert tried(window, 1, extra=2) == 2
    assert window.has_helped(1, at_once=True, left=0) == 0
    assert window.helped == 3
    window.has_helped(1, at_once=True, left=0)
    assert window.helped == 0


def test_credit_that_turns_out_not_to_be_lost_is_not_granted_any_more():
    window = CreditWindow(1 << 20, 10)
    for _ in range(5):
        tried(window, 1)
    assert window.lost == 3
    window.has_helped(1, at_once=False, left=4)
    assert window.lost == 3
    window.has_helped(2, at_once=False, left=2)
    assert (window.lost, window.credit()) == (2, 12)
    window.has_helped(2, at_once=False, left=0)  # the end of all credit, or it was taken back: no proof
    assert window.lost == 2
