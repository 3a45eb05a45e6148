"""The management node of Qpid Broker-J: metrics of queues, queues that do not exist, and a broker without the node."""

import dataclasses

import pytest
from broker_j import EmbeddedBrokerJ
from waiting import wait_until

from pyspark_jms.amqp.dialects import DIALECTS
from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.amqp.link.management_node import NodeManagementLink, open_amqp_management
from pyspark_jms.errors import InvalidDestinationError, UnsupportedError
from pyspark_jms.management.attributes import BROKER_J_MANAGEMENT
from pyspark_jms.management.queue_watch import QueueWatch
from pyspark_jms.management.queues import warn_of_missing_queues
from pyspark_jms.testing import JmsClient

WORDS = BROKER_J_MANAGEMENT.queue

pytestmark = pytest.mark.broker


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


@pytest.mark.deep
def test_the_metrics_of_a_queue(broker_j, filled, settings_for):
    with open_amqp_management(settings_for(broker_j)) as link:
        assert isinstance(link, NodeManagementLink)
        metrics = [link.queue_attribute(filled, name) for name in (WORDS.messages, WORDS.delivering, WORDS.consumers)]
        assert metrics == [3, 0, 0]
        assert link.queue_attribute(filled, WORDS.address) == filled


@pytest.mark.deep
def test_the_link_goes_on_after_a_queue_that_does_not_exist(broker_j, filled, settings_for):
    with open_amqp_management(settings_for(broker_j)) as link:
        with pytest.raises(InvalidDestinationError, match=r"READ of org\.apache\.qpid\.Queue nowhere"):
            link.queue_attribute("nowhere", WORDS.address)
        assert link.queue_attribute(filled, WORDS.messages) == 3
        with pytest.raises(UnsupportedError, match="does not have this attribute"):
            link.queue_attribute(filled, WORDS.paused)


@pytest.mark.deep
def test_metrics_and_missing_queues_of_a_query(broker_j, filled, settings_for):
    settings = settings_for(broker_j)
    assert warn_of_missing_queues(open_amqp_management, settings, [filled, "nowhere"]) == ("nowhere",)
    watch = QueueWatch(open_amqp_management, settings, [filled], lambda: 0, every=0.05)
    try:
        wait_until(lambda: watch.metrics().get("depth") == 3, what="the metrics of the queue")
    finally:
        watch.close()


def test_a_broker_without_the_node(restricted, settings_for, monkeypatch):
    words = dataclasses.replace(BROKER_J_MANAGEMENT, address="closed.node")
    monkeypatch.setitem(DIALECTS, "artemis", dataclasses.replace(DIALECTS["artemis"], management=words))
    with pytest.raises(UnsupportedError, match=r"has no management node closed\.node"):
        open_amqp_management(settings_for(restricted))


def test_other_brokers_have_another_kind_of_management(broker, settings_for):
    with open_amqp_management(settings_for(broker)) as link:
        assert type(link) is AmqpManagementLink
