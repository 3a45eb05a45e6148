"""SASL (AMQP 1.0 part 5.3): which mechanism a login uses, and what it sends.

PLAIN, EXTERNAL and ANONYMOUS need no challenge. SCRAM (RFC 5802, RFC 7677) proves the password without sending it, and
has the server prove that it knows the password too. OAUTHBEARER (RFC 7628) and XOAUTH2 send the password as a bearer
token; their servers have a challenge for a refusal only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark_jms.amqp.wire.types import SaslInit
from pyspark_jms.jms.secret_text import SecretText

__all__ = ["Login", "LoginRefusedError", "SaslExchange"]

_SCRAM = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_LEAST_ITERATIONS, _MOST_ITERATIONS = 4_096, 600_000
"""The server chooses how often the password is hashed. RFC 5802 section 5.1 and RFC 7677 section 4 have the least: with
fewer rounds, whoever reads the proof can search for the password. Artemis and Broker-J use 4,096 by default. The most
takes a second at most; without a limit, a server could stop the connection's thread for hours.
"""
_ITERATIONS = re.compile(r"(?:^|,)i=(\d+)(?=,|$)", re.ASCII)
_MAX_MECHANISMS = 10
"""More of the server's mechanisms are not named in an error."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Login:
    """A user with a password, or a client certificate (``external``), or neither: ANONYMOUS."""

    user: str | None = None
    password: SecretText | None = None
    external: bool = False
    host: str = ""
    port: int = 0

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return what this login can use, the best first: a password is sent only to a server that cannot do without
        it.
        """
        certificate = ("EXTERNAL",) if self.external else ()
        if self.user is None:
            return (*certificate, "ANONYMOUS")
        if not self.password:
            return ("PLAIN", *certificate)
        return (*_SCRAM, "PLAIN", "OAUTHBEARER", "XOAUTH2", *certificate)


class LoginRefusedError(Exception):
    """The login ends here, for the reason that the text has. It never has the password."""


class SaslExchange:
    """One login: ``init`` first, then ``response`` for each challenge, ``finish`` at the outcome that accepts it."""

    def __init__(self, login: Login, hostname: str | None) -> None:
        self._login = login
        self._hostname = hostname
        self._mechanism = ""
        self._scram: Any = None
        self._waits_for_proof = False
        """The server has not yet proven that it knows the password."""
        self._expects_challenge = True

    def init(self, offered: Sequence[str]) -> SaslInit:
        """The first frame to the server. ``LoginRefusedError``: it offers no mechanism that this login can use."""
        mechanism = next((each for each in self._login.mechanisms if each in offered), None)
        if mechanism is None:
            kerberos = " (Kerberos is not supported)" if "GSSAPI" in offered else ""
            theirs, ours = ", ".join(offered[:_MAX_MECHANISMS]) or "none", ", ".join(self._login.mechanisms)
            raise LoginRefusedError(
                f"no SASL mechanism is known to both sides{kerberos}. The server offers {theirs}; this login can use"
                f" {ours}"
            )
        self._mechanism = mechanism
        return SaslInit(mechanism=mechanism, initial_response=self._first(mechanism), hostname=self._hostname)

    @property
    def refusal(self) -> LoginRefusedError:
        """The error for a server that does not accept user and password."""
        return LoginRefusedError(f"the login was refused ({self._mechanism})")

    def _first(self, mechanism: str) -> bytes:
        user, password = self._login.user or "", str(self._login.password or "")
        match mechanism:
            case "PLAIN":  # RFC 4616: no authorization identity
                return b"\0" + user.encode() + b"\0" + password.encode()
            case "OAUTHBEARER":
                place = f"host={self._login.host}\1port={self._login.port}"
                return f"n,a={_escaped(user)},\1{place}\1auth=Bearer {password}\1\1".encode()
            case "XOAUTH2":
                return f"user={user}\1auth=Bearer {password}\1\1".encode()
            case "EXTERNAL" | "ANONYMOUS":
                return b""
            case _:
                return self._scram_first(mechanism, user, password)

    def _scram_first(self, mechanism: str, user: str, password: str) -> bytes:
        from scramp import ScramClient, ScramException

        try:
            self._scram = ScramClient([mechanism], user, password)
            self._waits_for_proof = True
            return str(self._scram.get_client_first()).encode()
        except ScramException:
            raise LoginRefusedError(
                f"user or password has a character that {mechanism} does not allow (RFC 4013)"
            ) from None

    def response(self, challenge: bytes) -> bytes:
        """The answer to a challenge. ``LoginRefusedError``: the server's message does not fit, or names a refusal."""
        if not self._expects_challenge:
            raise LoginRefusedError("the server sent a challenge after its last one")
        if self._scram is None:
            self._expects_challenge = False
            return b"\1"  # RFC 7628 section 3.2.3: the outcome that follows has the refusal
        if challenge.startswith(b"e="):  # RFC 5802 section 7, server-error
            raise self.refusal
        if challenge.startswith(b"v="):
            self._prove(challenge)
            return b""
        self._take(self._first_of_server, challenge)
        return str(self._scram.get_client_final()).encode()

    def _first_of_server(self, message: str) -> None:
        """Refuse a number of iterations before anything is computed with it."""
        for count in _ITERATIONS.findall(message):
            if len(count) > len(str(_MOST_ITERATIONS)) or not _LEAST_ITERATIONS <= int(count) <= _MOST_ITERATIONS:
                raise LoginRefusedError(
                    f"the server wants {count[:20]} SCRAM iterations, and this connector computes {_LEAST_ITERATIONS:,}"
                    f" to {_MOST_ITERATIONS:,} (RFC 5802). Nothing was sent that depends on the password"
                )
        self._scram.set_server_first(message)

    def finish(self, data: bytes | None) -> None:
        """The server accepted the login, with the outcome's ``data``. ``LoginRefusedError``: without its proof."""
        if self._waits_for_proof:
            self._prove(data or b"")

    def _prove(self, message: bytes) -> None:
        self._take(self._scram.set_server_final, message)
        self._waits_for_proof = self._expects_challenge = False

    @staticmethod
    def _take(step: Any, message: bytes) -> None:
        from scramp import ScramException

        try:
            step(message.decode())
        except (ScramException, UnicodeDecodeError):
            raise LoginRefusedError("the server's SCRAM message is not the one that proves the password") from None


def _escaped(name: str) -> str:
    """A name in a GS2 header (RFC 5801 section 4)."""
    return name.replace("=", "=3D").replace(",", "=2C")
