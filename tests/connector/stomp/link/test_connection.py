"""Sessions that come about, that do not, and that end: each with one clear error, within its limit."""

import contextlib
import dataclasses
import logging
import socket
import ssl
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from certificates import Authority
from failing_threads import ENDS, FailingCondition, no_room_for_threads
from proxy import Proxy
from rawstomp import RawStomp
from waiting import await_count, wait_until

from pyspark_jms.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidOptionError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    MalformedFrameError,
    ReceiptTimeoutError,
    SubscriptionInUseError,
    TlsError,
    UnconvertibleMessageError,
    UnknownBrokerError,
)
from pyspark_jms.network.address import Address, parse_broker_url
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import TlsSettings
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.stomp.link import connection as module
from pyspark_jms.stomp.link.connection import Listener, Replies, connect, error_of, error_text
from pyspark_jms.stomp.wire.frame import Frame, encode_frame
from pyspark_jms.tools.testing.ports import free_port

SECRET = "s3cr3t"
SHORT = 0.5
CONNECTED = b"CONNECTED\nversion:1.2\nserver:ActiveMQ-Artemis/2.44.0\nheart-beat:0,0\n\n\0\n"


@contextlib.contextmanager
def peer(conversation):
    """A TCP server that need not be a broker: ``conversation(link)``, then silence. Yields its address."""
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve():
        with contextlib.suppress(OSError):
            link, _ = server.accept()
            with conversation(link) or link, link:
                over.wait(30)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Address(*server.getsockname())
    finally:
        over.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(30)


@pytest.fixture
def settings(broker, settings_for):
    return lambda **changes: settings_for(broker, **changes)


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_whatever_ends_the_thread_reaches_the_caller(settings, error):
    condition = FailingCondition()
    connection = connect(settings(), condition)
    condition.error = error
    connection.request("BEGIN", {"transaction": "t"})  # its receipt has arrived, and ends the thread
    with pytest.raises(type(error)) as raised:
        connection.request("COMMIT", {"transaction": "t"})
    assert raised.value is error
    connection.close()


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_close_does_not_raise_what_has_just_ended_the_thread(settings, error):
    connection = connect(settings())
    connection._transport.failure = error  # and the connection is not down yet
    connection.close()
    assert connection.is_down


def test_a_thread_that_cannot_be_started_is_told_as_that(settings):
    with no_room_for_threads(), pytest.raises(RuntimeError, match="can't start new thread"):
        connect(settings())


def refused(settings, error, match):
    with pytest.raises(error, match=match) as caught:
        connect(settings)
    return caught.value


# --- made --------------------------------------------------------------------------------------------


def test_a_session(broker, settings):
    connection = connect(settings())
    assert connection.server.startswith("ActiveMQ-Artemis/")
    assert connection.dialect.name == "artemis"
    assert not connection.is_down
    connection.check()
    connection.request("BEGIN", {"transaction": "t"})
    connection.close()
    assert connection.is_down
    connection.close()
    with pytest.raises(ConnectionLostError):
        connection.frame("ABORT", {"transaction": "t"})


def test_headers_are_escaped(broker, queue, settings):
    connection = connect(settings())
    value = "a:b\\c\r\nd"
    connection.request(
        "SEND", {"destination": queue, "destination-type": "ANYCAST", "persistent": "true", "x:y": value}
    )
    connection.close()
    with RawStomp(broker) as client:
        assert client.read(queue, wanted=1)[0].headers["x:y"] == value


def test_the_broker_may_be_named(settings):
    connection = connect(settings(broker="artemis"))
    assert connection.dialect.name == "artemis"
    connection.close()


def test_the_log_tells_events_and_a_wrong_password_is_shown_nowhere(settings, caplog):
    caplog.set_level(logging.DEBUG)
    connection = connect(settings())
    connection.close()
    error = refused(settings(password=SECRET), JMSSecurityError, r"JMS_SECURITY.*password is invalid.*Check user")
    assert "connected to stomp://" in caplog.text
    assert SECRET not in f"{caplog.text} {error}"
    assert "passcode" not in caplog.text


# --- not made ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"user": "a\nb"}, {"password": "a\rb"}, {"client_id": "a\0b"}])
def test_connect_has_no_escapes(settings, changes):
    refused(settings(**changes), InvalidOptionError, "holds a line end or NUL")


