"""What stops a staged read, and what it survives. The protocol itself: ``tests/connector/delivery/staging``."""

import threading
import time

import pytest
from streaming import left
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.errors import (
    ConnectionLostError,
    DataLossError,
    InvalidOptionError,
    PoisonLoopError,
    SourceFencedError,
)


def numbered(*numbers):
    return [f"text {number}" for number in range(*numbers)]


def staging_of(running):
    return f"pyspark-jms.staging.{running.log[0]['id']}.owner"


def test_the_second_driver_of_a_checkpoint_goes_on_after_the_first(broker, queue, put, query):
    put(broker, queue, *numbered(5))
    first, second = query(), query()
    assert first.texts(5) == numbered(5)
    second.log = list(first.log)
    rows = []
    waiting = threading.Thread(target=lambda: rows.extend(second.texts(3)))
    waiting.start()
    time.sleep(0.5)
    assert waiting.is_alive()
    assert rows == []
    first.die()
    put(broker, queue, *numbered(5, 8))
    waiting.join(60)
    assert rows == numbered(5, 8)


def test_a_driver_that_another_one_has_passed_is_fenced(broker, queue, put, query):
    put(broker, queue, *numbered(5))
    first, second = query(), query()
    assert first.texts(5) == numbered(5)
    second.log = list(first.log)
    put(broker, queue, *numbered(5, 8))
    assert first.texts(3) == numbered(5, 8)
    first.plan()  # retires what is committed
    first.stop()
    put(broker, queue, *numbered(8, 10))
    with pytest.raises(SourceFencedError, match="Another run of this query has finished the messages up to 8"):
        second.texts(1)
    await_count(broker, queue, 2)


@pytest.mark.parametrize("wrong", [{"subscriptionName": "1.n"}, {"topic": "a::b"}])
def test_a_subscription_that_the_broker_would_take_for_another_one_is_refused(broker, queue, query, wrong):
    """Before the staging queue exists. The dialect is known only after the connection."""
    named = {"queue": None, "topic": queue, "subscriptionName": "n", "clientId": queue, "stagingQueue": f"{queue}.mine"}
    with pytest.raises(InvalidOptionError, match=f"Option {next(iter(wrong))} is "):
        query(**named | wrong).plan()
    control = broker.server.getActiveMQServerControl()
    assert not [name for name in map(str, control.getAddressNames()) if queue in name]


def test_a_staging_queue_of_another_query_is_refused(broker, queue, put, query):
    put(broker, queue, *numbered(3))
    own = {"stagingQueue": f"{queue}.mine"}
    first = query(**own)
    assert first.texts(3) == numbered(3)
    first.stop()
    second = query(**own)
    with pytest.raises(SourceFencedError, match="is used by another query"):
        second.texts(1)


def test_a_message_near_the_limit_stops_the_query(broker, queue, put, query, settings_for, subscription_to):
    put(broker, queue, *numbered(3))
    for _ in range(40):
        if max(broker.delivery_counts(queue)) >= 5:
            break
        holder = Consumer(settings_for(broker))
        holder.subscribe(subscription_to(queue))
        wait_until(lambda link=holder: link.waiting()[0] == 3)
        [block] = holder.take()
        holder.prefetch.receiver.channel.send(_failed(block))
        wait_until(lambda: True)
        holder.close()
    counts = broker.delivery_counts(queue)
    assert max(counts) >= 5
    running = query()
    running.plan()
    with pytest.raises(PoisonLoopError, match=r"\[JMS_POISON_LOOP\] The broker has delivered a message [5-9] times"):
        running.plan()
    assert left(broker, queue, 3) == 3
    await_value(lambda: broker.delivery_counts(queue), counts)


def _failed(block):
    from pyspark_jms.amqp.wire.definitions import Modified
    from pyspark_jms.amqp.wire.performatives import Disposition

    numbers = [int.from_bytes(each, "big") for each in block.ids]
    return Disposition(
        role=True, first=min(numbers), last=max(numbers), settled=True, state=Modified(delivery_failed=True)
    )


