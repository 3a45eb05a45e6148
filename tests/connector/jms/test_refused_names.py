import pytest

from pyspark_jms.errors import InvalidDestinationError, InvalidOptionError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.jms.refused_names import CONNECTOR_QUEUES, RefusedName, RefusedSubscriptions


def test_a_name_in_which_the_pattern_is_found_is_refused():
    rule = RefusedName(pattern="^admin$", reason="acts", remedy="Ask somebody.")
    rule.check("admins")
    with pytest.raises(InvalidDestinationError, match="'admin'"):
        rule.check("admin")


@pytest.mark.parametrize(
    "name",
    [
        "pyspark-jms.commits",
        "a/pyspark-jms.management.x",
        "pyspark-jms.staging.x.token",
        "a::pyspark-jms.x",
        "pyspark-jms.new",
    ],
)
def test_the_connectors_own_queues(name):
    CONNECTOR_QUEUES.check("pyspark-jms-orders")
    CONNECTOR_QUEUES.check("my.pyspark-jms.orders")
    with pytest.raises(InvalidDestinationError, match="pyspark-jms"):
        CONNECTOR_QUEUES.check(name)


def test_each_part_of_a_subscriptions_name_has_its_rules():
    rules = RefusedSubscriptions(names=(RefusedName(pattern=r"\.", reason="has a dot", remedy="Use a dash."),))
    rules.check(DurableSubscription("daily", "app.eu"))
    with pytest.raises(InvalidOptionError, match=r"Option subscriptionName is 'a\.b', which has a dot\. Use a dash\."):
        rules.check(DurableSubscription("a.b", "app"))
