"""The receiver on a real broker, without Spark: what it hands out, when it acknowledges, what it survives."""

import contextlib
import json
import threading
import time

import pytest
from amqp_messages import TRUE, list_, properties, section, string
from amqp_sending import put_encoded
from flooding_broker import FloodingBroker
from numbered import fill, sending_on_and_on
from proxy import Proxy
from rawstomp import RawStomp
from receivers import OpenReceiver
from streaming import access, left
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.errors import (
    BrokerUnreachableError,
    ConnectionLostError,
    JMSSecurityError,
    MessageTooLargeError,
    OtherBrokerError,
    PrefetchExceededError,
    StoppedError,
    UnsupportedError,
)
from pyspark_jms.management.queue_watch import QueueWatch
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.receiver import required_recognition
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.stomp.source import StompSource, StompSourceLink
from pyspark_jms.stomp.wire.frame import header_of
from pyspark_jms.testing import JmsClient


def options(broker, queue, **more):
    raw = access(broker) | {"queue": queue}
    return SourceOptions.parse(raw | {key: str(value) for key, value in more.items()})


@contextlib.contextmanager
def receiving(broker, queue, *, start=0, drain=False, **more):
    with contextlib.closing(OpenReceiver(options(broker, queue, **more), start, drain=drain)) as receiver:
        yield receiver


def numbers(receiver, start, end):
    """The property n of a batch's messages, in order."""
    ranges = receiver.batch(start, end).ranges
    return [
        int(header_of(range_.block, index, b"n")) for range_ in ranges for index in range(range_.first, range_.last)
    ]


def read_until(receiver, start, count):
    """Admit and settle until so many messages were handed out; their numbers, in order of sequence."""
    found, end = [], start
    deadline = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} came"
        end = receiver.next_batch_end()
        if end > start:
            found += numbers(receiver, start, end)
            start = end
            receiver.acknowledge_through(end)
    return found


def arrived(receiver, count):
    """Wait until so many messages are with us, so that the next batch does not depend on the broker's pace."""
    wait_until(lambda: receiver.progress()["inFlightMessages"] == count, what=f"the arrival of {count} messages")


def test_hands_out_every_message_once_in_order_and_acknowledges_what_is_settled(broker, queue):
    fill(broker, queue, 1000)
    with receiving(broker, queue, start=500) as receiver:
        assert read_until(receiver, 500, 1000) == list(range(1000))
        assert left(broker, queue, 0) == 0
        assert receiver.progress()["received"] == 1000


def test_progress_has_what_only_the_broker_knows(broker, queue):
    fill(broker, queue, 30)
    with receiving(broker, queue) as receiver:
        arrived(receiver, 30)
        known = {"depth": 30, "delivering": 30, "stuckInDelivery": 0}
        wait_until(lambda: known.items() <= receiver.progress().items(), what="the broker's metrics")


def test_a_queue_that_does_not_exist_is_warned_of(broker, queue, caplog):
    with receiving(broker, queue):
        assert f"queue {queue} does not exist on the broker" in caplog.text
    caplog.clear()
    with receiving(broker, queue):
        assert "does not exist" not in caplog.text


@pytest.mark.parametrize("drain", [False, True])
def test_another_consumer_of_the_queue_lowers_the_guarantee_of_a_journal(broker, queue, tmp_path, caplog, drain):
    """After a lost connection the broker may give it what the journal already holds."""
    with receiving(broker, queue, deliveryGuarantee="exactly-once", journalLocation=tmp_path) as receiver:
        wait_until(lambda: receiver.progress().get("consumers") == 1, what="the broker's metrics")
        assert receiver.progress()["guarantee"] == "exactly-once into Spark"
    other = RawStomp(broker)
    other.request(
        "SUBSCRIBE", [("id", "x"), ("destination", queue), ("subscription-type", "ANYCAST"), ("ack", "client")]
    )
    with receiving(broker, queue, deliveryGuarantee="exactly-once", journalLocation=tmp_path, drain=drain) as receiver:
        wait_until(lambda: receiver.progress().get("consumers") == 2, what="the other consumer")
        lowered = "at-least-once (other consumers read this queue)"
        assert [receiver.progress()["guarantee"] for _ in range(3)] == [lowered] * 3
        assert caplog.text.count("the queue has other consumers") == 1
    other.close_abruptly()


