import pytest
from amqp_sending import settings_of
from streaming import left

from pyspark_jms.amqp.link.read_register import ReadRegister, RegisterName
from pyspark_jms.errors import DataLossError, IllegalStateError, SourceFencedError, UnsupportedError


def numbered(*numbers):
    return [f"text {number}" for number in range(*numbers)]


def register_of(broker, running, reader=0):
    base = running.log[-1]["address"]
    return ReadRegister(settings_of(broker), RegisterName(base, reader))


def test_a_query_without_messages_plans_nothing(queue, query):
    assert not query().plan()


def test_each_message_is_read_once(broker, queue, put, query):
    put(broker, queue, *numbered(30))
    running = query(maxMessagesPerTrigger=12)
    assert running.texts(30) == numbered(30)
    assert not running.plan()
    assert left(broker, queue) == 0
    assert running.source.progress()["readers"] == 1


@pytest.mark.parametrize("readers", [(1, 3, 2), (3, 1, 1)])
def test_any_run_has_any_number_of_readers(broker, queue, put, query, readers):
    running = query()
    for run, count in enumerate(readers):
        put(broker, queue, *numbered(20 * run, 20 * run + 20))
        running.source.stop()
        running.source._options, running.source._readers = running.options, count
        running.start()
        running.source._readers = count
        assert sorted(running.texts(20)) == sorted(numbered(20 * run, 20 * run + 20))
    assert len(running.log[-1]["names"]) == max(readers)


def test_a_batch_that_is_repeated_has_the_same_rows(broker, queue, put, query):
    put(broker, queue, *numbered(50))
    running = query(readers=2)
    assert running.plan()
    before = running.rows()
    put(broker, queue, "later")
    assert running.rows() == before
    running.start()
    assert running.rows() == before
    running.commit()
    assert running.texts(1) == ["later"]


def test_an_earlier_batch_is_fenced(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.texts(1)
    [earlier] = running.tasks()
    put(broker, queue, "two")
    assert running.texts(1) == ["two"]
    with pytest.raises(SourceFencedError, match="received batch 2"):
        running.read(earlier)
    put(broker, queue, "three")
    running.log.pop()
    with pytest.raises(SourceFencedError):
        running.plan()


def test_rows_that_nobody_reads_stay_in_the_queue(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.plan()
    [late] = running.tasks()
    running.commit()
    assert running.plan()
    assert running.read(late) == [], "it was closed, and receives nothing"
    assert [row["text"] for task in running.rows() for row in task] == ["one"]


def test_available_now_does_not_go_on_for_ever_when_nobody_reads(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.source.drain()
    running.plan()
    running.commit()
    with pytest.raises(UnsupportedError, match="No task has read batch 1"):
        running.plan()


def test_a_register_that_is_gone_is_a_loss(broker, queue, put, query, monkeypatch):
    put(broker, queue, "one", "two")
    running = query(maxMessagesPerTrigger=1)
    running.texts(1)
    register = register_of(broker, running)
    register.lock()
    register.open()
    register.take(2)
    register.accept()
    register._transaction.discharge()
    register.close()
    monkeypatch.setattr("pyspark_jms.amqp.staging._IDLE_SECONDS", 0.1)
    monkeypatch.setattr("pyspark_jms.amqp.reading.AmqpReaderLink.patience_seconds", 0.3)
    with pytest.raises(DataLossError, match=r"token .* of reader 0 is not at the broker"):
        running.plan()
    put(broker, queue, "three")
    assert left(broker, queue, 2) == 2


def test_another_address_is_a_loss(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.texts(1)
    other = query(stagingQueue=f"{queue}.other")
    other.log = running.log
    put(broker, queue, "two")
    with pytest.raises(DataLossError, match="address"):
        other.plan()


def test_an_offset_of_another_way_to_read_is_refused(query):
    running = query()
    running.log.append({"seq": 3})
    with pytest.raises(IllegalStateError, match="offset of another way"):
        running.plan()
