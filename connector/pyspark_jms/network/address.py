"""``brokerUrl`` text → addresses. Does not connect."""

import contextlib
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import SplitResult, quote, unquote, urlsplit

__all__ = ["DEFAULT_VIRTUAL_HOST", "Address", "Protocol", "parse_broker_url"]

Protocol: TypeAlias = Literal["stomp", "amqp"]

_SCHEMES: dict[str, tuple[Protocol, bool, int]] = {
    "stomp": ("stomp", False, 61613),
    "stomp+ssl": ("stomp", True, 61614),
    "amqp": ("amqp", False, 5672),
    "amqps": ("amqp", True, 5671),
}
"""Scheme → protocol, whether it uses TLS, default port."""

_SCHEME_OF = {(protocol, tls): scheme for scheme, (protocol, tls, _) in _SCHEMES.items()}
_FORM = "an address reads stomp://HOST:PORT or amqp://HOST:PORT, with TLS stomp+ssl://HOST:PORT or amqps://HOST:PORT"
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_JAVA = "the protocol of the broker's Java clients (CORE or OpenWire, port 61616)"
DEFAULT_VIRTUAL_HOST = "/"
"""Over STOMP the name of RabbitMQ's first virtual host; over AMQP it stands for the host of the address."""

_OTHERS = {
    "tcp": _JAVA,
    "nio": _JAVA,
    "auto": _JAVA,
    "ssl": f"{_JAVA} over TLS",
    "nio+ssl": f"{_JAVA} over TLS",
    "auto+ssl": f"{_JAVA} over TLS",
    "vm": "for Java clients in the broker's own virtual machine",
    "amqp+ssl": "not a scheme here; AMQP over TLS is amqps://",
    "mqtt": "MQTT (port 1883)",
    "http": "the web console (port 8161) or another HTTP service",
    "https": "the web console or another HTTP service",
    "ws": "STOMP over WebSocket",
    "wss": "STOMP over WebSocket",
    "stomps": "not a scheme here; STOMP over TLS is stomp+ssl://",
    "stomp+nio": "not a scheme here; it belongs into the broker's own configuration",
    "stomp+nio+ssl": "not a scheme here; it belongs into the broker's own configuration",
}
"""Schemes of other protocols, which users copy from the configuration of a Java client."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool = False
    protocol: Protocol = "stomp"
    virtual_host: str = DEFAULT_VIRTUAL_HOST

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        path = "" if self.virtual_host == DEFAULT_VIRTUAL_HOST else "/" + quote(self.virtual_host, safe="")
        return f"{_SCHEME_OF[self.protocol, self.tls]}://{host}:{self.port}{path}"


def parse_broker_url(text: str) -> tuple[Address, ...]:
    """Parse ``stomp://host:61613,stomp://other:61613``: the failover list, in order.

    The default ports are 61613 for STOMP and 5672 for AMQP, with TLS 61614 and 5671. A path is the virtual host, with
    percent-encoding as in RabbitMQ's URIs. Raises a ``ValueError`` that describes the problem and never repeats a
    password from the text.
    """
    if text.lstrip().lower().startswith(("failover:", "(", "fanout:", "discovery:")):
        raise ValueError(
            f"{_FORM}; failover:(…) is for Java clients, and several addresses of one broker are written"
            " stomp://HOST1:PORT,stomp://HOST2:PORT"
        )
    addresses = tuple(_address(part.strip()) for part in text.split(","))
    if len({address.protocol for address in addresses}) > 1:
        raise ValueError("addresses of one protocol: all of them for STOMP, or all of them for AMQP")
    if len({address.tls for address in addresses}) > 1:
        raise ValueError(
            "addresses that all use TLS, or none: with both, the password and the messages would be sent unencrypted"
            " whenever no address with TLS answers"
        )
    if len({address.virtual_host for address in addresses}) > 1:
        raise ValueError(
            "addresses with one virtual host: write the same path after each of them, as"
            " amqp://HOST1:PORT/orders,amqp://HOST2:PORT/orders"
        )
    return addresses


def _address(text: str) -> Address:
    scheme, separator, _ = text.partition("://")
    if not separator or scheme.lower() not in _SCHEMES:
        raise ValueError(_other_scheme(scheme.lower() if separator else ""))
    if "@" in text:
        raise ValueError("user and password do not belong in the URL: use the options user and password")
    try:
        url = urlsplit(text)
    except ValueError:  # the error's text repeats the URL
        raise ValueError("a host is a name, an IPv4 address, or an IPv6 address in brackets") from None
    if url.query or url.fragment:
        raise ValueError("an address has a host, a port and the path of a virtual host, and nothing after them")
    if not url.hostname:
        raise ValueError("an address needs a host")
    protocol, tls, default_port = _SCHEMES[scheme.lower()]
    port = _port(url)
    return Address(url.hostname, default_port if port is None else port, tls, protocol, _virtual_host(url.path))


def _virtual_host(path: str) -> str:
    """The path has one segment (https://www.rabbitmq.com/docs/uri-spec). As no path, ``/`` is the default here."""
    name = path.removeprefix("/")
    if "/" in name:
        raise ValueError(
            "the path of an address is the name of a virtual host, and a slash in the name is written %2F; a queue is"
            " named by option queue"
        )
    try:
        decoded = unquote(name, errors="strict")
    except UnicodeDecodeError:
        decoded = "\0"
    if _BROKEN_ESCAPE.search(name) or not decoded.isprintable():
        raise ValueError("the name of a virtual host has printable characters; percent-encoding is of UTF-8, as %C3%BC")
    return decoded or DEFAULT_VIRTUAL_HOST


def _other_scheme(scheme: str) -> str:
    if scheme not in _OTHERS:
        return _FORM
    return (
        f"{_FORM}, the port of the broker's STOMP acceptor (usually 61613, with TLS 61614) or AMQP acceptor (usually"
        f" 5672, with TLS 5671); {scheme}:// is {_OTHERS[scheme]}"
    )


def _port(url: SplitResult) -> int | None:
    with contextlib.suppress(ValueError):
        if url.port != 0:
            return url.port
    raise ValueError("a port is a number from 1 to 65535")
