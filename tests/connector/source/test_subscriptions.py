import contextlib
import json
import re
import time
from types import SimpleNamespace

import pytest
from amqp_messages import map_, section, string, timestamp
from amqp_sending import put, put_encoded
from connections import Connections
from numbered import fill
from proxy import Proxy
from pyspark.sql.streaming.datasource import ReadMaxBytes
from rawstomp import RawStomp
from receivers import OpenReceiver
from streaming import access, stopping
from waiting import await_count, await_value, wait_until

from pyspark_jms.errors import (
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidOptionError,
    JMSSecurityError,
    SelectorChangedError,
    SubscriptionInUseError,
    UnconvertibleMessageError,
    UnsupportedError,
)
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.address import Address
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.offsets import selector_digest
from pyspark_jms.source.peek import peek
from pyspark_jms.source.subscriptions import ShortSessions, Subscriptions, create_subscription
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.spark.stream_reader import JmsStreamReader
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC

ADDRESS, QUEUE = Address(host="h", port=1, tls=False), Destination.parse("queue://orders")


def end(sessions, subscription, now, dialect=CLASSIC):
    link = SimpleNamespace(dialect=dialect, address=ADDRESS, subscription=SimpleNamespace(destination=QUEUE))
    return sessions.ended(subscription, now, link)


def test_ends_in_a_row_are_counted_and_name_a_cause():
    sessions = ShortSessions()
    for count in (1, 2, 3):
        sessions.began(0, 10.0 * count)
        error = end(sessions, 0, 10.0 * count + 1)
        assert sessions.consecutive(0) == count
    assert "ended 3 connections in a row, each soon after it had subscribed to queue://orders" in error.fact
    assert "ObjectMessage" in error.remedy
    assert error.transient


def test_a_connection_that_lived_ends_the_row():
    sessions = ShortSessions()
    sessions.began(0, 0.0)
    end(sessions, 0, 1.0)
    sessions.began(0, 1.0)
    assert end(sessions, 0, 60.0) is None
    assert sessions.consecutive(0) == 0


def test_each_subscription_by_itself():
    sessions = ShortSessions()
    sessions.began(0, 0.0)
    sessions.began(1, 0.0)
    end(sessions, 0, 1.0)
    assert [sessions.consecutive(subscription) for subscription in (0, 1, 2)] == [1, 0, 0]


@pytest.mark.parametrize("after", [0.1, 60.0])
def test_a_broker_that_says_why_is_not_suspected(after):
    sessions = ShortSessions()
    sessions.began(0, 0.0)
    assert end(sessions, 0, after, ARTEMIS) is None
    assert sessions.consecutive(0) == 0


@contextlib.contextmanager
def subscribed(broker, digest=None, **more):
    options = SourceOptions.parse(access(broker) | more)
    with contextlib.closing(Subscriptions(reading_of(options), time.sleep)) as subscriptions:
        subscriptions.open(digest, 0.0)
        yield subscriptions


def test_a_lost_connection_is_replaced_and_the_others_stay(broker, queue):
    with subscribed(broker, queue=f'["{queue}.a", "{queue}.b"]') as subscriptions:
        first, second = subscriptions.links
        assert subscriptions.lost() == []
        second.drop()
        wait_until(lambda: subscriptions.lost() == [1])
        subscriptions.reconnect(1, subscriptions.end_of(1))
        assert subscriptions.links[0] is first
        assert subscriptions.links[1] is not second
        assert subscriptions.reconnects == 1
        with RawStomp(broker) as client:
            client.send(f"{queue}.b", [([], "x")])
        wait_until(lambda: subscriptions.links[1].waiting()[0] == 1)


def test_the_selector_is_split_for_the_broker_that_answers(broker, queue):
    with subscribed(broker, queue=queue, selector="JMSPriority > 4") as subscriptions:
        assert subscriptions.links[0].subscription.selector == "AMQPriority > 4"
        assert subscriptions.selector_digest is None, "a queue keeps no subscription"


