"""Moves between real queues: interrupted at each step, and with a consumer that sends messages back."""

import os
import signal
import threading
from contextlib import closing
from functools import partial

import pytest
from addresses import types_of
from amqp_brokers import AMQP_BROKERS
from amqp_messages import (
    NULL,
    application_properties,
    binary,
    block_of,
    int_,
    list_,
    map_,
    section,
    string,
    timestamp,
    uint,
)
from amqp_sending import put_encoded
from numbered import fill, in_queue
from proton import Message
from proton.utils import BlockingConnection
from proxy import Proxy
from rawstomp import RawStomp
from streaming import PROTOCOL_PAIRS, access
from waiting import await_count, await_value, settled, wait_until

from pyspark_jms.amqp.columns.decode import decode
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.errors import (
    InvalidDestinationError,
    JMSError,
    LinkError,
    TransactionRolledBackError,
    UnconvertibleMessageError,
)
from pyspark_jms.jms.model import DEAD_LETTER_PROPERTIES, MOVED_PROPERTY, SOURCE_PROPERTY, Destination
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic, JmsClient, Typed
from pyspark_jms.tools.cli.move import connect_mover
from pyspark_jms.tools.moving.amqp import AmqpMover
from pyspark_jms.tools.moving.engine import _SENT_AS_NULL, _UNREADABLE, _lossy, look_for_targets, move

DISCHARGE = b"\x00\x53\x32"
"""Of AMQP, part 4 §4.5.7: the descriptor of a discharge. The first one only shows that the broker has transactions."""


def _parsed(running, queue, options):
    return SourceOptions.parse(access(running) | {"queue": queue, "idleTimeout": "300ms"} | options)


def _move(
    running, queue, to=None, *, limit=None, on_moved=lambda _: None, accept_claims=False, targets=None, **options
):
    parsed = _parsed(running, queue, options)
    target = None if to is None else Destination.parse(f"queue://{to}")
    connect = connect_mover(parsed)
    given = {"to": target, "limit": limit, "on_moved": on_moved, "accept_claims": accept_claims, "targets": targets}
    return move(reading_of(parsed), connect, **given)


@pytest.fixture
def over_amqp(broker):
    """The ``brokerUrl`` of the session's broker."""
    return {"brokerUrl": access(broker, "amqp")["brokerUrl"]}


@pytest.fixture(params=["stomp", "amqp"])
def protocol(request, broker):
    """Name, and the ``brokerUrl`` of the session's broker."""
    return request.param, {"brokerUrl": access(broker, request.param)["brokerUrl"]}


@pytest.mark.parametrize(
    ("nth", "included"),
    [
        (2, False),
        (3, True),
        pytest.param(2, True, marks=pytest.mark.deep),
        pytest.param(3, False, marks=pytest.mark.deep),
    ],
)
def test_over_amqp_every_message_is_on_one_queue_wherever_the_connection_ends(broker, queue, over_amqp, nth, included):
    fill(broker, queue, 1_500)
    to = f"{queue}.to"
    broker.create_queue(to)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        proxy.to_broker.cut_at(DISCHARGE, included=included, nth=nth)
        with pytest.raises((TransactionRolledBackError, LinkError)):
            _move(broker, queue, to, brokerUrl=proxy.url)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the broken connection")

    def counts():
        return broker.message_count(queue), broker.message_count(to)

    left, moved = settled(counts)  # while a transaction is rolled back, its messages are missing for a moment
    assert left + moved == 1_500
    assert moved or nth == 2
    rest = _move(broker, queue, to, **over_amqp)
    assert (rest.messages, dict(rest.left)) == (left, {})
    assert in_queue(broker, to) == dict.fromkeys(range(1_500), 1)


