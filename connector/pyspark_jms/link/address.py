"""``brokerUrl`` text → addresses. Opens nothing."""

import contextlib
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

__all__ = ["Address", "parse_broker_url"]

_SCHEMES = {"stomp": False, "stomp+ssl": True}
_DEFAULT_PORTS = {False: 61613, True: 61614}


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"stomp{'+ssl' if self.tls else ''}://{host}:{self.port}"


def parse_broker_url(text: str) -> tuple[Address, ...]:
    """``stomp://host:61613,stomp+ssl://other:61614`` → the failover list, in order.

    A port left out is 61613, with TLS 61614. Anything unclear is a ``ValueError`` that says what and never
    repeats a password that stands in the text.
    """
    return tuple(_address(part.strip()) for part in text.split(","))


def _address(text: str) -> Address:
    scheme, separator, _ = text.partition("://")
    if not separator or scheme.lower() not in _SCHEMES:
        raise ValueError("an address reads stomp://HOST:PORT or stomp+ssl://HOST:PORT")
    if "@" in text:
        raise ValueError("user and password do not belong in the URL: use the options user and password")
    try:
        url = urlsplit(text)
    except ValueError:  # its text repeats the URL
        raise ValueError("a host is a name, an IPv4 address, or an IPv6 address in brackets") from None
    if url.path.strip("/") or url.query or url.fragment:
        raise ValueError("an address has a host and a port, nothing behind them")
    if not url.hostname:
        raise ValueError("an address needs a host")
    tls = _SCHEMES[scheme.lower()]
    port = _port(url)
    return Address(url.hostname, _DEFAULT_PORTS[tls] if port is None else port, tls)


def _port(url: SplitResult) -> int | None:
    with contextlib.suppress(ValueError):
        if url.port != 0:
            return url.port
    raise ValueError("a port is a number from 1 to 65535")
