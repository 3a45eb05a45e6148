"""Windows of many queues that share connections: wider ones over STOMP are subscribed to again, over AMQP they grow."""

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_messages import section
from amqp_sending import put_encoded
from numbered import fill
from proxy import Proxy
from rawstomp import RawStomp
from receivers import OpenReceiver
from streaming import access
from waiting import wait_until

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source import windows as of_windows
from pyspark_jms.stomp.wire.frame import header_of

MANY = 20
WINDOW = 2 << 20
OWN, WIDER = WINDOW // MANY // 2, WINDOW // 2 // 4


@pytest.fixture
def wide(broker, queue, tmp_path):
    """``wide(drain=, journal=)`` → the queues, a proxy to the broker, and how a receiver is opened."""
    with contextlib.ExitStack() as exits:
        names = [f"{queue}.{number}" for number in range(MANY)]
        for name in names:
            broker.create_queue(name)
        proxy = exits.enter_context(Proxy(broker.host, broker.port, "stomp"))

        def opened(*, drain=False, journal=False, **more):
            given = access(broker) | {"brokerUrl": proxy.url, "queue": json.dumps(names), "windowBytes": str(WINDOW)}
            given |= more
            if journal:
                given |= {"deliveryGuarantee": "exactly-once", "journalLocation": str(tmp_path / "journal")}
            receiver = OpenReceiver(SourceOptions.parse(given), drain=drain)
            exits.callback(receiver.close)
            return receiver

        yield names, proxy, opened


def windows(receiver):
    return [link.subscription.window_bytes for link in receiver.links]


def numbers_until(receiver, counts, start=0):
    """Queue → the numbers that its rows have, until there are as many as ``counts`` says, in their order."""
    found = {name: [] for name in counts}
    for _ in range(400):
        if all(len(found[name]) >= count for name, count in counts.items()):
            return found, start
        end = receiver.next_batch_end()
        for range_ in receiver.batch(start, end).ranges if end > start else ():
            name = receiver.links[range_.subscription].subscription.destination.name
            block = range_.messages()
            found[name] += [int(header_of(block, index, b"n")) for index in range(len(block))]
        receiver.acknowledge_through(end)
        start = end
    raise AssertionError({name: len(each) for name, each in found.items()})


@pytest.mark.parametrize("options", [{}, {"drain": True}, {"maxMessagesPerTrigger": "10"}])
def test_over_stomp_a_queue_that_fills_its_window_gets_a_wider_one(broker, wide, options):
    """Also if some of its messages wait for a later batch, and come again. The two have one connection, which stays."""
    names, _, opened = wide
    for name in (names[5], names[13]):
        fill(broker, name, 400, size=2000)
    receiver = opened(**options)
    assert windows(receiver) == [OWN] * MANY
    others = [link for number, link in enumerate(receiver.links) if number not in {5, 13}]
    found, end = numbers_until(receiver, {names[5]: 400, names[13]: 400})
    assert found == {names[5]: list(range(400)), names[13]: list(range(400))}, "each once, in their order"
    assert windows(receiver)[5] == windows(receiver)[13] == OWN + WIDER
    assert [link for number, link in enumerate(receiver.links) if number not in {5, 13}] == others
    assert receiver.progress()["reconnects"] == 0
    wait_until(lambda: receiver.next_batch_end() == end and sum(map(broker.message_count, names)) == 0)


def test_what_a_wider_window_gives_back_costs_no_delivery_attempt(broker, wide):
    names, _, opened = wide
    fill(broker, names[0], 400, size=2000)
    receiver = opened()
    while windows(receiver)[0] == OWN:
        receiver.acknowledge_through(receiver.next_batch_end())
    receiver.links[0].close()
    assert set(broker.delivery_counts(names[0])) == {0}


def test_a_queue_that_fills_its_window_no_more_gives_it_up_to_another(broker, wide, monkeypatch):
    monkeypatch.setattr(of_windows, "_LATELY_SECONDS", 0.0)
    names, _, opened = wide
    receiver, end = opened(), 0
    for name in (*names[:3], names[0]):
        fill(broker, name, 400, size=2000)
        end = numbers_until(receiver, {name: 400}, end)[1]
        assert windows(receiver) == [OWN + WIDER if each == name else OWN for each in names]
        receiver.acknowledge_through(end)
    inboxes = {id(each) for link in receiver.links for each in link.connection.prefetch._others.values()}
    assert len(inboxes) <= MANY, "a subscription that was left keeps no memory"
    wait_until(lambda: receiver.next_batch_end() == end and sum(map(broker.message_count, names)) == 0)


