"""One line about a selector that has matched nothing."""

import logging

import pytest
from rawstomp import RawStomp
from streaming import access

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.unmatched import UnmatchedSelector
from pyspark_jms.stomp.source import StompSource

pytestmark = pytest.mark.broker


@pytest.fixture
def told(broker, queue, caplog):
    """Return the lines after some requests for the counts of a queue with three messages."""
    with RawStomp(broker) as client:
        client.send(queue, [([("region", "EU"), ("n", "1")], "x")] * 3)

    def told(selector, protocol, *counts, received=0):
        url = broker.url if isinstance(protocol, StompSource) else broker.amqp_url
        options = SourceOptions.parse({**access(broker), "brokerUrl": url, "queue": queue, **selector})
        note = UnmatchedSelector(options, protocol, lambda: received)
        with caplog.at_level(logging.WARNING, "pyspark_jms.source"):
            for count in counts:
                note(count)
        return [each.getMessage() for each in caplog.records if "selector" in each.getMessage()]

    return told


@pytest.mark.parametrize("protocol", [StompSource(), AmqpSource()], ids=["stomp", "amqp"])
def test_a_misspelled_name_is_named_once(told, queue, protocol):
    selector = {"selector": "convert_string_expressions:regoin = 'EU' AND JMSPriority > 1 AND n = 1"}
    (line,) = told(selector, protocol, 3, 3, 3, 3)
    assert line.startswith("! no message has matched the selector since the query started; 3 wait on " + queue)
    assert "None of the first ones has regoin (did you mean region?). Properties of these messages: " in line
    assert "region" in line.rpartition(": ")[2]


def test_known_names_are_listed_only(told):
    (line,) = told({"selector": "region = 'US'"}, StompSource(), 3, 0, 3, 3)
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
    assert told(selector, StompSource(), *counts, received=received) == []
