import pytest

from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ

MINE, OURS = DurableSubscription("daily", "app"), DurableSubscription("daily", shared=True)


@pytest.mark.parametrize(
    ("dialect", "subscription", "destination", "subscribing", "ending"),
    [
        (ARTEMIS, MINE, "t", {"durable-subscription-name": "daily"}, {"durable-subscription-name": "daily"}),
        (ARTEMIS, OURS, "t::daily", {}, {}),
        (CLASSIC, MINE, "t", {"activemq.subscriptionName": "daily"}, {"activemq.subscriptionName": "daily"}),
        (
            RABBITMQ,
            MINE,
            "t",
            {"durable": "true", "auto-delete": "false", "x-queue-name": "app.daily"},
            {"durable": "true", "x-queue-name": "app.daily"},
        ),
        (
            RABBITMQ,
            OURS,
            "t",
            {"durable": "true", "auto-delete": "false", "x-queue-name": "daily"},
            {"durable": "true", "x-queue-name": "daily"},
        ),
    ],
)
def test_what_a_durable_subscription_is_called(dialect, subscription, destination, subscribing, ending):
    words = dialect.durable_subscriptions
    assert words.destination("t", subscription) == destination
    assert words.for_subscribe(subscription) == subscribing
    assert words.for_unsubscribe(subscription) == ending


def test_where_an_existing_one_can_be_read():
    assert (
        RABBITMQ.durable_subscriptions.destination_of_existing(DurableSubscription("a/b", "app"))
        == "/amq/queue/app.a%2Fb"
    )
    assert ARTEMIS.durable_subscriptions.destination_of_existing(MINE) is None
    assert CLASSIC.durable_subscriptions.destination_of_existing(MINE) is None