def test_a_journal_tells_its_backlog_and_the_age_of_the_oldest_message(broker, queue, tmp_path):
    fill(broker, queue, 30)
    with receiving(
        broker, queue, deliveryGuarantee="exactly-once", journalLocation=tmp_path, maxMessagesPerTrigger=10
    ) as receiver:
        arrived(receiver, 30)
        ends = [receiver.next_batch_end() for _ in range(3)]
        assert ends == [10, 20, 30]
        assert receiver.progress()["backlog"] == 30
        assert 0 <= receiver.progress()["backlogAgeSeconds"] < 60
        receiver.reached = 10
        assert receiver.progress()["backlog"] == 20
        receiver.reached = 30
        metrics = receiver.progress()
        assert (metrics["backlog"], metrics["backlogAgeSeconds"]) == (0, None)
        assert metrics["journalBytes"] > 0
        assert metrics["journalKeeps"] == "the last batch, until the next one is planned"
        ledger, connection = receiver._ledger, receiver.links[0].connection
        wait_until(lambda: all(connection.has_receipt(ack.receipt) for ack in ledger.unconfirmed(0)))
        receiver.acknowledge_through(30)
        assert receiver.progress()["journalBytes"] == 0
        assert "journalKeeps" not in receiver.progress()


def test_a_drain_asks_the_broker_for_no_metrics(broker, queue):
    fill(broker, queue, 3)
    with receiving(broker, queue, drain=True, idleTimeout="300ms") as receiver:
        assert read_until(receiver, 0, 3) == [0, 1, 2]
        assert "depth" not in receiver.progress()


def test_acknowledges_nothing_that_is_not_settled(broker, queue):
    fill(broker, queue, 100)
    with receiving(broker, queue, maxMessagesPerTrigger=40) as receiver:
        arrived(receiver, 100)
        first = receiver.next_batch_end()
        second = receiver.next_batch_end()
        assert (first, second) == (40, 80)
        receiver.acknowledge_through(first)
        assert left(broker, queue, 60) == 60
    await_count(broker, queue, 60)
    await_value(lambda: broker.delivery_counts(queue), [0] * 60)


def test_bounds_a_batch_by_bytes_and_lets_one_larger_message_through(broker, queue):
    with RawStomp(broker) as client:
        client.send(queue, [([], "x" * 10_000) for _ in range(10)] + [([], "y" * 200_000)])
    with receiving(broker, queue, maxBytesPerTrigger="25k", windowBytes="1m") as receiver:
        arrived(receiver, 11)
        sizes, start = [], 0
        while start < 11:
            end = receiver.next_batch_end()
            sizes.append(end - start)
            receiver.acknowledge_through(end)
            start = end
        assert sizes == [2, 2, 2, 2, 2, 1]


def test_a_batch_has_no_more_than_the_window(broker, queue):
    fill(broker, queue, 10)
    with receiving(broker, queue, windowBytes=1000) as receiver:
        wait_until(receiver.next_batch_end, what="a batch")
        assert receiver.next_batch_end() < 10, "the rest is sent when the batch is acknowledged"
        assert read_until(receiver, 0, 10) == list(range(10))


def test_draining_leaves_what_was_sent_after_the_start(broker, queue):
    fill(broker, queue, 10)
    with receiving(broker, queue, drain=True, idleTimeout="300ms") as receiver:
        assert read_until(receiver, 0, 10) == list(range(10))
        time.sleep(1.2)  # the clocks of two machines may differ by a second
        fill(broker, queue, 5, first=10)
        assert receiver.next_batch_end() == 10
    await_count(broker, queue, 5)
    await_value(lambda: broker.delivery_counts(queue), [0] * 5)


def test_a_message_from_the_future_does_not_end_the_draining(broker, queue):
    """Of a producer whose clock is wrong: every run ended there at once, with success."""
    fill(broker, queue, 1)
    with JmsClient(broker) as client:
        core = client._session.getCoreSession()
        message = core.createMessage(True)
        message.setTimestamp(int(time.time() * 1000) + 365 * 86_400_000)
        message.putStringProperty("n", "-1")
        core.createProducer(queue).send(message)
    fill(broker, queue, 9, first=1)
    with receiving(broker, queue, drain=True, idleTimeout="300ms") as receiver:
        assert read_until(receiver, 0, 11) == [0, -1, *range(1, 10)]


