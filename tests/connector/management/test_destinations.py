"""What is sent to the names of queues and addresses of Artemis: refused where it would be confirmed and dropped."""

import pytest
from addresses import create_in, types_of

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination
from pyspark_jms.management.destinations import require_destinations

ADDRESSED = "Queue {q} belongs to address {a}. The broker would confirm what is sent to the name of the queue alone"
REFUSED = {  # routing type of the queue q of the address a, what is sent to -> the error, and the advice
    ("ANYCAST", "queue://{q}"): (ADDRESSED, "queue={a}::{q} "),
    ("MULTICAST", "queue://{q}"): (ADDRESSED, "topic={a}::{q} "),
    ("ANYCAST", "topic://{a}::{q}"): ("{a}::{q} is the queue of a queue, and no topic", "queue={a}::{q} "),
    ("MULTICAST", "queue://{a}::{q}"): ("{a}::{q} is the queue of a topic, and no queue", "topic={a}::{q} "),
    ("ANYCAST", "queue://x{a}::{q}"): ("Queue {q} belongs to address {a}, not to x{a}.", "{a}::{q}."),
    ("MULTICAST", "queue://{a}"): ("{a} is a topic on the broker, and no queue.", "{a}"),
    ("ANYCAST", "topic://{a}"): ("{a} is a queue on the broker, and no topic.", "queue={a},"),
    ("MULTICAST", "queue://{a}::new"): ("Address {a} has no queue new, and its routing type is MULTICAST.", "TOPIC"),
    ("ANYCAST", "topic://{a}::new"): ("Address {a} has no queue new, and its routing type is ANYCAST.", "TOPIC"),
}
FINE = [
    ("ANYCAST", "queue://{a}"),
    ("ANYCAST", "queue://{a}::{q}"),
    ("ANYCAST", "queue://{a}::new{q}"),
    ("ANYCAST", "queue://x{a}"),
    ("ANYCAST", "queue://x{a}::x{q}"),
    ("ANYCAST", "topic://{q}"),
    ("MULTICAST", "topic://{a}"),
    ("MULTICAST", "topic://{a}::{q}"),
    ("MULTICAST", "topic://{q}"),
    ("MULTICAST", "topic://x{a}"),
]


@pytest.fixture
def named(broker, queue):
    """``named(kind, text)``: a queue whose address has another name, and the destination."""

    def named(kind, text):
        create_in(broker, f"a-{queue}", f"q-{queue}", kind)
        return Destination.parse(text.format(a=f"a-{queue}", q=f"q-{queue}"))

    return named


@pytest.mark.parametrize(("kind", "text"), REFUSED)
def test_what_would_be_dropped_is_refused(broker, queue, named, settings_for, open_link, kind, text):
    destination = named(kind, text)
    with pytest.raises(InvalidDestinationError) as raised:
        require_destinations(open_link, settings_for(broker), [Destination.parse("queue://other"), destination])
    fact, advice = (each.format(a=f"a-{queue}", q=f"q-{queue}") for each in REFUSED[kind, text])
    assert raised.value.fact.startswith(fact)
    assert advice in raised.value.remedy
    assert types_of(broker, f"a-{queue}") == f"[{kind}]"


@pytest.mark.parametrize(("kind", "text"), FINE)
def test_what_arrives_is_not_refused(broker, named, settings_for, open_link, kind, text):
    require_destinations(open_link, settings_for(broker), [named(kind, text)])


def test_a_name_of_a_queue_that_is_also_an_address_with_queues_can_be_sent_to(
    broker, queue, named, settings_for, open_link
):
    destination = named("ANYCAST", "queue://{q}")
    create_in(broker, f"q-{queue}", f"other-{queue}", "ANYCAST")
    require_destinations(open_link, settings_for(broker), [destination])
