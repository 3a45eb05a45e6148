import socket
import ssl

import pytest

from pyspark_jms.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    MalformedFrameError,
    SubscriptionInUseError,
    TlsError,
)
from pyspark_jms.network.address import Address
from pyspark_jms.network.dialing import ResolveTimeoutError
from pyspark_jms.stomp.dialects import ARTEMIS
from pyspark_jms.stomp.link.reasons import error_of, unreachable

PLAIN, TLS = Address("host", 1), Address("host", 1, tls=True)


@pytest.mark.parametrize(
    ("address", "error", "reason"),
    [
        (PLAIN, ConnectionRefusedError(111, "Connection refused"), "connection refused"),
        (PLAIN, TimeoutError("timed out"), "no answer within connectTimeout"),
        (PLAIN, ResolveTimeoutError(), "the name service did not answer within connectTimeout"),
        (PLAIN, socket.gaierror(-2, "Name or service not known"), "the host name is not known (Name or service"),
        (PLAIN, UnicodeError("label too long"), "the host name is not valid"),
        (PLAIN, OSError(113, "No route to host"), "No route to host"),
        (PLAIN, OSError(), "OSError"),
        (PLAIN, ConnectionResetError(104, "reset"), "before CONNECTED; for a TLS port use stomp+ssl://"),
        (PLAIN, None, "before CONNECTED; for a TLS port use stomp+ssl://"),
        (TLS, BrokenPipeError(32, "pipe"), "before CONNECTED; it may require a client certificate"),
    ],
)
def test_why_a_connection_was_not_made(address, error, reason):
    found = unreachable(address, error)
    assert type(found) is BrokerUnreachableError
    assert reason in found.fact
    assert str(address) in found.fact
    assert "brokerUrl" in found.remedy


def test_a_refused_connection_names_the_usual_ports():
    remedy = unreachable(PLAIN, ConnectionRefusedError(111, "Connection refused")).remedy
    for reason in ("errno 111", "61613", "61614", "61616 is for Java clients", "localhost is that container"):
        assert reason in remedy


def test_tls_reasons():
    refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused.verify_message = "self-signed certificate."
    assert str(unreachable(TLS, refused)).startswith(
        "[JMS_TLS] The certificate of stomp+ssl://host:1 is not accepted: self-signed certificate. Give the CA"
    )
    error = unreachable(TLS, ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"))
    assert type(error) is TlsError
    assert "this is a TLS port" in error.remedy


def test_our_own_errors_stay_as_they_are():
    error = MalformedFrameError("It is HTTP.")
    assert unreachable(PLAIN, error) is error


SAID = [
    ("Security Error occurred: User name [a] or password is invalid", JMSSecurityError, "Check user and password"),
    ("AMQ339016 Error creating subscription 1", JMSSecurityError, "may consume"),
    ("AMQ229032 User lim does not have permission='CREATE_ADDRESS' on address x", JMSSecurityError, "Check user"),
    ('Invalid selector "a = 1 OR"', InvalidSelectorError, "Check the selector"),
    ("Selector cannot be empty", InvalidSelectorError, "Check the selector"),
    ("AMQ339001 Destination does not exist x", InvalidDestinationError, "Create the address"),
    (
        "AMQ229014: Did not receive data from x within the 60000ms connection TTL",
        ConnectionLostError,
        "received nothing from this client",
    ),
    ("AMQ339017 Error unsubscribing 1", SubscriptionInUseError, "Stop other readers"),
    ("AMQ339011 Error sending message", BrokerError, "may not send to the destination, or its address is full"),
    ("AMQ339025 failed to ack because no message with id 1", BrokerError, "the broker's log"),
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