def test_a_later_message_on_one_queue_does_not_end_the_draining_of_another(broker, queue):
    early, late = f"{queue}.early", f"{queue}.late"
    fill(broker, early, 10)
    fill(broker, late, 10, first=100)
    options = {"drain": True, "idleTimeout": "300ms", "maxMessagesPerTrigger": 4, "windowBytes": 1000}
    with receiving(broker, f'["{late}", "{early}"]', **options) as receiver:
        time.sleep(1.2)
        fill(broker, late, 5, first=200)
        assert sorted(read_until(receiver, 0, 20)) == [*range(10), *range(100, 110)]
        assert receiver.next_batch_end() == 20
    await_value(lambda: (broker.message_count(early), broker.message_count(late)), (0, 5))


def test_a_broker_restart_inside_a_run_repeats_nothing(killable, queue):
    broker = killable
    fill(broker, queue, 200)
    with receiving(broker, queue, maxMessagesPerTrigger=50) as receiver:
        arrived(receiver, 200)
        first = receiver.next_batch_end()
        second = receiver.next_batch_end()
        seen = numbers(receiver, 0, first) + numbers(receiver, first, second)
        broker.kill()
        broker.start()
        receiver.acknowledge_through(first)
        found = seen + read_until(receiver, second, 100)
        receiver.acknowledge_through(200)
        assert found == list(range(200))
        assert receiver.next_batch_end() == 200
        assert left(broker, queue, 0) == 0
        metrics = receiver.progress()
        assert (metrics["reconnects"], metrics["recognised"]) == (1, 100)


def close_connection(control, consumer):
    assert control.closeConsumerConnectionsForAddress(consumer["queueName"])


def close_session(control, consumer):
    assert control.closeSessionWithID(consumer["connectionID"], consumer["sessionID"])


def close_consumer(control, consumer):
    assert control.closeConsumerWithID(consumer["sessionID"], str(consumer["sequentialId"]))


@pytest.mark.parametrize("close", [close_connection, close_session, close_consumer])
def test_a_connection_that_an_operator_closes_is_made_again(broker, queue, close):
    fill(broker, queue, 100)
    with receiving(broker, queue, maxMessagesPerTrigger=50) as receiver:
        arrived(receiver, 100)
        first = receiver.next_batch_end()
        control = broker.server.getActiveMQServerControl()
        (consumer,) = [one for one in json.loads(control.listAllConsumersAsJSON()) if one["queueName"] == queue]
        close(control, consumer)
        wait_until(lambda: receiver.links[0].is_down, what="the end of the link")
        found = numbers(receiver, 0, first) + read_until(receiver, first, 50)
        assert found == list(range(100))
        assert receiver.progress()["reconnects"] == 1


def test_a_queue_that_an_operator_deletes_is_read_again(broker, queue):
    fill(broker, queue, 3)
    with receiving(broker, queue) as receiver:
        arrived(receiver, 3)
        first = receiver.next_batch_end()
        assert numbers(receiver, 0, first) == [0, 1, 2]
        broker.server.getActiveMQServerControl().destroyQueue(queue, True)
        wait_until(lambda: receiver.links[0].is_down, what="the end of the connection")
        receiver.acknowledge_through(first)
        fill(broker, queue, 2)
        assert read_until(receiver, first, 2) == [0, 1]


def test_a_lost_connection_inside_a_run_repeats_nothing(broker, queue):
    """Twice, with batches planned and not done; the acknowledged count and the queue agree in the end."""
    fill(broker, queue, 300)
    with (
        Proxy(broker.host, broker.port) as proxy,
        receiving(broker, queue, brokerUrl=proxy.url, maxMessagesPerTrigger=50) as receiver,
    ):
        found, end = [], 0
        for done_before_the_cut in (False, True):
            arrived(receiver, 300 - receiver.progress()["acknowledged"])
            start, end = end, receiver.next_batch_end()
            found += numbers(receiver, start, end)
            if done_before_the_cut:
                receiver.acknowledge_through(end)
            proxy.cut()
            wait_until(lambda: receiver.links[0].connection.is_down, what="the end of the connection")
        found += read_until(receiver, end, 300 - end)
        assert sorted(found) == list(range(300))
        assert left(broker, queue, 0) == 0
        assert receiver.progress()["reconnects"] == 2


