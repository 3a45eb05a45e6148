"""Of the queues that one read names, no two are one."""

import pytest

from pyspark_jms.errors import InvalidOptionError, OptionConflictError
from pyspark_jms.options.source import SourceOptions

AMQP = {"brokerUrl": "amqp://host:1"}
ONCE = AMQP | {"deliveryGuarantee": "exactly-once"}
DURABLE = ONCE | {"subscriptionName": "n", "clientId": "c"}
LETTERS = {"onBadMessage": "deadLetter"}
STOMP = {"brokerUrl": "stomp://host:1"}
SUBSCRIBED = {"topic": "t", "subscriptionName": "n"}


@pytest.mark.parametrize(
    "given",
    [
        ONCE | {"queue": "s", "stagingQueue": "s"},
        ONCE | {"queue": "s.0", "stagingQueue": "s"},
        ONCE | {"queue": "s.1", "stagingQueue": "s", "readers": "2"},
        ONCE | {"queue": '["a", "s"]', "stagingQueue": "s"},
        ONCE | {"queue": "s::s.0", "stagingQueue": "s"},
        ONCE | {"queue": "x::s.0", "stagingQueue": "s"},
        ONCE | {"queue": "a.#", "stagingQueue": "a.s"},
        ONCE | {"queue": "s.*", "stagingQueue": "s"},
        DURABLE | {"topic": "s", "stagingQueue": "s"},
        DURABLE | {"topic": "a.>", "stagingQueue": "a.s"},
        DURABLE | {"topic": "a", "stagingQueue": "n"},
        DURABLE | {"topic": "a", "stagingQueue": "s", "subscriptionName": "s.0", "readers": "1"},
        ONCE | LETTERS | {"queue": "a", "stagingQueue": "s", "deadLetterQueue": "s"},
        ONCE | LETTERS | {"queue": "a", "stagingQueue": "s", "deadLetterQueue": "s.0"},
        ONCE | LETTERS | {"queue": "a", "stagingQueue": "s", "deadLetterQueue": "s::s.0"},
        AMQP | LETTERS | {"queue": "a", "deadLetterQueue": "a"},
        AMQP | LETTERS | {"queue": "a.*", "deadLetterQueue": "a.dead"},
        AMQP | LETTERS | {"queue": "a", "deadLetterQueue": "a::dead"},
        AMQP | LETTERS | SUBSCRIBED | {"clientId": "c", "deadLetterQueue": "t::c.n"},
        AMQP | LETTERS | SUBSCRIBED | {"sharedSubscription": "true", "deadLetterQueue": "t::n:global"},
        STOMP | LETTERS | SUBSCRIBED | {"sharedSubscription": "true", "deadLetterQueue": "t::n"},
        STOMP | LETTERS | SUBSCRIBED | {"clientId": "c", "deadLetterQueue": "other::c.n"},
        AMQP | LETTERS | {"queue": "a", "deadLetterQueue": "pyspark-jms.staging.0"},
        AMQP | LETTERS | {"queue": "a", "deadLetterQueue": "pyspark-jms.commits"},
        AMQP | LETTERS | {"queue": "a", "deadLetterQueue": "a.dead::pyspark-jms.commits.0"},
    ],
)
def test_two_names_of_one_queue_are_refused(given):
    with pytest.raises(OptionConflictError, match="Name another queue"):
        SourceOptions.parse(given)


@pytest.mark.parametrize("name", ["a::b", "x.#", "x.*", "x.>", "a?b", " s", "s\t"])
def test_a_name_that_a_broker_parses_keeps_no_messages(name):
    with pytest.raises(InvalidOptionError, match=r"stagingQueue.*one plain name"):
        SourceOptions.parse(ONCE | {"queue": "a", "stagingQueue": name})
    if "::" not in name:
        with pytest.raises(InvalidOptionError, match=r"deadLetterQueue.*one plain name"):
            SourceOptions.parse(AMQP | LETTERS | {"queue": "a", "deadLetterQueue": name})


@pytest.mark.parametrize(
    "given",
    [
        ONCE | LETTERS | {"queue": "s.a", "stagingQueue": "s", "deadLetterQueue": "s.dead"},
        ONCE | LETTERS | {"queue": "a", "deadLetterQueue": "address::dead"},
        DURABLE | {"topic": "a.*", "stagingQueue": "s"},
        AMQP | LETTERS | SUBSCRIBED | {"clientId": "c", "deadLetterQueue": "c.n"},
        AMQP | LETTERS | SUBSCRIBED | {"clientId": "c", "deadLetterQueue": "dead::n"},
        AMQP | LETTERS | SUBSCRIBED | {"clientId": "c", "deadLetterQueue": "t"},
    ],
)
def test_different_names_are_fine(given):
    assert SourceOptions.parse(given).destinations