@pytest.mark.parametrize(
    ("cut", "nth"),
    [
        (b"COMMIT\n", 2),
        (b"ACK\n", 1),
        pytest.param(b"COMMIT\n", 1, marks=pytest.mark.deep),
        pytest.param(b"ACK\n", 1_200, marks=pytest.mark.deep),
    ],
)
def test_over_stomp_no_message_is_lost_wherever_the_connection_ends(broker, queue, cut, nth):
    fill(broker, queue, 1_500)
    to = f"{queue}.to"
    with Proxy(broker.host, broker.port) as proxy:
        proxy.to_broker.cut_at(cut, nth=nth)
        with pytest.raises(JMSError):
            _move(broker, queue, to, brokerUrl=proxy.url)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the broken connection")
    rest = _move(broker, queue, to)
    assert not rest.left
    found = in_queue(broker, to)
    assert set(found) == set(range(1_500))
    assert set(found.values()) <= {1, 2}


@pytest.mark.deep
@pytest.mark.parametrize("moves", [False, True])
def test_a_pause_of_the_broker_that_is_longer_than_idle_timeout_is_no_end_of_the_queue(moves):
    """As when it collects its garbage: while the queues are counted that the messages go to, and while they move."""
    count = 3_000
    with EmbeddedArtemis() as broker:
        letter = [(SOURCE_PROPERTY, "queue://back")]
        with RawStomp(broker) as client:
            client.send("dead", [([("n", str(n)), *letter], f"text {n}") for n in range(count)])
        await_count(broker, "dead", count)
        options = {"brokerUrl": broker.amqp_url, "idleTimeout": "200ms", "windowBytes": "64k"}
        parsed = _parsed(broker, "dead", options)
        given = reading_of(parsed), partial(_Pausing, broker.pid)
        if not moves:
            assert look_for_targets(*given, limit=None, accept_claims=True) == {"back": count}
            return
        moved = move(*given, to=Destination.parse("queue://back"), limit=None, on_moved=lambda _: None)
        assert (moved.messages, broker.message_count("back")) == (count, count)


class _Pausing(AmqpMover):
    """Stops the broker's process for two seconds when the first messages are dealt with, and the next are asked for."""

    def __init__(self, pid, settings, condition):
        super().__init__(settings, condition)
        self._pid = pid

    def shown(self, block):
        self._pause()
        super().shown(block)

    def forward(self, ids, letters):
        super().forward(ids, letters)
        self._pause()

    def _pause(self):
        if self._pid:
            os.kill(self._pid, signal.SIGSTOP)
            threading.Timer(2, os.kill, (self._pid, signal.SIGCONT)).start()
            self._pid = None


@pytest.mark.deep
def test_a_message_that_cannot_be_sent_over_stomp_costs_those_behind_it_no_attempt_at_each_move(broker, queue):
    message = application_properties(t=timestamp(1)) + section(0x77, string("only over AMQP"))
    put_encoded(broker, queue, [message])
    fill(broker, queue, 50)
    for _ in range(8):
        with pytest.raises(UnconvertibleMessageError):
            _move(broker, queue, f"{queue}.to")
        wait_until(lambda: broker.consumer_count(queue) == 0)
        if broker.message_count(queue) == 50:
            break  # the message was moved to the dead-letter queue
    assert max(broker.delivery_counts(queue)[4:]) <= 5
    broker.purge(queue)


@pytest.mark.parametrize("protocol", ["amqp", pytest.param("stomp", marks=pytest.mark.deep)], indirect=True)
def test_a_message_that_comes_back_is_moved_once(broker, queue, protocol):
    fill(broker, queue, 20)
    to, ended = f"{queue}.to", threading.Event()
    broker.create_queue(to)

    def send_back(java):
        """A consumer that refuses every message, as the broker does that moves it to a dead-letter queue."""
        while not ended.is_set():
            if message := java.receive(to, timeout=0.2):
                kept = {name: message.properties[name] for name in ("n", MOVED_PROPERTY)}
                java.send(queue, message.body, properties=kept)

    with JmsClient(broker) as java:  # connected before the move ends
        consumer = threading.Thread(target=send_back, args=[java])
        consumer.start()
        try:
            moved = _move(broker, queue, to, **protocol[1], idleTimeout="1s")
            assert moved.messages == 20
            assert moved.left.total() > 0
            assert next(iter(moved.left)).endswith("came back")
        finally:
            ended.set()
            consumer.join(60)
    assert in_queue(broker, queue) + in_queue(broker, to) == dict.fromkeys(range(20), 1)


