import pytest
from amqp_messages import block_of
from streaming import left
from waiting import await_value

from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.definitions import Target
from pyspark_jms.errors import MessageTooLargeError
from pyspark_jms.source.staged.move import Move

_BAD = b"\x00\x53\x74\xc1\x05\x02\x40\x42\x40\x41" + b"\x00\x53\x77\xa1\x01x"
"""A text whose application properties have a name that is not text."""


def put_bad(settings, queue):
    with Producer(settings) as producer:
        producer.open(Target(address=queue, capabilities=("queue",)))
        producer.send(block_of([_BAD]))
        producer.commit()


def test_messages_that_cannot_be_mapped_become_dead_letters(broker, queue, put, query, settings_for):
    put(broker, queue, "one")
    put_bad(settings_for(broker), queue)
    put(broker, queue, "two")
    running = query(onBadMessage="deadLetter", deadLetterQueue=f"{queue}.dead")
    assert running.texts(2) == ["one", "two"]
    assert (left(broker, queue), left(broker, f"{queue}.dead", 1)) == (0, 1)
    assert running.source.progress()["deadLetters"] == 1


def test_only_bad_messages_leave_the_queue_too(broker, queue, query, settings_for):
    running = query(onBadMessage="deadLetter", deadLetterQueue=f"{queue}.dead")
    running.plan()
    put_bad(settings_for(broker), queue)
    for _ in range(3):
        running.plan()
    assert (left(broker, queue), left(broker, f"{queue}.dead", 1)) == (0, 1)
    assert len(running.log) == 1


@pytest.mark.parametrize(("choice", "letters"), [("skip", 0), ("deadLetter", 1)])
def test_messages_that_are_too_large_leave_the_queue(broker, queue, put, query, choice, letters):
    put(broker, queue, "one", "x" * 20_000, "two")
    more = {"deadLetterQueue": f"{queue}.dead"} if letters else {}
    running = query(onTooLarge=choice, maxMessageBytes="10k", **more)
    assert running.texts(2) == ["one", "two"]
    assert left(broker, queue) == 0
    figures = running.source.progress()
    assert (figures["deadLetters"], figures["skippedTooLarge"]) == (letters, 1 - letters)
    if letters:
        assert left(broker, f"{queue}.dead", 1) == 1


def test_a_message_that_is_too_large_stops_the_query_without_a_count(broker, queue, put, query):
    put(broker, queue, "one", "x" * 20_000)
    running = query(maxMessageBytes="10k")
    running.plan()
    with pytest.raises(MessageTooLargeError):
        running.texts(2)
    assert left(broker, queue, 2) == 2
    await_value(lambda: broker.delivery_counts(queue), [0, 0])


def test_a_dead_letter_is_sent_while_a_move_is_open(broker, queue, put, query, settings_for, monkeypatch):
    """The blocks before it were sent, and are not committed with it."""
    monkeypatch.setattr("pyspark_jms.amqp.link.prefetch._BLOCK_MESSAGES", 2)
    moves = []

    class BadFollows(Move):
        def add(self, span):
            super().add(span)
            if not moves:
                put_bad(settings_for(broker), queue)
            moves.append(self)

    def dies(*_):
        raise DeathError

    class DeathError(Exception):
        pass

    put(broker, queue, "one", "two", "three")
    running = query(onBadMessage="deadLetter", deadLetterQueue=f"{queue}.dead")
    assert running.plan()
    with monkeypatch.context() as dying:
        dying.setattr("pyspark_jms.source.staged.owner.Move", BadFollows)
        dying.setattr("pyspark_jms.amqp.staging.AmqpStagedLink.move", dies)
        with pytest.raises(DeathError):
            running.plan()
    assert left(broker, f"{queue}.dead", 1) == 1
    assert moves[0]._link.blocks() == []
    running.die()
    running.start()
    assert running.texts(3) == ["one", "two", "three"]