def test_a_journal_stores_a_batch_while_it_grows(broker, queue, tmp_path, monkeypatch):
    """Its messages come in parts, and each part is durable and acknowledged before the batch ends."""
    monkeypatch.setattr("pyspark_jms.source.receiver._STORED_BYTES", 1)
    fill(broker, queue, 20_000)
    with receiving(broker, queue, deliveryGuarantee="exactly-once", journalLocation=tmp_path) as receiver:
        end, parts = 0, []
        while end < 20_000:
            end = receiver.next_batch_end()
            parts.append(len(list(tmp_path.glob("segment-*"))))
            receiver.acknowledge_through(end)
    assert (end, max(parts) > 1) == (20_000, True)
    assert left(broker, queue, 0) == 0


def test_a_journal_keeps_equal_messages_with_one_id_of_an_amqp_producer_apart(broker, queue, tmp_path):
    """Over STOMP the broker gives each message an id of its own, also where a producer gave all the same one."""
    equal = section(0x70, list_(TRUE)) + properties(message_id=string("5")) + section(0x77, string("tick"))
    with Proxy(broker.host, broker.port) as proxy:
        put_encoded(broker, queue, [equal] * 3)
        with receiving(
            broker, queue, brokerUrl=proxy.url, deliveryGuarantee="exactly-once", journalLocation=tmp_path
        ) as receiver:
            wait_until(lambda: receiver.next_batch_end() == 3)
            proxy.cut()
            wait_until(lambda: receiver.links[0].is_down)
            put_encoded(broker, queue, [equal] * 3)
            receiver.acknowledge_through(3)
            wait_until(lambda: receiver.next_batch_end() == 6)
            receiver.acknowledge_through(6)
            assert left(broker, queue, 0) == 0
            assert receiver.next_batch_end() == 6


# --- several connections on one queue --------------------------------------------------------------


def texts(receiver, start, end):
    """The texts of a batch's messages, over any protocol."""
    protocol = AmqpSource() if receiver.links[0].address.protocol == "amqp" else StompSource()
    facts = {"source": receiver.links[0].subscription.destination, "first_sequence": 0, "body_type": "auto"}
    blocks = [range_.messages() for range_ in receiver.batch(start, end).ranges]
    return [text for block in blocks for text in protocol.decode(block, dialect="artemis", **facts)["text"].to_pylist()]


def batches_of(receiver, start, count):
    """The texts of the next batches with so many messages, none of which is done, and their end."""
    found, end = [], start
    deadline = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} came"
        end = receiver.next_batch_end()
        found += texts(receiver, start, end) if end > start else []
        start = end
    return found, end


def received_by(receiver):
    return [link.waiting()[0] for link in receiver.links]


def largest(proxy, receiver):
    """The proxy's link of the connection that has most of the messages."""
    link = max(receiver.links, key=lambda link: link.waiting()[0])
    connection = link.connection
    connected = connection._transport.socket if isinstance(link, StompSourceLink) else connection._stream._socket
    port = connected.getsockname()[1]
    return next(each for each in proxy.links() if each.client.getpeername()[1] == port)


@pytest.fixture(params=["stomp", "amqp"])
def three_connections(request, broker, queue):
    """``three_connections(count, **options)`` → proxy and receiver, each connection with some of the messages."""
    with contextlib.ExitStack() as exits:

        def opened(count, **more):
            proxy = exits.enter_context(Proxy(broker.host, broker.port, request.param))
            more = {"brokerUrl": proxy.url, "connections": 3} | more
            receiver = exits.enter_context(receiving(broker, queue, **more))
            fill(broker, queue, count)
            arrived(receiver, count)
            assert min(received_by(receiver)) > 0
            return proxy, receiver

        yield opened


