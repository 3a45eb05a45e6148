"""SASL (AMQP 1.0 part 5.3): which mechanism is used, and what is sent for it. The only exchange is init → outcome."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark_jms.amqp.wire.performatives import SaslInit
from pyspark_jms.jms.secret_text import SecretText

__all__ = ["Login", "sasl_init"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Login:
    """A user with a password, or a client certificate (``external``), or neither: ANONYMOUS."""

    user: str | None = None
    password: SecretText | None = None
    external: bool = False

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What this login can use, the best first."""
        if self.user is not None:
            return ("PLAIN",)
        return ("EXTERNAL", "ANONYMOUS") if self.external else ("ANONYMOUS",)


def sasl_init(login: Login, offered: Sequence[str], hostname: str | None) -> SaslInit | None:
    """The first frame to the server. None: the server offers no mechanism that this login can use."""
    mechanism = next((each for each in login.mechanisms if each in offered), None)
    if mechanism is None:
        return None
    response = b""
    if mechanism == "PLAIN":  # RFC 4616: no authorization identity
        response = b"\0" + (login.user or "").encode() + b"\0" + str(login.password or "").encode()
    return SaslInit(mechanism=mechanism, initial_response=response, hostname=hostname)