@pytest.mark.parametrize("full", [5, MANY])
def test_many_full_queues_have_equal_windows_and_few_changes(broker, wide, full):
    """Each window is changed again when twice as many queues are full, and not in each batch."""
    names, _, opened = wide
    for name in names[:full]:
        fill(broker, name, 600, size=2000)
    receiver = opened()
    found, _ = numbers_until(receiver, dict.fromkeys(names[:full], 600))
    assert all(numbers == list(range(600)) for numbers in found.values())
    assert receiver.progress()["reconnects"] == 0, "a connection that stays was not lost"
    part = WINDOW // 2 // (1 << (full - 1).bit_length())
    assert set(windows(receiver)[:full]) <= {OWN + part, OWN}
    subscribed = sum(
        link.connection._subscription_count for link in {id(each.connection): each for each in receiver.links}.values()
    )
    assert subscribed <= MANY + 3 * full


def made(broker, name, **settings):
    api = broker.jvm.org.apache.activemq.artemis.api.core
    configuration = api.QueueConfiguration.of(name).setRoutingType(api.RoutingType.ANYCAST).setDurable(True)
    for setting, value in settings.items():
        getattr(configuration, f"set{setting}")(value)
    broker.server.createQueue(configuration, True)


@pytest.mark.parametrize(
    "settings",
    [
        {"PurgeOnNoConsumers": True},
        {"NonDestructive": True},
        {"Exclusive": True},
        {"MaxConsumers": 1},
        {"LastValue": True},
        {},
    ],
    ids=lambda settings: next(iter(settings), "another consumer"),
)
def test_a_queue_that_is_more_than_a_queue_keeps_its_consumer(broker, queue, settings):
    """Without its consumer it would be emptied, given to another one, or send all of its messages again."""
    names = [f"{queue}.{number}" for number in range(MANY)]
    made(broker, names[0], **settings)
    for name in names[1:]:
        broker.create_queue(name)
    options = {"queue": json.dumps(names), "windowBytes": str(WINDOW)}
    with contextlib.ExitStack() as exits:
        if not settings:
            headers = {"id": "1", "destination": names[0], "ack": "client-individual", "consumer-window-size": "1"}
            other = RawStomp(broker)
            exits.callback(other.close_abruptly)
            other.request("SUBSCRIBE", headers.items())
        receiver = exits.enter_context(contextlib.closing(OpenReceiver(SourceOptions.parse(access(broker) | options))))
        fill(broker, names[0], 600, size=2000)
        found, end = numbers_until(receiver, {names[0]: 600 if settings else 599})
        assert found[names[0]] == sorted(set(found[names[0]]))
        assert windows(receiver)[0] == OWN
        receiver.acknowledge_through(end)
    broker.purge(names[0])


def test_a_queue_that_was_set_otherwise_meanwhile_keeps_its_window(broker, wide):
    """The broker is asked before each change: also before a window gets smaller."""
    names, _, opened = wide
    fill(broker, names[0], 400, size=2000)
    receiver = opened()
    _, end = numbers_until(receiver, {names[0]: 400})
    assert windows(receiver)[0] == OWN + WIDER
    receiver.acknowledge_through(end)
    wait_until(lambda: receiver.next_batch_end() == end and broker.message_count(names[0]) == 0)
    broker.server.getActiveMQServerControl().updateQueue(json.dumps({"name": names[0], "purge-on-no-consumers": True}))
    for name in names[:6]:
        fill(broker, name, 600, size=2000)
    found, last = numbers_until(receiver, dict.fromkeys(names[:6], 600), end)
    assert all(numbers == list(range(600)) for numbers in found.values())
    assert windows(receiver)[0] == OWN + WIDER
    receiver.acknowledge_through(last)


