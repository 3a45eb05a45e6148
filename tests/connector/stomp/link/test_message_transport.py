"""The transport under load, plain and TLS: both ways at once, and to the end."""

import threading
import time
from types import SimpleNamespace

import pytest
from proxy import Proxy
from rawstomp import RawStomp, frame
from waiting import await_value, wait_until

from pyspark_jms.errors import ConnectionLostError, MalformedFrameError
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import TlsSettings
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.link.message_transport import MessageTransport, _Outbox
from pyspark_jms.stomp.link.producer import Producer
from pyspark_jms.stomp.wire.frame import parse_frame


@pytest.fixture(params=["plain", "tls"])
def settings(request, secured, settings_for, authority):
    """``settings(port=…)`` for ``secured``, plain and over TLS; ``settings.real_port`` is where it listens."""
    tls = TlsSettings(ca_file=authority.cert) if request.param == "tls" else None

    def settings(**changes):
        return settings_for(secured, tls=tls, **changes)

    settings.real_port = secured.port if tls else secured.plain_port
    return settings


over_tls = pytest.mark.parametrize("settings", ["tls", pytest.param("plain", marks=pytest.mark.deep)], indirect=True)
"""TLS has the narrower limits: what it passes, a plain connection passes too."""


def plainly(broker):
    return SimpleNamespace(url=broker.plain_url, user=broker.user, password=broker.password)


def send_frame(queue, body, transaction=None):
    fixed = [("destination", queue), ("destination-type", "ANYCAST"), ("persistent", "true")]
    tied = [("transaction", transaction)] if transaction else []
    return frame("SEND", [*fixed, *tied, ("content-length", len(body))], body)


@over_tls
def test_a_large_transaction_leaves_while_messages_arrive(secured, queue, settings, consume, receive):
    """On one connection, both at once: nobody waits for the other for ever, nothing is torn."""
    arriving, leaving = f"{queue}.in", f"{queue}.out"
    with RawStomp(plainly(secured)) as client:
        client.send(arriving, [((), b"%05d" % n + b"x" * 5_000) for n in range(2_000)])
    consumer = consume(settings(), arriving, window_bytes=1 << 30)
    connection = consumer.connection
    connection.frame("BEGIN", {"transaction": "t"})
    connection.send(b"".join(send_frame(leaving, b"%05d" % n + b"y" * 40_000, "t") for n in range(400)))
    connection.request("COMMIT", {"transaction": "t"}, 60)
    frames, ids = receive(consumer, 2_000)
    assert [parse_frame(f).body[:5] for f in frames] == [b"%05d" % n for n in range(2_000)]
    consumer.has_receipt(consumer.acknowledge(ids), wait=True)
    await_value(lambda: (secured.message_count(arriving), secured.message_count(leaving)), (0, 400))
    with RawStomp(plainly(secured)) as client:
        back = client.read(leaving, wanted=400)
    assert [message.body[:5] for message in back] == [b"%05d" % n for n in range(400)]
    assert {len(message.body) for message in back} == {40_005}


@over_tls
def test_many_buffers_of_one_transaction(secured, queue, settings):
    """More than may wait at once on TLS."""
    with Producer(settings()) as producer:
        for n in range(300):
            producer.send_frames(memoryview(send_frame(queue, b"%05d" % n, Producer.transaction)))
        for n in range(300, 306):
            producer.send_frames(send_frame(queue, b"%05d" % n + b"x" * (4 << 20), Producer.transaction))
        producer.commit()
    with RawStomp(plainly(secured)) as client:
        assert [m.body[:5] for m in client.read(queue, wanted=306)] == [b"%05d" % n for n in range(306)]


def test_receipts_and_messages_on_one_connection(secured, queue, settings, consume, receive):
    consumer = consume(settings(), queue)
    for n in range(100):
        consumer.connection.send(send_frame(queue, b"%d\0" % n))
        consumer.connection.request("BEGIN", {"transaction": f"t{n}"})
    frames, _ = receive(consumer, 100)
    assert [parse_frame(f).body for f in frames] == [b"%d\0" % n for n in range(100)]


