import contextlib
import socket
import threading
from dataclasses import replace

import pytest
from failing_threads import ENDS, FailingCondition, no_room_for_threads
from proton_broker import ProtonBroker
from proxy import Proxy
from scram_broker import ScramArtemis
from waiting import wait_until

from pyspark_jms.amqp.link.connection import Stream, connect, error_of
from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    MalformedFrameError,
    ReceiptTimeoutError,
    SubscriptionInUseError,
    TlsError,
)
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import Password
from pyspark_jms.testing import Tls


def address(port, **more):
    return Address("127.0.0.1", port, protocol="amqp", **more)


def test_connected_detected_and_closed(broker, settings_for, opened):
    connection = opened(connect(settings_for(broker)))
    assert connection.dialect.name == "artemis"
    assert connection.server.startswith("apache-activemq-artemis/2.")
    assert "ANONYMOUS-RELAY" in connection.capabilities
    connection.check()
    connection.close()
    assert connection.is_down
    with pytest.raises(ConnectionLostError):
        connection.check()


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_whatever_ends_the_thread_reaches_the_caller(broker, queue, settings_for, error):
    with pytest.raises(type(error)) as raised:
        connect(settings_for(broker), FailingCondition(error))
    assert raised.value is error
    condition = FailingCondition()
    connection = connect(settings_for(broker), condition)
    with connection.core() as session:
        receiver = session.link(Receiver, "link")
        receiver.attach_to(Source(address=queue))
        condition.error = error
    with pytest.raises(type(error)) as raised:
        connection.await_attached(receiver)
    assert raised.value is error
    connection.close()


def test_a_thread_that_cannot_be_started_is_told_as_that(broker, settings_for):
    with no_room_for_threads(), pytest.raises(RuntimeError, match="can't start new thread"):
        connect(settings_for(broker))


@pytest.mark.parametrize(
    ("product", "broker", "virtual_host", "opened_hosts"),
    [
        ("RabbitMQ", "auto", "dev", ["dev", "vhost:dev"]),
        ("RabbitMQ", "rabbitmq", "dev", ["vhost:dev"]),
        ("RabbitMQ", "auto", "vhost:dev", ["vhost:dev"]),
        ("RabbitMQ", "auto", "/", ["127.0.0.1"]),
        ("a router", "auto", "dev", ["dev"]),
    ],
)
def test_a_virtual_host_is_opened_by_the_name_that_its_broker_has_for_it(product, broker, virtual_host, opened_hosts):
    """RabbitMQ opens its default virtual host for a name that it does not understand."""
    with ProtonBroker(product=product) as peer:
        there = tuple(replace(address, virtual_host=virtual_host) for address in peer.settings.addresses)
        connection = connect(replace(peer.settings, broker=broker, addresses=there))
        connection.close()
        assert peer.hostnames == opened_hosts


def test_the_broker_of_the_option_counts(broker, settings_for, opened):
    assert opened(connect(settings_for(broker, broker="amqp"))).dialect.name == "amqp"


def test_a_wrong_password_is_not_tried_at_the_next_address(broker, settings_for):
    settings = settings_for(broker, password="wrong")
    with pytest.raises(JMSSecurityError, match="JMS_SECURITY"):
        connect(replace(settings, addresses=settings.addresses * 2))


def test_a_renewed_token_is_used_by_the_next_connection(broker, settings_for, opened, tmp_path):
    token = tmp_path / "token"
    settings = replace(settings_for(broker), password=Password(file=str(token)))
    token.write_text(broker.password + "\n")
    opened(connect(settings))
    token.write_text("expired")
    with pytest.raises(JMSSecurityError, match=r"the login was refused \(PLAIN\)\. Check user and password"):
        connect(settings)
    token.write_text(broker.password)
    opened(connect(settings))