@pytest.mark.parametrize(("path", "host"), [("", "/"), ("/", "/"), ("/orders", "orders"), ("/%2Fa%3Ab", "/a:b")])
def test_the_path_is_the_virtual_host(settings, path, host):
    sent = []

    def conversation(link):
        sent.append(link.recv(4096))
        link.sendall(CONNECTED)

    with peer(conversation) as there:
        connect(settings(addresses=parse_broker_url(f"stomp://{there.host}:{there.port}{path}"))).drop()
    assert f"\nhost:{host}\n".encode() in sent[0]


@pytest.mark.parametrize(
    ("host", "why"), [("no-such-host.invalid", "the host name is not known"), ("a..b", "not valid"), ("x" * 70, "not")]
)
def test_an_unknown_host(settings, host, why):
    refused(settings(addresses=(Address(host, 61613),)), BrokerUnreachableError, why)


@pytest.mark.parametrize("tls", [False, True])
def test_a_silent_server(settings, tls):
    with peer(lambda link: None) as address:
        error = refused(
            settings(addresses=(Address(address.host, address.port, tls),), connect_timeout=SHORT),
            BrokerUnreachableError,
            "no answer within connectTimeout" if tls else r"sent no CONNECTED within 0.5 s",
        )
    assert error.remedy


def test_a_server_that_speaks_http(settings):
    def http(link):
        link.recv(1 << 16)
        link.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n")

    with peer(http) as address:
        refused(settings(addresses=(address,)), MalformedFrameError, r"does not speak STOMP.*the STOMP port")


def test_a_server_that_hangs_up(settings):
    with peer(lambda link: link.shutdown(socket.SHUT_RDWR)) as address:
        refused(settings(addresses=(address,)), BrokerUnreachableError, "closed the connection before CONNECTED")


def test_an_unknown_broker_is_let_go(settings):
    with peer(lambda link: link.sendall(CONNECTED.replace(b"ActiveMQ-Artemis", b"Another"))) as address:
        before = set(threading.enumerate())
        refused(settings(addresses=(address,)), UnknownBrokerError, r"'Another/2.44.0'.*option broker")
        assert set(threading.enumerate()) <= before


def test_an_error_with_the_answer_in_one_read(settings):
    error = b"ERROR\nmessage:Security Error occurred\ncontent-length:3\n\nno\0\0\n"
    with peer(lambda link: link.sendall(error)) as address:
        refused(settings(addresses=(address,)), JMSSecurityError, "Security Error occurred")


# --- failover lists ----------------------------------------------------------------------------------


def dead():
    return Address("127.0.0.1", free_port("127.0.0.1"))


def test_the_first_address_that_answers(settings):
    live = settings().addresses
    connection = connect(settings(addresses=(dead(), *live, dead())))
    assert connection.address == live[0]
    connection.close()


# --- TLS ---------------------------------------------------------------------------------------------


@pytest.fixture
def trusting(secured, settings_for, authority):
    """Settings for the TLS port of ``secured``, with our CA unless told otherwise."""

    def trusting(*, host="localhost", port=None, **tls):
        settings = settings_for(secured, port=port, tls=TlsSettings(**{"ca_file": authority.cert} | tls))
        return settings_for(secured, tls=settings.tls, addresses=(Address(host, settings.addresses[0].port, tls=True),))

    return trusting


def test_an_authority_that_is_not_trusted(trusting, other_authority):
    for settings in (trusting(ca_file=other_authority.cert), trusting(ca_file=None)):
        refused(settings, TlsError, r"JMS_TLS.*certificate of .* is not accepted: .*sslCaFile")


def test_a_name_that_is_not_in_the_certificate(trusting):
    refused(trusting(host="127.0.0.1"), TlsError, r"is not accepted: IP address mismatch.*host name in the certificate")
    connection = connect(trusting(host="127.0.0.1", verify_hostname=False))
    connection.close()


def test_the_authority_counts_even_without_the_name(trusting, other_authority):
    refused(trusting(ca_file=other_authority.cert, verify_hostname=False), TlsError, "is not accepted")


