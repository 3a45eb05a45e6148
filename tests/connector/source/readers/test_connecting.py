import dataclasses
import itertools
import json
from collections import Counter

import pytest
from amqp_sending import settings_of
from streaming import left

from pyspark_jms.errors import DataLossError, OtherBrokerError, SourceFencedError
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.connecting import queue_of, require_broker, subscriptions_of
from pyspark_jms.spark.protocols import reading_of

GIVEN = {"brokerUrl": "amqp://h:1", "deliveryGuarantee": "exactly-once"}


def options(**more):
    return SourceOptions.parse(GIVEN | more)


def test_the_staging_queue_is_named_by_the_stream_or_by_the_user():
    assert queue_of(options(queue="q"), "abc") == "pyspark-jms.staging.abc"
    assert queue_of(options(queue="q", stagingQueue="mine"), "abc") == "mine"


class Link:
    from pyspark_jms.amqp.dialects import ARTEMIS as dialect  # noqa: N811


@pytest.mark.parametrize(("most", "each"), [(None, None), ("10", 5), ("1", 1)])
def test_the_limits_of_a_reader_are_shared_among_its_sources(most, each):
    limits = {"maxBytesPerTrigger": "1000"} | ({"maxMessagesPerTrigger": most} if most else {})
    made = subscriptions_of(options(queue='["a", "b"]', selector="x = 1", **limits), Link(), 0, 1)
    assert [str(one.destination) for one in made] == ["queue://a", "queue://b"]
    assert {(one.window_bytes, one.window_messages, one.selector) for one in made} == {(500, each, "x = 1")}


@pytest.mark.parametrize(("queues", "readers"), list(itertools.product(range(1, 8), range(1, 8))))
def test_readers_share_queues_and_queues_share_readers(queues, readers):
    given = options(queue=json.dumps([str(each) for each in range(queues)]))
    read = [[each.destination.name for each in subscriptions_of(given, Link(), at, readers)] for at in range(readers)]
    by_queue = Counter(itertools.chain(*read))
    assert len(by_queue) == queues
    assert max(by_queue.values()) - min(by_queue.values()) <= 1
    assert max(map(len, read)) - min(map(len, read)) <= 1
    assert sum(map(len, read)) == max(queues, readers)


@pytest.fixture
def impatient(monkeypatch):
    """A token that is missing is missed for a second, and not for 70."""
    monkeypatch.setattr("pyspark_jms.amqp.reading.ReaderLink.patience_seconds", 1.0)


def identity(broker):
    return str(broker.server.getNodeID())


def test_l16_a_broker_that_is_not_named_is_refused(broker):
    reading = reading_of(dataclasses.replace(options(queue="q"), connection=settings_of(broker)))
    [address] = reading.options.connection.addresses
    for named in (None, identity(broker)):
        assert require_broker(reading, address, named) == identity(broker)
    with pytest.raises(OtherBrokerError, match=f"of the broker other, and {identity(broker)} has answered"):
        require_broker(reading, address, "other")


def test_a_checkpoint_of_another_broker_plans_nothing(broker, queue, put, query):
    """Also when there is no message: a query that waits at the wrong broker would never tell."""
    put(broker, queue, "one")
    running = query()
    assert running.texts(1) == ["one"]
    assert running.log[-1]["broker"] == identity(broker)
    running.log[-1]["broker"] = "another"
    running.start()
    with pytest.raises(OtherBrokerError):
        running.plan()


def test_a_task_at_another_broker_of_the_list_stops_at_once(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.plan()
    [task] = running.tasks()
    assert task.broker == identity(broker)
    elsewhere = dataclasses.replace(task, read=dataclasses.replace(task.read, name="not here"), broker="another")
    with pytest.raises(OtherBrokerError):
        running.read(elsewhere)
    assert [row["text"] for row in running.read(task)] == ["one"]


@pytest.mark.parametrize("place", [{"broker": "another"}, pytest.param({"address": "another"}, marks=pytest.mark.deep)])
def test_fail_on_data_loss_false_goes_on_elsewhere(broker, queue, put, query, impatient, place):
    """With new tokens: the place of the log has none here."""
    dead = broker.message_count("DLQ")
    put(broker, queue, "one")
    running = query(failOnDataLoss="false")
    assert running.texts(1) == ["one"]
    running.log[-1].update(place, names=["not here"])
    running.start()
    put(broker, queue, "two")
    assert running.texts(1) == ["two"]
    assert running.log[-1]["broker"] == identity(broker)
    assert running.log[-1]["address"].endswith(running.log[-1]["stream"])
    assert broker.message_count("DLQ") == dead, "the token before was received once"


@pytest.mark.deep
def test_two_brokers_of_a_list_that_do_not_share_a_store(fresh_broker, put, query, impatient):
    """The first one is away for a while. The query stops, goes on when it is back, and loses nothing."""
    first, second = fresh_broker(), fresh_broker()
    away = first.amqp_url
    put(first, "q", "one")
    put(second, "q", "of the other broker")
    running = query(queue="q", brokerUrl=away)
    assert running.texts(1) == ["one"]
    put(first, "q", "two")
    assert running.plan()
    [task] = running.tasks()
    settings = running.options.connection
    for told in (True, False):
        running.options = dataclasses.replace(
            running.options,
            connection=dataclasses.replace(
                settings, addresses=parse_broker_url(f"amqp://127.0.0.1:1,{second.amqp_url}")
            ),
        )
        running.start()
        error = OtherBrokerError if told else DataLossError
        with pytest.raises(error):
            running.read(task if told else dataclasses.replace(task, broker=None))
        if told:
            with pytest.raises(error):
                running.plan()
    assert left(second, "q", 1) == 1
    running.options = dataclasses.replace(running.options, connection=settings)
    running.start()
    assert [row["text"] for row in running.read(task)] == ["two"]
    running.commit()
    put(first, "q", "three")
    assert running.texts(1) == ["three"]
    assert (left(first, "q"), left(second, "q", 1)) == (0, 1)


def test_of_two_queries_with_one_checkpoint_the_later_one_is_fenced(broker, queue, put, query):
    """A checkpoint that was copied: both run the batch that both have, and one of them the next one."""
    put(broker, queue, "one")
    first = query()
    first.texts(1)
    put(broker, queue, "two")
    assert first.plan()
    copy = query()
    copy.log = list(first.log)
    assert copy.rows() == first.rows()
    first.commit()
    put(broker, queue, "three", "four")
    assert first.plan()
    assert copy.plan(), "no task has received this batch yet"
    assert copy.rows() == first.rows()
    first.commit()
    put(broker, queue, "five")
    assert first.texts(1) == ["five"]
    put(broker, queue, "six")
    copy.log.pop()
    with pytest.raises(SourceFencedError, match="received batch 4 with reader 0"):
        copy.plan()
    assert first.texts(1) == ["six"]
