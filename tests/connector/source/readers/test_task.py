import contextlib
import dataclasses
import json
import threading
import time
from collections import Counter

import pytest
from amqp_messages import (
    NULL,
    TRUE,
    annotations,
    application_properties,
    list_,
    long,
    properties,
    section,
    string,
    timestamp,
    uint,
)
from amqp_sending import put_encoded, settings_of
from full_disk import full_disk
from streaming import left, scheduled
from waiting import wait_until

from pyspark_jms.amqp.link import read_register
from pyspark_jms.amqp.link.read_register import ReadRegister, RegisterName
from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.amqp.wire.values import TypedValue, encode
from pyspark_jms.errors import BadMessageError, DataLossError, JMSError, PoisonLoopError


def test_two_attempts_of_a_task_have_the_same_rows(broker, queue, put, query):
    put(broker, queue, *map(str, range(10)))
    running = query()
    running.plan()
    [task] = running.tasks()
    assert running.read(task) == running.read(task)
    assert len(running.read(task)) == 10
    assert left(broker, queue) == 0


def test_an_expiry_that_was_over_is_judged_by_the_time_of_the_batch_in_each_attempt(broker, queue, query):
    """The broker counts the hour from the arrival, the column from what the producer states."""
    now_ms, hour = int(time.time() * 1000), 3_600_000
    soon, over = now_ms + 2_000, now_ms - 2_000
    head = section(0x70, list_(TRUE, NULL, uint(hour)))
    for ends in (soon, over):
        made = properties(creation_time=timestamp(ends - hour))
        put_encoded(broker, queue, [head + made + section(0x77, string("x"))])
    running = query()
    running.plan()
    [task] = running.tasks()
    rows = running.read(task)
    assert [row["JMSExpiration"] is None for row in rows][1:] == [True]
    wait_until(lambda: time.time() * 1000 > soon + 10, what="the end of the expiry")
    assert running.read(task) == rows


def require_run_without_rows(running):
    """All messages were sent after the start of the run."""
    running.source.drain()
    running.source._run.drain_since_ms = -60_000.0
    running.plan()
    assert running.rows() == [[]]
    running.commit()
    assert not running.plan()


def test_a_message_that_was_sent_after_the_start_waits_for_the_next_run(broker, queue, put, query):
    put(broker, queue, "one")
    require_run_without_rows(query())
    assert left(broker, queue, 1) == 1


def test_available_now_ends_where_one_queue_has_later_messages_and_another_is_empty(broker, queue, put, query):
    """More than the window of that queue: nothing proves that it is empty."""
    put(broker, queue, *map(str, range(9)))
    require_run_without_rows(query(queue=json.dumps([queue, f"{queue}.empty"]), maxMessagesPerTrigger=4))
    assert left(broker, queue, 9) == 9


def test_a_consumer_of_the_staging_queue_makes_a_task_wait(broker, queue, put, query):
    """The queue has one consumer. A rival that gives all back costs time, and nothing else."""
    put(broker, queue, "one", "two")
    running = query(maxMessagesPerTrigger=1)
    assert running.texts(1) == ["one"]
    register = ReadRegister(settings_of(broker), RegisterName(running.log[-1]["address"], 0))
    register.lock()
    register.take(2)
    ending = threading.Timer(1.0, register.close)
    ending.start()
    assert running.texts(1) == ["two"]
    ending.join()
    assert left(broker, queue) == 0


def test_messages_that_the_broker_acts_on(broker, queue, query):
    """Priorities, an expiry, a delay, groups, duplicate detection, equal ids and equal bodies: none of it is on what is
    staged.
    """
    in_an_hour = timestamp(int(time.time() * 1000) + 3_600_000)
    messages = [
        section(0x70, list_(TRUE, encode(TypedValue("ubyte", number % 10))))
        + annotations(delivery_delay=long(100 * (number % 4)))
        + properties(
            message_id=string(f"ID:{number % 3}"), absolute_expiry_time=in_an_hour, group_id=string(f"g{number % 2}")
        )
        + application_properties(_AMQ_DUPL_ID=string(f"{time.time_ns()}-{number}"))
        + section(0x77, string(str(number % 5)))
        for number in range(100)
    ]
    put_encoded(broker, queue, messages)
    wait_until(lambda: scheduled(broker, queue) == 0, what="the end of the delays")
    running = query(readers=2, maxMessagesPerTrigger=40)
    assert Counter(running.texts(100)) == Counter(str(number % 5) for number in range(100))
    assert left(broker, queue) == 0
    assert not running.plan()
    address = running.log[-1]["address"]
    staged = [each for reader in range(2) for each in acted_on(broker, f"{address}.{reader}")]
    assert len(staged) >= 3, "two tokens and a block"
    assert set(staged) == {(253_402_300_799_000, 4, None, None, None)}


