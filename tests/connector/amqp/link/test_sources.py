import pytest

from pyspark_jms.amqp.dialects import ARTEMIS, CLASSIC
from pyspark_jms.amqp.link.sources import require_echo, source_of
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.amqp.wire.values import Described
from pyspark_jms.errors import InvalidSelectorError, UnsupportedError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.network.address import Address

ADDRESS = Address("host", 1, protocol="amqp")


def test_a_queue(subscription_to):
    source = source_of(subscription_to("q"), ARTEMIS)
    assert (source.address, source.capabilities, source.durable, source.filter) == ("q", ("queue",), 0, None)
    assert (source.expiry_policy, source.distribution_mode) == ("link-detach", None)


@pytest.mark.parametrize(
    ("durable", "capabilities"),
    [
        (None, ("topic",)),
        (DurableSubscription("s", "c"), ("topic",)),
        (DurableSubscription("s", "c", shared=True), ("topic", "shared")),
        (DurableSubscription("s", shared=True), ("topic", "shared", "global")),
    ],
)
def test_topics_and_their_subscriptions(subscription_to, durable, capabilities):
    source = source_of(subscription_to("t", kind="topic", durable=durable), ARTEMIS)
    assert source.capabilities == capabilities
    assert (source.durable, source.expiry_policy) == ((2, "never") if durable else (0, "link-detach"))


def test_a_selector_is_a_described_filter(subscription_to):
    [value] = source_of(subscription_to("q", selector="a = 1"), ARTEMIS).filter.values()
    assert value == Described(0x468C00000004, "a = 1")


def test_what_the_broker_left_out_is_an_error(subscription_to):
    selected, browse = (
        source_of(subscription_to("q", selector="a = 1"), ARTEMIS),
        source_of(subscription_to("q", browse=True), ARTEMIS),
    )
    require_echo(ADDRESS, selected, selected)
    require_echo(ADDRESS, browse, browse)
    named = Source(filter={"any key": Described("apache.org:selector-filter:string", "a = 1")})
    require_echo(ADDRESS, selected, named)
    for echoed in (None, Source(), Source(filter={"x": "a = 1"})):
        with pytest.raises(InvalidSelectorError, match="selector"):
            require_echo(ADDRESS, selected, echoed)
    for echoed in (None, Source(), Source(distribution_mode="move")):
        with pytest.raises(UnsupportedError):
            require_echo(ADDRESS, browse, echoed)


def test_the_address_is_spelled_as_the_broker_wants_it(subscription_to):
    assert source_of(subscription_to("q"), CLASSIC).address == "queue://q"
    assert source_of(subscription_to("t", kind="topic"), CLASSIC).address == "topic://t"
