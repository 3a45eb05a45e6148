"""Connections that cannot be established or are lost → ``JMSError``: errors of the system and of OpenSSL."""

import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark_jms.errors import BrokerUnreachableError, ConnectionLostError, JMSError, ReceiptTimeoutError, TlsError
from pyspark_jms.network.address import Address
from pyspark_jms.network.certificates import not_valid_now
from pyspark_jms.network.dialing import ResolveTimeoutError

__all__ = ["SECURITY_REMEDY", "connection_lost", "first_that_answers", "late", "unreachable"]

T = TypeVar("T")

SECURITY_REMEDY = (
    "Check user and password, and that this user may consume from (source) or send to (sink) this destination;"
    " the broker's log names the missing permission."
)
_REMEDY = (
    "Check host and port of brokerUrl (the usual ports are 61613 for STOMP and 5672 for AMQP), the broker's acceptor"
    " and the firewall."
)
_REFUSED_REMEDY = (
    "Check host and port of brokerUrl, and that the broker is running: no program listens there (errno 111). The STOMP"
    " port is usually 61613, with TLS 61614, the AMQP port 5672, with TLS 5671; 61616 is for Java clients, 8161 for the"
    " web console. In a container and on a cluster, localhost is that container or machine itself."
)
_UNTRUSTED = {2, 18, 19, 20, 21}
"""OpenSSL's codes of a certificate whose CA is not known here."""
_NAME_REMEDY = "Connect by a host name in the certificate, or let the broker's certificate name this host."
_TIME_REMEDY = "Renew the broker's certificate or that of its CA, or correct the clock of this machine."
_DEFECT_REMEDY = "Issue the certificate again without this defect: another sslCaFile does not help."
_TIMES = (9, 10)
_CERTIFICATE_REMEDIES = {**dict.fromkeys(_TIMES, _TIME_REMEDY), 62: _NAME_REMEDY, 64: _NAME_REMEDY}
"""By OpenSSL's code: not yet valid, expired, the name or the address of the host is another one."""
_CLIENT_CERTIFICATE = ("CERTIFICATE", "UNKNOWN_CA")
"""Parts of OpenSSL's names of the alerts by which a peer refuses the certificate of a client, or misses it."""
_FIRST_ANSWER = {"stomp": "CONNECTED", "amqp": "it answered"}
_TLS = {"stomp": "stomp+ssl://", "amqp": "amqps://"}


def unreachable(address: Address, error: BaseException | None, ca_file: str | None = None) -> JMSError:
    """Return the error for a connection that could not be established. ``ca_file`` is that of the settings."""
    if isinstance(error, JMSError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(
            f"The certificate of {address} is not accepted: {error.verify_message.rstrip('.')}.",
            _certificate_remedy(error.verify_code, ca_file),
        )
    if isinstance(error, ssl.SSLError):
        return _refused_handshake(address, getattr(error, "reason", None) or "no reason was given")
    remedy = _REFUSED_REMEDY if isinstance(error, ConnectionRefusedError) else _REMEDY
    return BrokerUnreachableError(f"{address} cannot be connected: {_why(address, error)}.", remedy)


def _certificate_remedy(code: int, ca_file: str | None) -> str:
    if code in _TIMES and ca_file is not None and (wrong := "; ".join(not_valid_now(ca_file))):
        # OpenSSL tells neither which certificate of the chain it is nor, before the end of the handshake, the broker's.
        otherwise = "Otherwise, renew the broker's certificate, or correct the clock of this machine."
        return f"In sslCaFile {ca_file}, {wrong}. Replace it there if the broker has that CA. {otherwise}"
    if code not in _UNTRUSTED:
        return _CERTIFICATE_REMEDIES.get(code, _DEFECT_REMEDY)
    if ca_file is None:
        return "Give the CA that signed it as sslCaFile."
    return f"Add the CA that signed it to sslCaFile {ca_file}."


def _refused_handshake(address: Address, reason: str) -> TlsError:
    if "ALERT" in reason and any(part in reason for part in _CLIENT_CERTIFICATE):
        return TlsError(
            f"{address} does not accept the client certificate, or requires one: {reason}.",
            "Give sslCertFile and sslKeyFile, with a certificate that is valid now, of a CA that the broker trusts.",
        )
    return TlsError(
        f"The TLS handshake with {address} failed: {reason}.",
        "Check that this is a TLS port. The broker may need a client certificate (sslCertFile, sslKeyFile).",
    )


def _why(address: Address, error: BaseException | None) -> str:
    if isinstance(error, ResolveTimeoutError):
        return "the name service did not answer within connectTimeout"
    if isinstance(error, TimeoutError):
        hint = f"; for a port without TLS use {address.protocol}://" if address.tls else ""
        return f"no answer within connectTimeout{hint}"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, UnicodeError):
        return "the host name is not valid"
    if isinstance(error, socket.gaierror):
        return f"the host name is not known ({error.strerror})"
    if error is None or isinstance(error, ConnectionResetError | BrokenPipeError):
        asked = "it may require a client certificate, or not accept that of sslCertFile"
        hint = asked if address.tls else f"for a TLS port use {_TLS[address.protocol]}"
        return f"it closed the connection before {_FIRST_ANSWER[address.protocol]}; {hint}"
    return getattr(error, "strerror", None) or type(error).__name__


def connection_lost(address: Address) -> ConnectionLostError:
    return ConnectionLostError(
        f"The connection to {address} is gone.",
        "Messages that were not acknowledged or committed stay on the broker.",
    )


def late(address: Address, what: str, seconds: float) -> ReceiptTimeoutError:
    """Return the error for a broker that did not send ``what``."""
    return ReceiptTimeoutError(
        f"{address} did not send {what} within {seconds:g} s.",
        "The broker is slow or blocked: look at its log, or raise receiptTimeout.",
    )


def first_that_answers(addresses: Sequence[Address], connect: Callable[[Address], T]) -> T:
    """Return the connection to the first address that answers.

    If none answers, the error of the last address is raised. An error that another address cannot cure (a wrong
    password, a certificate) is raised at once.
    """
    failures: list[JMSError] = []
    for address in addresses:
        try:
            return connect(address)
        except JMSError as error:
            failures.append(error)
            if not error.transient:
                raise
    if len(failures) == 1:
        raise failures[0]
    reasons = "; ".join(failure.fact for failure in failures)
    raise BrokerUnreachableError(f"No address of brokerUrl answers: {reasons}", failures[-1].remedy)
