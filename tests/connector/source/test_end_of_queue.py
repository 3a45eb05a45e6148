"""A silence is the end of a queue by what the links answer, on real connections, and by the time."""

import contextlib
import time
from urllib.parse import urlsplit

import pytest
from numbered import fill
from proxy import Proxy
from streaming import access
from waiting import Clock, await_count, wait_until

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.errors import BrokerUnreachableError, JMSError, ReceiptTimeoutError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.end_of_queue import CountedQueue, EndOfQueue, end_of_look
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
def subscribed(broker, protocol, url, queue, options=(), **how):
    options = SourceOptions.parse(access(broker) | {"brokerUrl": url, "queue": queue} | dict(options))
    with contextlib.closing(PROTOCOLS[protocol].connect(options.connection, StateCondition())) as link:
        link.subscribe(Subscription(destination=Destination.parse(f"queue://{queue}"), window_bytes=1 << 20, **how))
        yield link


@pytest.fixture
def link(broker, protocol, proxy, queue):
    with subscribed(broker, protocol, proxy.url, queue) as link:
        wait_until(lambda: protocol == "stomp" or link._acknowledger.is_ready)
        yield link


def test_an_answer_proves_the_end_of_what_had_come_when_it_was_requested(link):
    end = EndOfQueue(lambda link: link.ping())
    assert not end.is_reached([link], 3)
    wait_until(lambda: end.is_reached([link], 3))
    assert end.is_reached([link], 3), "asked once"
    assert not end.is_reached([link], 4), "something came"
    wait_until(lambda: end.is_reached([link], 4))


def test_a_late_answer_proves_nothing_of_what_came_since(link, proxy):
    end = EndOfQueue(lambda link: link.ping())
    proxy.to_client.stall()
    assert not end.is_reached([link], 3)
    assert not end.is_reached([link], 4)
    proxy.to_client.resume()
    wait_until(lambda: link in end._answers or end.is_reached([link], 4))
    assert end._answers[link] == 3, "asked again before it has answered"
    wait_until(lambda: end.is_reached([link], 4))


def test_every_link_has_to_answer(broker, queue, protocol, link, proxy):
    end = EndOfQueue(lambda link: link.ping())
    with subscribed(broker, protocol, getattr(broker, URLS[protocol]), queue) as other:
        proxy.to_client.stall()
        assert not end.is_reached([link, other], 0)
        wait_until(lambda: end.is_reached([other], 0))
        assert not end.is_reached([link, other], 0)
        proxy.to_client.resume()
        wait_until(lambda: end.is_reached([link, other], 0))


def test_a_lost_connection_proves_nothing_and_is_left_to_others(link, proxy):
    end = EndOfQueue(lambda link: link.ping())
    proxy.cut()
    wait_until(lambda: link.is_down)
    for _ in range(3):
        assert not end.is_reached([link], 0)


def test_an_error_that_stays_is_raised(broker, queue):
    url = urlsplit(broker.amqp_url)
    with Proxy(url.hostname, url.port, "amqp") as proxy, subscribed(broker, "amqp", proxy.url, queue) as link:
        end = EndOfQueue(lambda link: link.ping())
        proxy.to_client.alter = lambda data: b"?" * len(data)
        with pytest.raises(JMSError, match="frame") as raised:
            wait_until(lambda: end.is_reached([link], 0))
        assert not raised.value.transient


def test_a_link_without_a_sign_of_life_never_proves_an_end(broker, queue):
    end = EndOfQueue(lambda link: link.ping())
    with subscribed(broker, "amqp", broker.amqp_url, queue, browse=True) as link:
        for _ in range(10):
            assert not end.is_reached([link], 0)
            time.sleep(0.01)


def test_a_question_acknowledges_nothing_and_takes_no_credit(broker, queue, link):
    end = EndOfQueue(lambda link: link.ping())
    fill(broker, queue, 5)
    wait_until(lambda: link.waiting()[0] == 5)
    wait_until(lambda: end.is_reached([link], 5))
    assert (broker.message_count(queue), broker.delivering_count(queue)) == (5, 5)
    fill(broker, queue, 5, first=5)
    wait_until(lambda: link.waiting()[0] == 10)
    link.has_receipt(link.acknowledge([one for block in link.take() for one in block.ids]), wait=True)
    await_count(broker, queue, 0)


@pytest.mark.parametrize("ask", [lambda link: link.ping(), lambda link: link.probe()], ids=["ping", "probe"])
def test_a_broker_that_never_answers_is_an_error_for_who_waits(broker, queue, ask):
    url = urlsplit(broker.url)
    with Proxy(url.hostname, url.port, "stomp") as proxy:
        options = {"receiptTimeout": "300ms"}
        with subscribed(broker, "stomp", proxy.url, queue, options) as link:
            proxy.to_client.stall()
            end = EndOfQueue(ask)
            assert not end.is_reached([link], 0, wait=True), "asked"
            with pytest.raises(ReceiptTimeoutError):
                end.is_reached([link], 0, wait=True)
            proxy.to_client.resume()


# --- time ------------------------------------------------------------------------------------------


