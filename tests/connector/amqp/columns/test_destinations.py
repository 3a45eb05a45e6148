"""JMSDestination and JMSReplyTo."""

import pytest

from pyspark_jms.amqp.columns.destinations import destination_of, is_pattern, reply_to_of
from pyspark_jms.amqp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.jms.model import Destination


@pytest.mark.parametrize(
    ("to", "kind", "source", "expected"),
    [
        ("orders", 0, "queue://other", "queue://orders"),
        ("t", 3, "queue://other", "topic://t"),
        ("orders", None, "queue://other", "queue://other"),
        (None, 0, "queue://other", "queue://other"),
        ("", 1, "queue://other", "queue://other"),
        ("topic://t", None, "queue://other", "topic://t"),
        ("queue://q", 1, "queue://other", "topic://q"),
        ("a.b", None, "topic://a.*", "topic://a.b"),
        ("a", None, "queue://a,b", "queue://a"),
    ],
)
def test_destination(to, kind, source, expected):
    assert destination_of(to, kind, Destination.parse(source), CLASSIC) == expected


@pytest.mark.parametrize(
    ("reply_to", "kind", "expected"),
    [
        (None, 0, None),
        ("", None, None),
        ("a", None, "queue://a"),
        ("a", 1, "topic://a"),
        ("temp-topic://a", None, "topic://a"),
        ("temp-queue://a", 2, "queue://a"),
    ],
)
def test_reply_to(reply_to, kind, expected):
    assert reply_to_of(reply_to, kind, CLASSIC) == expected


def test_without_prefixes_a_name_is_the_whole_address():
    assert destination_of("queue://q", 0, Destination.parse("queue://o"), ARTEMIS) == "queue://queue://q"


@pytest.mark.parametrize(
    ("to", "kind", "expected"),
    [
        ("/queues/orders", None, "queue://orders"),
        ("/queues/a%20b%2Fc", 0, "queue://a b/c"),
        ("/queues/%2Fqueues%2Fx", 0, "queue:///queues/%2Fqueues%2Fx"),
        ("/exchanges/amq.topic/orders.de", None, "topic://orders.de"),
        ("/exchanges/x/k", None, "topic:///exchanges/x/k"),
        ("/queues/%ff", None, "queue:///queues/%ff"),
        ("orders", None, "queue://other"),
    ],
)
def test_an_address_of_rabbitmq_becomes_the_name_that_is_sent_to_it_again(to, kind, expected):
    found = Destination.parse(destination_of(to, kind, Destination.parse("queue://other"), RABBITMQ))
    assert str(found) == expected
    if expected != "queue://other":
        assert RABBITMQ.send.address(str(found.kind), found.name) == to


@pytest.mark.parametrize(("name", "expected"), [("a", False), ("a.>", True), ("a,b", True), ("a.#", True), ("*", True)])
def test_is_pattern(name, expected):
    assert is_pattern(Destination.parse(f"queue://{name}")) is expected
