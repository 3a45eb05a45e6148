import pytest
from rawstomp import RawStomp
from streaming import access
from waiting import await_count, await_value

from pyspark_jms.amqp.link.subscriptions import end_subscription as end_over_amqp
from pyspark_jms.errors import (
    BrokerUnreachableError,
    InvalidOptionError,
    SelectorChangedError,
    SubscriptionInUseError,
)
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.subscribing import create_subscription
from pyspark_jms.spark.protocols import source_protocol
from pyspark_jms.stomp.link.subscriptions import end_subscription as end_over_stomp


def _create(running, name, **options):
    given = {"topic": name, "subscriptionName": "s", "clientId": f"c-{name}"}
    parsed = SourceOptions.parse(access(running) | given | options)
    return create_subscription(parsed, source_protocol(parsed))


@pytest.fixture(params=["stomp", "amqp"])
def url(request, broker):
    if request.param == "amqp" and not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    return {"brokerUrl": broker.amqp_url if request.param == "amqp" else broker.url}


def test_it_keeps_messages_and_takes_none(broker, queue, url):
    assert _create(broker, queue, **url) is None
    with RawStomp(broker) as raw:
        raw.send(queue, [([], str(n)) for n in range(3)], topic=True)
    assert _create(broker, queue, **url) is None
    await_count(broker, f"c-{queue}.s", 3)
    await_value(lambda: set(broker.delivery_counts(f"c-{queue}.s")), {0})
    assert broker.consumer_count(f"c-{queue}.s") == 0


def test_another_selector_is_refused_and_nothing_is_lost(broker, queue, url):
    assert _create(broker, queue, **url, selector="a = '1'") == "a = '1'"
    with RawStomp(broker) as raw:
        raw.send(queue, [([("a", "1")], "kept")], topic=True)
    with pytest.raises(SelectorChangedError):
        _create(broker, queue, **url)
    await_count(broker, f"c-{queue}.s", 1)


def test_a_subscription_that_is_read_is_in_use_over_amqp(broker, queue):
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    url = {"brokerUrl": broker.amqp_url}
    parsed = SourceOptions.parse(
        access(broker) | url | {"topic": queue, "subscriptionName": "s", "clientId": f"c-{queue}"}
    )
    protocol = source_protocol(parsed)
    reader = protocol.connect(parsed.connection, protocol.arrivals())
    reader.subscribe(Subscription(destination=parsed.destinations[0], window_bytes=1, durable=parsed.durable))
    try:
        with pytest.raises(SubscriptionInUseError):
            _create(broker, queue, **url)
    finally:
        reader.close()


def test_without_a_broker():
    parsed = SourceOptions.parse(
        {"brokerUrl": "stomp://127.0.0.1:1", "topic": "t", "subscriptionName": "s", "clientId": "c"}
    )
    with pytest.raises(BrokerUnreachableError):
        create_subscription(parsed, source_protocol(parsed))


@pytest.mark.parametrize(
    "wrong", [{"subscriptionName": "::s"}, {"clientId": "c::d"}, {"subscriptionName": "d.s"}, {"topic": "t::s"}]
)
def test_a_name_that_the_broker_would_take_for_another_leaves_no_subscription(broker, queue, wrong, url):
    """With broker=auto the dialect is known only after the connection."""
    control = broker.server.getActiveMQServerControl()
    before = set(map(str, control.getQueueNames()))
    with pytest.raises(InvalidOptionError, match=f"Option {next(iter(wrong))} is "):
        _create(broker, queue, **wrong, **url)
    with pytest.raises(InvalidOptionError, match=f"Option {next(iter(wrong))} is "):
        _create(broker, queue, **wrong, **url, broker="artemis")
    parsed = SourceOptions.parse(
        access(broker) | {"topic": "t", "subscriptionName": "s", "clientId": "c"} | wrong | url
    )
    end = end_over_amqp if parsed.connection.addresses[0].protocol == "amqp" else end_over_stomp
    with pytest.raises(InvalidOptionError, match=f"Option {next(iter(wrong))} is "):
        end(parsed.connection, parsed.destinations[0], parsed.durable)
    assert {name for name in set(map(str, control.getQueueNames())) - before if name.endswith("s")} == set()