def acted_on(broker, queue):
    """What the broker acts on, of each message of a queue."""
    messages = (reference.getMessage() for reference in broker._waiting(queue))
    return [
        (
            each.getExpiration(),
            each.getPriority(),
            each.getScheduledDeliveryTime() or None,
            each.getGroupID(),
            each.getDuplicateProperty(),
        )
        for each in messages
    ]


def test_a_reader_keeps_the_order_of_groups(broker, queue, query):
    """The broker gives a group to one consumer, and each task is a new one."""
    messages = [
        section(0x70, list_(TRUE)) + properties(group_id=string(f"g{number % 3}")) + section(0x77, string(str(number)))
        for number in range(60)
    ]
    put_encoded(broker, queue, messages)
    assert query(maxMessagesPerTrigger=7).texts(60) == [str(number) for number in range(60)]
    assert left(broker, queue) == 0


@pytest.mark.parametrize("fails", [True, False])
def test_a_value_that_is_deleted_is_a_loss_with_numbers(broker, queue, put, query, monkeypatch, fails):
    monkeypatch.setattr(ReaderLink, "patience_seconds", 1.0)
    put(broker, queue, *map(str, range(6)))
    running = query(failOnDataLoss=str(fails).lower())
    running.plan()
    [task] = running.tasks()
    assert len(running.read(task)) == 6
    register = f"{task.base}.0"
    broker.purge(f"{task.base}.0")
    assert left(broker, register) == 0
    if fails:
        with pytest.raises(DataLossError):
            running.read(task)
        return
    assert running.read(task) == []
    running.commit()
    put(broker, queue, "next")
    assert running.texts(1) == ["next"]


# --- delivery attempts --------------------------------------------------------------------------------


def dead_letters(broker):
    return broker.message_count("DLQ") if broker.has_queue("DLQ") else 0


@pytest.mark.parametrize("attempts", [2, pytest.param(12, marks=pytest.mark.deep)])
@pytest.mark.parametrize("keeps", [True, False])
def test_a_broker_whose_disk_is_full_costs_no_delivery_attempt(broker, queue, put, query, attempts, keeps):
    """However often the task is repeated, with a connection that was kept, whose link has credit, and with new ones."""
    put(broker, queue, "begin")
    running = query(receiptTimeout="300ms", reconnectTimeout="1s", maxBytesPerTrigger=10_000_000)
    running.texts(1)
    put(broker, queue, *("x" * 50_000 for _ in range(30)))
    before = dead_letters(broker)
    running.plan()
    [task] = running.tasks()
    with full_disk(broker):
        for _ in range(attempts):
            if not keeps:
                read_register._kept.clear()
            with contextlib.suppress(JMSError):
                running.read(task)
            wait_until(lambda: broker.delivering_count(queue) == 0)
            assert set(broker.delivery_counts(queue)) <= {0}
    assert len(running.read(task)) == 30
    assert left(broker, queue) == 0
    assert dead_letters(broker) == before


def counted(number, deliveries):
    """A message whose producer has written a delivery-count."""
    header = section(0x70, list_(TRUE, NULL, NULL, NULL, uint(deliveries)))
    return header + section(0x77, string(f"text {number}"))


@pytest.mark.parametrize("readers", [1, 2])
def test_l13_a_count_that_a_producer_wrote_stops_nothing(broker, queue, query, readers):
    put_encoded(broker, queue, [counted(number, 7 * (number % 3 == 1)) for number in range(9)])
    running = query(readers=readers)
    assert sorted(running.texts(9)) == [f"text {number}" for number in range(9)]
    assert left(broker, queue) == 0


def batches(running, messages):
    """The texts of each batch, until so many have come."""
    found = list[list[str]]()
    while sum(map(len, found)) < messages:
        if running.plan():
            found.append([row["text"] for task in running.rows() for row in task])
            running.commit()
    return found


