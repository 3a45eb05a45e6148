"""Requests to a real broker over each protocol, by users who may send them and users who may not."""

import dataclasses

import pytest
from configured_artemis import ConfiguredArtemis
from proxy import Proxy
from rawstomp import RawStomp
from waiting import wait_until

from pyspark_jms.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSSecurityError,
    MalformedFrameError,
    ReceiptTimeoutError,
)
from pyspark_jms.management.link import _value, broker_identity
from pyspark_jms.network.address import Address, parse_broker_url


@pytest.fixture
def link(broker, settings_for, open_link):
    with open_link(settings_for(broker)) as link:
        yield link


def test_attributes_and_operations(broker, queue, link):
    with RawStomp(broker) as client:
        client.send(queue, [([("n", n)], "text") for n in range(3)])
    # what was committed is listed a moment later
    wait_until(lambda: len(link.operation(f"queue.{queue}", "listMessages", "")) == 3)
    assert link.attribute(f"queue.{queue}", "messageCount") == 3
    assert link.operation(f"queue.{queue}", "countMessages", "n = '1'") == 1
    assert [message["n"] for message in link.operation(f"queue.{queue}", "listMessages", "")] == ["0", "1", "2"]
    assert link.operation(f"queue.{queue}", "listDeliveringMessages") == {}
    assert link.attribute("broker", "version").count(".") == 2


def test_what_the_broker_does_not_know_ends_nothing(link):
    for ask in (link.attribute, link.operation):
        with pytest.raises(InvalidDestinationError, match=r"messageCount .*queue\.nowhere"):
            ask("queue.nowhere", "messageCount")
    assert link.attribute("queue.DLQ", "paused") is False


def test_an_answer_of_a_megabyte(broker, queue, link):
    with RawStomp(broker) as client:
        client.send(queue, [([("long", "x" * 10_000)], "text") for _ in range(100)])
    wait_until(lambda: len(link.operation(f"queue.{queue}", "listMessages", "")) == 100)


def test_two_askers_hear_their_own_answers(broker, settings_for, open_link, link):
    with open_link(settings_for(broker)) as other:
        for _ in range(20):
            assert other.attribute("queue.DLQ", "name") == "DLQ"
            assert link.attribute("queue.ExpiryQueue", "name") == "ExpiryQueue"


def test_it_leaves_no_queue_behind(broker, settings_for, open_link):
    def queues():
        return set(broker.server.getActiveMQServerControl().getQueueNames())

    before = queues()
    with open_link(settings_for(broker)) as link:
        assert queues() - before
        link.attribute("broker", "version")
    wait_until(lambda: queues() <= before)


def test_who_may_ask(restricted, settings_for, open_link):
    with open_link(settings_for(restricted, user="manager")) as link:
        assert link.attribute("queue.DLQ", "messageCount") == 0


def test_who_may_listen_and_not_ask(restricted, settings_for, open_link):
    with open_link(settings_for(restricted, user="listener")) as link:
        with pytest.raises(JMSSecurityError, match=r"User listener .*management .*\w+://") as refused:
            link.attribute("queue.DLQ", "messageCount")
        assert "permission manage on activemq.management" in refused.value.remedy
        assert "CoreMessage" not in str(refused.value)
        with pytest.raises(JMSSecurityError):
            link.attribute("queue.DLQ", "messageCount")


def test_who_may_not_listen(restricted, settings_for, open_link):
    with pytest.raises(JMSSecurityError, match="createNonDurableQueue"):
        open_link(settings_for(restricted, user="asker"))


def test_silence_and_loss_are_errors(broker, settings_for, open_link, port_of, proxied):
    with Proxy(broker.host, port_of(broker)) as proxy:
        settings = settings_for(broker, url=proxied(proxy), receipt_timeout=2)
        with open_link(settings) as link:
            proxy.to_client.stall()
            with pytest.raises(ReceiptTimeoutError, match=r"management .*\b2 s\b"):
                link.attribute("queue.DLQ", "messageCount")
            proxy.cut()
            with pytest.raises(ConnectionLostError):
                link.attribute("queue.DLQ", "messageCount")


@pytest.mark.deep
def test_a_broker_with_another_management_address(settings_for, open_link):
    """It confirms the request, as it does a message to any address."""
    elsewhere = ConfiguredArtemis(core="<management-address>ops</management-address>")
    with elsewhere as broker, open_link(settings_for(broker, receipt_timeout=60)) as link:
        with pytest.raises(ReceiptTimeoutError, match=r"to activemq\.management within 5 s") as unanswered:
            link.attribute("queue.DLQ", "messageCount")
        assert "set its management-address to activemq.management" in unanswered.value.remedy
        assert not broker.has_queue("activemq.management")


def test_null_is_an_answer(link, queue, broker):
    with RawStomp(broker) as client:
        client.send(queue, [((), "makes the queue")])
    assert link.attribute(f"queue.{queue}", "filter") is None


@pytest.mark.parametrize("body", [b"[]", b"[1,2]", b"3", b"{", b"\xff"])
def test_an_answer_that_is_none(body):
    with pytest.raises(MalformedFrameError):
        _value(body)


# --- which broker has answered -----------------------------------------------------------------------


def test_a_broker_tells_the_id_of_its_store(broker, settings_for, open_link, url_of):
    [address] = parse_broker_url(url_of(broker))
    nowhere = Address("127.0.0.1", 1, protocol=address.protocol)
    settings = dataclasses.replace(settings_for(broker), addresses=(nowhere, address))
    assert broker_identity(open_link, settings, address) == str(broker.server.getNodeID())
    assert broker_identity(open_link, settings, nowhere) is None, "only the address that is named is asked"


@pytest.mark.deep
def test_who_may_not_ask_and_what_cannot_answer(restricted, classic, settings_for, open_link, url_of):
    for broker, user in ((restricted, "consumer"), (classic, None)):
        [address] = parse_broker_url(url_of(broker))
        assert broker_identity(open_link, settings_for(broker, user=user), address) is None