def test_a_dead_letter_of_the_connector_goes_to_its_queue_without_the_reasons(broker, queue, protocol):
    letter = [("spark_jms_error", "why"), ("spark_jms_source", f"queue://{queue}"), ("spark_jms_message_id", "1")]
    topic = [("spark_jms_source", f"topic://{queue}")]
    with RawStomp(broker) as raw:
        raw.send(f"{queue}.dead", [([*letter, ("n", "1")], "body"), ([("n", "2")], "of nobody"), (topic, "of a topic")])
    seen = []
    unsaid = _move(broker, f"{queue}.dead", **protocol[1])
    assert (unsaid.messages, unsaid.left.total()) == (0, 3)
    assert any(repr(queue) in reason and "--yes" in reason for reason in unsaid.left)
    moved = _move(broker, f"{queue}.dead", on_moved=seen.append, accept_claims=True, **protocol[1])
    assert (moved.messages, dict(moved.targets), moved.left.total(), seen[-1]) == (1, {queue: 1}, 2, 1)
    assert moved.guarantee == ("exactly-once" if protocol[0] == "amqp" else "at-least-once")
    with JmsClient(broker) as java:
        message = java.receive(queue)
    assert (message.body, message.properties["n"]) == ("body", Typed.of("1"))
    assert not DEAD_LETTER_PROPERTIES & message.properties.keys()
    assert MOVED_PROPERTY in message.properties
    await_count(broker, f"{queue}.dead", 2)
    await_value(lambda: set(broker.delivery_counts(f"{queue}.dead")), {0})


@pytest.mark.parametrize(("protocol", "protocol_of_producer"), PROTOCOL_PAIRS, indirect=["protocol"])
def test_the_queue_that_the_broker_notes_comes_before_the_one_that_a_producer_names(
    broker, queue, over_amqp, protocol, protocol_of_producer
):
    """With each property that names a queue: the connector's, and those of Artemis."""
    forged = {
        "spark_jms_source": f"queue://{queue}.pay",
        "_AMQ_ORIG_QUEUE": f"{queue}.pay",
        "_AMQ_ORIG_ADDRESS": f"{queue}.pay",
    }
    broker.create_queue(queue)
    address = f"amqp://{broker.user}:{broker.password}@{over_amqp['brokerUrl'].removeprefix('amqp://')}"
    with closing(BlockingConnection(address, allowed_mechs="PLAIN", allow_insecure_mechs=True)) as connection:
        if protocol_of_producer == "stomp":
            with RawStomp(broker) as raw:
                raw.send(queue, [(list(forged.items()), "pay")])
        else:
            annotations = {"x-opt-ORIG-QUEUE": f"{queue}.pay", "x-opt-ORIG-ADDRESS": f"{queue}.pay"}
            message = Message(body="pay", durable=True, properties=forged, annotations=annotations)
            connection.create_sender(queue).send(message)
        receiver = connection.create_receiver(queue)
        receiver.receive(timeout=60)
        receiver.reject()
    wait_until(lambda: broker.message_count(queue) == 0)
    moved = _move(
        broker, "DLQ", accept_claims=True, selector=f"spark_jms_source = 'queue://{queue}.pay'", **protocol[1]
    )
    assert (dict(moved.targets), dict(moved.left)) == ({queue: 1}, {})


def test_a_message_that_came_from_a_topic_stays_and_the_topic_stays_one(broker, queue, protocol):
    if not hasattr(broker, "server"):
        pytest.skip("needs an embedded broker")
    broker.server.getActiveMQServerControl().createAddress(queue, "MULTICAST")
    with RawStomp(broker) as raw:
        sources = [queue, f"{queue}.back", queue]
        raw.send(f"{queue}.dead", [([("spark_jms_source", f"queue://{source}")], "x") for source in sources])
    moved = _move(broker, f"{queue}.dead", accept_claims=True, **protocol[1])
    assert dict(moved.targets) == {f"{queue}.back": 1}
    assert dict(moved.left) == {f"{queue} is a topic on the broker, and no queue.": 2}
    assert types_of(broker, queue) == "[MULTICAST]"


