import pytest

from pyspark_jms.amqp.dialects import ARTEMIS, CLASSIC
from pyspark_jms.errors import InvalidOptionError
from pyspark_jms.jms.model import DurableSubscription


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


def test_the_provider_and_the_broker_set_some():
    for name in ("JMSXUserID", "_AMQ_ORIG_QUEUE", "JMS_AMQP_MA_x-opt-jms-dest", "NATIVE_MESSAGE_ID"):
        assert ARTEMIS.left_out(name)
    assert not ARTEMIS.left_out("JMSXGroupID")
    assert not ARTEMIS.left_out("NATIVE_MESSAGE_ID2")