def test_a_durable_subscription_keeps_its_selector(broker, queue):
    durable = {"topic": queue, "subscriptionName": "daily", "clientId": queue}
    red, blue = "color = 'red'", "color = 'blue'"
    with subscribed(broker, **durable, selector=red) as subscriptions:
        digest = subscriptions.selector_digest
        assert digest == selector_digest(subscriptions.links[0].subscription.selector)
    with subscribed(broker, digest, **durable, selector=red) as subscriptions:
        assert subscriptions.selector_digest == digest
    with pytest.raises(SelectorChangedError), subscribed(broker, digest, **durable, selector=blue):
        pass
    with pytest.raises(SelectorChangedError), subscribed(broker, None, **durable, selector=blue):
        pass  # a new checkpoint: the source queries Artemis


def test_what_a_broker_cannot_do_is_refused_before_it_is_asked(broker, queue):
    shared = {"topic": queue, "subscriptionName": "daily", "sharedSubscription": "true", "selector": "a = 1"}
    with pytest.raises(UnsupportedError, match="clientId"), subscribed(broker, **shared):
        pass


def put_unconvertible(broker, queue):
    """A message with a property of type timestamp, which no converter of Artemis knows."""
    properties = section(0x74, map_([(string("t"), timestamp(1_700_000_000_000))]))
    put_encoded(broker, queue, [properties + section(0x77, string("only over AMQP"))])


def test_with_a_window_of_one_message_those_before_it_are_read_and_lose_no_attempt(broker, queue):
    """A message that cannot be sent takes no credit, so the broker has the next one in delivery too."""
    put(broker, queue, *map(str, range(4)))
    put_unconvertible(broker, queue)
    put(broker, queue, "next", "later")
    options, rows = SourceOptions.parse(access(broker) | {"queue": queue, "windowBytes": "1"}), []
    for start in (1, 2, 3):
        with pytest.raises(UnconvertibleMessageError, match="windowBytes=1"):
            read_until_error(options, rows)
        wait_until(lambda: broker.consumer_count(queue) == 0)
        await_value(lambda: broker.delivery_counts(queue), [start, start, 0])
    assert rows[:4] == ["0", "1", "2", "3"]
    assert set(rows[4:]) <= {"next"}
    broker.purge(queue)


def read_until_error(options, rows):
    reader, end = JmsStreamReader(options), {"seq": 0}
    with stopping(reader):
        while True:
            start, end = end, reader.latestOffset(end, ReadMaxBytes(1))
            for part in reader.partitions(start, end) if end != start else ():
                rows += [text for batch in reader.read(part) for text in batch.column("text").to_pylist()]


@pytest.mark.parametrize("count", [6, 400])
def test_a_message_that_cannot_be_sent_over_stomp_has_a_code_and_one_start_costs_one_attempt(
    broker, queue, count, caplog
):
    """The connection may end before its ERROR can be read: the next one is another attempt."""
    put(broker, queue, *(f"{number} {'x' * 500}" for number in range(count)))
    put_unconvertible(broker, queue)
    put(broker, queue, "later")
    options = SourceOptions.parse(access(broker) | {"queue": queue})
    with pytest.raises(UnconvertibleMessageError, match=r"\[JMS_UNCONVERTIBLE_MESSAGE\].*over AMQP"):
        read_until_error(options, [])
    wait_until(lambda: broker.consumer_count(queue) == 0)
    attempts = 1 + sum(each.startswith("= reconnected") for each in caplog.messages)
    await_value(lambda: max(broker.delivery_counts(queue)), attempts)
    with pytest.raises(UnconvertibleMessageError):
        list(peek(reading_of(options)))
    broker.purge(queue)


def _create(running, name, **options):
    given = {"topic": name, "subscriptionName": "s", "clientId": f"c-{name}"}
    parsed = SourceOptions.parse(access(running) | given | options)
    return create_subscription(reading_of(parsed))


@pytest.fixture(params=["stomp", "amqp"])
def url(request, broker):
    return {"brokerUrl": access(broker, request.param)["brokerUrl"]}


def test_it_keeps_messages_and_takes_none(broker, queue, url):
    assert _create(broker, queue, **url) is None
    with RawStomp(broker) as raw:
        raw.send(queue, [([], str(n)) for n in range(3)], topic=True)
    assert _create(broker, queue, **url) is None
    await_count(broker, f"c-{queue}.s", 3)
    await_value(lambda: set(broker.delivery_counts(f"c-{queue}.s")), {0})
    assert broker.consumer_count(f"c-{queue}.s") == 0