@pytest.mark.deep  # a broker of its own
@pytest.mark.parametrize("offered", [("SCRAM-SHA-256",), ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")])
def test_a_login_by_scram(offered, settings_for, opened, tmp_path):
    with ScramArtemis(tmp_path / "broker", *offered) as broker:
        assert opened(connect(settings_for(broker))).server.startswith("apache-activemq-artemis/")
        for wrong in ({"password": "wrong"}, {"user": "nobody"}):
            with pytest.raises(JMSSecurityError, match="the login was refused"):
                connect(settings_for(broker, **wrong))


def test_the_next_address_is_tried(broker, settings_for, opened):
    settings = settings_for(broker)
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    found = opened(connect(replace(settings, addresses=(address(free), *settings.addresses))))
    assert found.address == settings.addresses[0]
    with pytest.raises(BrokerUnreachableError, match="brokerUrl"):
        connect(replace(settings, addresses=(address(free), address(free))))


def answering(data):
    """A server that sends these bytes to whoever connects. Returns its port."""
    server = socket.create_server(("127.0.0.1", 0))

    def run():
        with server, server.accept()[0] as peer:
            peer.sendall(data)
            while peer.recv(1 << 16):
                pass

    threading.Thread(target=run, daemon=True).start()
    return server.getsockname()[1]


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"HTTP/1.1 400 Bad Request\r\n", MalformedFrameError), (b"", BrokerUnreachableError)],
    ids=["another protocol", "silence"],
)
def test_a_server_that_is_no_broker(broker, settings_for, data, error):
    settings = replace(settings_for(broker), addresses=(address(answering(data)),), connect_timeout=1.0)
    with pytest.raises(error):
        connect(settings)


def _accept_and_close(server):
    server.accept()[0].close()


def test_a_server_that_closes_at_once(broker, settings_for):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept_and_close, args=(server,), daemon=True).start()
        with pytest.raises(BrokerUnreachableError, match="TLS"):
            connect(replace(settings_for(broker), addresses=(address(server.getsockname()[1]),)))


def test_a_broker_that_says_nothing_for_too_long(broker, settings_for, opened):
    with Proxy(broker.host, broker.port) as proxy:
        settings = replace(settings_for(broker, heartbeat="2s"), addresses=(address(proxy.port),))
        connection = opened(connect(settings))
        proxy.to_client.stall()
        wait_until(lambda: connection.is_down)
        with pytest.raises(ConnectionLostError, match=r"\b4 s\b"):
            connection.check()


def test_an_idle_connection_stays(fresh_broker, settings_for, opened):
    """Artemis closes a connection that is silent for connectionTtl."""
    with fresh_broker(acceptor_options={"amqpIdleTimeout": "1000"}) as broker:
        connection = opened(connect(settings_for(broker)))
        before = connection._last_sent
        wait_until(lambda: connection._last_sent > before + 1.5)
        connection.check()


def test_waiting_has_a_limit(broker, settings_for, opened):
    connection = opened(connect(settings_for(broker)))
    with pytest.raises(ReceiptTimeoutError, match=r"a thing .*0\.1 s"):
        connection.await_(lambda: False, "a thing", 0.1)


def test_tls(fresh_broker, settings_for, opened, authority, other_authority):
    own = authority.issue("127.0.0.1", hosts=["127.0.0.1"])
    foreign = other_authority.issue("foreign")
    with fresh_broker(tls=Tls(cert=own.cert, key=own.key, client_ca=authority.cert)) as broker:
        assert broker.amqp_url.startswith("amqps://")

        def connected(authority=authority, **options):
            return connect(settings_for(broker, sslCaFile=authority.cert, **options))

        opened(connected(sslCertFile=own.cert, sslKeyFile=own.key)).check()
        with pytest.raises(TlsError, match=r"certificate of amqps://.* is not accepted"):
            connected(other_authority)
        # With TLS 1.3 the broker refuses a client's certificate after the handshake.
        for options in ({"sslCertFile": foreign.cert, "sslKeyFile": foreign.key}, {}):
            with pytest.raises(TlsError, match=r"does not accept the client certificate, or requires one: .*ALERT"):
                connected(**options)


# --- error conditions and texts ---------------------------------------------------------------------


ADDRESS = Address("host", 5672, protocol="amqp")


