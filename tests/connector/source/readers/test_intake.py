import json
from typing import ClassVar

import pytest
from amqp_messages import section, string
from amqp_sending import put_encoded
from streaming import left
from waiting import wait_until

from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.errors import InvalidOptionError, MessageTooLargeError, SelectorChangedError, StoppedError
from pyspark_jms.source.readers.value import NewValue

BAD = b"\x00\x53\x74\xc1\x05\x02\x40\x42\x40\x41" + section(0x77, string("x"))
"""A text whose application properties have a name that is not text."""


@pytest.mark.parametrize("good", [2, 0])
def test_messages_that_cannot_be_mapped_become_dead_letters_once(broker, queue, put, query, good):
    """Also where a batch has no others."""
    running = query(onBadMessage="deadLetter", deadLetterQueue=f"{queue}.dead")
    put(broker, queue, *map(str, range(good)))
    put_encoded(broker, queue, [BAD])
    assert running.plan()
    [task] = running.tasks()
    for _ in range(2):
        assert [row["text"] for row in running.read(task)] == list(map(str, range(good)))
        assert (left(broker, queue), left(broker, f"{queue}.dead", 1)) == (0, 1)
    running.commit()
    assert not running.plan()


@pytest.mark.parametrize(("choice", "letters"), [("drop", 0), ("deadLetter", 1)])
def test_messages_that_are_too_large_leave_the_queue(broker, queue, put, query, choice, letters):
    put(broker, queue, "one", "x" * 20_000, "two")
    more = {"deadLetterQueue": f"{queue}.dead"} if letters else {}
    running = query(onTooLarge=choice, maxMessageBytes="10k", **more)
    assert running.texts(2) == ["one", "two"]
    assert left(broker, queue) == 0
    assert not letters or left(broker, f"{queue}.dead", 1) == 1


def test_a_message_that_is_too_large_stops_the_query_without_a_count(broker, queue, put, query):
    put(broker, queue, "one", "x" * 20_000)
    running = query(maxMessageBytes="10k")
    running.plan()
    with pytest.raises(MessageTooLargeError):
        running.rows()
    assert left(broker, queue, 2) == 2
    wait_until(lambda: broker.delivering_count(queue) == 0)
    assert broker.delivery_counts(queue) == [0, 0]


class DeathError(Exception):
    pass


def test_a_dead_letter_is_sent_while_a_value_is_open(broker, queue, put, query, monkeypatch):
    """The blocks before it were sent, and are not committed with it."""
    monkeypatch.setattr("pyspark_jms.amqp.link.prefetch._BLOCK_MESSAGES", 2)
    monkeypatch.setattr("pyspark_jms.source.readers.intake._FLOOD_MESSAGES", 1)
    values = []

    class BadFollows(NewValue):
        def add(self, range_):
            super().add(range_)
            if not values:
                put_encoded(broker, queue, [BAD])
            values.append(self)

    def dies(link, *_):
        link.drop()
        raise DeathError

    put(broker, queue, "one", "two", "three")
    running = query(onBadMessage="deadLetter", deadLetterQueue=f"{queue}.dead")
    assert running.plan()
    [task] = running.tasks()
    with monkeypatch.context() as dying:
        dying.setattr("pyspark_jms.source.readers.task.NewValue", BadFollows)
        dying.setattr(ReaderLink, "replace_value", dies)
        with pytest.raises(DeathError):
            running.read(task)
    assert values
    assert left(broker, f"{queue}.dead", 1) == 1
    assert [row["text"] for row in running.read(task)] == ["one", "two", "three"]
    assert (left(broker, queue), left(broker, f"{queue}.dead", 1)) == (0, 1)


@pytest.mark.parametrize("most", [1, 7, 600])
def test_a_value_is_full_and_the_rest_stays(broker, queue, put, query, most):
    put(broker, queue, *map(str, range(1_000)))
    running = query(maxMessagesPerTrigger=most)
    running.plan()
    [rows] = running.rows()
    assert [row["text"] for row in rows] == list(map(str, range(most)))
    assert left(broker, queue, 1_000 - most) == 1_000 - most


