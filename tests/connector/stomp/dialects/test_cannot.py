import pytest

from pyspark_jms.errors import InvalidOptionError, UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, DIALECTS, RABBITMQ, Dialect


def require_durable(dialect: Dialect, topic: str, durable: DurableSubscription, *, selected: bool) -> None:
    destination = Destination(DestinationKind.TOPIC, topic)
    selector = "a = 1" if selected else None
    dialect.require_subscription(
        Subscription(destination=destination, window_bytes=1, durable=durable, selector=selector)
    )


def test_a_journal_needs_ids_that_stay():
    for dialect in DIALECTS.values():
        assert dialect.can(Feature.JOURNAL) is (dialect.stable_id_separator is not None)
    with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*rabbitmq.*journalLocation"):
        RABBITMQ.require(Feature.JOURNAL)


def test_rows_that_go_together():
    ARTEMIS.require(Feature.TRANSACTIONS)
    CLASSIC.require(Feature.TRANSACTIONS)
    with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*rabbitmq.*transaction=none"):
        RABBITMQ.require(Feature.TRANSACTIONS)


def test_exactly_once_writes_need_amqp():
    with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*deliveryGuarantee=exactly-once.*COMMIT.*amqp://"):
        ARTEMIS.require(Feature.EXACTLY_ONCE_WRITE)


@pytest.mark.parametrize(
    ("broker", "parse", "given", "reason"),
    [
        (
            "rabbitmq",
            SourceOptions.parse,
            {"deliveryGuarantee": "exactly-once", "journalLocation": "/j"},
            "journalLocation",
        ),
        ("rabbitmq", SinkOptions.parse, {"transaction": "task"}, "transaction=none"),
        ("rabbitmq", SinkOptions.parse, {"transaction": "500"}, "transaction=none"),
    ],
)
def test_options_that_name_the_broker_are_refused_before_anything_connects(broker, parse, given, reason):
    options = {"brokerUrl": "stomp://host:1", "queue": "q"} | given
    parse(options)  # found out, it may be one that can
    parse(options | {"broker": "artemis"})
    with pytest.raises(UnsupportedError, match=rf"JMS_UNSUPPORTED(?=.*\b{broker}\b).*{reason}"):
        parse(options | {"broker": broker})


def test_a_subscription_is_shared_where_several_may_read_it():
    shared = DurableSubscription("s", shared=True)
    for dialect in (ARTEMIS, RABBITMQ):
        require_durable(dialect, "t", shared, selected=False)
    with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*classic.*Consumer\.GROUP\.VirtualTopic\.X"):
        require_durable(CLASSIC, "t", shared, selected=False)
    require_durable(CLASSIC, "t", DurableSubscription("s", "app"), selected=True)


@pytest.mark.parametrize(
    ("name", "client_id", "option"),
    [
        ("::n", "c", "subscriptionName"),
        ("a::n", None, "subscriptionName"),
        (" n", "c", "subscriptionName"),
        ("n\t", "c", "subscriptionName"),
        ("n", "c::d", "clientId"),
        ("n", " c", "clientId"),
        ("n", "c ", "clientId"),
        ("1.n", "c", "subscriptionName"),
        ("c.n", None, "subscriptionName"),
    ],
)
def test_a_subscription_that_artemis_would_take_for_another_one(name, client_id, option):
    with pytest.raises(InvalidOptionError, match=rf"Option {option} is "):
        require_durable(ARTEMIS, "t", DurableSubscription(name, client_id, shared=client_id is None), selected=False)
    given = {"brokerUrl": "stomp://host:1", "topic": "t", "broker": "artemis", "subscriptionName": name}
    given |= {"sharedSubscription": "true"} if client_id is None else {"clientId": client_id}
    with pytest.raises(InvalidOptionError, match=rf"Option {option} is "):
        SourceOptions.parse(given)


@pytest.mark.parametrize(
    ("dialect", "name", "client_id"), [(ARTEMIS, "1.n", "c"), (RABBITMQ, "1.n", "c"), (RABBITMQ, "c.n", None)]
)
def test_no_two_subscriptions_have_one_queue(dialect, name, client_id):
    other = DurableSubscription("n", "c.1")
    require_durable(dialect, "t", other, selected=False)
    with pytest.raises(InvalidOptionError, match="move what is before the last dot to the end of clientId"):
        require_durable(dialect, "t", DurableSubscription(name, client_id, shared=client_id is None), selected=False)


@pytest.mark.parametrize("topic", ["a::b", " a", "a "])
def test_a_durable_subscription_to_a_name_that_artemis_parses(topic):
    with pytest.raises(InvalidOptionError, match=r"\[JMS_INVALID_OPTION\] Option topic is "):
        require_durable(ARTEMIS, topic, DurableSubscription("n", "c"), selected=False)
    require_durable(CLASSIC, topic, DurableSubscription("n", "c"), selected=False)


def test_names_of_subscriptions_that_are_kept():
    for name, client_id in (("n", "c.1"), ("x/y", "a b"), ("n:e", "c:d"), ("ü😀", "é"), ("n|e", "c,d"), ("#", "*")):
        require_durable(ARTEMIS, "t", DurableSubscription(name, client_id), selected=False)
    require_durable(CLASSIC, "t", DurableSubscription("n::1", "c"), selected=False)


def test_a_selector_that_would_be_ignored():
    require_durable(ARTEMIS, "t", DurableSubscription("s", "app", shared=True), selected=True)
    with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*artemis.*clientId"):
        require_durable(ARTEMIS, "t", DurableSubscription("s", shared=True), selected=True)
