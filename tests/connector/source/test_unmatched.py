"""One line about a selector that has matched nothing."""

import contextlib
import logging

import pytest
from rawstomp import RawStomp
from receivers import OpenReceiver
from streaming import access
from waiting import await_count

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.unmatched import UnmatchedSelector, peek_or_tell
from pyspark_jms.spark.protocols import reading_of

pytestmark = pytest.mark.broker


@pytest.fixture
def told(broker, queue, caplog):
    """Return the lines after some requests for the counts of a queue with three messages."""
    with RawStomp(broker) as client:
        client.send(queue, [([("region", "EU"), ("n", "1")], "x")] * 3)

    def told(selector, protocol, *counts, received=0):
        url = broker.url if protocol == "stomp" else broker.amqp_url
        options = SourceOptions.parse({**access(broker), "brokerUrl": url, "queue": queue, **selector})
        note = UnmatchedSelector(reading_of(options), lambda: received)
        with caplog.at_level(logging.WARNING, "pyspark_jms.source"):
            for count in counts:
                note(count)
        return [each.getMessage() for each in caplog.records if "selector" in each.getMessage()]

    return told


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_misspelled_name_is_named_once(told, queue, protocol):
    selector = {"selector": "convert_string_expressions:regoin = 'EU' AND JMSPriority > 1 AND n = 1"}
    (line,) = told(selector, protocol, 3, 3, 3, 3)
    assert line.startswith("! no message has matched the selector since the query started; 3 wait on " + queue)
    assert "None of them has regoin (did you mean region?). Properties of these messages: " in line
    assert "region" in line.rpartition(": ")[2]


def test_known_names_are_listed_only(told):
    (line,) = told({"selector": "region = 'US'"}, "stomp", 3, 0, 3, 3)
    assert "None of" not in line


@pytest.mark.parametrize(
    ("selector", "counts", "received"),
    [
        ({}, (3, 3, 3), 0),
        ({"selector": "region = 'EU'"}, (3, 3, 3), 1),
        ({"selector": "region = 'EU'"}, (3, 0, 3, 0, 3), 0),
    ],
)
def test_nothing_is_told_of_a_selector_that_matches_or_of_messages_that_go(told, selector, counts, received):
    assert told(selector, "stomp", *counts, received=received) == []


# --- the end of a read -------------------------------------------------------------------------------


@pytest.fixture(params=["stomp", "amqp"])
def start(request, broker, queue, caplog):
    """Return ``start(**options)``: a read of a queue with three messages."""
    caplog.set_level(logging.WARNING, "pyspark_jms.source")
    with RawStomp(broker) as client:
        client.send(queue, [([("region", "EU")], "x")] * 3)
    await_count(broker, queue, 3)
    url = broker.url if request.param == "stomp" else broker.amqp_url

    def start(**options):
        raw = access(broker) | {"brokerUrl": url, "queue": queue, "idleTimeout": "300ms"} | options
        return reading_of(SourceOptions.parse(raw))

    return start


def ends(caplog):
    return [line for line in caplog.messages if "the read ends without a row" in line]


MISSPELLED = "None of them has regoin (did you mean region?). Properties of these messages: "


def test_a_batch_read_without_a_row_tells_of_its_selector(start, queue, caplog):
    assert sum(rows.num_rows for rows in peek_or_tell(start(selector="regoin = 'EU'"))) == 0
    (line,) = ends(caplog)
    assert f"no message of {queue} has matched the selector. {MISSPELLED}" in line
    assert len(caplog.messages) == 1
    list(peek_or_tell(start(selector="region = 'US'")))
    assert len(ends(caplog)) == 2
    assert "None of" not in ends(caplog)[1]


@pytest.mark.parametrize("options", [{}, {"selector": "region = 'EU'"}])
def test_a_batch_read_with_rows_tells_nothing(start, caplog, options):
    assert sum(rows.num_rows for rows in peek_or_tell(start(**options))) == 3
    assert not caplog.messages


def test_an_empty_or_missing_queue_is_not_told_of_twice(start, queue, broker, caplog):
    list(peek_or_tell(start(selector="regoin = 'EU'", queue=f"{queue}.missing")))
    broker.create_queue(f"{queue}.empty")
    list(peek_or_tell(start(selector="regoin = 'EU'", queue=f"{queue}.empty")))
    assert not ends(caplog)
    assert len(caplog.messages) == 1


def test_a_run_that_ends_without_a_message_tells_of_its_selector_once(start, caplog):
    """AvailableNow."""
    with contextlib.closing(OpenReceiver(start(selector="regoin = 'EU'").options, drain=True)) as receiver:
        for _ in range(2):
            assert receiver.next_batch_end() == 0
    (line,) = ends(caplog)
    assert MISSPELLED in line


def test_an_exactly_once_run_that_ends_without_a_message_tells_of_its_selector(broker, queue, query, caplog):
    with RawStomp(broker) as client:
        client.send(queue, [([("region", "EU")], "x")] * 3)
    running = query(idleTimeout="300ms", selector="regoin = 'EU'")
    with caplog.at_level(logging.WARNING, "pyspark_jms.source"):
        running.source.drain()
        assert not running.plan()
    (line,) = ends(caplog)
    assert MISSPELLED in line
