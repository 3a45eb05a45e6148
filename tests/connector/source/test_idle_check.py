import contextlib
import time
from urllib.parse import urlsplit

import pytest
from numbered import fill
from proxy import Proxy
from receivers import OpenReceiver
from streaming import access
from waiting import await_count, wait_until

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.idle_check import IdleCheck
from pyspark_jms.stomp.source import StompSource

URLS = {"stomp": "url", "amqp": "amqp_url"}
PROTOCOLS = {"stomp": StompSource(), "amqp": AmqpSource()}
pytestmark = pytest.mark.timeout(60)


@pytest.fixture(params=["stomp", "amqp"])
def protocol(request):
    return request.param


@pytest.fixture
def proxy(broker, protocol):
    url = urlsplit(getattr(broker, URLS[protocol]))
    with Proxy(url.hostname, url.port, protocol) as proxy:
        yield proxy


@contextlib.contextmanager
def subscribed(broker, protocol, url, queue, **how):
    options = SourceOptions.parse(access(broker) | {"brokerUrl": url, "queue": queue})
    link = PROTOCOLS[protocol].connect(options.connection, PROTOCOLS[protocol].arrivals())
    try:
        link.subscribe(Subscription(destination=Destination.parse(f"queue://{queue}"), window_bytes=1 << 20, **how))
        yield link
    finally:
        link.close()


@pytest.fixture
def link(broker, protocol, proxy, queue):
    with subscribed(broker, protocol, proxy.url, queue) as link:
        wait_until(lambda: protocol == "stomp" or link._acknowledger.is_ready)
        yield link


def test_an_answer_proves_the_end_of_what_had_come_when_it_was_requested(link):
    silence = IdleCheck()
    assert not silence.is_end([link], 3)
    wait_until(lambda: silence.is_end([link], 3))
    assert silence.is_end([link], 3), "asked once"
    assert not silence.is_end([link], 4), "something came"
    wait_until(lambda: silence.is_end([link], 4))


def test_a_late_answer_proves_nothing_of_what_came_since(link, proxy):
    silence = IdleCheck()
    proxy.to_client.stall()
    assert not silence.is_end([link], 3)
    assert not silence.is_end([link], 4)
    proxy.to_client.resume()
    wait_until(lambda: link in silence._answered or silence.is_end([link], 4))
    assert silence._answered[link] == 3, "asked again before it has answered"
    wait_until(lambda: silence.is_end([link], 4))


def test_every_link_has_to_answer(broker, queue, protocol, link, proxy):
    silence = IdleCheck()
    with subscribed(broker, protocol, getattr(broker, URLS[protocol]), queue) as other:
        proxy.to_client.stall()
        assert not silence.is_end([link, other], 0)
        wait_until(lambda: silence.is_end([other], 0))
        assert not silence.is_end([link, other], 0)
        proxy.to_client.resume()
        wait_until(lambda: silence.is_end([link, other], 0))


def test_a_lost_connection_proves_nothing_and_is_left_to_others(link, proxy):
    silence = IdleCheck()
    proxy.cut()
    wait_until(lambda: link.is_down)
    for _ in range(3):
        assert not silence.is_end([link], 0)


def test_an_error_that_stays_is_raised(broker, queue):
    url = urlsplit(broker.amqp_url)
    with Proxy(url.hostname, url.port, "amqp") as proxy, subscribed(broker, "amqp", proxy.url, queue) as link:
        silence = IdleCheck()
        proxy.to_client.alter = lambda data: b"?" * len(data)
        with pytest.raises(JMSError, match="frame") as raised:
            wait_until(lambda: silence.is_end([link], 0))
        assert not raised.value.transient


def test_a_link_without_a_sign_of_life_never_proves_an_end(broker, queue):
    silence = IdleCheck()
    with subscribed(broker, "amqp", broker.amqp_url, queue, browse=True) as link:
        for _ in range(10):
            assert not silence.is_end([link], 0)
            time.sleep(0.01)


def test_a_question_acknowledges_nothing_and_takes_no_credit(broker, queue, link):
    silence = IdleCheck()
    fill(broker, queue, 5)
    wait_until(lambda: link.waiting()[0] == 5)
    wait_until(lambda: silence.is_end([link], 5))
    assert (broker.message_count(queue), broker.delivering_count(queue)) == (5, 5)
    fill(broker, queue, 5, first=5)
    wait_until(lambda: link.waiting()[0] == 10)
    link.await_receipt(link.acknowledge([one for block in link.take() for one in block.ids]))
    await_count(broker, queue, 0)


@pytest.mark.parametrize("journaled", [False, True])
def test_a_flood_that_stops_is_a_batch_when_the_broker_answers(broker, queue, monkeypatch, tmp_path, journaled):
    """Silence alone would end no batch here."""
    monkeypatch.setattr("pyspark_jms.source.lingering._POURING_MESSAGES", 0)
    monkeypatch.setattr("pyspark_jms.source.lingering._POURING_SECONDS", 1e9)
    monkeypatch.setattr("pyspark_jms.source.lingering._POURING_QUIET_SECONDS", 1e9)
    fill(broker, queue, 10)
    more = {"deliveryGuarantee": "exactly-once", "journalLocation": str(tmp_path)} if journaled else {}
    receiver = OpenReceiver(SourceOptions.parse(access(broker) | {"queue": queue} | more))
    try:
        wait_until(lambda: receiver.next_batch_end() == 10)
        receiver.acknowledge_through(10)
        fill(broker, queue, 10, first=10)
        wait_until(lambda: receiver.next_batch_end() == 20)
    finally:
        receiver.close()