def test_the_targets_are_counted_before_anything_moves_and_no_other_is_used(broker, queue, over_amqp):
    dead = f"{queue}.dead"

    def send(name, count):
        with RawStomp(broker) as raw:
            raw.send(dead, [([("spark_jms_source", f"queue://{queue}.{name}")], str(n)) for n in range(count)])

    def found(**given):
        parsed = _parsed(broker, dead, over_amqp)
        given = {"limit": None, "accept_claims": True} | given
        return look_for_targets(reading_of(parsed), connect_mover(parsed), **given)

    send("a", 300)
    send("b", 2)
    assert found() == {f"{queue}.a": 300, f"{queue}.b": 2}
    assert found(limit=3) == {f"{queue}.a": 3}
    assert found(accept_claims=False) == {}
    assert (broker.message_count(dead), set(broker.delivery_counts(dead))) == (302, {0})
    targets = found()
    send("late", 3)
    moved = _move(broker, dead, accept_claims=True, targets=targets, **over_amqp)
    assert (moved.targets, moved.left.total()) == (targets, 3)
    assert "came after the queues were printed" in next(iter(moved.left))


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("amqp", "pyspark-jms.staging.x.token"),
        ("stomp", "activemq.management"),
        ("amqp", "a::pyspark-jms.commits.x"),
        pytest.param("stomp", "pyspark-jms.staging.x.token", marks=pytest.mark.deep),
        pytest.param("amqp", "activemq.management", marks=pytest.mark.deep),
        pytest.param("stomp", "a::pyspark-jms.commits.x", marks=pytest.mark.deep),
    ],
    indirect=["protocol"],
)
def test_a_queue_that_rows_must_not_name_is_no_target(broker, queue, protocol, name):
    with RawStomp(broker) as raw:
        raw.send(f"{queue}.dead", [([("spark_jms_source", f"queue://{name}")], "{}")])
    moved = _move(broker, f"{queue}.dead", accept_claims=True, **protocol[1])
    assert (moved.messages, moved.left.total()) == (0, 1)
    assert "is reserved for" in next(iter(moved.left))
    with pytest.raises(InvalidDestinationError, match="is reserved for"):
        _move(broker, f"{queue}.dead", name, **protocol[1])


def test_a_limit_is_kept_and_messages_that_stay_do_not_use_it_up(broker, queue, protocol):
    back = [("spark_jms_source", f"queue://{queue}")]
    with RawStomp(broker) as raw:
        raw.send(f"{queue}.dead", [([], "stays")] * 5 + [(back, str(n)) for n in range(10)])
    moved = _move(broker, f"{queue}.dead", limit=3, accept_claims=True, **protocol[1])
    await_count(broker, queue, 3)
    await_count(broker, f"{queue}.dead", 12)
    assert moved.messages == 3


def test_java_messages_of_every_body_arrive_over_amqp_as_they_were_sent(broker, queue, over_amqp):
    bodies = ["text", "", b"\x00\x01", b"", {"a": 1, "b": Typed("short", 3)}, [1.5, "x", None], None]
    with JmsClient(broker) as java:
        for body in bodies:
            java.send(queue, body, properties={"n": 5, "big": 1 << 40})
        before = [java.receive(queue) for _ in bodies]
        for body in bodies:
            java.send(queue, body, properties={"n": 5, "big": 1 << 40})
        moved = _move(broker, queue, f"{queue}.to", **over_amqp)
        assert (moved.messages, dict(moved.left)) == (len(bodies), {})
        after = [java.receive(f"{queue}.to") for _ in bodies]
    assert [(each.body_type, each.body) for each in after] == [(each.body_type, each.body) for each in before]
    assert all((each.properties["n"], each.properties["big"].type) == (Typed("int", 5), "long") for each in after)


def test_a_row_that_cannot_be_sent_stays_with_its_reason(broker, queue, protocol):
    with RawStomp(broker) as raw:
        raw.send(queue, [([("spark_jms_x", "x")], "stays"), ([("n", "1")], "goes")])
    moved = _move(broker, queue, f"{queue}.to", **protocol[1])
    assert moved.messages == 1
    ((reason, count),) = moved.left.items()
    assert count == 1
    assert "'spark_jms_x'" in reason
    await_value(lambda: (broker.message_count(queue), broker.message_count(f"{queue}.to")), (1, 1))