def test_a_certificate_that_has_expired(settings, authority, tmp_path):
    """A CA file may have several certificates: those that have expired are named."""
    old, bundle = Authority(tmp_path, "an old CA", expired=True), tmp_path / "bundle.pem"
    bundle.write_bytes(b"".join(Path(each.cert).read_bytes() for each in (authority, old)))
    named = f"In sslCaFile {bundle}, the certificate of an old CA has expired"
    for pair, ca_file, remedy in (
        (authority.issue("old", hosts=["localhost"], expired=True), authority.cert, "Renew the broker's certificate"),
        (old.issue("new", hosts=["localhost"]), str(bundle), named),
    ):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.cert, pair.key)
        with peer(lambda link, of=context: of.wrap_socket(link, server_side=True).close()) as address:
            there, trust = (Address("localhost", address.port, tls=True),), TlsSettings(ca_file=ca_file)
            expected = rf"is not accepted: certificate has expired\. {remedy}"
            refused(settings(addresses=there, tls=trust), TlsError, expected)


def test_mutual_tls(trusting, wary_port, authority):
    pair = authority.issue("client")
    connection = connect(trusting(port=wary_port, cert_file=pair.cert, key_file=pair.key))
    connection.request("BEGIN", {"transaction": "t"})
    connection.close()


def test_mutual_tls_without_or_with_a_foreign_certificate(trusting, wary_port, other_authority):
    foreign = other_authority.issue("client")
    for given in ({}, {"cert_file": foreign.cert, "key_file": foreign.key}):
        with pytest.raises((TlsError, BrokerUnreachableError), match="client certificate"):
            connect(trusting(port=wary_port, **given))


def test_tls_to_a_plain_port(trusting, secured):
    """Artemis waits for the end of a frame, and so says nothing."""
    settings = dataclasses.replace(trusting(port=secured.plain_port), connect_timeout=1.0)
    refused(settings, BrokerUnreachableError, r"no answer within connectTimeout; for a port without TLS use stomp://")


def test_plain_to_a_tls_port(secured, settings_for):
    refused(settings_for(secured, port=secured.port), JMSError, r"TLS port use stomp\+ssl://|does not speak STOMP")


# --- lost --------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(broker):
    with Proxy(broker.host, broker.port) as proxy:
        yield proxy


def test_a_cut_link_is_noticed_and_said(proxy, settings):
    connection = connect(settings(url=proxy.url))
    proxy.cut()
    wait_until(lambda: connection.is_down)
    for use in (connection.check, lambda: connection.send(b"\n"), lambda: connection.request("BEGIN", {})):
        with pytest.raises(ConnectionLostError, match=r"JMS_CONNECTION_LOST"):
            use()
    connection.close()


def test_a_receipt_that_does_not_come(proxy, settings):
    connection = connect(settings(url=proxy.url, receipt_timeout=SHORT))
    proxy.to_client.stall()
    with pytest.raises(ReceiptTimeoutError, match=r"JMS_RECEIPT_TIMEOUT.*\br1\b.*\b0\.5 s.*receiptTimeout"):
        connection.request("BEGIN", {"transaction": "t"})
    proxy.to_client.resume()
    connection.await_receipt("r1", 20)
    connection.close()


def test_close_waits_for_nobody_for_long(proxy, settings, monkeypatch):
    monkeypatch.setattr(module, "_DISCONNECT_SECONDS", SHORT)
    connection = connect(settings(url=proxy.url))
    proxy.to_broker.stall()
    connection.close()
    assert connection.is_down


def send_megabytes(connection, count):
    for _ in range(count):
        connection.send(b"\n" * (1 << 20))


