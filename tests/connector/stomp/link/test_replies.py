"""What ends a wait, without a broker: the listener is called as stomp.py calls it."""

import threading
import time
from types import SimpleNamespace

import pytest

from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    MalformedFrameError,
    ReceiptTimeoutError,
    SubscriptionInUseError,
    UnconvertibleMessageError,
)
from pyspark_jms.network.address import Address
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.stomp.link.replies import Listener, Replies, error_of, error_text

ADDRESS = Address("host", 1)
DENIED = "Security Error occurred"
SHORT, LONG = 0.05, 30


def frame(body="", **headers):
    return SimpleNamespace(headers={name.replace("_", "-"): value for name, value in headers.items()}, body=body)


class Session:
    def __init__(self):
        self.failure = None
        self.replies = Replies(ADDRESS, StateCondition(), lambda: self.failure)
        self.replies.dialect = ARTEMIS
        self.listener = Listener(self.replies.note)


@pytest.fixture
def session():
    return Session()


@pytest.fixture
def later():
    """Call something in another thread, a moment from now."""
    timers = []

    def call(function, *arguments):
        timers.append(threading.Timer(SHORT, function, arguments))
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
        session.replies.await_receipt("r1", SHORT)


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
    session.replies.await_final_error(SHORT)
    assert time.monotonic() - began >= SHORT
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