DURABLE = {"clientId": "client-{}", "subscriptionName": "orders"}
SHARED = {"sharedSubscription": "true", "subscriptionName": "{}"}


@pytest.mark.parametrize(
    ("named", "readers"), [(DURABLE, 1), (SHARED, 2), (SHARED | {"clientId": "client-{}"}, 2)], ids=repr
)
def test_a_durable_subscription_keeps_what_is_sent_meanwhile(broker, queue, put, query, named, readers):
    named = {option: value.format(queue.replace(".", "-")) for option, value in named.items()}
    running = query(queue=None, topic=queue, readers=readers, **named)
    running.begin()
    put(broker, queue, *map(str, range(30)), kind="topic")
    assert sorted(map(int, running.texts(30))) == list(range(30))
    running.source.stop()
    put(broker, queue, *map(str, range(30, 60)), kind="topic")
    running.start()
    assert running.plan()
    before = running.rows()
    running.start()
    assert running.rows() == before, "a repeated batch"
    found = [int(row["text"]) for rows in before for row in rows]
    running.commit()
    assert sorted([*found, *map(int, running.texts(30 - len(found)))]) == list(range(30, 60))
    assert not running.plan()


def test_a_selector_of_a_subscription_is_that_of_its_queue(broker, queue, put, query):
    named = {"queue": None, "topic": queue, "clientId": queue, "subscriptionName": "orders"}
    running = query(**named, selector="JMSMessageID = 'ID:2' OR JMSMessageID = 'ID:0'")
    running.begin()
    put(broker, queue, *map(str, range(4)), kind="topic")
    assert running.texts(2) == ["0", "2"]
    assert not running.plan()
    other = query(**named, selector="JMSMessageID = 'ID:1'")
    with pytest.raises(SelectorChangedError):
        other.plan()


def test_a_selector_is_pushed_down_and_evaluated_again(broker, queue, put, query):
    put(broker, queue, *map(str, range(4)))
    running = query(selector="JMSMessageID = 'ID:2' OR JMSMessageID = 'ID:0'")
    assert running.texts(2) == ["0", "2"]
    assert not running.plan()
    assert left(broker, queue, 2) == 2


@pytest.mark.parametrize("wrong", [{"subscriptionName": "1.n"}, {"topic": "a::b"}])
def test_a_subscription_that_the_broker_would_take_for_another_one_is_refused(broker, queue, query, wrong):
    """Before a staging queue or a subscription exists. The dialect is known only after the connection."""
    named = {"queue": None, "topic": queue, "subscriptionName": "n", "clientId": queue, "stagingQueue": f"{queue}.mine"}
    with pytest.raises(InvalidOptionError, match=f"Option {next(iter(wrong))} is "):
        query(**named | wrong).plan()
    control = broker.server.getActiveMQServerControl()
    assert not [name for name in map(str, control.getAddressNames()) if queue in name]


def test_several_queues_are_one_stream(broker, queue, put, query):
    put(broker, queue, *map(str, range(5)))
    put(broker, f"{queue}.2", *map(str, range(5, 10)))
    running = query(queue=json.dumps([queue, f"{queue}.2"]), maxMessagesPerTrigger=4)
    assert sorted(map(int, running.texts(10))) == list(range(10))
    put(broker, f"{queue}.2", "more")
    running.start()
    assert running.texts(1) == ["more"]


