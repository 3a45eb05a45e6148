"""Options of a read that depend on each other."""

import pytest

from pyspark_jms.errors import (
    InvalidOptionError,
    MissingOptionError,
    OptionConflictError,
    OptionError,
    UnknownOptionError,
    UnsupportedError,
)
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.options.source import SourceOptions

STOMP, AMQP = {"brokerUrl": "stomp://host:1"}, {"brokerUrl": "amqp://host:1"}
ONCE = AMQP | {"deliveryGuarantee": "exactly-once"}
SOURCE, NEWS = STOMP | {"queue": "orders"}, STOMP | {"topic": "news"}
DEAD = {"deadLetterQueue": "d"}
JOURNAL = {"journalLocation": "/j"}
CLIENT = {"subscriptionName": "s", "clientId": "c"}
TWO = {"connections": "2"}


def queues(*names):
    return tuple(Destination.parse(f"queue://{name}") for name in names)


@pytest.mark.parametrize(
    ("given", "destinations"),
    [
        ({"queue": "orders"}, queues("orders")),
        ({"queue": '["a", "b::c"]'}, queues("a", "b::c")),
        ({"queue": '["a,b"]'}, queues("a,b")),
        ({"topic": "news"}, (Destination.parse("topic://news"),)),
        ({"topic": "[1]"}, (Destination.parse("topic://[1]"),)),
    ],
)
def test_what_a_source_reads(given, destinations):
    assert SourceOptions.parse(STOMP | given).destinations == destinations


@pytest.mark.parametrize(
    ("given", "durable"),
    [
        ({}, None),
        (CLIENT, DurableSubscription("s", "c")),
        ({"subscriptionName": "s", "sharedSubscription": "true"}, DurableSubscription("s", shared=True)),
        (CLIENT | {"sharedSubscription": "true"}, DurableSubscription("s", "c", shared=True)),
    ],
)
def test_what_a_topic_keeps_for_a_query(given, durable):
    options = SourceOptions.parse(NEWS | given)
    assert options.durable == durable
    assert options.connection.client_id == given.get("clientId")
    assert options.is_plain_topic == (durable is None)
    assert not SourceOptions.parse(SOURCE).is_plain_topic


@pytest.mark.parametrize("name", ["onBadMessage", "onTooLarge"])
def test_a_dead_letter_queue_has_a_name_and_a_use(name):
    letters = {name: "deadLetter"}
    assert SourceOptions.parse(SOURCE | letters | DEAD, "stream").dead_letter_queue == "d"
    with pytest.raises(MissingOptionError, match=f"{name}=deadLetter .*deadLetterQueue"):
        SourceOptions.parse(SOURCE | letters)
    with pytest.raises(OptionConflictError, match="deadLetterQueue"):
        SourceOptions.parse(SOURCE | DEAD)
    with pytest.raises(OptionConflictError, match=r"Queue orders .*deadLetterQueue"):
        SourceOptions.parse(SOURCE | letters | {"deadLetterQueue": "orders"})
    with pytest.raises(OptionConflictError, match=r"queue=orders\.# .*deadLetterQueue=orders\.dead"):
        SourceOptions.parse(STOMP | {"queue": "orders.#", "deadLetterQueue": "orders.dead"} | letters)
    with pytest.raises(OptionConflictError, match="batch read"):
        SourceOptions.parse(SOURCE | letters | DEAD, "batch")


@pytest.mark.parametrize("reading", ["stream", "batch", None])
def test_a_batch_of_a_stream_and_a_batch_read_have_the_same_limits(reading):
    options = SourceOptions.parse(SOURCE | {"maxMessagesPerTrigger": "5", "maxbytespertrigger": "6"}, reading)
    assert (options.max_messages, options.max_bytes, options.peek_bytes) == (5, 6, 6)


def test_a_batch_refuses_what_only_a_stream_has():
    with pytest.raises(UnknownOptionError, match=r"windowBytes .*stream.*batch"):
        SourceOptions.parse(SOURCE | {"windowBytes": "5"}, "batch")
    SourceOptions.parse(SOURCE | {"windowBytes": "5"}, "stream")


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({}, 128 << 20),
        ({"maxBytesPerTrigger": "1m"}, 2 << 20),
        ({"maxMessagesPerTrigger": "1000"}, 2 * 1000 * 4096),
        ({"maxMessagesPerTrigger": "1"}, 64 << 10),
        ({"maxMessagesPerTrigger": "1000000000"}, 128 << 20),
        ({"maxMessagesPerTrigger": "1", "MAXBYTESPERTRIGGER": "1m"}, 2 << 20),
        ({"maxMessagesPerTrigger": "1", "windowBytes": "5m"}, 5 << 20),
    ],
)
def test_the_window(given, window):
    assert SourceOptions.parse(SOURCE | given).window_bytes == window


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({"connections": "4"}, 32 << 20),
        ({"connections": "4", "queue": '["a", "b"]'}, 16 << 20),
        ({"connections": "3", "windowBytes": "1000"}, 333),
        ({"connections": "16", "windowBytes": "5"}, 1),
        ({"queue": '["a", "b"]'}, 64 << 20),
    ],
)
def test_the_connections_share_the_window(given, window):
    assert SourceOptions.parse(SOURCE | given).connection_window == window