@pytest.mark.parametrize("tls", [False, True])
def test_a_peer_that_takes_nothing(settings, authority, tls):
    """What is written has to go somewhere: an error, not a wait for ever, and not all of it in memory."""
    pair = authority.issue("deaf", hosts=["localhost"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.cert, pair.key)

    def deaf(link):
        if tls:
            link.settimeout(10)
            link = context.wrap_socket(link, server_side=True)
            link.recv(1 << 16)
        link.sendall(CONNECTED)
        return link

    with peer(deaf) as address:
        there = (Address("localhost" if tls else address.host, address.port, tls),)
        trust = TlsSettings(ca_file=authority.cert)
        connection = connect(settings(addresses=there, receipt_timeout=SHORT, tls=trust))
        with pytest.raises(ReceiptTimeoutError, match=r"\b0\.5 s"):
            send_megabytes(connection, 64)
        assert connection.is_down


# --- heart-beats -------------------------------------------------------------------------------------


def test_heart_beats_keep_an_idle_session(broker, settings):
    """Artemis closes a session that is silent for twice the interval it announced: here, one beside ours."""
    connection = connect(settings(heartbeat=0.5))
    login = (("login", broker.user), ("passcode", broker.password))
    with socket.create_connection((broker.host, broker.port), 30) as silent:
        silent.sendall(encode_frame(Frame("CONNECT", (("accept-version", "1.2"), ("heart-beat", "500,0"), *login))))
        data = b""
        while more := silent.recv(1024):
            data += more
    assert data.startswith(b"CONNECTED\n")
    assert b"AMQ229014" in data
    connection.request("BEGIN", {"transaction": "t"})
    connection.close()


@pytest.mark.parametrize("both", [True, False], ids=["a dead network", "silence towards the broker"])
def test_a_silence_is_a_lost_session_and_not_a_refusal(proxy, settings, both):
    """Artemis sends an ERROR when it hears nothing; the user did nothing wrong, and another session would do."""
    connection = connect(settings(url=proxy.url, heartbeat=0.5))
    if both:
        proxy.to_client.stall()
    proxy.to_broker.stall()
    wait_until(lambda: connection.is_down)
    with pytest.raises(ConnectionLostError) as error:
        connection.check()
    assert error.value.transient
    connection.close()


def test_a_killed_broker(killable, settings_for, consume, queue):
    broker = killable
    consumer = consume(settings_for(broker), queue)
    connection = connect(settings_for(broker))
    connection.frame("BEGIN", {"transaction": "t"})
    send = {"destination": queue, "destination-type": "ANYCAST", "persistent": "true", "transaction": "t"}
    connection.request("SEND", send)
    broker.kill()
    wait_until(lambda: connection.is_down and consumer.connection.is_down)
    with pytest.raises(ConnectionLostError):
        connection.request("COMMIT", {"transaction": "t"})
    with pytest.raises(BrokerUnreachableError, match="connection refused"):
        connect(settings_for(broker))
    broker.start()
    await_count(broker, queue, 0)
    connection.close()


def test_a_broker_that_is_stopped(killable, settings_for, consume, queue):
    consumer = consume(settings_for(killable), queue)
    killable.stop()
    wait_until(lambda: consumer.connection.is_down)
    with pytest.raises(ConnectionLostError):
        consumer.connection.check()


def test_what_a_broker_says_before_it_hangs_up_is_heard(secured, settings_for):
    """Though a write fails before it is read: nothing can be noted here until ``send`` itself waits for it."""
    connection = connect(settings_for(secured))
    with connection.condition, pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION"):
        write_until_it_fails(connection, {"destination": "closed.unheard", "destination-type": "ANYCAST"})
    connection.drop()


def write_until_it_fails(connection, headers):
    connection.frame("SEND", headers)
    for _ in range(10_000):
        connection.send(b"\n")
        time.sleep(0.001)


# --- what an ERROR must not show ---------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"x", b"x" * 300_000], ids=["small", "large"])
@pytest.mark.parametrize("user", ["reader", "nobody"])
def test_a_refused_message_is_not_shown(secured, queue, settings_for, user, body):
    secured.create_queue(queue)
    connection = connect(settings_for(secured, user=user))
    headers = {"destination": queue, "destination-type": "ANYCAST", "persistent": "true", "card": SECRET}
    connection.send(encode_frame(Frame("SEND", (*headers.items(), ("receipt", "x1")), SECRET.encode() + body)))
    with pytest.raises(JMSError, match="JMS_") as error:
        connection.await_receipt("x1")
    shown = f"{error.value} {error.value!r}"
    assert SECRET not in shown
    assert "TypedProperties" not in shown
    assert "may not send" in shown
    connection.close()


# --- what the broker replies -----------------------------------------------------------------------

ADDRESS = Address("host", 1)
DENIED = "Security Error occurred"
MOMENT, LONG = 0.05, 30


def frame(body="", **headers):
    return SimpleNamespace(headers={name.replace("_", "-"): value for name, value in headers.items()}, body=body)


class Session:
    def __init__(self):
        self.failure = None
        self.replies = Replies(ADDRESS, StateCondition(), lambda: self.failure)
        self.replies.known_dialect = ARTEMIS
        self.listener = Listener(self.replies.note)


@pytest.fixture
def session():
    return Session()


@pytest.fixture
def later():
    """Call something in another thread, a moment from now."""
    timers = []

    def call(function, *arguments):
        timers.append(threading.Timer(MOMENT, function, arguments))
        timers[-1].start()

    yield call
    for timer in timers:
        timer.join()


def test_connected(session, later):
    assert session.replies.server is None
    later(session.listener.on_connected, frame(server="ActiveMQ-Artemis/2.44.0"))
    session.replies.await_connected(LONG)
    assert session.replies.server == "ActiveMQ-Artemis/2.44.0"


def test_a_receipt_is_awaited_once(session, later):
    later(session.listener.on_receipt, frame(receipt_id="r1"))
    session.replies.await_receipt("r1", LONG)
    assert not session.replies.has_receipt("r1")
    with pytest.raises(ReceiptTimeoutError, match=r"\br1\b.*\b0\.05 s"):
        session.replies.await_receipt("r1", MOMENT)


CROSSED = ["AMQ339018 Error acknowledging message 1,2", "AMQ339025 failed to ack because no message with id 1"]
OPERATOR = "closed=false] disconnected by server"


@pytest.mark.parametrize("crossed", CROSSED)
def test_the_reason_may_follow_the_error_of_an_acknowledgement_that_crossed_it(session, later, crossed):
    session.listener.on_error(frame(message=crossed))
    later(session.listener.on_error, frame(message=OPERATOR))
    with pytest.raises(ConnectionLostError):
        session.replies.check()
    assert session.replies.is_down


@pytest.mark.parametrize("crossed", CROSSED)
def test_without_a_reason_the_cause_is_a_message(session, later, crossed):
    session.listener.on_error(frame(message=crossed))
    later(session.listener.on_disconnected)
    with pytest.raises(UnconvertibleMessageError, match="start the query again"):
        session.replies.check()


def test_an_error_takes_precedence_over_a_receipt(session):
    session.listener.on_receipt(frame(receipt_id="r1"))
    session.listener.on_error(frame(message=DENIED))
    assert session.replies.has_receipt("r1")
    with pytest.raises(JMSSecurityError, match=DENIED):
        session.replies.await_receipt("r1", LONG)


def test_an_error_that_ends_the_connection_refuses_nothing(session):
    session.listener.on_receipt(frame(receipt_id="r1"))
    session.listener.on_error(frame(message="AMQ229005: connections for 127.0.0.1 closed by management"))
    assert session.replies.is_down
    session.replies.await_receipt("r1", LONG)
    with pytest.raises(ConnectionLostError, match="AMQ229005"):
        session.replies.check()


@pytest.mark.parametrize("wait", ["await_connected", "await_receipt"])
def test_the_end_of_the_connection_ends_a_wait(session, later, wait):
    later(session.listener.on_disconnected)
    arguments = ("r1", LONG) if wait == "await_receipt" else (LONG,)
    with pytest.raises(ConnectionLostError, match="stomp://host:1 "):
        getattr(session.replies, wait)(*arguments)


def test_the_first_error_is_raised(session):
    session.replies.check()
    session.listener.on_error(frame(message=DENIED))
    session.listener.on_error(frame(message="a consequence of it"))
    session.listener.on_disconnected()
    with pytest.raises(JMSSecurityError, match=DENIED):
        session.replies.check()


def test_what_was_wrong_with_the_bytes_is_raised(session):
    session.failure = MalformedFrameError("It is HTTP.")
    with pytest.raises(MalformedFrameError):
        session.replies.check()
    session.failure = OSError()  # the end of the connection follows
    session.replies.check()


def test_a_final_error_is_awaited_for_a_limited_time(session, later):
    began = time.monotonic()
    session.replies.await_final_error(MOMENT)
    assert time.monotonic() - began >= MOMENT
    later(session.listener.on_error, frame(message=DENIED))
    session.replies.await_final_error(LONG)
    with pytest.raises(JMSSecurityError):
        session.replies.check()


@pytest.mark.parametrize(
    ("message", "body", "text"),
    [
        ("AMQ339001 Destination does not exist x", "AMQ339001: Destination does not exist: x\n", None),
        ("User a is not valid", "java.lang.SecurityException: User a is not valid\n\tat", "java.lang.Securi"),
        ("Bad CONNECT", "Access refused for user 'a'\n", "Bad CONNECT: Access refused"),
        ("", "only a body", "only a body"),
    ],
)
def test_the_text_of_an_error(message, body, text):
    assert error_text(message, body).startswith(message if text is None else text)


# --- the text of an ERROR frame ----------------------------------------------------------------------

PLAIN, TLS = Address("host", 1), Address("host", 1, tls=True)


SAID = [
    ("Security Error occurred: User name [a] or password is invalid", JMSSecurityError, "Check user and password"),
    ("AMQ339016 Error creating subscription 1", JMSSecurityError, "may not consume from this destination, or"),
    ("AMQ229032 User lim does not have permission='CREATE_ADDRESS' on address x", JMSSecurityError, "Check user"),
    ('Invalid selector "a = 1 OR"', InvalidSelectorError, "Check the selector"),
    ("Selector cannot be empty", InvalidSelectorError, "Check the selector"),
    ("AMQ339001 Destination does not exist x", InvalidDestinationError, "is named TOPIC::QUEUE"),
    (
        "AMQ229014: Did not receive data from x within the 60000ms connection TTL",
        ConnectionLostError,
        "received nothing from this client",
    ),
    ("AMQ229005: connections for 127.0.0.1 closed by management", ConnectionLostError, "ended a slow consumer"),
    ("AMQ229107: consumer connections for address q closed by management", ConnectionLostError, "An operator closed"),
    ("AMQ229108: connections for user artemis closed by management", ConnectionLostError, "An operator closed"),
    ("AMQ229120: connection with ID daedd4b0 closed by management", ConnectionLostError, "An operator closed"),
    ("AMQ229078: Disconnected per admin's request on a=b", ConnectionLostError, "An operator closed"),
    ("terminated by session expiry plugin", ConnectionLostError, "An operator closed"),
    ("AMQ339017 Error unsubscribing 1", SubscriptionInUseError, "Stop other readers"),
    ("AMQ339011 Error sending message", BrokerError, "may not send to the destination, or its address is full"),
    ("", BrokerError, "the broker's log"),
]


@pytest.mark.parametrize(("text", "error", "remedy"), SAID)
@pytest.mark.parametrize("dialect", [ARTEMIS, None])
def test_what_an_error_frame_means(text, error, remedy, dialect):
    found = error_of(PLAIN, text, dialect)
    assert type(found) is error
    assert (text or "nothing") in found.fact
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (CLASSIC, "org.apache.activemq.broker.BrokerStoppedException: Broker b is being stopped"),
        (CLASSIC, "org.apache.activemq.transport.InactivityIOException: 1 Consumers was slow too often (>1)"),
        (RABBITMQ, "AMQP channel died: Reason: {shutdown,"),
        (RABBITMQ, "connection_forced: CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"),
        (RABBITMQ, "Server cancelled subscription: The server has canceled a subscription."),
    ],
)
def test_what_else_means_that_the_client_may_connect_again(dialect, text):
    assert type(error_of(PLAIN, text, dialect)) is ConnectionLostError