@pytest.mark.parametrize("numbers", [(2, 3), pytest.param((7, 1), marks=pytest.mark.deep)])
def test_each_reader_has_its_share_of_the_queues_and_its_number_may_change(broker, queue, put, query, numbers):
    """The second driver reads what was sent meanwhile; what was read is not given to another reader again."""
    queues = [f"{queue}.{each}" for each in range(5)]
    first = query(queue=json.dumps(queues), readers=numbers[0])
    for run, running in enumerate([first, query(queue=json.dumps(queues), readers=numbers[1])]):
        running.log = first.log
        for each in queues:
            put(broker, each, *(f"{run} {each} {number}" for number in range(4)))
        wanted = sorted(f"{run} {each} {number}" for each in queues for number in range(4))
        assert sorted(running.texts(20)) == wanted
        running.source.stop()
    assert [left(broker, each) for each in queues] == [0] * 5


def test_available_now_ends_at_what_was_sent_later(broker, queue, put, query):
    put(broker, queue, *map(str, range(5)))
    running = query(idleTimeout="300ms", maxMessagesPerTrigger=3)
    running.source.drain()
    assert running.texts(5) == list(map(str, range(5)))
    assert not running.plan()
    put(broker, queue, "later")
    assert not running.plan()
    assert left(broker, queue, 1) == 1


def test_a_stop_while_it_waits(broker, queue, query):
    running = query()
    running.begin()
    running.source.store._stop.made = True
    with pytest.raises(StoppedError):
        running.plan()
    running.source.stop()
    wait_until(lambda: broker.consumer_count(queue) == 0)


def test_a_value_has_at_most_the_bytes_of_a_reader(broker, queue, put, query):
    put(broker, queue, *("x" * 10_000 for _ in range(100)))
    running = query(maxBytesPerTrigger=400_000, readers=2)
    running.plan()
    assert all(10 <= len(rows) <= 20 for rows in running.rows())


def test_a_full_queue_beside_an_empty_one_ends_a_value(broker, queue, put, query):
    """Each has its share of the window, so that the value is not full when the window of one is."""
    put(broker, queue, *("x" * 10_000 for _ in range(100)))
    running = query(queue=json.dumps([queue, f"{queue}.empty"]), maxBytesPerTrigger=400_000)
    assert len(running.texts(100)) == 100
    assert left(broker, queue) == 0


def test_a_batch_without_room_for_all_queues_begins_with_another_one_each_time(broker, queue, put, query):
    """Or the last ones would not be read before the first ones are empty."""
    queues = [f"{queue}.{name}" for name in "abc"]
    for each in queues:
        put(broker, each, *[each] * 4)
    running = query(queue=json.dumps(queues), maxMessagesPerTrigger=1)
    assert sorted(running.texts(3)) == queues


class NotedValue(NewValue):
    """Notes at each range whether messages were still received."""

    early: ClassVar[list] = []

    def add(self, range_):
        self.early.append(self._link.sources[range_.subscription]._prefetch._grants)
        super().add(range_)


@pytest.mark.parametrize("limit", [None, 25])
def test_full_blocks_of_a_flood_are_sent_while_more_is_received(broker, queue, put, query, monkeypatch, limit):
    monkeypatch.setattr("pyspark_jms.amqp.link.prefetch._BLOCK_MESSAGES", 10)
    monkeypatch.setattr("pyspark_jms.source.readers.intake._FLOOD_MESSAGES", 1)
    monkeypatch.setattr("pyspark_jms.source.readers.task.NewValue", NotedValue)
    monkeypatch.setattr(NotedValue, "early", [])
    texts = [f"{n} {'x' * 2000}" for n in range(90)]  # more than a window, so that the broker cannot send all at once
    put(broker, queue, *texts)
    running = query(maxMessagesPerTrigger=limit, windowBytes="64k")
    found, sizes = [], []
    while running.plan():
        [rows] = running.rows()
        found += [row["text"] for row in rows]
        sizes.append(len(rows))
        running.commit()
    assert found == texts
    assert NotedValue.early[0] == (limit is None), "a full value needs no flood"
    assert limit is None or max(sizes) <= limit
    wait_until(lambda: broker.delivery_counts(queue) == [])
