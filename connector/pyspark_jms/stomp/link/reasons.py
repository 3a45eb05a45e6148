"""Errors of the operating system, of OpenSSL and of the broker → ``JMSError``."""

import re
import socket
import ssl

from pyspark_jms.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    SubscriptionInUseError,
    TlsError,
)
from pyspark_jms.network.address import Address
from pyspark_jms.network.dialing import ResolveTimeoutError
from pyspark_jms.stomp.dialects import DIALECTS, Dialect

__all__ = ["error_of", "unreachable"]

_MAX_CHARACTERS = 300


def unreachable(address: Address, error: BaseException | None) -> JMSError:
    """The error for a connection that could not be established."""
    if isinstance(error, JMSError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(
            f"The certificate of {address} is not accepted: {error.verify_message.rstrip('.')}.",
            "Give the CA that signed it as sslCaFile, or connect by the host name in the certificate.",
        )
    if isinstance(error, ssl.SSLError):
        return TlsError(
            f"The TLS handshake with {address} failed: {getattr(error, 'reason', None) or 'no reason was given'}.",
            "Check that this is a TLS port. The broker may need a client certificate (sslCertFile, sslKeyFile).",
        )
    remedy = _REFUSED_REMEDY if isinstance(error, ConnectionRefusedError) else _REMEDY
    return BrokerUnreachableError(f"{address} cannot be connected: {_why(address, error)}.", remedy)


_REMEDY = "Check host and port of brokerUrl (61613 is the usual STOMP port), the broker's acceptor and the firewall."
_REFUSED_REMEDY = (
    "Check host and port of brokerUrl, and that the broker is running: no program listens there (errno 111). The STOMP"
    " port is usually 61613, with TLS 61614; 61616 is for Java clients, 5672 for AMQP, 8161 for the web console. In a"
    " container and on a cluster, localhost is that container or machine itself."
)


def _why(address: Address, error: BaseException | None) -> str:
    if isinstance(error, ResolveTimeoutError):
        return "the name service did not answer within connectTimeout"
    if isinstance(error, TimeoutError):
        return "no answer within connectTimeout" + ("; for a port without TLS use stomp://" if address.tls else "")
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, UnicodeError):
        return "the host name is not valid"
    if isinstance(error, socket.gaierror):
        return f"the host name is not known ({error.strerror})"
    if error is None or isinstance(error, ConnectionResetError | BrokenPipeError):
        hint = "it may require a client certificate" if address.tls else "for a TLS port use stomp+ssl://"
        return f"it closed the connection before CONNECTED; {hint}"
    return getattr(error, "strerror", None) or type(error).__name__


def error_of(address: Address, text: str, dialect: Dialect | None) -> JMSError:
    """The error for the text of an ERROR frame. Before CONNECTED (``dialect`` None) the texts of all dialects count."""
    known = (dialect,) if dialect else tuple(DIALECTS.values())
    for each in known:
        text = re.sub(each.message_in_error, "", text, flags=re.DOTALL) if each.message_in_error else text
    reason = text.strip()[:_MAX_CHARACTERS] or "nothing"
    for error, texts, remedy in (
        (
            ConnectionLostError,
            [t for d in known for t in d.idle_errors],
            "The broker received nothing from this client for too long.",
        ),
        (JMSSecurityError, [t for d in known for t in d.security_errors], _SECURITY_REMEDY),
        (SubscriptionInUseError, [t for d in known for t in d.in_use_errors], _IN_USE_REMEDY),
        (BrokerError, [t for d in known for t in d.send_errors], _SEND_REMEDY),
        (InvalidSelectorError, [t for d in known for t in d.selector_errors], "Check the selector."),
        (InvalidDestinationError, [t for d in known for t in d.destination_errors], _DESTINATION_REMEDY),
    ):
        if any(t in reason for t in texts):
            verb = "ended the session" if error is ConnectionLostError else "refused"
            return error(f"{address} {verb}: {reason}.", remedy)
    return BrokerError(f"{address} answered with an ERROR: {reason}.", "See the broker's log for the reason.")


_SECURITY_REMEDY = (
    "Check user and password, and that this user may consume from (source) or send to (sink) this destination;"
    " the broker's log names the missing permission."
)
_IN_USE_REMEDY = (
    "Stop other readers with this clientId and subscriptionName, or give another clientId. The broker closes a dead"
    " connection when heart-beats are missing."
)
_SEND_REMEDY = "This user may not send to the destination, or its address is full: see the broker's log."
_DESTINATION_REMEDY = "Create the address and queue on the broker, or let it create them (auto-create)."
