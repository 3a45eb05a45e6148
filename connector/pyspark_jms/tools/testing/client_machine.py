"""The Java virtual machine of a JMS client: that of the embedded broker, or a new one for any other broker.

Broker or address -> JVM and a function that connects.
"""

import shutil
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.network.connection import closed_on
from pyspark_jms.tools.testing.jars import ARTEMIS_PACKAGES, QPID_PACKAGES, resolve
from pyspark_jms.tools.testing.java import JavaMachine
from pyspark_jms.tools.testing.lifecycle import JavaBroker
from pyspark_jms.tools.testing.operations import ExternalBroker

__all__ = ["ClientMachine", "client_machine"]

_NO_ANSWER = "no answer"
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMachine:
    jvm: Any
    gateway: Any
    connect: Callable[[str | None, str | None], Any]
    """User and password, or None for the broker's own -> a ``jakarta.jms.Connection``."""

    alive: Callable[[], bool]
    close: Callable[[], None]
    """End the machine, unless it is the broker's."""


def client_machine(broker: JavaBroker | ExternalBroker | str) -> ClientMachine:
    """Return the machine for a client of ``broker``: a broker of this process, another broker, or its address."""
    if isinstance(broker, str):
        broker = _parse_address(broker)
    if isinstance(broker, ExternalBroker):
        return _start_machine(broker)
    return ClientMachine(
        jvm=broker.jvm,
        gateway=broker.gateway,
        connect=lambda user, password: broker.connection_factory().createConnection(
            user or broker.user, password or broker.password
        ),
        alive=lambda: broker.running,
        close=lambda: None,
    )


# --- a broker of another process ---------------------------------------------------------------------


def _parse_address(url: str) -> ExternalBroker:
    try:
        parts = urlsplit(url)
        named = parts.scheme in {"stomp", "tcp", "amqp"} and parts.hostname and parts.port
    except ValueError:
        named = None
    if not named:
        raise EmbeddedBrokerError(
            f"{url} is not an address that a Java client can connect to.",
            "Use stomp://HOST:PORT of a `pyspark-jms broker`, tcp://HOST:PORT of an Artemis acceptor for CORE, or"
            " amqp://HOST:PORT of any broker. TLS is not supported: open a port without TLS (--plain-port).",
        )
    return ExternalBroker(url)


class _Client(NamedTuple):
    """The Java client of a protocol. ``{address}`` etc. are filled in."""

    packages: tuple[str, ...]
    factory: str
    url: str
    fact: str
    remedy: str


_CORE = _Client(
    ARTEMIS_PACKAGES,
    "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory",
    "tcp://{address}?callTimeout={wait}&initialConnectAttempts=1",
    "Only the embedded broker and `pyspark-jms broker` accept Java clients on their STOMP port; {address} does not:"
    " {reason}.",
    "Use the port of an Artemis acceptor for CORE: JmsClient('tcp://HOST:61616', user, password).",
)
_QPID = _Client(
    QPID_PACKAGES,
    "org.apache.qpid.jms.JmsConnectionFactory",
    "amqp://{address}?amqp.saslMechanisms=PLAIN&jms.connectTimeout={wait}",
    "{address} does not accept an AMQP client: {reason}.",
    "Use a port for AMQP 1.0.",
)


def _start_machine(broker: ExternalBroker) -> ClientMachine:
    _require_listening(broker)
    client = _QPID if broker.url.startswith("amqp") else _CORE
    folder = Path(tempfile.mkdtemp(prefix="jms-client-"))
    machine = JavaMachine(resolve(client.packages), log=folder / "client.log")

    def close() -> None:
        machine.kill()
        shutil.rmtree(folder, ignore_errors=True)

    def connect(user: str | None, password: str | None) -> Any:
        with machine.killed_after(2 * _CONNECT_SECONDS):
            return _create_connection(machine, client, broker, user or broker.user, password or broker.password)

    with closed_on(BaseException, close):
        machine.connect()
    return ClientMachine(jvm=machine.jvm, gateway=machine.gateway, connect=connect, alive=machine.alive, close=close)


def _require_listening(broker: ExternalBroker) -> None:
    """Fail without the second that a machine takes to start if no broker listens on the port."""
    try:
        socket.create_connection((broker.host, broker.port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise EmbeddedBrokerError(
            f"No broker listens at {broker.host}:{broker.port}: {error.strerror or error}.",
            "Start a broker: pyspark-jms broker.",
        ) from None


def _create_connection(machine: JavaMachine, client: _Client, broker: ExternalBroker, user: str, password: str) -> Any:
    address = f"{broker.host}:{broker.port}"
    try:
        url = client.url.format(address=address, wait=int(_CONNECT_SECONDS * 1000))
        return attrgetter(client.factory)(machine.jvm)(url).createConnection(user, password)
    except Py4JJavaError as error:
        reason, name = _said(error)
        if "Security" in name:
            raise EmbeddedBrokerError(
                f"{address} refused user {user}: {reason}.", "Pass user and password to JmsClient."
            ) from None
    except Py4JError:
        reason = _NO_ANSWER
    raise EmbeddedBrokerError(client.fact.format(address=address, reason=reason), client.remedy)


def _said(error: Py4JJavaError) -> tuple[str, str]:
    """Return the message and the class of the error, which the machine has: it may end meanwhile."""
    try:
        return str(error.java_exception.getMessage()), str(error.java_exception.getClass().getSimpleName())
    except Py4JError:
        return _NO_ANSWER, ""
