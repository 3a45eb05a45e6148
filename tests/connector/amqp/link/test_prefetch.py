import time

import pytest
from waiting import await_count, wait_until

from pyspark_jms.amqp.link import connection
from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.prefetch import LOST_CREDIT
from pyspark_jms.jms.model import BodyType
from pyspark_jms.testing import JmsClient


@pytest.fixture
def consume(settings_for, opened):
    def consumer(broker, subscription):
        link = opened(Consumer(settings_for(broker)))
        link.subscribe(subscription)
        return link

    return consumer


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


def test_one_message_larger_than_the_window_passes(broker, queue, put, subscription_to, consume):
    put(broker, queue, *["x" * 1_000_000] * 30)
    link = consume(broker, subscription_to(queue, window_bytes=64 << 10))
    seen = 0
    while seen < 30:
        wait_until(lambda: link.waiting()[0])
        ids = [one for block in link.take() for one in block.ids]
        seen += len(ids)
        link.has_receipt(link.acknowledge(ids), wait=True)


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
