"""Foreign errors → ours, at the border: what the operating system, OpenSSL and the broker say."""

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

__all__ = ["broker_said", "unreachable"]

_MESSAGE_DUMP = re.compile(r"\s*\b(?:Core|Large|Server)\w*Message(?:Impl)?\[.*", re.DOTALL)
"""Artemis repeats a refused message, properties included, in the text of its ERROR: never shown."""

_LONGEST_TEXT = 300


def unreachable(address: Address, error: BaseException | None) -> JMSError:
    """Why a connection could not be made."""
    if isinstance(error, JMSError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(
            f"The certificate of {address} is not accepted: {error.verify_message.rstrip('.')}.",
            "Give the CA that signed it as sslCaFile, or connect by the name that stands in it.",
        )
    if isinstance(error, ssl.SSLError):
        return TlsError(
            f"No TLS session with {address}: {getattr(error, 'reason', None) or 'the handshake failed'}.",
            "Is this a TLS port, and does the broker want a client certificate (sslCertFile, sslKeyFile)?",
        )
    remedy = _REFUSED_REMEDY if isinstance(error, ConnectionRefusedError) else _REMEDY
    return BrokerUnreachableError(f"{address} cannot be connected: {_why(address, error)}.", remedy)


_REMEDY = "Check host and port of brokerUrl (61613 is the usual STOMP port), the broker's acceptor and the firewall."
_REFUSED_REMEDY = (
    "Check host and port of brokerUrl: no program listens there (errno 111). Is the broker running? Its STOMP port is"
    " usually 61613, with TLS 61614; 61616 is for Java clients, 5672 for AMQP, 8161 for the web console. In a container"
    " and on a cluster, localhost is that container or machine itself."
)


def _why(address: Address, error: BaseException | None) -> str:
    if isinstance(error, ResolveTimeoutError):
        return "the name service did not answer within connectTimeout"
    if isinstance(error, TimeoutError):
        return "no answer within connectTimeout" + ("; a port without TLS wants stomp://" if address.tls else "")
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, UnicodeError):
        return "the host name is not valid"
    if isinstance(error, socket.gaierror):
        return f"the host name is not known ({error.strerror})"
    if error is None or isinstance(error, ConnectionResetError | BrokenPipeError):
        hint = "it may want a client certificate" if address.tls else "a TLS port wants stomp+ssl://"
        return f"it closed the connection before CONNECTED; {hint}"
    return getattr(error, "strerror", None) or type(error).__name__


def broker_said(address: Address, text: str, dialect: Dialect | None) -> JMSError:
    """The error for the text of an ERROR frame. Knows the texts of the dialect, or of all before CONNECTED."""
    said = _MESSAGE_DUMP.sub("", text).strip()[:_LONGEST_TEXT] or "nothing"
    known = (dialect,) if dialect else tuple(DIALECTS.values())
    for error, texts, remedy in (
        (ConnectionLostError, [t for d in known for t in d.idle_errors], "It heard nothing from us for too long."),
        (JMSSecurityError, [t for d in known for t in d.security_errors], _SECURITY_REMEDY),
        (SubscriptionInUseError, [t for d in known for t in d.in_use_errors], _IN_USE_REMEDY),
        (BrokerError, [t for d in known for t in d.send_errors], _SEND_REMEDY),
        (InvalidSelectorError, [t for d in known for t in d.selector_errors], "Check the selector."),
        (InvalidDestinationError, [t for d in known for t in d.destination_errors], _DESTINATION_REMEDY),
    ):
        if any(t in said for t in texts):
            verb = "ended the session" if error is ConnectionLostError else "refused"
            return error(f"{address} {verb}: {said}.", remedy)
    return BrokerError(f"{address} answered with an ERROR: {said}.", "The broker's log has the reason.")


_SECURITY_REMEDY = (
    "Check user and password, and that this user may consume from (source) or send to (sink) this destination;"
    " the broker's log names what is missing."
)
_IN_USE_REMEDY = (
    "Stop what else reads with this clientId and subscriptionName, or give another clientId; a connection that died"
    " is noticed when its heart-beats are missed."
)
_SEND_REMEDY = "This user may not send to the destination, or its address is full: the broker's log says which."
_DESTINATION_REMEDY = "Create the address and queue on the broker, or let it create them (auto-create)."