def test_another_selector_is_refused_and_nothing_is_lost(broker, queue, url):
    assert _create(broker, queue, **url, selector="a = '1'") == "a = '1'"
    with RawStomp(broker) as raw:
        raw.send(queue, [([("a", "1")], "kept")], topic=True)
    with pytest.raises(SelectorChangedError):
        _create(broker, queue, **url)
    await_count(broker, f"c-{queue}.s", 1)


def test_a_subscription_that_is_read_is_in_use_over_amqp(broker, queue):
    given = access(broker, "amqp") | {"topic": queue, "subscriptionName": "s", "clientId": f"c-{queue}"}
    parsed = SourceOptions.parse(given)
    reader = reading_of(parsed).connect(StateCondition())
    reader.subscribe(Subscription(destination=parsed.destinations[0], window_bytes=1, durable=parsed.durable))
    with contextlib.closing(reader), pytest.raises(SubscriptionInUseError):
        _create(broker, queue, brokerUrl=broker.amqp_url)


def test_without_a_broker():
    parsed = SourceOptions.parse(
        {"brokerUrl": "stomp://127.0.0.1:1", "topic": "t", "subscriptionName": "s", "clientId": "c"}
    )
    with pytest.raises(BrokerUnreachableError):
        create_subscription(reading_of(parsed))


@pytest.mark.parametrize(
    "wrong", [{"subscriptionName": "::s"}, {"clientId": "c::d"}, {"subscriptionName": "d.s"}, {"topic": "t::s"}]
)
def test_a_name_that_the_broker_would_take_for_another_leaves_no_subscription(broker, queue, wrong, url):
    """With broker=auto the dialect is known only after the connection."""
    control = broker.server.getActiveMQServerControl()
    before = set(map(str, control.getQueueNames()))
    with pytest.raises(InvalidOptionError, match=f"Option {next(iter(wrong))} is "):
        _create(broker, queue, **wrong, **url)
    with pytest.raises(InvalidOptionError, match=f"Option {next(iter(wrong))} is "):
        _create(broker, queue, **wrong, **url, broker="artemis")
    parsed = SourceOptions.parse(
        access(broker) | {"topic": "t", "subscriptionName": "s", "clientId": "c"} | wrong | url
    )
    with pytest.raises(InvalidOptionError, match=f"Option {next(iter(wrong))} is "):
        reading_of(parsed).protocol.end_subscription(parsed.connection, parsed.destinations[0], parsed.durable)
    assert {name for name in set(map(str, control.getQueueNames())) - before if name.endswith("s")} == set()


# --- many queues on few connections ------------------------------------------------------------------

MANY = 20


@pytest.fixture(params=["stomp", "amqp"])
def many(request, broker, queue):
    """``many(**options)`` → the queues, a proxy to the broker, and a receiver of all of them."""
    with contextlib.ExitStack() as exits:

        def opened(**options):
            names = [f"{queue}.{number}" for number in range(MANY)]
            for name in names:
                broker.create_queue(name)
            proxy = exits.enter_context(Proxy(broker.host, broker.port, request.param))
            given = access(broker) | {"brokerUrl": proxy.url, "queue": json.dumps(names)} | options
            receiver = OpenReceiver(SourceOptions.parse(given))
            exits.callback(receiver.close)
            return names, proxy, receiver

        yield opened


def batch_of(receiver, start, count):
    """The next batches with so many messages: pairs of queue and text, and their end."""
    found, end = [], start
    for _ in range(200):
        if len(found) >= count:
            break
        end = receiver.next_batch_end()
        for range_ in receiver.batch(start, end).ranges if end > start else ():
            name = receiver.links[range_.subscription].subscription.destination.name
            block = range_.messages()
            found += [(name, block.message(at).rstrip(b"\n\0")[-2:].decode()) for at in range(len(block))]
        start = end
    return found, end


def connections_of(receiver):
    return {id(link.connection) for link in receiver.links}


