import time
from typing import ClassVar

import pytest
from streaming import left
from waiting import await_value, wait_until

from pyspark_jms.errors import StoppedError
from pyspark_jms.source.staged.move import Move


def numbered(*numbers):
    return [f"text {number}" for number in range(*numbers)]


def test_several_queues_are_one_stream(broker, queue, put, query):
    put(broker, queue, *numbered(5))
    put(broker, f"{queue}.2", *numbered(5, 10))
    running = query(queue=f'["{queue}", "{queue}.2"]', maxMessagesPerTrigger=4)
    assert sorted(running.texts(10)) == sorted(numbered(10))
    running.die()
    put(broker, queue, "more")
    running.start()
    assert running.texts(1) == ["more"]


def test_bytes_and_messages_of_a_batch_have_limits(broker, queue, put, query):
    put(broker, queue, *(f"{n}".ljust(1_000, ".") for n in range(12)))
    running = query(maxBytesPerTrigger=3_300)
    assert [text[:2].strip(".") for text in running.texts(12)] == [str(n) for n in range(12)]
    sizes = [b["seq"] - a["seq"] for a, b in zip(running.log, running.log[1:], strict=False)]
    assert max(sizes) <= 3
    await_value(lambda: broker.delivery_counts(queue), [])


class NotedMove(Move):
    """Notes at each span whether messages were still received."""

    early: ClassVar[list] = []

    def add(self, span):
        self.early.append(self._link.lanes[span.lane]._prefetch._grants)
        super().add(span)


@pytest.mark.parametrize("limit", [None, 25])
def test_full_blocks_are_sent_while_more_is_received(broker, queue, put, query, monkeypatch, limit):
    monkeypatch.setattr("pyspark_jms.amqp.link.prefetch._BLOCK_MESSAGES", 10)
    monkeypatch.setattr("pyspark_jms.source.staged.owner.Move", NotedMove)
    monkeypatch.setattr(NotedMove, "early", [])
    put(broker, queue, *numbered(90))
    running = query(maxMessagesPerTrigger=limit)
    assert running.texts(90) == numbered(90)
    assert NotedMove.early[0]
    sizes = [b["seq"] - a["seq"] for a, b in zip(running.log, running.log[1:], strict=False)]
    assert limit is None or max(sizes) <= limit
    await_value(lambda: broker.delivery_counts(queue), [])


@pytest.mark.timeout(60)
def test_a_flood_ends_when_its_sources_are_proven_to_be_empty(broker, queue, put, query, monkeypatch):
    """Silence alone would end no batch here."""
    monkeypatch.setattr("pyspark_jms.source.lingering._POURING_MESSAGES", 0)
    monkeypatch.setattr("pyspark_jms.source.lingering._POURING_SECONDS", 1e9)
    monkeypatch.setattr("pyspark_jms.source.lingering._POURING_QUIET_SECONDS", 1e9)
    put(broker, queue, *numbered(5))
    put(broker, f"{queue}.2", *numbered(5, 10))
    running = query(queue=f'["{queue}", "{queue}.2"]')
    assert sorted(running.texts(10)) == sorted(numbered(10))
    await_value(lambda: broker.delivery_counts(queue), [])


def test_no_block_is_sent_below_a_minimum(broker, queue, put, query, monkeypatch):
    monkeypatch.setattr("pyspark_jms.amqp.link.prefetch._BLOCK_MESSAGES", 1)
    put(broker, queue, *numbered(2))
    running = query(minMessagesPerTrigger=3, maxTriggerDelay="10m")
    running.plan()
    assert not running.plan()
    assert running.source.progress()["staged"] == 0
    wait_until(lambda: broker.delivering_count(queue) == 0)
    put(broker, queue, "text 2")
    assert running.texts(3) == numbered(3)


def test_too_few_messages_are_given_back(broker, queue, put, query):
    running = query(minMessagesPerTrigger=3, maxTriggerDelay="10m")
    running.plan()
    put(broker, queue, *numbered(2))
    for _ in range(3):
        assert not running.plan()
        wait_until(lambda: broker.delivering_count(queue) == 0)
    await_value(lambda: broker.delivery_counts(queue), [0, 0])
    put(broker, queue, *numbered(2, 4))
    assert running.texts(4) == numbered(4)
    assert len(running.log) == 2


def test_a_batch_of_too_few_is_cut_after_the_delay(broker, queue, put, query):
    put(broker, queue, *numbered(2))
    running = query(minMessagesPerTrigger=3, maxTriggerDelay="700ms")
    assert running.texts(2) == numbered(2)


def test_available_now_ends_at_what_was_sent_later(broker, queue, put, query):
    put(broker, queue, *numbered(5))
    running = query(drains=True, idleTimeout="300ms", maxMessagesPerTrigger=3)
    assert running.plan()  # names the stream
    assert running.texts(5) == numbered(5)
    assert not running.plan()
    assert running.source.progress()["staged"] == 0
    put(broker, queue, "later")
    assert not running.plan()
    assert left(broker, queue, 1) == 1


@pytest.mark.parametrize("shared", [True, False])
def test_a_durable_subscription_keeps_what_is_sent_meanwhile(broker, queue, put, query, shared):
    named = {"subscriptionName": queue.replace(".", "-")} | (
        {"sharedSubscription": "true"} if shared else {"clientId": f"client-{queue}"}
    )
    topic = {"queue": None, "topic": queue}
    running = query(**topic, **named)
    running.plan()
    put(broker, queue, *numbered(3), kind="topic")
    assert running.texts(3) == numbered(3)
    running.stop()
    put(broker, queue, *numbered(3, 6), kind="topic")
    running.start()
    assert running.texts(3) == numbered(3, 6)


def test_a_selector_is_pushed_down_and_evaluated_again(broker, queue, put, query):
    put(broker, queue, *numbered(4))
    running = query(selector="JMSMessageID = 'ID:2' OR JMSMessageID = 'ID:0'")
    assert running.texts(2) == ["text 0", "text 2"]
    assert left(broker, queue, 2) == 2


def test_a_stop_while_it_waits(broker, queue, query):
    running = query()
    running.plan()
    running.source._stop.made = True
    began = time.monotonic()
    with pytest.raises(StoppedError):
        running.plan()
    running.stop()
    assert time.monotonic() - began < 20
    assert broker.consumer_count(queue) == 0
