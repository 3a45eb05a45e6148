import pickle

from streaming import left

from pyspark_jms.delivery.register.outcomes import Read
from pyspark_jms.source.readers.task import ReaderInput


def test_a_task_is_small_and_has_no_message():
    read = Read(stream="s", name="t", reader=2, batch=7, since=6)
    task = ReaderInput(read, "base", 3)
    assert repr(task) == "reader 2 of batch 7"
    assert len(pickle.dumps(task)) < 500


def test_two_attempts_of_a_task_have_the_same_rows(broker, queue, put, query):
    put(broker, queue, *map(str, range(10)))
    running = query()
    running.plan()
    [task] = running.tasks()
    assert running.read(task) == running.read(task)
    assert len(running.read(task)) == 10
    assert left(broker, queue) == 0


def test_a_message_that_was_sent_after_the_start_waits_for_the_next_run(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.source.drain()
    running.source._drain_since_ms = -60_000.0
    running.plan()
    assert running.rows() == [[]]
    running.commit()
    assert not running.plan()
    assert left(broker, queue, 1) == 1


def test_an_unmappable_message_is_a_dead_letter_once(broker, queue, put, query):
    put(broker, queue, "one")
    running = query(onBadMessage="deadLetter", deadLetterQueue=f"{queue}.dead")
    assert running.texts(1) == ["one"]
    assert running.source.progress()["deadLetters"] == 0