@pytest.mark.parametrize("dialect", [ARTEMIS, None])
def test_a_consumer_that_an_operator_closes(dialect):
    inside = "LocalQueueBinding [address=q, queue=QueueImpl[name=q, postOffice=PostOfficeImpl [server=S], temp=false]]"
    consumer = f"ServerConsumerImpl [id=7, filter=null, binding={inside * 3}, closed=false]"
    text = f"consumer with ID {consumer} disconnected by server"
    found = error_of(PLAIN, text, dialect)
    assert type(found) is ConnectionLostError
    assert "ServerConsumerImpl" not in str(found)


def test_a_message_that_cannot_be_sent_over_stomp():
    text = "consumer with ID ServerConsumerImpl [id=7, filter=null, binding=…, closed=true] disconnected by server"
    found = error_of(PLAIN, text, ARTEMIS)
    assert type(found) is UnconvertibleMessageError
    assert "ServerConsumerImpl" not in str(found)
    assert "over AMQP, where the message is a row" in found.remedy


@pytest.mark.parametrize(
    "dump",
    [
        "CoreMessage[messageID=0, durable=true, properties=TypedProperties[card=SECRET]]",
        "LargeServerMessage[messageID=0, properties=TypedProperties[card=SECRET]]",
        "LargeServerMessageImpl[messageID=0, card=SECRET",
        "CoreMessage[a=b\nSECRET\n]",
    ],
)
def test_a_message_in_the_text_is_cut_off(dump):
    found = error_of(PLAIN, f"AMQ339011 Error sending message {dump}", ARTEMIS)
    assert "SECRET" not in str(found)
    assert "AMQ339011 Error sending message" in found.fact


def test_a_long_text_is_cut():
    assert len(str(error_of(PLAIN, "x" * 10_000, ARTEMIS))) < 500
