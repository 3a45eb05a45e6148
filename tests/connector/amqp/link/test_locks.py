"""Queues of durable subscriptions on the real broker: created by an attach, or beforehand by an administrator."""

from dataclasses import replace

import pytest

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.locks import require_one_consumer
from pyspark_jms.amqp.link.pull import Pull
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.errors import MaxConsumersError


@pytest.fixture
def consumes(broker, queue, settings_for, opened):
    """``consumes(n)``: a connection that consumes from a queue whose max-consumers is n; None: it creates the queue."""

    def consumes(max_consumers):
        if max_consumers is not None:
            control = broker.server.getActiveMQServerControl()
            control.createQueue(queue, "MULTICAST", f"{queue}.owner", None, True, max_consumers, False, True)
        connection = opened(connect(replace(settings_for(broker), client_id=queue)))
        Pull(connection, Source(address=queue, durable=2, expiry_policy="never", capabilities=("topic",)), "owner")
        return connection

    return consumes


@pytest.mark.parametrize("max_consumers", [None, 1])
def test_a_queue_for_one_consumer_is_a_lock_and_the_consumer_stays(broker, queue, consumes, max_consumers):
    connection = consumes(max_consumers)
    for _ in range(3):
        require_one_consumer(connection, f"{queue}::{queue}.owner")
    assert broker.consumer_count(f"{queue}.owner") == 1


@pytest.mark.parametrize("max_consumers", [-1, 2])
def test_a_queue_for_more_consumers_is_none(broker, queue, consumes, max_consumers):
    connection = consumes(max_consumers)
    with pytest.raises(MaxConsumersError, match=rf"\[JMS_MAX_CONSUMERS\] .*{queue}\.owner.*set its max-consumers to 1"):
        require_one_consumer(connection, f"{queue}::{queue}.owner")
    assert broker.consumer_count(f"{queue}.owner") == 1