def test_a_shared_subscription_may_have_several_connections():
    given = AMQP | TWO | CLIENT | {"topic": "t", "sharedSubscription": "true"}
    assert SourceOptions.parse(given).connections == 2


def test_the_messages_of_several_connections_may_be_in_one_journal():
    given = SOURCE | TWO | JOURNAL | {"deliveryGuarantee": "exactly-once"}
    assert SourceOptions.parse(given).connections == 2


def test_strings_are_compared_as_numbers_where_some_broker_can():
    given = {"brokerUrl": "amqp://h", "queue": "q", "selector": "convert_string_expressions:n = 5"}
    assert SourceOptions.parse(given).selector is not None
    with pytest.raises(UnsupportedError, match=r"\[JMS_UNSUPPORTED\].*strings as numbers"):
        SourceOptions.parse(given | {"broker": "classic"})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (STOMP, "MISSING_OPTION.*queue .*topic"),
        (SOURCE | {"topic": "news"}, "CONFLICT.*queue and topic"),
        (NEWS | {"clientId": "c"}, "CONFLICT.*clientId is given without subscriptionName"),
        (NEWS | {"sharedSubscription": "true"}, "CONFLICT.*sharedSubscription is given without subscriptionName"),
        (NEWS | {"subscriptionName": "s"}, "MISSING_OPTION.*subscriptionName is given without clientId"),
        (SOURCE | CLIENT, "CONFLICT.*subscriptionName is given, and no topic"),
        (NEWS | CLIENT | {"sharedSubscription": "true", "broker": "classic"}, "UNSUPPORTED.*classic.*shared"),
        (ONCE | TWO | {"queue": "q"}, "CONFLICT.*connections=2 .*Use option readers"),
        (ONCE | TWO | {"queue": "q", "readers": "2"}, "CONFLICT.*connections=2 .*Use option readers"),
        (AMQP | TWO | {"queue": "q", "streamOffset": "first"}, "CONFLICT.*connections=2 and streamOffset are both"),
        (AMQP | TWO | {"topic": "t"}, "CONFLICT.*connections=2 is given for a topic subscription that is not shared"),
        (AMQP | TWO | CLIENT | {"topic": "t"}, "CONFLICT.*connections=2 is given for a topic .*that is not shared"),
        (AMQP | {"queue": "q", "stagingQueue": "s"}, "CONFLICT.*without deliveryGuarantee=exactly-once"),
        (AMQP | {"queue": "q", "readers": "2"}, "CONFLICT.*readers is given without deliveryGuarantee=exactly-once"),
        (ONCE | {"topic": "t"}, "CONFLICT.*for a plain topic subscription"),
        (ONCE | CLIENT | {"topic": "t", "readers": "2"}, "CONFLICT.*readers=2 .*for a subscription that is not shared"),
        (SOURCE | JOURNAL, "CONFLICT.*journalLocation is given without deliveryGuarantee=exactly-once"),
        (
            SOURCE | JOURNAL | {"deliveryGuarantee": "at-least-once"},
            "CONFLICT.*journalLocation is given without deliveryGuarantee=exactly-once",
        ),
        (NEWS | JOURNAL | {"deliveryGuarantee": "exactly-once"}, "CONFLICT.*for a plain topic subscription"),
    ],
)
def test_options_that_do_not_go_together(given, reason):
    with pytest.raises(OptionError, match=f"JMS_(OPTION_)?{reason}"):
        SourceOptions.parse(given)


# --- the queues that the options of one read name ----------------------------------------------------

DURABLE = ONCE | {"subscriptionName": "n", "clientId": "c"}
LETTERS = {"onBadMessage": "deadLetter"}
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


@pytest.mark.parametrize("name", ["orders.2024", "orders.0", "a.b.01", "orders.\u0663"])
def test_a_name_that_ends_as_the_queue_of_a_reader_is_refused(name):
    with pytest.raises(InvalidOptionError, match=r"ends in a number.*orders-|ends in a number.*a\.b-01"):
        SourceOptions.parse(ONCE | {"queue": "a", "stagingQueue": name})


@pytest.mark.parametrize(
    "given",
    [
        ONCE | {"queue": "a", "stagingQueue": "orders-2024"},
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
