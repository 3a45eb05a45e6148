"""Which protocol, and which of its brokers: decided before anything connects."""

import pytest

from pyspark_jms.errors import OptionConflictError, UnsupportedError
from pyspark_jms.options.broker import BROKERS, dialect_of
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions

DOCUMENTED = ("azure-service-bus", "solace", "ibm-mq")
STOMP, AMQP = "stomp://localhost", "amqp://localhost"


def test_brokers_of_both_protocols_are_listed_once():
    assert ("artemis", "classic", "rabbitmq", "broker-j", *DOCUMENTED, "amqp") == BROKERS


@pytest.mark.parametrize(("url", "broker"), [(STOMP, "amqp"), (STOMP, "broker-j")])
def test_a_broker_that_does_not_speak_the_protocol_is_refused(url, broker):
    with pytest.raises(OptionConflictError, match=rf"broker={broker} .*Over (STOMP|AMQP): auto, artemis"):
        SourceOptions.parse({"brokerUrl": url, "broker": broker, "queue": "q"})


@pytest.mark.parametrize("broker", ["auto", "artemis", "classic", "rabbitmq", "amqp"])
def test_over_amqp_a_journal_is_refused(broker):
    for given in ({}, {"deliveryGuarantee": "exactly-once"}):
        with pytest.raises(UnsupportedError, match=r"journalLocation.*AMQP.*deliveryGuarantee=exactly-once.*stomp://"):
            SourceOptions.parse(
                {"brokerUrl": AMQP, "broker": broker, "queue": "q", "journalLocation": "/tmp/j"} | given
            )


@pytest.mark.parametrize(
    ("url", "broker", "reason"),
    [
        (AMQP, "artemis", None),
        (AMQP, "auto", None),
        (AMQP, "classic", "admits one connection with a container id"),
        (AMQP, "rabbitmq", "has no transactions"),
        (AMQP, "amqp", "is no lock"),
        (STOMP, "auto", r"over STOMP, which cannot fence a COMMIT .*amqp://HOST:5672"),
        (STOMP, "artemis", r"over STOMP, which cannot fence a COMMIT .*amqp://HOST:5672"),
        ("stomp+ssl://h:1", "auto", r"over STOMP, which cannot fence a COMMIT .*amqp://HOST:5672"),
    ],
)
def test_exactly_once_writes_are_refused_over_stomp_and_where_the_broker_is_named_and_cannot_keep_them(
    url, broker, reason
):
    asked = {"brokerUrl": url, "broker": broker, "queue": "q", "deliveryGuarantee": "exactly-once"}
    if reason is None:
        assert SinkOptions.parse(asked).exactly_once
    else:
        with pytest.raises(UnsupportedError, match=rf"exactly-once.*{reason}"):
            SinkOptions.parse(asked)


@pytest.mark.parametrize("broker", ["auto", "classic"])
def test_over_amqp_the_same_options_are_taken(broker):
    read = SourceOptions.parse({"brokerUrl": AMQP, "broker": broker, "queue": "q"})
    assert read.connection.addresses[0].protocol == "amqp"
    durable = {"topic": "t", "subscriptionName": "s", "sharedSubscription": "true"}
    assert SourceOptions.parse({"brokerUrl": AMQP, "broker": broker} | durable).durable is not None
    assert SinkOptions.parse({"brokerUrl": AMQP, "broker": broker, "queue": "q"}).connection.broker == broker


STAGED = {"queue": "q", "deliveryGuarantee": "exactly-once"}


def test_exactly_once_reads_need_amqp_or_a_journal():
    with pytest.raises(
        UnsupportedError, match=r"deliveryGuarantee=exactly-once .* over STOMP.*journalLocation.*amqp://"
    ):
        SourceOptions.parse({"brokerUrl": "stomp://h:1"} | STAGED)
    assert SourceOptions.parse({"brokerUrl": AMQP} | STAGED).exactly_once
    assert SourceOptions.parse({"brokerUrl": STOMP, "journalLocation": "/j"} | STAGED).exactly_once


@pytest.mark.parametrize("more", [{"readers": "2"}, {"stagingQueue": "s"}])
def test_over_stomp_no_task_receives_and_no_queue_keeps_a_batch(more):
    with pytest.raises(UnsupportedError, match=rf"{next(iter(more))}.* over STOMP.*journalLocation.*amqp://"):
        SourceOptions.parse({"brokerUrl": STOMP, "journalLocation": "/j"} | STAGED | more)


@pytest.mark.parametrize("given", [{}, {"journalLocation": "/j"}])
def test_over_stomp_rabbitmq_reads_at_least_once(given):
    with pytest.raises(UnsupportedError, match="rabbitmq gives a message a new id at each delivery"):
        SourceOptions.parse({"brokerUrl": STOMP, "broker": "rabbitmq"} | STAGED | given)


@pytest.mark.parametrize(
    ("read", "what"),
    [({"topic": "t"}, "topics"), ({"topic": "t", "subscriptionName": "s", "clientId": "c"}, "durable subscriptions")],
)
def test_a_topic_of_rabbitmq_is_not_read_over_amqp(read, what):
    with pytest.raises(UnsupportedError, match=f"{what}.*Bind a queue"):
        SourceOptions.parse({"brokerUrl": AMQP, "broker": "rabbitmq"} | read)
    assert SourceOptions.parse({"brokerUrl": AMQP, "broker": "auto"} | read).destinations


def test_rows_are_confirmed_one_by_one_without_transactions_unless_they_are_demanded():
    for url in (STOMP, AMQP):
        named = {"brokerUrl": url, "broker": "rabbitmq", "queue": "q"}
        assert SinkOptions.parse(named).transaction == "auto"
        for demanded in ("task", "500"):
            with pytest.raises(UnsupportedError, match="Set transaction=none"):
                SinkOptions.parse(named | {"transaction": demanded})


@pytest.mark.parametrize("broker", ["classic", "rabbitmq", "amqp"])
def test_exactly_once_reads_are_refused_where_the_broker_is_named_and_cannot(broker):
    with pytest.raises(UnsupportedError, match=f"exactly-once is given for a read from {broker} over AMQP"):
        SourceOptions.parse({"brokerUrl": AMQP, "broker": broker} | STAGED)


def test_several_connections_need_a_broker_that_answers():
    with pytest.raises(UnsupportedError, match=r"rabbitmq has no transactions over AMQP.*Use connections=1"):
        SourceOptions.parse({"brokerUrl": AMQP, "broker": "rabbitmq", "queue": "q", "connections": "2"})
    for url, broker in ((AMQP, "artemis"), (AMQP, "classic"), (STOMP, "rabbitmq"), (AMQP, "auto")):
        SourceOptions.parse({"brokerUrl": url, "broker": broker, "queue": "q", "connections": "2"})


def test_a_broker_has_the_selectors_of_its_protocol():
    found = [
        dialect_of(*each).selector_dialect for each in (("stomp", "artemis"), ("amqp", "artemis"), ("amqp", "amqp"))
    ]
    assert found == ["artemis", "artemis-amqp", "amqp"]
    assert dialect_of("stomp", "rabbitmq").selector_dialect is None