def test_l13_a_message_with_a_high_count_is_reached_in_its_order_and_costs_two_batches(broker, queue, query):
    put_encoded(broker, queue, [counted(number, 7 * (number == 30)) for number in range(60)])
    found = batches(query(), 60)
    assert [len(each) for each in found] == [30, 1, 29]
    assert [text for each in found for text in each] == [f"text {number}" for number in range(60)]


def test_l13_messages_of_a_forwarder_that_keeps_headers_are_received_together(broker, queue, query):
    put_encoded(broker, queue, [counted(number, 5) for number in range(200)])
    assert len(batches(query(), 200)) <= 3


def test_l13_one_suspected_message_does_not_slow_those_that_come_later(broker, queue, query):
    """No attempt has died with it."""
    put_encoded(broker, queue, [counted(0, 5)])
    running = query()
    assert batches(running, 1) == [["text 0"]]
    put_encoded(broker, queue, [counted(number, 5) for number in range(1, 201)])
    assert len(batches(running, 200)) <= 3


def test_l13_equal_messages_with_growing_counts_stop_nothing(broker, queue, query):
    put_encoded(broker, queue, [counted(0, deliveries) for deliveries in range(5, 9)])
    assert sum(map(len, batches(query(), 4))) == 4
    assert left(broker, queue) == 0


MANY_DEATHS = 600
"""Artemis counts about a third of the deaths with a received message as deliveries: 40 runs needed 7 to 49 deaths."""


class DeathError(Exception):
    pass


def test_l13_a_message_that_kills_its_tasks_stops_the_query_before_the_broker_moves_it(
    broker, queue, put, query, monkeypatch
):
    put(broker, queue, "deadly")
    running = query()
    running.plan()
    [task] = running.tasks()
    before = dead_letters(broker)

    def dies(link, *_):
        link.drop()
        raise DeathError

    deaths = 0
    with monkeypatch.context() as dying:
        dying.setattr(ReaderLink, "replace_value", dies)
        while deaths < MANY_DEATHS:
            try:
                running.read(task)
            except DeathError:
                deaths += 1
                # Before that, the next attempt finds an empty queue, dies too, and has cost the message nothing.
                wait_until(lambda: len(broker.delivery_counts(queue)) == 1)
            except PoisonLoopError:
                break
    assert 2 <= deaths < MANY_DEATHS
    # A message in delivery has no count here: the last attempt may have given it back a moment ago.
    wait_until(lambda: len(broker.delivery_counts(queue)) == 1, what="the return of the message")
    assert max(broker.delivery_counts(queue)) < 10
    assert dead_letters(broker) == before


@pytest.mark.parametrize(
    ("limit", "rows"),
    [({"maxMessagesPerTrigger": 1}, 1), ({"maxMessagesPerTrigger": 6}, 6), ({"maxBytesPerTrigger": 1}, 1)],
)
def test_the_readers_together_keep_the_limits_of_a_batch(broker, queue, put, query, limit, rows):
    put(broker, queue, *map(str, range(20)))
    running = query(readers=4, **limit)
    for _ in range(2):
        assert running.plan()
        assert sum(map(len, running.rows())) == rows
        running.commit()


BAD = section(0x70, list_(TRUE)) + section(0x73, list_()) + section(0x77, b"\xa1\x02\xff\xfe")
"""A text that is not UTF-8."""


def test_a_bad_message_is_refused_before_its_batch_is_acknowledged(broker, queue, put, query):
    put(broker, queue, "good")
    put_encoded(broker, queue, [BAD])
    running = query(onBadMessage="fail")
    assert running.plan()
    for _ in range(2):
        with pytest.raises(BadMessageError, match="They stay on the broker"):
            running.rows()
        assert left(broker, queue, 2) == 2
    assert broker.delivery_counts(queue) == [0, 0]


def test_a_bad_message_that_is_staged_is_read_with_the_same_checkpoint(broker, queue, put, query):
    put_encoded(broker, queue, [BAD])
    running = query(onBadMessage="keep")
    assert running.plan()
    [[row]] = running.rows()
    assert row["body_error"]
    keep, staging = running.options, f"{running.log[-1]['address']}.0"
    running.options = dataclasses.replace(keep, on_bad_message="fail")
    remedy = rf"batch 1 are in the staging queue {staging}\. Start again with the same checkpoint and onBadMessage=keep"
    with pytest.raises(BadMessageError, match=remedy):
        running.rows()
    running.options = keep
    assert running.rows() == [[row]]