def test_connections_share_a_queue_and_its_window(broker, queue, three_connections, monkeypatch):
    monkeypatch.setitem(QueueWatch.__init__.__kwdefaults__, "every", 0.5)  # seconds; the default is 30
    _, receiver = three_connections(300, windowBytes="3m")
    assert [link.subscription.window_bytes for link in receiver.links] == [1 << 20] * 3
    names, expected = ("consumers", "inFlightMessages", "delivering", "depth"), [3, 300, 300, 300]
    wait_until(lambda: [receiver.progress().get(name) for name in names] == expected, what="the broker's metrics")
    assert "stuckInDelivery" in receiver.progress()
    found, end = batches_of(receiver, 0, 300)
    assert sorted(found) == sorted(f"text {n}" for n in range(300))
    receiver.acknowledge_through(end)
    assert left(broker, queue, 0) == 0


@pytest.mark.parametrize(
    ("three_connections", "done"),
    [
        pytest.param("stomp", False, id="stomp-before its batch is done"),
        pytest.param("amqp", True, id="amqp-after it"),
        pytest.param("stomp", True, id="stomp-after it", marks=pytest.mark.deep),
        pytest.param("amqp", False, id="amqp-before its batch is done", marks=pytest.mark.deep),
    ],
    indirect=["three_connections"],
)
def test_what_one_of_three_connections_had_comes_on_any_of_them_and_is_known_again(
    broker, queue, three_connections, done
):
    proxy, receiver = three_connections(300)
    lost = largest(proxy, receiver)
    found, end = batches_of(receiver, 0, 300)
    proxy.cut([lost])
    wait_until(lambda: any(link.is_down for link in receiver.links), what="the end of the connection")
    if done:
        receiver.acknowledge_through(end)
    fill(broker, queue, 30, first=300)
    more, last = batches_of(receiver, end, 30)
    assert sorted(found + more) == sorted(f"text {n}" for n in range(330))
    receiver.acknowledge_through(last)
    wait_until(lambda: receiver.next_batch_end() == last and left(broker, queue, 0) == 0)
    metrics = receiver.progress()
    assert (metrics["reconnects"], metrics["received"] - metrics["recognised"]) == (1, 330)
    assert metrics["recognised"] > 50


def test_a_redelivery_that_arrives_before_its_connection_is_known_to_be_lost(broker, queue, three_connections):
    """The broker knows first: it has given the messages to the other connections while this process trusts the old."""
    proxy, receiver = three_connections(90, maxMessagesPerTrigger=10)
    lost = largest(proxy, receiver)
    found, end = batches_of(receiver, 0, 90)
    proxy.cut_unseen([lost])
    wait_until(lambda: sum(received_by(receiver)) >= 30, what="redelivered messages")
    assert not any(link.is_down for link in receiver.links)
    fill(broker, queue, 20, first=90)
    more, last = batches_of(receiver, end, 20)
    assert sorted(found + more) == sorted(f"text {n}" for n in range(110))
    receiver.acknowledge_through(last)
    wait_until(lambda: receiver.next_batch_end() == last and left(broker, queue, 0) == 0)


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_shared_subscription_has_several_connections(broker, queue, protocol):
    raw = {"topic": queue, "subscriptionName": "daily", "clientId": queue, "sharedSubscription": "true"}
    url = {"brokerUrl": f"{protocol}://{broker.host}:{broker.port}", "connections": "2"}
    with contextlib.closing(OpenReceiver(SourceOptions.parse(access(broker) | raw | url))) as receiver:
        assert len(receiver.links) == 2
        await_value(lambda: broker.consumer_count(f"{queue}.daily"), 2)


def test_equal_messages_with_one_id_are_counted_over_three_connections(broker, queue):
    equal = section(0x70, list_(TRUE)) + properties(message_id=string("5")) + section(0x77, string("tick"))
    with (
        Proxy(broker.host, broker.port, "amqp") as proxy,
        receiving(broker, queue, brokerUrl=proxy.url, connections=3) as receiver,
    ):
        put_encoded(broker, queue, [equal] * 30)
        arrived(receiver, 30)
        lost = largest(proxy, receiver)
        found, end = batches_of(receiver, 0, 30)
        proxy.cut([lost])
        wait_until(lambda: any(link.is_down for link in receiver.links), what="the end of the connection")
        put_encoded(broker, queue, [equal] * 30)
        more, last = batches_of(receiver, end, 30)
        assert len(found + more) == 60
        receiver.acknowledge_through(last)
        wait_until(lambda: receiver.next_batch_end() == last and left(broker, queue, 0) == 0)


