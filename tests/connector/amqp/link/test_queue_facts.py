"""What RabbitMQ says of a queue. That it says so, tests/brokers/test_rabbitmq_4.py shows on the broker."""

import pytest
from proton_broker import ProtonBroker

from pyspark_jms.amqp.dialects import RABBITMQ
from pyspark_jms.amqp.link.queue_facts import QueueFacts, _facts, queue_facts, refuse_stream
from pyspark_jms.amqp.wire.sections import PROPERTIES, VALUE
from pyspark_jms.errors import MalformedFrameError

QUORUM = {"name": "q", "type": "quorum", "message_count": 5, "arguments": {"x-queue-type": "quorum"}}


def answer(status, value):
    return {PROPERTIES: [None, None, None, status, None, "id"], VALUE: value}


def test_a_description_is_of_a_type_with_a_count_and_arguments():
    assert _facts(answer("200", QUORUM)) == QueueFacts("quorum", 5, {"x-queue-type": "quorum"})


@pytest.mark.parametrize("said", [answer("404", None), answer("403", "no"), {PROPERTIES: []}, {}])
def test_a_refusal_is_no_description(said):
    assert _facts(said) is None


@pytest.mark.parametrize("value", [None, "text", {}, QUORUM | {"message_count": "many"}, QUORUM | {"arguments": 5}])
def test_an_odd_description_is_an_error(value):
    with pytest.raises(MalformedFrameError, match="type, its count or its arguments"):
        _facts(answer("200", value))


@pytest.mark.broker
@pytest.mark.parametrize("product", ["RabbitMQ", "a router"])
def test_a_broker_without_the_node_is_not_asked(product):
    with ProtonBroker(product=product) as peer:
        assert queue_facts(peer.settings, "/queues/q") is None
        refuse_stream(peer.settings, "/queues/q", RABBITMQ)
        assert not peer.queues
