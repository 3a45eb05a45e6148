import pytest

from pyspark_jms.errors import SelectorChangedError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import selector_changed, source_name

TOPIC = Destination.parse("topic://news")


@pytest.mark.parametrize(
    ("durable", "name"),
    [(None, "topic://news"), (DurableSubscription("daily", "app"), "topic://news for app.daily")],
)
def test_two_subscriptions_to_a_topic_have_names_of_their_own(durable, name):
    assert source_name(TOPIC, durable) == name


def test_a_changed_selector_names_the_subscription():
    error = selector_changed(DurableSubscription("daily", "app"))
    assert isinstance(error, SelectorChangedError)
    assert "app.daily" in str(error)
