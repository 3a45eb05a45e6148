"""A broker with TLS and with users who may do little, and the settings to reach it."""

import threading
import time
from urllib.parse import urlsplit

import pytest
from connection_settings import settings_over
from waiting import wait_until

from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import TlsSettings
from pyspark_jms.stomp.link.consumer import Consumer
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis, Tls, User


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    """Sockets left open are ``ResourceWarning``s, which are errors; threads need a look."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 10
    while left := [t for t in threading.enumerate() if t not in before and not t.name.startswith("Thread-py4j")]:
        if time.monotonic() > deadline:
            pytest.fail(f"threads left: {left}")
        time.sleep(0.01)


USERS = (
    User("reader", "pw", permissions={"consume", "browse"}),
    User("writer", "pw", permissions={"send"}),
    User("worker", "pw", permissions={"send", "consume", "browse"}),
    User("nobody", "pw", permissions=set()),
)


@pytest.fixture(scope="session")
def secured(authority):
    """TLS on ``port``, plain on ``plain_port``, and a third acceptor that wants client certificates."""
    server = authority.issue("broker", hosts=["localhost"])
    settings = [AddressSettings(match="closed.#", auto_create_queues=False, auto_create_addresses=False)]
    tls = Tls(cert=server.cert, key=server.key)
    with EmbeddedArtemis(tls=tls, plain_port=0, users=USERS, address_settings=settings, heap="1g") as broker:
        yield broker


@pytest.fixture(scope="session")
def wary_port(secured, authority):
    """The port of ``secured`` that lets in only who shows a certificate of the authority."""
    trust = f"trustStoreType=PEMCA;trustStorePath={authority.cert};needClientAuth=true"
    return add_acceptor(secured, "wary", f"sslEnabled=true;{key_store(secured)};{trust}")


def key_store(broker):
    return f"keyStoreType=PEM;keyStorePath={broker.directory}/tls.pem"


def add_acceptor(broker, name, options):
    from pyspark_jms.tools.testing.ports import free_port

    port = free_port(broker.host)
    uri = f"tcp://{broker.host}:{port}?protocols=STOMP;{options}"
    broker.server.getRemotingService().createAcceptor(name, uri).start()
    return port


@pytest.fixture
def settings_for():
    """``settings_for(broker, user=…, port=…, …)``: as options would give them, with short limits."""
    limits = {"connect_timeout": 10, "receipt_timeout": 20, "reconnect_timeout": 0}

    def settings_for(broker, /, *, url=None, port=None, tls=None, **changes):
        if tls is not None:
            addresses = (Address("localhost", port or broker.port, tls=True),)
        else:
            plain = urlsplit(url or getattr(broker, "plain_url", None) or broker.url)
            addresses = (Address(plain.hostname, port or plain.port),)
        return settings_over(broker, **limits | {"addresses": addresses, "tls": tls or TlsSettings()} | changes)

    return settings_for


@pytest.fixture
def consume():
    """``consume(settings, queue, window_bytes=…)``: a Consumer that is closed at the end."""
    consumers = []

    def consume(settings, name, *, window_bytes=1 << 20, selector=None, kind=DestinationKind.QUEUE):
        subscription = Subscription(destination=Destination(kind, name), window_bytes=window_bytes, selector=selector)
        consumers.append(Consumer(settings))
        consumers[-1].subscribe(subscription)
        return consumers[-1]

    yield consume
    for consumer in consumers:
        consumer.close()


@pytest.fixture
def receive():
    """``receive(consumer, count)``: that many frames, and their ids, when they are there."""

    def receive(consumer, count, seconds=60):
        wait_until(lambda: consumer.waiting()[0] >= count or consumer.connection.is_down, seconds)
        consumer.connection.check()
        blocks = consumer.take()
        frames = [block.message(index) for block in blocks for index in range(len(block))]
        assert len(frames) == count
        return frames, [identifier for block in blocks for identifier in block.ids]

    return receive
