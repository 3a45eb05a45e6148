import pytest

from pyspark_jms.errors import SelectorChangedError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import both_selectors, selector_changed, source_name

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


def test_a_selector_keeps_its_prefixes_in_front():
    assert both_selectors("b = 2 OR c = 3", "a <> 1") == "(b = 2 OR c = 3) AND (a <> 1)"
    both = both_selectors("convert_string_expressions:hyphenated_props:b = ':'", "a <> 1")
    assert both == "convert_string_expressions:hyphenated_props:(b = ':') AND (a <> 1)"
