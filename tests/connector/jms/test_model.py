import re

import pytest

from pyspark_jms.jms.model import BodyType, DeliveryMode, Destination, DestinationKind

BOTH_WAYS = [
    ("queue://orders", Destination(DestinationKind.QUEUE, "orders")),
    ("topic://a.b.c", Destination(DestinationKind.TOPIC, "a.b.c")),
    ("queue://a::b", Destination(DestinationKind.QUEUE, "a::b")),
    ("queue://queue://x", Destination(DestinationKind.QUEUE, "queue://x")),
    ("topic:// ", Destination(DestinationKind.TOPIC, " ")),
]


@pytest.mark.parametrize(("text", "destination"), BOTH_WAYS)
def test_parse_and_text(text, destination):
    assert Destination.parse(text) == destination
    assert str(destination) == text


@pytest.mark.parametrize("text", ["", "orders", "queue:orders", "queue://", "QUEUE://x", "temp://x", "/queue/x"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        Destination.parse(text)


def test_the_numbers_of_jms():
    # JMS 3.1 §3.4.2
    assert (DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT) == (1, 2)


def test_the_bodies_of_jms():
    assert [*BodyType] == ["text", "bytes", "map", "stream", "object", "message"]