def test_a_message_that_would_lose_a_part_stays_with_its_reason(broker, queue, over_amqp):
    body = section(0x77, string("text"))
    twice = section(0x74, map_([(string("a"), string("1")), (string("a"), string("2"))]))
    parts = [twice + body, application_properties(a=list_(int_(1))) + body, section(0x77, list_(int_(1), list_()))]
    put_encoded(broker, queue, [*parts, application_properties(a=uint(1)) + body])
    moved = _move(broker, queue, f"{queue}.to", **over_amqp)
    assert (moved.messages, dict(moved.left)) == (1, {_UNREADABLE: 1, _SENT_AS_NULL: 2})
    await_value(lambda: (broker.message_count(queue), broker.message_count(f"{queue}.to")), (3, 1))


VALUES = {
    "list": list_(),
    "map": map_([]),
    "array": b"\xe0\x02\x01\x41",
    "described": b"\0\x53\x01\x43",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_null_in_place_of_a_value_is_found_wherever_it_is(value):
    """Nulls of the producer, and texts with such a type, are no loss."""
    body = section(0x77, string("text"))
    messages = [
        application_properties(a=value, b=string("x")) + body,
        section(0x77, map_([(string("a"), int_(1)), (string("b"), value)])),
        section(0x77, list_(string("a"), value)),
        application_properties(a=NULL, list=string("list")) + body,
        section(0x77, list_(NULL, string("list"))),
        section(0x77, map_([(string("list"), NULL)])),
        section(0x75, binary(b"\0")),
    ]
    source = Destination.parse("queue://q")
    rows = decode(block_of(messages), dialect=ARTEMIS, source=source, first_sequence=0, body_type="auto")
    assert rows.column("body_error").null_count == len(messages)
    assert _lossy(rows) == {0, 1, 2}
    assert _lossy(rows.slice(2)) == {2}
    assert _lossy(rows.slice(3)) == frozenset()


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.parametrize("kind", ["artemis 2.44", "classic", "broker-j"])
def test_the_other_brokers_over_amqp(kind, queue):
    with AMQP_BROKERS[kind]() as running:
        urls = {"brokerUrl": running.amqp_url}
        with JmsClient(running.amqp_url, running.user, running.password) as java:
            for n in range(50):
                java.send(queue, f"text {n}", properties={"n": n})
            parsed = _parsed(running, queue, urls)
            given = reading_of(parsed), connect_mover(parsed)
            assert not look_for_targets(*given, limit=None, accept_claims=True)  # nothing names a queue
            moved = _move(running, queue, f"{queue}.to", **urls)
            assert (moved.messages, dict(moved.left)) == (50, {})
            assert [java.receive(f"{queue}.to").body for _ in range(50)] == [f"text {n}" for n in range(50)]
            assert java.receive(queue, timeout=0.5) is None


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.parametrize("over", ["stomp", "amqp"])
def test_dead_letters_of_classic_go_back(over, queue):
    with EmbeddedClassic() as running:
        with JmsClient(running) as java:
            java.send(queue, "soon", time_to_live=1)
            assert java.receive(queue, timeout=1) is None
        wait_until(lambda: running.message_count("ActiveMQ.DLQ") == 1, what="the expiry")
        url = running.amqp_url if over == "amqp" else running.url
        parsed = _parsed(running, "ActiveMQ.DLQ", {"brokerUrl": url})
        seen = look_for_targets(reading_of(parsed), connect_mover(parsed), limit=None, accept_claims=False)
        assert seen == ({queue: 1} if over == "stomp" else {}), "over AMQP, Classic does not note the queue"
        moved = _move(running, "ActiveMQ.DLQ", None if over == "stomp" else queue, brokerUrl=url)
        assert (moved.messages, dict(moved.left)) == (1, {})
        with JmsClient(running) as java:
            message = java.receive(queue)
        assert message.body == "soon"
        added = ("dlqDeliveryFailureCause", "originalExpiration", "spark_jms_types", "original-destination")
        assert MOVED_PROPERTY in message.properties
        assert not [name for name in message.properties if name.startswith(added)]