def test_many_queues_share_eight_connections_and_each_message_is_of_its_queue(broker, many):
    names, _, receiver = many()
    assert len(connections_of(receiver)) == 8
    sent = [(name, f"{number:02}") for number in range(5) for name in names]
    for name, text in sent:
        put(broker, name, text)
    found, end = batch_of(receiver, 0, len(sent))
    assert sorted(found) == sorted(sent)
    receiver.acknowledge_through(end)
    wait_until(lambda: sum(map(broker.message_count, names)) == 0)


def test_at_the_start_each_connection_has_one_that_looks_at_its_queues_first(broker, queue):
    """Over STOMP: at its queues that have messages. It is not the connection whose messages would lose an attempt."""
    names = [f"{queue}.{number}" for number in range(MANY)]
    for name in names:
        fill(broker, name, 2)
    with Connections(broker) as seen:
        receiver = OpenReceiver(SourceOptions.parse(access(broker) | {"queue": json.dumps(names)}))
        receiver.close()
    assert seen.made == 8 + 8 + 2, "and two of management"
    assert seen.most <= 8 + 8 + 1


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_of_many_queues_one_that_is_missing_is_named_and_every_connection_is_closed(restricted, queue, protocol):
    names = [f"fixed.{queue}.{number}" for number in range(MANY)]
    for name in names[:-1]:
        restricted.create_queue(name)
    options = access(restricted, protocol) | {"queue": json.dumps(names)}
    with Connections(restricted), pytest.raises(InvalidDestinationError, match=re.escape(names[-1])):
        OpenReceiver(SourceOptions.parse(options))


def test_of_many_queues_a_forbidden_one_ends_the_start_at_once(restricted, queue):
    """Also while another connection waits for a queue that is missing, for as long as it takes."""
    names = [f"fixed.{queue}.{number}" for number in range(MANY)]
    for name in names[1:]:
        restricted.create_queue(name)
    given = {"user": "producer", "password": "pw", "queue": json.dumps(names), "reconnectTimeout": "forever"}
    with Connections(restricted), pytest.raises(JMSSecurityError):
        OpenReceiver(SourceOptions.parse(access(restricted) | given), restarted=True)


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_of_several_queues_a_forbidden_one_is_named(restricted, queue, protocol):
    """Over STOMP Artemis does not name it: "Error creating subscription 1"."""
    names = [f"mine.{queue}", f"{queue}.other"]
    for name in names:
        restricted.create_queue(name)
    given = {"user": "mine-only", "password": "pw", "queue": json.dumps(names)}
    with Connections(restricted), pytest.raises(JMSSecurityError, match=re.escape(names[1])):
        OpenReceiver(SourceOptions.parse(access(restricted, protocol) | given))


@pytest.mark.parametrize("has_messages", [True, False], ids=["with messages", "empty"])
def test_a_queue_that_is_in_use_costs_the_messages_of_the_others_no_attempt(restricted, queue, has_messages):
    """It is looked at on a connection of its own, whose end is not the end of the shared one, or subscribed to before
    those that have messages.
    """
    names = [f"{queue}.{number}" for number in range(MANY)]
    for name in names:
        restricted.create_queue(name)
    restricted.server.getActiveMQServerControl().updateQueue(f'{{"name": "{names[9]}", "max-consumers": 1}}')
    fill(restricted, names[1], 20)
    fill(restricted, names[9], 2 * has_messages)
    other = RawStomp(restricted)
    headers = {"id": "1", "destination": names[9], "ack": "client-individual", "consumer-window-size": "1"}
    with contextlib.ExitStack() as exits:
        exits.callback(other.close_abruptly)
        other.request("SUBSCRIBE", headers.items())
        for _ in range(2):
            with Connections(restricted), pytest.raises(SubscriptionInUseError):
                OpenReceiver(SourceOptions.parse(access(restricted) | {"queue": json.dumps(names)}))
            await_value(lambda: set(restricted.delivery_counts(names[1])), {0})


