"""The facts that the engines decide by, in the dialects of both protocols."""

import pytest

from pyspark_jms.amqp.dialects import DIALECTS as AMQP_DIALECTS
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.dialect import BrokerDialect, Target
from pyspark_jms.jms.features import Feature
from pyspark_jms.stomp.dialects import DIALECTS as STOMP_DIALECTS

EVERY = [*AMQP_DIALECTS.values(), *STOMP_DIALECTS.values()]


@pytest.mark.parametrize(
    "dialect", EVERY, ids=lambda dialect: f"{type(dialect).__module__.split('.')[1]}-{dialect.name}"
)
def test_every_broker_confirms_what_it_is_sent(dialect):
    """Otherwise no option transaction could write to it without loss."""
    assert isinstance(dialect, BrokerDialect)
    assert dialect.has_transactions or dialect.confirms_single_messages


@pytest.mark.parametrize("dialect", STOMP_DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_a_broker_that_browses_over_stomp_has_headers_for_it(dialect):
    assert dialect.browses is bool(dialect.browse_headers)


def test_what_one_of_the_possible_brokers_can_do_is_not_refused():
    possible = Target("stomp", tuple(STOMP_DIALECTS.values()))
    possible.require(Feature.SHARED, Feature.TRANSACTIONS, Feature.JOURNAL)
    with pytest.raises(UnsupportedError, match="over STOMP, which cannot fence a COMMIT"):
        possible.require(Feature.SHARED, Feature.EXACTLY_ONCE_WRITE)
    with pytest.raises(UnsupportedError, match="rabbitmq can confirm"):
        Target("stomp", (STOMP_DIALECTS["rabbitmq"],)).require(Feature.TRANSACTIONS)


@pytest.mark.parametrize("dialect", EVERY, ids=lambda dialect: dialect.name)
def test_a_refusal_names_the_broker_once_it_is_known(dialect):
    for feature, refusal in dialect.cannot.items():
        with pytest.raises(UnsupportedError) as error:
            dialect.require(feature)
        assert "{" not in str(error.value)
        assert refusal.error(dialect.name, "why {not}.").fact.endswith(": why {not}.")