@pytest.mark.parametrize(
    ("condition", "description", "kind"),
    [
        ("amqp:unauthorized-access", "the login was refused", JMSSecurityError),
        ("amqp:internal-error", "AMQ229032: User: x does not have permission='CREATE_ADDRESS'", JMSSecurityError),
        ("amqp:unauthorized-access", "AMQ229213: User: x does not have permission='CONSUME'", JMSSecurityError),
        ("amqp:invalid-field", "Invalid selector", InvalidSelectorError),
        ("amqp:invalid-field", '{amqp_address_v1_not_permitted, <<"q">>}', InvalidDestinationError),
        ("amqp:invalid-field", "source_required", BrokerError),
        ("amqp:not-found", "", InvalidDestinationError),
        ("amqp:internal-error", "Incorrect Routing Type for queried queue c.n", InvalidDestinationError),
        ("amqp:illegal-state", "Address t is not configured for queue support", InvalidDestinationError),
        ("amqp:resource-deleted", "", InvalidDestinationError),
        ("amqp:released", "", InvalidDestinationError),
        ("amqp:internal-error", "AMQ229200: Maximum Consumer Limit Reached on Queue", SubscriptionInUseError),
        ("amqp:internal-error", "AMQ229019: Queue a.token already exists on address a", SubscriptionInUseError),
        ("amqp:link:stolen", "", SubscriptionInUseError),
        ("amqp:connection:forced", "", ConnectionLostError),
        ("amqp:link:detach-forced", "", ConnectionLostError),
        ("amqp:internal-error", 'Connection forced: <<"maintenance">>', ConnectionLostError),
        ("amqp:resource-limit-exceeded", "local-idle-timeout expired", ConnectionLostError),
        ("failed", "AMQ229102: Address is full", BrokerError),
    ],
)
def test_a_condition_or_a_text_says_which_error_it_is(condition, description, kind):
    error = error_of(ADDRESS, PeerError(condition, description))
    assert type(error) is kind
    assert "amqp://host:5672" in error.fact
    assert condition in error.fact
    assert error.remedy


@pytest.mark.parametrize(("selected", "kind"), [(True, InvalidSelectorError), (False, BrokerError)])
def test_an_invalid_field_is_the_selector_if_one_was_sent(selected, kind):
    assert type(error_of(ADDRESS, PeerError("amqp:invalid-field", "Invalid filter"), selected=selected)) is kind


def test_a_long_text_is_cut():
    assert len(error_of(ADDRESS, PeerError("x", "y" * 10_000)).fact) < 400


# --- the thread of a connection, against a socket that does what a test tells it --------------------


class Endpoint:
    def __init__(self):
        self.received = bytearray()
        self.outgoing = []
        self.ended = threading.Event()
        self.reason = None
        self.ticks = 0

    def receive(self, data):
        if bytes(data) == b"break":
            raise ValueError
        self.received += data

    def to_send(self):
        outgoing, self.outgoing = self.outgoing, []
        return outgoing

    def tick(self, _):
        self.ticks += 1
        return 0.05

    def lost(self, reason):
        self.reason = reason
        self.ended.set()


@pytest.fixture
def pair():
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        stream = Stream(Address(*server.getsockname(), protocol="amqp"), context=None, connect_timeout=10)
        stack.callback(stream.close)
        peer = stack.enter_context(server.accept()[0])
        peer.settimeout(20)
        endpoint = Endpoint()
        stream.start(endpoint)
        yield stream, endpoint, peer


def test_bytes_in_and_out(pair):
    stream, endpoint, peer = pair
    peer.sendall(b"hello")
    wait_until(lambda: endpoint.received == b"hello")
    endpoint.outgoing = [b"an", bytearray(b"swer")]
    stream.wake()
    assert peer.recv(6, socket.MSG_WAITALL) == b"answer"


def test_more_than_a_socket_takes_at_once(pair):
    stream, endpoint, peer = pair
    whole = bytes(range(256)) * 80_000
    endpoint.outgoing = [whole]
    stream.wake()
    got = bytearray()
    while len(got) < len(whole):
        got += peer.recv(1 << 20)
    assert got == whole


def test_the_clock_is_looked_at_when_nothing_happens(pair):
    _, endpoint, _ = pair
    wait_until(lambda: endpoint.ticks > 3)


def test_the_peer_s_end_is_told_once(pair):
    _, endpoint, peer = pair
    peer.close()
    assert endpoint.ended.wait(20)
    assert endpoint.reason is None


def test_an_error_ends_the_thread_and_is_told(pair):
    _, endpoint, peer = pair
    peer.sendall(b"break")
    assert endpoint.ended.wait(20)
    assert isinstance(endpoint.reason, ValueError)


def test_closed_from_this_side(pair):
    stream, endpoint, peer = pair
    stream.close()
    stream.close()
    assert endpoint.ended.wait(20)
    assert peer.recv(1) == b""
    assert not [thread for thread in threading.enumerate() if thread is stream._thread]
