import pytest

from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, BROKER_J, CLASSIC, DIALECTS, RABBITMQ, SOLACE
from pyspark_jms.errors import InvalidOptionError, UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import DurableSubscription


def test_what_needs_stomp_names_the_address_to_use():
    for dialect in DIALECTS.values():
        with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*stomp://HOST:61613"):
            dialect.require(Feature.JOURNAL)


def test_a_broker_without_a_lock_has_no_exactly_once_writes():
    ARTEMIS.require(Feature.EXACTLY_ONCE_WRITE)
    for dialect in (CLASSIC, RABBITMQ, BROKER_J, AMQP):
        with pytest.raises(UnsupportedError, match=rf"exactly-once.*over AMQP, and {dialect.name} .*use Artemis"):
            dialect.require(Feature.EXACTLY_ONCE_WRITE)


def test_a_broker_without_transactions_writes_without_them():
    ARTEMIS.require(Feature.TRANSACTIONS)
    for dialect in (RABBITMQ, SOLACE):
        with pytest.raises(UnsupportedError, match=f"{dialect.name} has no transactions.*transaction=none"):
            dialect.require(Feature.TRANSACTIONS)


def test_a_topic_is_not_read_where_only_queues_deliver():
    for dialect in (ARTEMIS, CLASSIC, BROKER_J, AMQP):
        dialect.require(Feature.TOPICS)
    with pytest.raises(UnsupportedError, match=r"no durable subscriptions\. Bind a queue to the exchange amq\.topic"):
        RABBITMQ.require(Feature.TOPICS)


@pytest.mark.parametrize(
    ("topic", "name", "client_id", "shared", "option"),
    [
        ("a::b", "n", "c", False, "topic"),
        ("t", "n::1", "c", False, "subscriptionName"),
        ("t", "n", "c::1", False, "clientId"),
        ("t", "1.n", "c", False, "subscriptionName"),
        ("t", "1.n", "c", True, "subscriptionName"),
        ("t", "n:global", "c", False, "subscriptionName"),
        ("t", "n:shared-volatile", "c", False, "subscriptionName"),
        ("t", "n|1", "c", True, "subscriptionName"),
        ("t", "n|1", "c", False, "subscriptionName"),
        ("t", "n", "c|1", False, "clientId"),
        ("t", "n", "c|1", True, "clientId"),
        ("t", "n|1", None, True, "subscriptionName"),
    ],
)
def test_a_subscription_that_artemis_would_take_for_another_one(topic, name, client_id, shared, option):
    with pytest.raises(InvalidOptionError, match=rf"Option {option} is "):
        ARTEMIS.refused_subscriptions.check(topic, DurableSubscription(name, client_id, shared))
    CLASSIC.refused_subscriptions.check(topic, DurableSubscription(name, client_id, shared))


@pytest.mark.parametrize(
    ("name", "client_id", "shared"),
    [("n", "c.1", False), ("c.1.n", None, True), (" n", "c", True)],
)
def test_a_subscription_whose_queue_no_other_one_has(name, client_id, shared):
    ARTEMIS.refused_subscriptions.check("t", DurableSubscription(name, client_id, shared))
