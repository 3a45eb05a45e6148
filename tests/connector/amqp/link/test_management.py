"""What differs from one protocol, and from one broker, to the other; the rest is in tests/connector/management.

That RabbitMQ describes its queues, tests/brokers/test_rabbitmq_4.py shows on the broker.
"""

import contextlib
import dataclasses

import pytest
from broker_j import EmbeddedBrokerJ
from proton_broker import ProtonBroker
from waiting import wait_until

from pyspark_jms.amqp.dialects import ARTEMIS, DIALECTS, RABBITMQ
from pyspark_jms.amqp.link.management import (
    AmqpManagementLink,
    DescribedQueue,
    NodeManagementLink,
    _facts,
    describe_queue,
    open_amqp_management,
    refuse_stream,
)
from pyspark_jms.amqp.wire.sections import PROPERTIES, VALUE
from pyspark_jms.errors import InvalidDestinationError, MalformedFrameError, UnsupportedError
from pyspark_jms.management.attributes import BROKER_J_MANAGEMENT
from pyspark_jms.management.queue_facts import look_up_queues, warn_of_missing
from pyspark_jms.management.queue_watch import QueueWatch
from pyspark_jms.testing import JmsClient


def test_the_broker_names_its_version(broker, settings_for):
    with AmqpManagementLink(settings_for(broker)) as link:
        assert link.attribute("broker", "version") in link._connection.server


def test_a_broker_without_management(broker, settings_for, monkeypatch):
    monkeypatch.setitem(DIALECTS, "artemis", dataclasses.replace(ARTEMIS, management=None))
    with pytest.raises(UnsupportedError, match=r"artemis .*management .*AMQP"):
        AmqpManagementLink(settings_for(broker))


# --- the management node of Qpid Broker-J: metrics of queues, queues that do not exist, a broker without it


NODE_WORDS = BROKER_J_MANAGEMENT.queue


@pytest.fixture(scope="module")
def broker_j():
    with EmbeddedBrokerJ() as broker:
        yield broker


@pytest.fixture
def filled(broker_j, queue):
    with JmsClient(broker_j.amqp_url, broker_j.user, broker_j.password) as java:
        for number in range(3):
            java.send(queue, f"text {number}")
    return queue


@pytest.mark.broker
@pytest.mark.deep
def test_the_metrics_of_a_queue(broker_j, filled, settings_for):
    with open_amqp_management(settings_for(broker_j)) as link:
        assert isinstance(link, NodeManagementLink)
        metrics = [
            link.queue_attribute(filled, name)
            for name in (NODE_WORDS.messages, NODE_WORDS.delivering, NODE_WORDS.consumers)
        ]
        assert metrics == [3, 0, 0]
        assert link.queue_attribute(filled, NODE_WORDS.address) == filled


@pytest.mark.broker
@pytest.mark.deep
def test_the_link_goes_on_after_a_queue_that_does_not_exist(broker_j, filled, settings_for):
    with open_amqp_management(settings_for(broker_j)) as link:
        with pytest.raises(InvalidDestinationError, match=r"READ of org\.apache\.qpid\.Queue nowhere"):
            link.queue_attribute("nowhere", NODE_WORDS.address)
        assert link.queue_attribute(filled, NODE_WORDS.messages) == 3
        with pytest.raises(UnsupportedError, match="does not have this attribute"):
            link.queue_attribute(filled, NODE_WORDS.paused)


@pytest.mark.broker
@pytest.mark.deep
def test_metrics_and_missing_queues_of_a_query(broker_j, filled, settings_for):
    settings = settings_for(broker_j)
    assert warn_of_missing(look_up_queues(open_amqp_management, settings, [filled, "nowhere"]).values()) == ("nowhere",)
    with contextlib.closing(QueueWatch(open_amqp_management, settings, [filled], lambda: 0, every=0.05)) as watch:
        wait_until(lambda: watch.metrics().get("depth") == 3, what="the metrics of the queue")


def test_a_broker_without_the_node(restricted, settings_for, monkeypatch):
    words = dataclasses.replace(BROKER_J_MANAGEMENT, address="closed.node")
    monkeypatch.setitem(DIALECTS, "artemis", dataclasses.replace(DIALECTS["artemis"], management=words))
    with pytest.raises(UnsupportedError, match=r"has no management node closed\.node"):
        open_amqp_management(settings_for(restricted))


def test_other_brokers_have_another_kind_of_management(broker, settings_for):
    with open_amqp_management(settings_for(broker)) as link:
        assert type(link) is AmqpManagementLink


# --- what RabbitMQ says of a queue ------------------------------------------------------------------


QUORUM = {"name": "q", "type": "quorum", "message_count": 5, "arguments": {"x-queue-type": "quorum"}}


def answer(status, value):
    return {PROPERTIES: [None, None, None, status, None, "id"], VALUE: value}


def test_a_description_is_of_a_type_with_a_count_and_arguments():
    assert _facts(answer("200", QUORUM)) == DescribedQueue("quorum", 5, {"x-queue-type": "quorum"})


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
        assert describe_queue(peer.settings, "/queues/q") is None
        refuse_stream(peer.settings, "/queues/q", RABBITMQ)
        assert not peer.queues