@pytest.mark.parametrize("fails", [True, False])
def test_missing_blocks_are_a_loss_with_numbers(broker, queue, put, query, monkeypatch, fails):
    monkeypatch.setattr("pyspark_jms.amqp.staging.AmqpStagedLink.patience_seconds", 1.0)
    put(broker, queue, *numbered(6))
    running = query(failOnDataLoss=str(fails).lower())
    running.plan()
    while not running.plan():
        pass
    running.die()
    assert left(broker, staging_of(running), 1) == 1
    broker.purge(staging_of(running))
    running.start()
    if fails:
        with pytest.raises(DataLossError, match=r"\[JMS_DATA_LOSS\] .*lacks the messages 0 to 5"):
            running.rows()
        return
    assert [row for task in running.rows() for row in task] == []
    running.commit()
    put(broker, queue, "next")
    assert running.texts(1) == ["next"]


def test_a_lost_token_is_made_anew(broker, queue, put, query, monkeypatch):
    monkeypatch.setattr("pyspark_jms.amqp.staging.AmqpStagedLink.patience_seconds", 1.0)
    put(broker, queue, *numbered(6))
    running = query(maxMessagesPerTrigger=3)
    assert running.texts(3) == numbered(3)
    running.die()
    tokens = f"pyspark-jms.staging.{running.log[0]['id']}.token"
    assert left(broker, tokens, 1) == 1
    broker.purge(tokens)
    running.start()
    assert running.texts(3) == numbered(3, 6)


@pytest.mark.parametrize("dies", [False, True])
def test_messages_that_are_no_tokens_stay_and_stop_nothing(broker, queue, put, query, dies, caplog):
    """Before the token and after it in the queue, and while another owner begins."""
    put(broker, queue, *numbered(9))
    running = query(maxMessagesPerTrigger=3)
    found = running.texts(3)
    tokens = f"pyspark-jms.staging.{running.log[0]['id']}.token"
    for number in range(2):
        put(broker, tokens, "hello", '{"id":"s","name":"t","next":"7"}')
        if dies:
            running.die()
            running.start()
        found += running.texts(3)
        assert left(broker, tokens, 2 * number + 3) == 2 * number + 3
    assert found == numbered(9)
    assert f"! 4 messages in queue {tokens} are not tokens of this connector: they stay" in caplog.text


def test_a_lost_connection_is_made_again(broker, queue, put, query):
    put(broker, queue, *numbered(6))
    running = query(maxMessagesPerTrigger=2)
    assert running.texts(2) == numbered(2)
    running.source._owner.link.drop()
    assert running.texts(4) == numbered(2, 6)
    assert running.source.progress()["reconnects"] == 1


@pytest.mark.deep
def test_deaths_at_every_step_lose_and_repeat_nothing(fresh_broker, put, query, monkeypatch):
    """In turn before each call of the link: the connection is gone, and the process with it."""
    from pyspark_jms.amqp.staging import AmqpStagedLink

    broker = fresh_broker()
    calls = ("lock", "tokens", "create_token", "take_tokens", "take_finished", "blocks", "move", "subscribe")
    strikes = iter(range(10_000))
    for name in calls:
        original = getattr(AmqpStagedLink, name)

        def struck(link, *given, original=original, **named):
            n = next(strikes)
            if n % 7 == 3:
                link.drop()
            answer = original(link, *given, **named)
            if n % 11 == 5:
                link.drop()
            return answer

        monkeypatch.setattr(AmqpStagedLink, name, struck)
    put(broker, "q", *numbered(60))
    running = query(broker=broker, queue="q", maxMessagesPerTrigger=7, reconnectTimeout="1m")
    found = []
    for step in range(300):
        if len(found) == 60:
            break
        try:
            if running.committed == len(running.log) and not running.plan():
                continue
            if step % 3 == 0:
                running.die()
                running.start()
            rows = [row["text"] for task in running.rows() for row in task]
        except ConnectionLostError:  # the first start does not wait for a broker
            assert not running.log
            running.die()
            running.start()
            continue
        found += rows
        running.commit()
    assert found == numbered(60)
    assert not broker.has_queue("DLQ") or broker.message_count("DLQ") == 0
