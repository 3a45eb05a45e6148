"""Spark's calls in their order, without Spark. What each store does is tested beside it."""

import contextlib
import json
import logging

import amqp_sending
import pytest
from numbered import fill
from streaming import access

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.task_inputs import read_task
from pyspark_jms.spark.protocols import query_of, reading_of


@contextlib.contextmanager
def started(broker, queue, *, drain=False, **more):
    given = access(broker) | {"queue": queue} | {key: str(each) for key, each in more.items()}
    query = query_of(reading_of(SourceOptions.parse(given)))
    with contextlib.ExitStack() as stack:
        stack.callback(query.stop)
        if drain:
            query.drain()
        yield query


def run(query):
    """All batches of a run; how many rows each has."""
    start, found = query.initial_offset(), []
    while (end := query.latest_offset(start)) != start:
        reading = query._run.reading
        found.append(sum(rows.num_rows for task in query.partitions(start, end) for rows in read_task(task, reading)))
        query.commit(end)
        start = end
    assert query.latest_offset(start) == start
    return found


def closing_lines(caplog):
    return [line for line in caplog.messages if line.startswith("= the run has ended")]


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_run_that_ends_says_what_it_has_read_and_what_is_left(broker, queue, caplog, protocol):
    caplog.set_level(logging.WARNING, "pyspark_jms.source")
    fill(broker, queue, 25)
    url = {"brokerUrl": broker.amqp_url} if protocol == "amqp" else {}
    with started(broker, queue, drain=True, maxMessagesPerTrigger=10, idleTimeout="300ms", **url) as query:
        found = run(query)
    assert (sum(found), max(found)) == (25, 10)
    assert closing_lines(caplog) == [f"= the run has ended: 25 messages in {len(found)} batches, 0 left on {queue}"]


def test_a_run_without_a_message_says_what_is_left_too(broker, queue, caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms.source")
    fill(broker, queue, 4)
    more = {"selector": "n < 0", "idleTimeout": "300ms"}
    with started(broker, queue, drain=True, **more) as query:
        assert run(query) == []
    assert closing_lines(caplog) == [f"= the run has ended: 0 messages in 0 batches, 4 left on {queue}"]


def test_of_many_queues_the_closing_line_names_those_that_have_something_left(broker, queue, caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms.source")
    names = [f"{queue}.{number}" for number in range(9)]
    for name in names:
        broker.create_queue(name)
    for left in (0, 4):
        fill(broker, names[5], left)
        with started(broker, json.dumps(names), drain=True, selector="n < 0", idleTimeout="300ms") as query:
            assert run(query) == []
    ended = "= the run has ended: 0 messages in 0 batches"
    assert closing_lines(caplog) == [
        f"{ended}, 0 left on 9 queues",
        f"{ended}, 4 left on {names[5]}, 0 left on 8 others",
    ]


def test_the_closing_line_has_dead_letters(broker, queue, caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms.source")
    amqp_sending.put(broker, queue, "good", "much too long" * 1000)
    more = {"onTooLarge": "deadLetter", "deadLetterQueue": f"{queue}.dead", "maxMessageBytes": "10000"}
    with started(broker, queue, drain=True, idleTimeout="300ms", **more) as query:
        assert run(query) == [1]
    assert closing_lines(caplog) == [f"= the run has ended: 1 message in 1 batch, 1 dead letter, 0 left on {queue}"]


def test_a_query_that_goes_on_has_no_closing_line(broker, queue, caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms.source")
    with started(broker, queue) as query:
        start = query.initial_offset()
        assert query.latest_offset(start) == start
    assert not closing_lines(caplog)


def test_progress_before_the_first_call_is_empty_and_stop_is_harmless(broker, queue):
    with started(broker, queue) as query:
        assert query.progress() == {}
        query.stop()


def test_a_journal_is_not_read_with_asynchronous_progress(broker, queue, tmp_path):
    fill(broker, queue, 30)
    more = {"deliveryGuarantee": "exactly-once", "journalLocation": tmp_path, "maxMessagesPerTrigger": 10}
    with started(broker, queue, **more) as query:
        offsets = [query.initial_offset()]
        for _ in range(3):
            while (end := query.latest_offset(offsets[-1])) == offsets[-1]:
                pass
            offsets.append(end)
        query.partitions(offsets[0], offsets[1])
        with pytest.raises(UnsupportedError, match="asyncProgressTrackingEnabled"):
            query.partitions(offsets[1], offsets[2])