@over_tls
def test_messages_that_never_pause_are_a_sign_of_life(secured, queue, settings, consume):
    """stomp.py sees only some reads, and gives up a peer that is silent for two heart-beats."""
    consumer = consume(settings(heartbeat=0.5), queue)
    with RawStomp(plainly(secured)) as client:
        until = time.monotonic() + 2.5
        sent = 0
        while time.monotonic() < until:
            client.send(queue, [((), b"x")])
            sent += 1
    consumer.connection.check()
    received = 0
    while received < sent:
        consumer.connection.check()
        received += sum(len(run) for run in consumer.take())


def test_the_end_of_a_link_is_noticed(queue, settings):
    """At once, not by a heart-beat that is missing."""
    with Proxy("127.0.0.1", settings.real_port) as proxy:
        connection = connect(settings(port=proxy.port, heartbeat=100.0))
        proxy.cut()
        wait_until(lambda: connection.is_down)
        assert not connection._transport.io_thread.is_alive()  # with stock stomp.py it would spin on TLS
        with pytest.raises(ConnectionLostError):
            connection.send(b"\n")
        connection.close()


def test_a_link_dropped_by_us_while_it_is_stuck(settings):
    with Proxy("127.0.0.1", settings.real_port) as proxy:
        connection = connect(settings(port=proxy.port))
        proxy.to_broker.stall()
        proxy.to_client.stall()
        connection.drop()
        assert connection.is_down
        assert not connection._transport.io_thread.is_alive()


def test_bytes_that_are_no_stomp_end_the_session(secured, queue, settings):
    connection = connect(settings())
    with pytest.raises(MalformedFrameError, match="command"):
        _feed_and_check(connection)
    connection.close()


def _feed_and_check(connection):
    """As if the broker had sent it after its last frame."""
    feed = connection._transport._feed
    connection._transport._feed = lambda data: feed(memoryview(b"garbage\n"))
    connection.frame("BEGIN", {"transaction": "t", "receipt": "r"})
    wait_until(lambda: connection.is_down)
    connection.check()


# --- what waits to be written -------------------------------------------------------------------------


@pytest.fixture
def outbox():
    outbox = _Outbox()
    yield outbox
    outbox.shutdown()


def test_the_outbox_is_bounded_in_bytes_and_frames(outbox):
    outbox.put_when_room(memoryview(bytes(16 << 20)), 0.01)
    with pytest.raises(BlockingIOError):
        outbox.put_when_room(memoryview(b"x"), 0.01)
    assert len(outbox.get()) == 16 << 20
    for _ in range(128):
        outbox.put_when_room(memoryview(b"x"), 0.01)
    with pytest.raises(BlockingIOError):
        outbox.put_when_room(memoryview(b"x"), 0.01)
    outbox.put(b"\n")  # a heart-beat never waits


def test_who_waits_for_room_goes_on_when_there_is_some(outbox):
    outbox.put(bytes(16 << 20))
    waiting = threading.Thread(target=outbox.put_when_room, args=(memoryview(b"next"), 30))
    waiting.start()
    outbox.get()
    waiting.join(30)
    assert bytes(outbox.get()) == b"next"


def test_who_waits_for_room_ends_with_the_link():
    outbox, failure = _Outbox(), []

    def wait():
        try:
            outbox.put_when_room(memoryview(b"x"), 30)
        except OSError as error:
            failure.append(error)

    outbox.put(bytes(16 << 20))
    waiting = threading.Thread(target=wait)
    waiting.start()
    outbox.shutdown()
    waiting.join(30)
    assert len(failure) == 1


def test_a_tap_that_was_never_connected_reads_nothing():
    tap = MessageTransport(Address("h", 1), context=None, connect_timeout=1, send_timeout=1, feed=lambda _: [])
    assert tap.receive() == b""
    tap.disconnect_socket()
