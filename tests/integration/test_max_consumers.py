"""A queue that has as many consumers as it may have, read by one more query."""

import json

import pytest
from amqp_sending import settings_of, subscription_to
from streaming import access

from pyspark_jms.amqp.link.management import open_amqp_management
from pyspark_jms.errors import SubscriptionInUseError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.protocols import reading_of


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_the_advice_is_that_of_a_queue(broker, queue, protocol):
    """Not a permission, and no client id; and it is tried again, because the other consumer may go."""
    wanted = {"name": queue, "address": queue, "routing-type": "ANYCAST", "max-consumers": 1}
    with open_amqp_management(settings_of(broker)) as management:
        management.operation("broker", "createQueue", json.dumps(wanted))
    options = SourceOptions.parse(access(broker, protocol) | {"queue": queue})
    first, second = (reading_of(options).connect(StateCondition()) for _ in range(2))
    subscription = subscription_to(queue)
    try:
        first.subscribe(subscription)
        with pytest.raises(SubscriptionInUseError, match=r"raise max-consumers, or use fewer connections") as refused:
            second.subscribe(subscription)
        assert refused.value.transient
        assert "clientId" not in str(refused.value)
    finally:
        second.close()
        first.close()
