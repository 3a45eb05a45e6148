"""Durable subscriptions of a real Artemis: what one was made with, and how it ends."""

import dataclasses
import logging

import pytest

from pyspark_jms.errors import (
    InvalidDestinationError,
    JMSSecurityError,
    SelectorChangedError,
    SubscriptionInUseError,
)
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.stomp.link.consumer import Consumer
from pyspark_jms.stomp.link.subscriptions import end_subscription, require_same_subscription


@pytest.fixture
def topic(queue):
    return Destination.parse(f"topic://{queue}")


@pytest.fixture
def mine(queue):
    return DurableSubscription("daily", f"app-{queue}")


def reader(settings, topic, durable, selector=None):
    settings = dataclasses.replace(settings, client_id=durable.client_id)
    subscription = Subscription(destination=topic, window_bytes=1000, durable=durable, selector=selector)
    consumer = Consumer(settings)
    consumer.subscribe(subscription)
    return consumer


@pytest.mark.parametrize("selector", [None, "colour = 'red'"])
def test_a_subscription_as_it_was_made(broker, settings_for, topic, mine, selector):
    reader(settings_for(broker), topic, mine, selector).close()
    settings = settings_for(broker)
    require_same_subscription(settings, mine, topic, selector)
    with pytest.raises(SelectorChangedError, match=f"{mine} .*selector"):
        require_same_subscription(settings, mine, topic, "colour = 'blue'")
    with pytest.raises(InvalidDestinationError, match=f"topic {topic.name}"):
        require_same_subscription(settings, mine, Destination.parse("topic://other"), selector)


def test_without_manage_a_log_line_states_that_the_check_is_skipped(restricted, settings_for, topic, mine, caplog):
    settings = settings_for(restricted, user="worker", password="pw")
    reader(settings, topic, mine, "colour = 'red'").close()
    with caplog.at_level(logging.WARNING, "pyspark_jms"):
        require_same_subscription(settings, mine, topic, "colour = 'blue'")
    assert f"! it is not known whether subscription {mine} has this topic and selector: " in caplog.text
    shared = DurableSubscription("ours", shared=True)
    reader(settings, topic, shared).close()
    with pytest.raises(JMSSecurityError, match="management"):
        end_subscription(settings, topic, shared)
    caplog.clear()
    end_subscription(dataclasses.replace(settings, client_id=mine.client_id), topic, mine)
    assert (
        f"! it is not known whether durable subscription {mine} exists: User worker may not use the management"
        in caplog.text
    )
    assert not restricted.has_queue(str(mine))
    assert restricted.has_queue("ours")


@pytest.mark.parametrize("client", ["app", None])
def test_it_ends_when_nobody_reads_it(broker, settings_for, topic, queue, client):
    durable = DurableSubscription(queue.replace(".", "-"), client, shared=client is None)
    settings = dataclasses.replace(settings_for(broker), client_id=client)
    consumer = reader(settings, topic, durable)
    with pytest.raises(SubscriptionInUseError):
        end_subscription(settings, topic, durable)
    consumer.close()
    assert broker.has_queue(str(durable))
    with pytest.raises(InvalidDestinationError, match=f"topic {topic.name}"):
        end_subscription(settings, Destination.parse("topic://other"), durable)
    assert broker.has_queue(str(durable))
    end_subscription(settings, topic, durable)
    assert not broker.has_queue(str(durable))
    with pytest.raises(InvalidDestinationError, match=f"durable subscription {durable}"):
        end_subscription(settings, topic, durable)


def test_a_queue_of_that_name_is_not_deleted(broker, settings_for, queue):
    """An address usually has a queue of its own name: topic and subscriptionName may both be that."""
    name = queue.replace(".", "-")
    broker.create_queue(name)
    with pytest.raises(InvalidDestinationError, match=f"{name} is a queue of address {name}, and no subscription"):
        end_subscription(
            settings_for(broker), Destination.parse(f"topic://{name}"), DurableSubscription(name, shared=True)
        )
    assert broker.has_queue(name)