def test_what_is_not_known_of_a_queue_keeps_its_window(restricted, queue):
    """The user may not ask the management."""
    names = [f"{queue}.{number}" for number in range(MANY)]
    given = access(restricted) | {"user": "worker", "password": "pw", "windowBytes": str(WINDOW)}
    fill(restricted, names[0], 400, size=2000)
    with contextlib.closing(OpenReceiver(SourceOptions.parse(given | {"queue": json.dumps(names)}))) as receiver:
        numbers_until(receiver, {names[0]: 400})
        assert windows(receiver)[0] in {OWN, WINDOW // MANY}


@pytest.mark.parametrize("fault", ["cut_at", "hold_at"])
@pytest.mark.parametrize("nth", [2, 3], ids=["UNSUBSCRIBE", "SUBSCRIBE"])
def test_a_connection_that_ends_at_the_change_is_replaced(broker, wide, nth, fault):
    """Also one that only does not answer. The first SUBSCRIBE is that of a management connection: that of the watch has
    subscribed before.
    """
    names, proxy, opened = wide
    receiver = opened(receiptTimeout="2s", heartbeat="2s")
    wait_until(lambda: "depth" in receiver.progress())
    fill(broker, names[5], 400, size=2000)
    getattr(proxy.to_broker, fault)(b"SUBSCRIBE\n", nth=nth)
    found, _ = numbers_until(receiver, {names[5]: 400})
    assert sorted(set(found[names[5]])) == list(range(400))
    assert len(found[names[5]]) == 400
    assert receiver.progress()["reconnects"] == 1
    assert windows(receiver)[5] == OWN + WIDER


def test_a_queue_that_is_gone_at_the_change_is_left_out_until_it_is_there_again(restricted, queue, caplog):
    names = [f"fixed.{queue}.{number}" for number in range(MANY)]
    for name in names:
        restricted.create_queue(name)
    gone, others = names[5], dict.fromkeys(names[:5] + names[6:], 1)
    with Proxy(restricted.host, restricted.port, "stomp") as proxy, ThreadPoolExecutor(1) as pool:
        options = {"brokerUrl": proxy.url, "queue": json.dumps(names), "windowBytes": str(WINDOW)}
        with contextlib.closing(OpenReceiver(SourceOptions.parse(access(restricted) | options))) as receiver:
            fill(restricted, gone, 400, size=2000)
            wait_until(lambda: "depth" in receiver.progress())  # the watch has subscribed
            proxy.to_broker.hold_at(b"SUBSCRIBE\n", nth=3)  # behind that of management, and UNSUBSCRIBE
            read = pool.submit(numbers_until, receiver, others | {gone: 0})
            assert proxy.to_broker.held.wait(30)
            restricted.server.getActiveMQServerControl().destroyQueue(gone, True)
            for name in others:
                fill(restricted, name, 1)
            proxy.to_broker.release()
            _, end = read.result(60)
            receiver.acknowledge_through(end)
            restricted.create_queue(gone)
            fill(restricted, gone, 3)
            found, last = numbers_until(receiver, {gone: 3}, end)
            assert (found, last) == ({gone: [0, 1, 2]}, end + 3)
            assert windows(receiver)[5] == OWN
    said = [each for each in caplog.messages if "reads its other queues" in each or "is there again" in each]
    assert len(said) == 2, said
    assert sum(map(restricted.message_count, names)) == 0


def test_a_journal_has_each_message_once_when_its_window_gets_wider(broker, wide):
    names, _, opened = wide
    fill(broker, names[2], 400, size=2000)
    receiver = opened(journal=True)
    end = 0
    while end < 400:
        end = receiver.next_batch_end()
        receiver.acknowledge_through(end)
    assert windows(receiver)[2] == OWN + WIDER
    assert (receiver.next_batch_end(), receiver.progress()["received"]) == (400, 400)
    wait_until(lambda: receiver.next_batch_end() == 400 and broker.message_count(names[2]) == 0)


def test_over_amqp_a_queue_that_fills_its_window_gets_more(broker, queue):
    names = json.dumps([f"{queue}.{number}" for number in range(MANY)])
    given = access(broker, "amqp") | {"queue": names, "windowBytes": "2m"}
    put_encoded(broker, f"{queue}.7", [section(0x75, b"\xb0" + (4000).to_bytes(4, "big") + b"x" * 4000)] * 1000)
    with contextlib.closing(OpenReceiver(SourceOptions.parse(given))) as receiver:
        own = receiver.links[7].subscription.window_bytes
        assert own == (2 << 20) // MANY // 2
        wait_until(lambda: receiver.links[7].waiting()[1] > 8 * own, what="more than its own window")
        assert receiver.links[7].waiting()[1] < 2 << 20
