"""The settings of a connection, checked and frozen. No ``repr`` shows a secret."""

import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pyspark_jms.errors import JMSSecurityError
from pyspark_jms.jms.secret_text import SecretText
from pyspark_jms.network.address import Address, Protocol
from pyspark_jms.network.certificates import present, trusting

__all__ = ["ConnectionSettings", "Password", "TlsSettings"]

_CONNECTING_PROCESS = (
    "the process that connects: the driver for a source, every executor for a sink, and for an exactly-once sink the"
    " driver, too"
)

_MAX_REPLY_BYTES = 64 << 20
"""A page of queues takes half a megabyte, a list of messages some times that."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Password:
    """The password itself, or a file with it. The file is read for each connection, in the process that connects, so
    that a new password is used.
    """

    value: str | None = None
    file: str | None = None

    def reveal(self) -> SecretText:
        if self.file is None:
            assert self.value is not None
            return SecretText(self.value)
        try:
            return SecretText(Path(self.file).read_text(encoding="utf-8").rstrip("\r\n"))
        except (OSError, UnicodeDecodeError) as error:
            raise JMSSecurityError(
                f"passwordFile {self.file} cannot be read: {_reason(error)}.",
                f"The file must be readable in {_CONNECTING_PROCESS}.",
            ) from None

    def __repr__(self) -> str:
        return "Password(*********(redacted))"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: Password | None = None
    verify_hostname: bool = True

    def context(self) -> ssl.SSLContext:
        """Verify the certificate always, and the host name unless ``verify_hostname`` is off. TLS 1.2 or newer."""
        context = trusting(self.ca_file)
        context.check_hostname = self.verify_hostname
        if self.cert_file:
            password = None if self.key_password is None else self.key_password.reveal
            present(context, self.cert_file, self.key_file, password)
        return context


@dataclass(slots=True)
class ManagementState:
    """Of one run, so that it waits once for a broker whose management does not answer. A new run asks again."""

    answers: bool | None = None
    """False if the first question had no answer or was refused, None if nothing was asked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Times are in seconds."""

    addresses: tuple[Address, ...]
    user: str | None = None
    password: Password | None = None
    tls: TlsSettings = TlsSettings()
    broker: str = "auto"
    client_id: str | None = None
    connect_timeout: float = 10.0
    receipt_timeout: float = 30.0
    heartbeat: float = 10.0
    reconnect_timeout: float = 600.0
    max_message_bytes: int = 100 << 20
    on_too_large: Literal["fail", "deadLetter", "drop"] = "fail"
    """What a source does with a message above ``max_message_bytes``."""

    management: ManagementState = field(default_factory=ManagementState, compare=False, repr=False)
    """Settings that are made of these share it."""

    @property
    def protocol(self) -> Protocol:
        """The protocol, which all addresses have in common."""
        return self.addresses[0].protocol

    def impatient(self, seconds: float) -> "ConnectionSettings":
        """Return settings for a connection that a query can do without: it, and each answer, may take so long."""
        return replace(
            self,
            connect_timeout=min(seconds, self.connect_timeout),
            receipt_timeout=min(seconds, self.receipt_timeout),
        )

    def of_management(self) -> "ConnectionSettings":
        """Return settings for a connection to the broker's management: the query's connection has the client id, and
        its limits are for messages, not for replies.
        """
        return replace(self, client_id=None, max_message_bytes=_MAX_REPLY_BYTES, on_too_large="fail")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error) or type(error).__name__
