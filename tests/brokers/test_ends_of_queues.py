"""Who asks for the end of a queue × what the queue is: how many messages each gets before the silence is the end.

One module decides (``source.end_of_queue``). An exactly-once read over AMQP and a stream of RabbitMQ prove an end by
drains: tests/connector/source/readers, test_streams.py.
"""

import contextlib
import threading
from urllib.parse import urlsplit

import pytest
from proxy import Proxy
from receivers import OpenReceiver
from waiting import wait_until

from pyspark_jms.jms.model import Destination
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.peek import peek
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.tools.check.receive import receive_findings
from pyspark_jms.tools.cli.move import connect_mover
from pyspark_jms.tools.moving.engine import move

pytestmark = [pytest.mark.broker, pytest.mark.deep, pytest.mark.timeout(120)]

COUNT, SIZE = 190, 1_000
"""Fewer than a page of Classic, which sends the next one after an acknowledgement, or after up to 30 s."""
LONG_PAUSE_SECONDS = 1.2
"""Three times the idleTimeout."""


# --- who asks ---------------------------------------------------------------------------------------


def available_now(options):
    with contextlib.closing(OpenReceiver(options, drain=True)) as receiver:
        end = 0
        while (reached := receiver.next_batch_end()) > end:
            end = reached
            receiver.acknowledge_through(end)
        return end


def batch_read(options):
    return sum(rows.num_rows for rows in peek(reading_of(options)))


def moved(options):
    queue = options.destinations[0].name
    to = Destination.parse(f"queue://{queue}.to")
    given = reading_of(options), connect_mover(options)
    return move(*given, to=to, limit=None, on_moved=lambda _: None).messages


def checked(options):
    queue = options.destinations[0].name
    how = {"limit": 10_000, "inspected": None, "loses_bodies": False}
    found = next(receive_findings(reading_of(options).protocol, options.connection, queue, **how))
    return found.details.get("received", 0)


WHO = {"AvailableNow": available_now, "batch read": batch_read, "move": moved, "check --receive": checked}


# --- what the queue is -------------------------------------------------------------------------------


@contextlib.contextmanager
def empty(stage, queue, proxy):
    with stage.client() as client:
        client.put(queue, [([], "one")])
        client.get(queue, 1)
    yield


@contextlib.contextmanager
def full(stage, queue, proxy):
    put(stage, queue)
    yield


@contextlib.contextmanager
def pausing(stage, queue, proxy):
    """The peer is silent in the midst of its messages, for longer than idleTimeout: it collects its garbage."""
    put(stage, queue)
    over = threading.Event()

    def pause():
        wait_until(lambda: over.is_set() or proxy.to_client.size > COUNT * SIZE // 3)
        proxy.to_client.stall()
        over.wait(LONG_PAUSE_SECONDS)
        proxy.to_client.resume()

    thread = threading.Thread(target=pause)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def held(stage, queue, proxy):
    """Another consumer has all messages, and acknowledges none."""
    with stage.client() as client:
        client.put(queue, [([], "text")] * 20)
        client.get(queue, 20, ack=False)
        yield


def put(stage, queue):
    with stage.client() as client:
        client.put(queue, [([("n", str(n))], f"text {n}".ljust(SIZE, ".")) for n in range(COUNT)])


QUEUES = {"empty": empty, "full": full, "a peer that pauses": pausing, "held by another consumer": held}
SHOWN = {"empty": 0, "full": COUNT, "a peer that pauses": COUNT, "held by another consumer": 0}
OTHERWISE = {("classic", "batch read", "held by another consumer"): 20}
"""A browse of Classic also shows what another consumer has."""


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_everything_is_read_before_the_end(stage, queue, protocol, who, kind):
    url = urlsplit(stage.broker.url if protocol == "stomp" else getattr(stage.broker, "amqp_url", ""))
    if not url.hostname:
        pytest.skip("this release speaks AMQP 0.9.1")
    if (stage.name, protocol, who) == ("rabbitmq", "stomp", "move"):
        pytest.skip("refused: a move could lose messages")
    with Proxy(url.hostname, url.port, protocol) as proxy, QUEUES[kind](stage, queue, proxy):
        options = stage.access | {"brokerUrl": proxy.url, "queue": queue, "idleTimeout": "400ms", "windowBytes": "32k"}
        shown = WHO[who](SourceOptions.parse(options))
    assert shown == OTHERWISE.get((stage.name, who, kind), SHOWN[kind])
