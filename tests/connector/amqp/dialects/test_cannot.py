import pytest

from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, BROKER_J, CLASSIC, DIALECTS, RABBITMQ, SOLACE
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.features import Feature


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