def test_a_journal_knows_messages_again_that_another_connection_brings(broker, queue, tmp_path):
    with (
        Proxy(broker.host, broker.port) as proxy,
        receiving(
            broker,
            queue,
            brokerUrl=proxy.url,
            connections=3,
            deliveryGuarantee="exactly-once",
            journalLocation=tmp_path,
        ) as receiver,
    ):
        fill(broker, queue, 90)
        arrived(receiver, 90)
        lost = largest(proxy, receiver)
        proxy.to_broker.hold_at(b"ACK\n", link=lost, outlives=False)
        wait_until(lambda: receiver.next_batch_end() == 90)
        proxy.cut([lost])
        wait_until(lambda: any(link.is_down for link in receiver.links), what="the end of the connection")
        fill(broker, queue, 10, first=90)
        wait_until(lambda: receiver.next_batch_end() == 100)
        assert receiver.progress()["recognised"] > 0
        receiver.acknowledge_through(100)
        wait_until(lambda: receiver.next_batch_end() == 100 and left(broker, queue, 0) == 0)


@pytest.mark.parametrize("protocol", ["stomp", pytest.param("amqp", marks=pytest.mark.deep)])
def test_a_drain_reads_what_a_lost_connection_gave_to_one_that_was_not_read_any_more(broker, queue, protocol):
    fill(broker, queue, 60)
    more = {"brokerUrl": f"{protocol}://{broker.host}:{broker.port}", "maxMessagesPerTrigger": 30, "windowBytes": "3m"}
    with receiving(broker, queue, drain=True, idleTimeout="300ms", connections=3, **more) as receiver:
        arrived(receiver, 60)
        time.sleep(1.2)
        fill(broker, queue, 30, first=60)
        arrived(receiver, 90)
        assert receiver.next_batch_end() == 30
        found = texts(receiver, 0, 30)
        assert receiver._reception._drain.ended == {0, 1, 2}, "all have shown a later message"
        receiver.links[0].drop()
        wait_until(lambda: receiver.links[0].is_down, what="the end of the connection")
        end = 30
        while (after := receiver.next_batch_end()) > end:
            found += texts(receiver, end, after)
            receiver.acknowledge_through(after)
            end = after
        assert sorted(found) == sorted(f"text {n}" for n in range(60))
    await_count(broker, queue, 30)
    broker.purge(queue)


def test_second_copies_are_acknowledged_also_after_the_end_of_a_drain(broker, queue):
    fill(broker, queue, 10)
    with (
        Proxy(broker.host, broker.port) as proxy,
        receiving(broker, queue, drain=True, idleTimeout="300ms", brokerUrl=proxy.url) as receiver,
    ):
        arrived(receiver, 10)
        assert receiver.next_batch_end() == 10
        time.sleep(1.2)
        fill(broker, queue, 5, first=10)
        assert receiver.next_batch_end() == 10  # a later message: the end
        proxy.cut()
        wait_until(lambda: receiver.links[0].is_down, what="the end of the connection")
        receiver.acknowledge_through(10)
        assert receiver.next_batch_end() == 10
        assert receiver.progress()["recognised"] == 10
        assert left(broker, queue, 5) == 5
    await_count(broker, queue, 5)


def test_a_drain_does_not_wait_for_second_copies_that_another_consumer_took(broker, queue):
    fill(broker, queue, 10)
    with (
        Proxy(broker.host, broker.port) as proxy,
        receiving(broker, queue, drain=True, idleTimeout="300ms", brokerUrl=proxy.url) as receiver,
    ):
        arrived(receiver, 10)
        assert receiver.next_batch_end() == 10
        time.sleep(1.2)
        fill(broker, queue, 5, first=10)
        assert receiver.next_batch_end() == 10  # a later message: the end
        proxy.refuse()
        proxy.cut()
        wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the connection")
        with RawStomp(broker) as other:
            other.read(queue, wanted=15)
        proxy.accept()
        with sending_on_and_on(broker, queue, first=1000, pause_seconds=0.02):
            receiver.acknowledge_through(10)
            assert receiver.next_batch_end() == 10
            assert receiver.next_batch_end() == 10
        assert receiver.progress()["recognised"] == 0
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    broker.purge(queue)