class Answers:
    """A peer that has as many answers as it was given."""

    def __init__(self, given=0):
        self.given, self.asked = given, 0

    def ask(self):
        self.asked += 1
        return "receipt"

    def check(self):
        pass

    def has_receipt(self, receipt, *, wait=False):
        if not self.given:
            return False
        self.given -= 1
        return True


def looks(end, clock, peers, *moments):
    """``moments``: when, and what was received until then."""
    found = []
    for clock.now, received in moments:
        found.append(end.is_reached(peers, received))
    return found


def test_nothing_is_asked_until_it_was_quiet_and_what_comes_begins_the_quiet_again():
    clock, peer = Clock(), Answers(9)
    end = EndOfQueue(Answers.ask, idle=2.0, clock=clock)
    assert looks(end, clock, [peer], (1.0, 0), (1.9, 0), (2.0, 1), (3.9, 1)) == [False] * 4
    assert not peer.asked
    assert looks(end, clock, [peer], (4.0, 1), (4.0, 1)) == [False, True]


def test_a_caller_may_know_that_a_part_of_a_message_has_come():
    clock, peer = Clock(), Answers(9)
    end = EndOfQueue(Answers.ask, idle=1.0, settle=0.5, clock=clock)
    found = []
    for clock.now, quiet in (0.0, 0.0), (2.0, 0.3), (3.0, 1.0), (3.1, 0.1), (3.6, 0.1):
        found.append(end.is_reached([peer], 0, quiet=quiet))
    assert found == [*[False] * 4, True], "the answer is no message"
    assert peer.asked == 1


def test_after_the_answer_it_stays_quiet_for_a_while():
    clock, peer = Clock(), Answers(9)
    end = EndOfQueue(Answers.ask, idle=1.0, settle=0.5, clock=clock)
    assert looks(end, clock, [peer], (0.0, 0), (1.0, 0), (1.1, 0), (1.5, 0), (1.6, 0)) == [*[False] * 4, True]
    assert looks(end, clock, [peer], (1.7, 1), (2.7, 1), (2.8, 1), (3.2, 1), (3.3, 1)) == [*[False] * 4, True]


def test_a_connection_that_replaces_another_one_has_to_be_quiet_after_its_own_answer():
    clock, peer, new = Clock(), Answers(9), Answers()
    end = EndOfQueue(Answers.ask, settle=0.5, clock=clock)
    assert looks(end, clock, [peer], (0.0, 0), (0.1, 0)) == [False, False]
    assert looks(end, clock, [new], (0.2, 0), (0.9, 0)) == [False, False]
    new.given = 1
    assert looks(end, clock, [new], (1.0, 0), (1.4, 0), (1.5, 0)) == [False, False, True]


def test_a_peer_that_does_not_answer_is_asked_once_and_proves_nothing():
    clock, peer, other = Clock(), Answers(), Answers(1)
    end = EndOfQueue(Answers.ask, clock=clock)
    assert looks(end, clock, [peer, other], (0.0, 0), (1e6, 0), (2e6, 0)) == [False] * 3
    assert (peer.asked, other.asked) == (1, 1)
    peer.given = 1
    assert looks(end, clock, [peer, other], (3e6, 0)) == [True]


def test_without_a_peer_the_silence_is_the_end():
    clock = Clock()
    assert looks(EndOfQueue(Answers.ask, idle=1.0, clock=clock), clock, [], (0.0, 0), (0.9, 0), (1.0, 0)) == [
        False,
        False,
        True,
    ]


# --- a browse --------------------------------------------------------------------------------------


def test_the_count_is_read_again_when_as_many_were_shown():
    counts = [7]
    queue = CountedQueue(5, counts.pop)
    assert (queue.not_shown(3), queue.not_shown(9)) == (2, 0)
    assert not queue.has_shown_all(4)
    assert not queue.has_shown_all(5), "two came meanwhile"
    assert queue.has_shown_all(7)
    assert not counts


def test_a_queue_that_nobody_counts_is_never_known_to_be_shown():
    queue = CountedQueue(None, lambda: None)
    assert not queue.has_shown_all(1_000)
    assert queue.not_shown(0) == 0


def test_a_silence_ends_a_browse_when_the_broker_lets_another_connection_in(broker, queue):
    made, settings = [], SourceOptions.parse(access(broker, "amqp") | {"queue": queue}).connection

    def connect():
        made.append(1)
        if len(made) < 3:
            raise BrokerUnreachableError("It sleeps.", "Wait.")
        return PROTOCOLS["amqp"].connect(settings, StateCondition())

    with subscribed(broker, "amqp", broker.amqp_url, queue, browse=True) as link:
        assert link.dialect.browses
        is_all = end_of_look(link, connect, 0.05, misses=False)
        wait_until(lambda: is_all(3))
    assert len(made) == 3


def test_a_broker_that_lets_nobody_in_ends_a_browse_after_twelve_questions(broker, queue):
    asked = []

    def refused():
        asked.append(1)
        raise BrokerUnreachableError("It sleeps.", "Wait.")

    with subscribed(broker, "amqp", broker.amqp_url, queue, browse=True) as link:
        is_all = end_of_look(link, refused, 0.01, misses=True)
        wait_until(lambda: is_all(3))
    assert len(asked) == 12
