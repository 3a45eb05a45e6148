import pytest

from pyspark_jms.errors import InvalidDestinationError, InvalidOptionError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.jms.names import (
    ARTEMIS_QUEUES,
    CONNECTOR_QUEUES,
    RefusedName,
    RefusedSubscriptions,
    has_wildcards,
    may_receive,
)


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
        "jms.queue.pyspark-jms.staging.x.0",
        "queue:pyspark-jms.commits.x",
    ],
)
def test_the_connectors_own_queues(name):
    CONNECTOR_QUEUES.check("pyspark-jms-orders")
    CONNECTOR_QUEUES.check("my.pyspark-jms-orders")
    with pytest.raises(InvalidDestinationError, match="pyspark-jms"):
        CONNECTOR_QUEUES.check(name)


def test_each_part_of_a_subscriptions_name_has_its_rules():
    rules = RefusedSubscriptions(names=(RefusedName(pattern=r"\.", reason="has a dot", remedy="Use a dash."),))
    rules.check("t", DurableSubscription("daily", "app.eu"))
    with pytest.raises(InvalidOptionError, match=r"Option subscriptionName is 'a\.b', which has a dot\. Use a dash\."):
        rules.check("t", DurableSubscription("a.b", "app"))


@pytest.mark.parametrize(
    ("rules", "kept", "refused", "option"),
    [
        ("topics", ("x", DurableSubscription("a.b", "c.d")), ("x.y", DurableSubscription("a", "c")), "topic"),
        ("client_ids", ("x.y", DurableSubscription("a.b")), ("x", DurableSubscription("a", "c.d")), "clientId"),
        (
            "names_after_client_id",
            ("x", DurableSubscription("a.b", shared=True)),
            ("x", DurableSubscription("a.b", "c", shared=True)),
            "subscriptionName",
        ),
    ],
)
def test_each_rule_holds_for_its_subscriptions(rules, kept, refused, option):
    dotless = RefusedSubscriptions(**{rules: (RefusedName(pattern=r"\.", reason="has a dot"),)})
    dotless.check(*kept)
    with pytest.raises(InvalidOptionError, match=rf"Option {option} is .*, which has a dot\."):
        dotless.check(*refused)


@pytest.mark.parametrize(
    ("read", "queue", "does"),
    [
        ("orders", "orders", True), ("orders", "orders.dead", False), ("orders", "dead", False),
        ("orders.*", "orders.dead", True), ("orders.*", "orders", False), ("orders.*", "orders.dead.eu", False),
        ("orders.#", "orders.dead.eu", True), ("orders.#", "orders", True), ("orders.#", "order.dead", False),
        ("orders.>", "orders.dead", True), ("*.dead", "orders.dead", True), ("#.eu", "orders.dead.eu", True),
        ("#.eu", "orders.eu.dead", False), ("#", "anything", True),
        ("q", "q::q", True), ("q::q", "q", True), ("a::q", "a", True), ("a::q", "a::other", True),
        ("a::q", "b", False), ("a.#::q", "a.dead", True),
    ],
)  # fmt: skip
def test_what_a_reader_receives_too(read, queue, does):
    assert may_receive(read, queue) is does


@pytest.mark.parametrize(("name", "does"), [("orders", False), ("orders.#", True), ("orders.*", True), ("a>b", False)])
def test_a_pattern_of_a_broker_with_management(name, does):
    assert has_wildcards(name) is does


@pytest.mark.parametrize(
    "name",
    [
        "activemq.management",
        "x.activemq.notifications::q",
        "$sys.mqtt.sessions",
        "/queue/$sys.mqtt.sessions",
        "$.artemis.internal.sf.my-cluster.1",
        "$ACTIVEMQ_ARTEMIS_FEDERATION",
        "$ACTIVEMQ_ARTEMIS_MIRROR_other",
    ],
)
def test_queues_of_artemis_itself(name):
    for plain in ("$price", "prices.$USD", "sys.mqtt.sessions", "$system", "activemq.managements"):
        ARTEMIS_QUEUES.check(plain)
    with pytest.raises(InvalidDestinationError, match="queues of Artemis itself"):
        ARTEMIS_QUEUES.check(name)