def test_one_that_is_refused_is_a_lost_connection_for_the_others(restricted, queue):
    """Also where an acknowledgement of theirs is confirmed, and where they ask whether the broker answers."""
    names = [f"fixed.{queue}.{number}" for number in range(MANY)]
    for name in names:
        restricted.create_queue(name)
    fill(restricted, names[0], 3)
    options = SourceOptions.parse(access(restricted) | {"queue": json.dumps(names)})
    with contextlib.closing(OpenReceiver(options)) as receiver:
        beside, gone = receiver.links[0], receiver.links[8]
        wait_until(lambda: beside.waiting()[0] == 3)
        (block,) = beside.take()
        receipt = beside.acknowledge(block.ids)
        wait_until(lambda: beside.connection.has_receipt(receipt))
        gone.close()
        restricted.server.getActiveMQServerControl().destroyQueue(names[8], True)
        again = receiver._reading.connect(StateCondition(), beside)
        with pytest.raises(InvalidDestinationError):
            again.subscribe(gone.subscription)
        assert beside.has_receipt(receipt)
        for ask in (beside.check, beside.ping):
            with pytest.raises(ConnectionLostError):
                ask()
        restricted.create_queue(names[8])


def test_an_absent_queue_that_is_subscribed_to_again_is_absent_no_more(restricted, queue):
    names = [f"fixed.{queue}.{number}" for number in range(MANY)]
    for name in names:
        restricted.create_queue(name)
    options = SourceOptions.parse(access(restricted) | {"queue": json.dumps(names)})
    with contextlib.closing(Subscriptions(reading_of(options), time.sleep)) as subscriptions:
        subscriptions.open(None, 0.0)
        subscriptions.links[8].close()
        restricted.server.getActiveMQServerControl().destroyQueue(names[8], True)
        subscriptions.subscribe_again(8)
        assert list(subscriptions.absent) == [8]
        for each in subscriptions.lost():
            subscriptions.reconnect(each, None)
        assert list(subscriptions.absent) == [8]
        restricted.create_queue(names[8])
        subscriptions.subscribe_again(8)
        assert (list(subscriptions.absent), subscriptions.links[8].is_down) == ([], False)


def test_a_lost_connection_is_repaired_alone(broker, many):
    names, proxy, receiver = many()
    for name in names:
        put(broker, name, "01")
    _, end = batch_of(receiver, 0, MANY)
    lost = receiver.links[3].connection
    kept = [link for link in receiver.links if link.connection is not lost]
    proxy.cut([_link_of(proxy, lost)])
    wait_until(lambda: receiver.links[3].is_down)
    again, last = batch_of(receiver, end, 0)
    assert receiver.next_batch_end() == last
    assert again == []
    assert [link for link in receiver.links if link in kept] == kept
    assert len(connections_of(receiver)) == 8
    receiver.acknowledge_through(end)
    for name in names:
        put(broker, name, "02")
    more, last = batch_of(receiver, end, MANY)
    assert sorted(more) == sorted((name, "02") for name in names), "nothing of the first batch comes twice"
    receiver.acknowledge_through(last)
    wait_until(lambda: receiver.next_batch_end() == last and sum(map(broker.message_count, names)) == 0)
    metrics = receiver.progress()
    assert (metrics["reconnects"], metrics["received"]) == (1, 2 * MANY + metrics["recognised"])


def _link_of(proxy, connection):
    socket = getattr(connection, "_transport", None) or connection._stream
    port = (getattr(socket, "socket", None) or socket._socket).getsockname()[1]
    return next(each for each in proxy.links() if each.client.getpeername()[1] == port)


def test_one_that_leaves_gives_its_messages_back_and_leaves_the_connection_to_the_others(broker, many):
    names, _, receiver = many()
    for name in names:
        put(broker, name, "01", "02")
    wait_until(lambda: receiver.progress()["inFlightMessages"] == 2 * MANY)
    receiver.links[0].close()
    assert broker.delivery_counts(names[0]) == [0, 0]
    assert not receiver.links[8].is_down
    assert receiver.links[8].connection is receiver.links[0].connection
    receiver.links[8].has_receipt(receiver.links[8].ping(), wait=True)


def test_an_idle_query_looks_at_no_queue(broker, many, monkeypatch):
    _, _, receiver = many()
    wait_until(lambda: receiver.next_batch_end() == 0 and receiver.next_batch_end() == 0)
    looks = []
    link = type(receiver.links[0])
    check = link.check
    monkeypatch.setattr(link, "check", lambda self: looks.append(self) or check(self))
    changes = receiver._subscriptions.condition.changes
    assert receiver.next_batch_end() == 0
    assert not looks or receiver._subscriptions.condition.changes != changes
