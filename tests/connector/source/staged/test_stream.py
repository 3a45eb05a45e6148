from streaming import left
from waiting import await_count


def numbered(*numbers):
    return [f"text {number}" for number in range(*numbers)]


def test_the_first_batch_is_empty_and_names_the_stream(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    assert running.plan()
    [first] = running.log
    assert (first["seq"], first["cuts"]) == (0, [])
    assert first["id"]
    assert running.rows() == []
    await_count(broker, queue, 1)  # nothing moves before Spark shows the stream
    assert running.texts(1) == ["one"]
    assert left(broker, queue) == 0


def test_each_message_is_read_once_and_leaves_the_staging_queue(broker, queue, put, query):
    put(broker, queue, *numbered(30))
    running = query(maxMessagesPerTrigger=12)
    assert running.texts(30) == numbered(30)
    assert [offset["seq"] for offset in running.log] == [0, 12, 24, 30]
    assert not running.plan()
    figures = running.source.progress()
    assert (figures["staged"], figures["moved"], figures["retired"]) == (0, 30, 30)
    stream = f"pyspark-jms.staging.{running.log[0]['id']}"
    assert left(broker, f"{stream}.owner") == 0


def test_a_batch_is_repeated_with_the_same_rows_in_the_same_tasks(broker, queue, put, query):
    put(broker, queue, *(f"text {n}".ljust(2_000, ".") for n in range(100)))
    running = query(partitionBytes=30_000)
    running.plan()
    while not running.plan():
        pass
    before = running.rows()
    assert len(before) > 4
    running.die()
    put(broker, queue, "later")
    running.start()
    assert running.rows() == before
    running.commit()
    assert running.texts(1) == ["later"]


def test_a_move_that_was_not_planned_is_the_next_batch(broker, queue, put, query):
    put(broker, queue, *numbered(10))
    running = query()
    running.plan()
    while running.source.latest_offset(running.planned) == running.planned:
        pass
    running.die()
    put(broker, queue, *numbered(10, 15))
    assert left(broker, queue, 5) == 5
    running.start()
    assert running.plan()
    assert running.log[-1]["seq"] == 10
    assert [row["text"] for task in running.rows() for row in task] == numbered(10)
    running.commit()
    assert running.texts(5) == numbered(10, 15)
