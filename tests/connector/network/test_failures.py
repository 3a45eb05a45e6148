import socket
import ssl

import pytest

from pyspark_jms.errors import BrokerUnreachableError, ConnectionLostError, MalformedFrameError, TlsError
from pyspark_jms.network.address import Address
from pyspark_jms.network.dialing import ResolveTimeoutError
from pyspark_jms.network.failures import connection_lost, first_that_answers, unreachable

PLAIN, TLS = Address("host", 1), Address("host", 1, tls=True)
AMQP, AMQPS = Address("host", 1, protocol="amqp"), Address("host", 1, tls=True, protocol="amqp")


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
        (AMQP, ConnectionResetError(104, "reset"), "before it answered; for a TLS port use amqps://"),
        (AMQPS, TimeoutError("timed out"), "for a port without TLS use amqp://"),
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
    for port in ("errno 111", "61613", "61614", "5672", "61616 is for Java clients", "localhost is that container"):
        assert port in remedy


def test_tls_reasons():
    refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused.verify_message = "self-signed certificate."
    cases = [
        (18, None, "Give the CA that signed it as sslCaFile."),
        (18, "ca.pem", "Add the CA that signed it to sslCaFile ca.pem."),
        (10, "ca.pem", "Renew the broker's certificate"),
        (62, "ca.pem", "Connect by a host name in the cert"),
        (26, "ca.pem", "Issue the certificate again"),
    ]
    for refused.verify_code, ca_file, remedy in cases:
        assert str(unreachable(TLS, refused, ca_file)).startswith(
            f"[JMS_TLS] The certificate of stomp+ssl://host:1 is not accepted: self-signed certificate. {remedy}"
        )
    error = unreachable(TLS, ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"))
    assert type(error) is TlsError
    assert "this is a TLS port" in error.remedy


def test_our_own_errors_stay_as_they_are():
    error = MalformedFrameError("It is HTTP.")
    assert unreachable(PLAIN, error) is error


def test_a_lost_connection_names_its_address():
    error = connection_lost(AMQP)
    assert isinstance(error, ConnectionLostError)
    assert "amqp://host:1" in error.fact
    assert error.transient


def test_the_first_address_that_answers_is_used_and_a_lasting_error_ends_the_search():
    down, wrong = ConnectionLostError("no answer", "wait"), TlsError("another name", "correct it")
    answers = {Address("a", 1): down, Address("b", 1): None, Address("c", 1): wrong}

    def connect(address):
        if answers[address] is not None:
            raise answers[address]
        return address.host

    a, b, c = answers
    assert first_that_answers([a, b, c], connect) == "b"
    with pytest.raises(TlsError, match="another name"):
        first_that_answers([a, c, b], connect)
    with pytest.raises(ConnectionLostError, match="no answer"):
        first_that_answers([a], connect)
    with pytest.raises(BrokerUnreachableError, match="No address of brokerUrl answers: no answer; no answer"):
        first_that_answers([a, a], connect)
