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
from pyspark_jms.source.end_of_queue import LONGEST_MS, CountedQueue, Drain, EndOfQueue, end_of_look, was_sent_later
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.stomp.wire.frame import header_of
from pyspark_jms.stomp.wire.scan import FrameScanner

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


def test_an_answer_begins_the_twelve_questions_anew(broker, queue):
    asked, settings = [], SourceOptions.parse(access(broker, "amqp") | {"queue": queue}).connection

    def connect():
        asked.append(1)
        if len(asked) == 7:
            return PROTOCOLS["amqp"].connect(settings, StateCondition())
        raise BrokerUnreachableError("It sleeps.", "Wait.")

    with subscribed(broker, "amqp", broker.amqp_url, queue, browse=True) as link:
        is_all = end_of_look(link, connect, 0.01, misses=True)
        wait_until(lambda: is_all(3))
        wait_until(lambda: is_all(4))
    assert len(asked) == 7 + 12


# --- AvailableNow ---------------------------------------------------------------------------------

STARTED = 1_000_000.0
NOW = STARTED + 10_000
LATE = STARTED + LONGEST_MS


def block_of(*times):
    """Messages sent at these times, None: the producer switched timestamps off."""
    scanner = FrameScanner(max_body_bytes=1000)
    for n, sent in enumerate(times):
        stamp = "" if sent is None else f"timestamp:{sent}\n"
        scanner.feed(f"MESSAGE\nsubscription:1\nmessage-id:9,{n}\ndestination:q\n{stamp}\nbody\0\n".encode())
    return scanner.take()


class Link:
    """As far as draining asks: when a message was sent."""

    def __init__(self, header=b"timestamp", unit_ms=1):
        self._header, self._unit_ms = header, unit_ms

    def sent_ms(self, block, index):
        sent = self._header and header_of(block, index, self._header)
        return int(sent) * self._unit_ms or None if sent else None


@pytest.mark.parametrize(
    ("times", "before", "ends"),
    [
        ([999_000, 1_000_000, 1_001_000], 3, False),  # a second of tolerance: the clocks are two
        ([999_000, 1_001_001, 999_000], 1, True),
        ([1_001_001], 0, True),
        ([1_011_000, 999_000], 0, True),  # now, and a second of tolerance
        ([1_011_001, 999_000, 1_005_000], 2, True),  # from the future: no word on when it was sent
        ([9_000_000_000_000], 1, False),
        ([None, 0, None], 3, False),
        ([], 0, False),
    ],
)
def test_the_first_message_sent_between_the_start_and_now_ends_its_subscription(times, before, ends):
    drain = Drain(STARTED)
    assert drain.sent_before_start(1, Link(), block_of(*times), now_ms=NOW) == before
    assert drain.ended == ({1} if ends else set())


def test_an_ended_subscription_gives_nothing_more_and_the_others_go_on():
    drain = Drain(STARTED, {1})
    assert drain.sent_before_start(1, Link(), block_of(5, 5), now_ms=NOW) == 0
    assert drain.sent_before_start(0, Link(), block_of(5, 5), now_ms=NOW) == 2


def test_a_query_that_goes_on_reads_every_message():
    drain = Drain(None)
    assert drain.sent_before_start(0, Link(), block_of(5, 1_001_001, None), now_ms=LATE) == 3
    assert drain.ended == set()


def test_a_dialect_without_such_a_header_is_drained_by_silence_only():
    drain = Drain(STARTED)
    assert drain.sent_before_start(0, Link(None), block_of(1_001_001), now_ms=NOW) == 1
    assert drain.ended == set()


@pytest.mark.parametrize(
    ("header", "times", "before"),
    [
        (b"timestamp", [999_000, None, 999_000], 1),
        (b"timestamp", [999_000, 999_000, 9_000_000_000_000], 2),
        (b"timestamp", [999_000, 0], 1),
        (None, [999_000], 0),
        (b"timestamp", [999_000, 999_000], 2),  # a long backlog is read to its end
    ],
)
def test_messages_that_do_not_tell_when_they_were_sent_do_not_keep_a_run_open(header, times, before, caplog):
    drain = Drain(STARTED)
    assert drain.sent_before_start(0, Link(header), block_of(*times), now_ms=LATE - 1) == len(times)
    assert drain.sent_before_start(0, Link(header), block_of(*times), now_ms=LATE) == before
    assert drain.ended == ({0} if before < len(times) else set())
    assert ("AvailableNow ends" in caplog.text) == bool(drain.ended)


def test_a_header_that_counts_seconds():
    drain = Drain(STARTED)
    assert drain.sent_before_start(0, Link(unit_ms=1000), block_of(999, 1001, 1002), now_ms=NOW) == 2
    assert drain.ended == {0}


@pytest.mark.parametrize(
    ("sent", "later"),
    [(None, None), (1_000_000, False), (1_001_000, False), (1_001_001, True), (1_011_000, True), (1_011_001, None)],
)
def test_a_message_was_sent_before_or_after_the_start_or_has_no_usable_time(sent, later):
    assert was_sent_later(sent, started_ms=STARTED, now_ms=NOW) is later


def test_a_clock_that_was_set_back_makes_no_message_later():
    assert was_sent_later(1_000_500, started_ms=STARTED, now_ms=STARTED - 60_000) is False
