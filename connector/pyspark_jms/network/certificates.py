"""Certificate files → an SSL context. Each cause for which a file cannot be used has its own error. No socket."""

import contextlib
import re
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark_jms.errors import TlsError

__all__ = ["not_valid_now", "present", "trusting"]

_IS_PEM = "The file must be PEM, and readable in the process that connects."
_FORMS = (
    # The first bytes of a file that is not PEM, what it is, and how OpenSSL or keytool converts it.
    (b"\xfe\xed\xfe\xed", "a Java keystore", "keytool -importkeystore -deststoretype pkcs12, and openssl pkcs12"),
    (b"0", "DER or PKCS#12, not PEM", "openssl x509 -inform der, openssl pkey -inform der or openssl pkcs12"),
    (b"-----BEGIN OPENSSH", "a key of OpenSSH, which OpenSSL does not read", "ssh-keygen -p -m PKCS8 on a copy"),
)
_BEGIN = re.compile(rb"^(\xef\xbb\xbf)?-----BEGIN [A-Z0-9 ]+-----\s*$", re.MULTILINE)
_OTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")
_ENCRYPTED = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.MULTILINE)
_TOO_WEAK = ("TOO_SMALL", "TOO_WEAK")
_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python does not name."""


def trusting(ca_file: str | None) -> ssl.SSLContext:
    """Return a context that verifies the peer by this file, or by the CAs of the system. ``TlsError``: the file cannot
    be used, or no certificate in it is valid now.
    """
    if ca_file is not None:
        _require(_pem("sslCaFile", ca_file), "CERTIFICATE", f"sslCaFile {ca_file} has no certificate")
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise _unusable(f"sslCaFile {ca_file}", error) from None
    times = [] if ca_file is None else [_times(of) for of in context.get_ca_certs()]
    if times and all(_time_problem(*each) is not None for each in times):
        _require_valid(f"sslCaFile {ca_file}", *max(times, key=lambda each: each[1]))
    return context


def not_valid_now(ca_file: str) -> list[str]:
    """Return a sentence for each certificate of a CA in this file that is not valid now, by the CA's name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(OSError):  # another file by now
        context.load_verify_locations(ca_file)
    found = [(of, _time_problem(*_times(of))) for of in context.get_ca_certs()]
    return [f"the certificate of {_name(of)} {problem}" for of, problem in found if problem is not None]


def _name(certificate: Mapping[str, Any]) -> str:
    return ", ".join(value for pairs in certificate["subject"] for _, value in pairs)


def present(context: ssl.SSLContext, cert_file: str, key_file: str | None, password: Callable[[], str] | None) -> None:
    """Let the context present this certificate. ``TlsError``: one of the files cannot be used, or the certificate is
    not valid now.
    """
    certificate = _pem("sslCertFile", cert_file)
    _require(certificate, "CERTIFICATE", f"sslCertFile {cert_file} has no certificate")
    try:
        # The error of load_cert_chain does not tell which of the two files is broken.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cert_file)
    except ssl.SSLError as error:
        raise _unusable(f"sslCertFile {cert_file}", error) from None
    key, named = certificate, f"sslCertFile {cert_file}"
    if key_file is not None:
        key, named = _pem("sslKeyFile", key_file), f"sslKeyFile {key_file}"
    remedy = _IS_PEM if key_file else "The private key is the file sslKeyFile."
    _require(key, "PRIVATE KEY", f"{named} has no private key", remedy)
    is_encrypted = _ENCRYPTED.search(key) is not None
    if is_encrypted and password is None:
        # Without this, OpenSSL prompts on the terminal, and a job hangs.
        raise TlsError(
            f"The private key in {named} is encrypted, and there is no sslKeyPassword.", "Give the password."
        )
    try:
        context.load_cert_chain(cert_file, key_file, password)
    except (ssl.SSLError, ValueError) as error:
        if getattr(error, "reason", None) in _OTHER_KEY:
            fact = f"The private key in {named} is not the key of the first certificate in sslCertFile {cert_file}."
            raise TlsError(fact, "Give a certificate and its key; certificates of CAs come after it.") from None
        if is_encrypted:
            remedy = "Check the password. OpenSSL 3 does not support old ciphers as DES: encrypt the key again."
            raise TlsError(f"sslKeyPassword does not open the private key in {named}.", remedy) from None
        raise _unusable(named, error) from None
    _require_valid(f"sslCertFile {cert_file}", *_validity(cert_file, key_file, password))


def _pem(option: str, file: str) -> bytes:
    try:
        data = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise TlsError(f"{option} {file} cannot be read: {getattr(error, 'strerror', error)}.", _IS_PEM) from None
    if not data.strip():
        raise TlsError(f"{option} {file} is empty.", _IS_PEM)
    for start, form, command in _FORMS:
        if data.startswith(start):
            raise TlsError(f"{option} {file} is {form}.", f"Convert it to PEM: {command}.")
    if _BEGIN.search(data):
        return data
    raise TlsError(f"{option} {file} is not a PEM file.", _IS_PEM)


def _require(data: bytes, label: str, fact: str, remedy: str = _IS_PEM) -> None:
    if f"{label}-----".encode() not in data:
        raise TlsError(f"{fact}.", remedy)


def _unusable(named: str, error: Exception) -> TlsError:
    # Without a reason of OpenSSL, Python gives the line of its own source.
    reason = str(getattr(error, "reason", None) or "OpenSSL cannot decode its content")
    is_weak = any(part in reason for part in _TOO_WEAK)
    remedy = "OpenSSL here refuses such a key: issue the certificate again, with a longer one." if is_weak else _IS_PEM
    return TlsError(f"{named} cannot be used: {reason}.", remedy)


def _require_valid(named: str, begin: float, end: float) -> None:
    """Compare a certificate's times with the clock: a broker only ends the connection, many without a reason."""
    problem = _time_problem(begin, end)
    if problem is not None:
        raise TlsError(f"The certificate in {named} {problem}.", "Renew it, or correct the clock of this machine.")


def _time_problem(begin: float, end: float) -> str | None:
    now = time.time()
    if begin <= now < end:
        return None
    return f"is valid from {_day(begin)}" if now < begin else f"has expired: it was valid until {_day(end)}"


def _validity(cert_file: str, key_file: str | None, password: Callable[[], str] | None) -> tuple[float, float]:
    """Return the times between which the certificate is valid. Endless if OpenSSL does not tell them.

    OpenSSL decodes only the certificate of a peer, so the certificate is presented to itself, in memory.
    """
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        for context in (client, server):
            context.load_cert_chain(cert_file, key_file, password)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE  # its peer is the same certificate
        server.verify_mode = ssl.CERT_REQUIRED
        server.load_verify_locations(cert_file)
        server.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
        return _times(_shaken(client, server))
    except (ssl.SSLError, KeyError, ValueError):
        return 0.0, float("inf")


def _times(certificate: Mapping[str, object]) -> tuple[float, float]:
    begin, end = (float(ssl.cert_time_to_seconds(str(certificate[key]))) for key in ("notBefore", "notAfter"))
    return begin, end


def _shaken(client: ssl.SSLContext, server: ssl.SSLContext) -> dict[str, object]:
    """Return the certificate that the client has presented."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)]
    for _ in range(4):  # TLS 1.3 takes three flights, TLS 1.2 four
        for side in sides:
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return dict(sides[1].getpeercert() or {})


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
