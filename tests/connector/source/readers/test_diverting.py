import pytest
from amqp_messages import section, string
from amqp_sending import put_encoded
from streaming import left
from waiting import wait_until

from pyspark_jms.amqp.reading import AmqpReaderLink
from pyspark_jms.errors import MessageTooLargeError
from pyspark_jms.source.readers.new_value import NewValue

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
        def add(self, span):
            super().add(span)
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
        dying.setattr(AmqpReaderLink, "replace_value", dies)
        with pytest.raises(DeathError):
            running.read(task)
    assert values
    assert left(broker, f"{queue}.dead", 1) == 1
    assert [row["text"] for row in running.read(task)] == ["one", "two", "three"]
    assert (left(broker, queue), left(broker, f"{queue}.dead", 1)) == (0, 1)