def test_stops_when_a_known_id_comes_with_other_content(fresh_broker):
    broker, other = fresh_broker(), fresh_broker()
    fill(broker, "q", 10)
    fill(other, "q", 10, first=100)
    with Proxy(broker.host, broker.port) as proxy, receiving(broker, "q", brokerUrl=proxy.url) as receiver:
        arrived(receiver, 10)
        assert receiver.next_batch_end() == 10
        proxy.lead_to(other.host, other.port)
        proxy.cut()
        with pytest.raises(OtherBrokerError, match="JMS_OTHER_BROKER"):
            read_until(receiver, 10, 1)
        await_count(other, "q", 10)


def test_gives_up_after_reconnect_timeout(broker, queue):
    with (
        Proxy(broker.host, broker.port) as proxy,
        receiving(broker, queue, reconnectTimeout="2s", brokerUrl=proxy.url) as receiver,
    ):
        proxy.refuse()
        proxy.cut()
        began = time.monotonic()
        with pytest.raises(BrokerUnreachableError, match=r"JMS_BROKER_UNREACHABLE.*closed the connection before CONN"):
            receiver.next_batch_end()
        assert time.monotonic() - began > 1


def test_a_lost_connection_is_an_error_when_no_attempt_is_allowed(broker, queue):
    with (
        Proxy(broker.host, broker.port) as proxy,
        receiving(broker, queue, reconnectTimeout=0, brokerUrl=proxy.url) as receiver,
    ):
        proxy.cut()
        with pytest.raises(ConnectionLostError):
            receiver.next_batch_end()


def test_a_login_that_became_wrong_meanwhile_ends_the_trying_at_once(broker, restricted, queue):
    worker = {"user": "worker", "password": "pw"}  # which ``broker`` does not have
    with (
        Proxy(restricted.host, restricted.port) as proxy,
        receiving(restricted, queue, brokerUrl=proxy.url, **worker) as receiver,
    ):
        proxy.lead_to(broker.host, broker.port)
        proxy.cut()
        with pytest.raises(JMSSecurityError, match="JMS_SECURITY"):
            receiver.next_batch_end()


def test_a_restarted_query_waits_for_its_broker_and_a_new_one_does_not(broker, queue):
    """For a new query a wrong address is more likely, so the error comes at once."""
    fill(broker, queue, 3)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.refuse()
        patient = options(broker, queue, reconnectTimeout="60s", brokerUrl=proxy.url)
        with pytest.raises(BrokerUnreachableError):
            OpenReceiver(patient)
        threading.Timer(2, proxy.accept).start()
        with contextlib.closing(OpenReceiver(patient, restarted=True)) as receiver:
            assert read_until(receiver, 0, 3) == [0, 1, 2]


def test_a_query_that_waits_for_its_broker_can_be_stopped(broker, queue):
    stop = StopRequest()
    away = options(broker, queue, brokerUrl="stomp://127.0.0.1:1", reconnectTimeout="forever")
    threading.Timer(1, lambda: setattr(stop, "made", True)).start()
    with pytest.raises(StoppedError):
        OpenReceiver(away, stop=stop, restarted=True)


def test_a_request_to_stop_ends_a_look_for_messages(broker, queue):
    stop = StopRequest()
    with contextlib.closing(OpenReceiver(options(broker, queue), stop=stop)) as receiver:
        stop.made = True
        with pytest.raises(StoppedError):
            receiver.next_batch_end()


def test_a_message_that_is_too_large_stops_the_reading_and_costs_nobody_a_delivery_attempt(broker, queue):
    with RawStomp(broker) as client:
        bodies = ["small", "x" * 3_000_000, b"y" * 9_000_000, "small"]
        client.send(queue, [([("n", str(n))], body) for n, body in enumerate(bodies)])
    with (
        pytest.raises(MessageTooLargeError, match=rf"{queue}: .*3,000,000 bytes .*maxMessageBytes \(2,097,152\)"),
        receiving(broker, queue, maxMessageBytes="2m") as receiver,
    ):
        read_until(receiver, 0, 4)
    assert broker.message_count(queue) in {3, 4}  # the first may have been read and settled
    await_value(lambda: set(broker.delivery_counts(queue)), {0})


def test_a_topic_is_read_while_subscribed(broker, queue):
    raw = {"brokerUrl": broker.url, "user": broker.user, "password": broker.password, "topic": queue}
    with contextlib.closing(OpenReceiver(SourceOptions.parse(raw))) as receiver:
        with RawStomp(broker) as client:
            client.send(queue, [([("n", str(n))], "x") for n in range(20)], topic=True)
        assert read_until(receiver, 0, 20) == list(range(20))
        assert "at-most-once" in receiver.progress()["guarantee"]


def test_a_journal_needs_messages_that_can_be_recognised():
    assert required_recognition(StompSource(), "artemis").by_broker
    with pytest.raises(UnsupportedError, match=r"rabbitmq gives a message a new id .*journalLocation"):
        required_recognition(StompSource(), "rabbitmq")


def test_a_broker_that_ignores_the_prefetch_window_a_little_cannot_fill_the_memory_either():
    """The messages of each batch are taken from the connection, and what is not acknowledged of them is counted."""
    with FloodingBroker("RabbitMQ/4.0", body_bytes=1_000_000) as flooding:
        given = {"brokerUrl": f"stomp://127.0.0.1:{flooding.port}", "queue": "q", "maxMessageBytes": "1000000"}
        given |= {"windowBytes": "40960", "maxBytesPerTrigger": "2000000"}
        receiver = OpenReceiver(SourceOptions.parse(given))

        def read_while_messages_come():
            while flooding.sent < 1_000:
                flooding.send(16)
                wait_until(lambda: receiver.links[0].received_bytes >= flooding.sent * 1_000_000, 30)
                receiver.acknowledge_through(receiver.next_batch_end())

        with contextlib.closing(receiver), pytest.raises(PrefetchExceededError, match=r"window of 10 messages"):
            read_while_messages_come()
        assert flooding.sent < 120


# --- what the reception counts, takes and leaves --------------------------------------------------


def opened(broker, queue, **more):
    drain = more.pop("drain", False)
    return OpenReceiver(SourceOptions.parse(access(broker) | {"queue": queue} | more), drain=drain)


def test_what_waits_is_counted_and_taken(broker, queue):
    fill(broker, queue, 10)
    with contextlib.closing(opened(broker, queue)) as receiver:
        reception = receiver._reception
        before = reception.activity()
        wait_until(lambda: reception.waiting().messages == 10)
        waiting = reception.waiting()
        assert not waiting.no_room
        assert reception.activity() >= before
        reception.take_all()
        assert reception.waiting() == waiting, "taken, and in no batch yet"
        assert not reception.is_drained(1e9), "a query without an end is never drained"


def test_a_full_journal_takes_nothing(broker, queue, tmp_path):
    fill(broker, queue, 10)
    with contextlib.closing(
        opened(
            broker,
            queue,
            deliveryGuarantee="exactly-once",
            journalLocation=str(tmp_path),
            maxJournalBytes="1k",
            maxBytesPerTrigger="1k",
            windowBytes="1m",
        )
    ) as receiver:
        reception = receiver._reception
        wait_until(lambda: reception.waiting().messages == 10)
        reception.take_all()
        assert reception.journal_is_full
        fill(broker, queue, 5, first=10)
        wait_until(lambda: receiver.links[0].waiting()[0] == 5)
        assert reception.waiting().messages == 10
        assert reception.waiting().no_room


def test_a_drain_ends_when_nothing_comes(broker, queue):
    with contextlib.closing(opened(broker, queue, drain=True, idleTimeout="300ms")) as receiver:
        assert not receiver._reception.is_drained(0.1)
        wait_until(lambda: receiver._reception.is_drained(0.4))


def test_a_connection_lost_between_two_looks_does_not_end_the_query(broker, queue):
    fill(broker, queue, 3)
    with contextlib.closing(opened(broker, queue)) as receiver:
        receiver.links[0].drop()
        wait_until(lambda: receiver.links[0].is_down)
        receiver._reception.check()
        wait_until(lambda: receiver.next_batch_end() == 3)
