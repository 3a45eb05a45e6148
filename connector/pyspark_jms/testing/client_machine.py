"""The Java virtual machine of a JMS client: the embedded broker's own, or a new one beside a broker elsewhere.

Broker or address in, a connection factory and the way to its JVM out. Knows no message.
"""

import shutil
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing.external import ExternalBroker
from pyspark_jms.testing.jars import broker_classpath
from pyspark_jms.testing.java import JavaMachine

__all__ = ["ClientMachine", "JvmBroker", "client_machine"]

_CONNECT_SECONDS = 10.0


class JvmBroker(Protocol):
    """A broker whose virtual machine this process started: ``EmbeddedArtemis``, ``EmbeddedClassic``."""

    user: str
    password: str

    @property
    def jvm(self) -> Any: ...

    @property
    def gateway(self) -> Any: ...

    @property
    def running(self) -> bool: ...

    def connection_factory(self) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMachine:
    jvm: Any
    gateway: Any
    connect: Callable[[str | None, str | None], Any]
    """User and password, None for the broker's own, to a started ``jakarta.jms.Connection``."""

    alive: Callable[[], bool]
    close: Callable[[], None]
    """End the machine, if it is not the broker's."""


def client_machine(broker: "JvmBroker | ExternalBroker | str") -> ClientMachine:
    """``broker``: one that runs in this process, one that does not, or its address."""
    if isinstance(broker, str):
        broker = _external(broker)
    if isinstance(broker, ExternalBroker):
        return _own_machine(broker)
    return _machine_of(broker)


def _machine_of(broker: JvmBroker) -> ClientMachine:
    def connect(user: str | None, password: str | None) -> Any:
        return broker.connection_factory().createConnection(user or broker.user, password or broker.password)

    return ClientMachine(
        jvm=broker.jvm,
        gateway=broker.gateway,
        connect=connect,
        alive=lambda: broker.running,
        close=lambda: None,
    )


# --- a broker of another process ---------------------------------------------------------------------


def _external(url: str) -> ExternalBroker:
    try:
        parts = urlsplit(url)
        named = parts.scheme in {"stomp", "tcp"} and parts.hostname and parts.port
    except ValueError:
        named = None
    if not named:
        raise EmbeddedBrokerError(
            f"{url} is no address that a Java client can connect to.",
            "Write stomp://HOST:PORT of a `pyspark-jms broker`, or tcp://HOST:PORT of an Artemis acceptor for CORE."
            " TLS is not supported here: open a port without it (--plain-port).",
        )
    return ExternalBroker(url)


def _own_machine(broker: ExternalBroker) -> ClientMachine:
    _require_listening(broker)
    folder = Path(tempfile.mkdtemp(prefix="jms-client-"))
    machine = JavaMachine(broker_classpath(), log=folder / "client.log")

    def close() -> None:
        machine.kill()
        shutil.rmtree(folder, ignore_errors=True)

    def connect(user: str | None, password: str | None) -> Any:
        with machine.killed_after(2 * _CONNECT_SECONDS):
            return _connected(machine, broker, user or broker.user, password or broker.password)

    try:
        machine.connect()
    except BaseException:
        close()
        raise
    return ClientMachine(jvm=machine.jvm, gateway=machine.gateway, connect=connect, alive=machine.alive, close=close)


def _require_listening(broker: ExternalBroker) -> None:
    """A machine takes a second to start: not for a port where nobody is."""
    try:
        socket.create_connection((broker.host, broker.port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise EmbeddedBrokerError(
            f"No broker listens at {broker.host}:{broker.port}: {error.strerror or error}.",
            "Start one: pyspark-jms broker.",
        ) from None


def _connected(machine: JavaMachine, broker: ExternalBroker, user: str, password: str) -> Any:
    url = f"tcp://{broker.host}:{broker.port}?callTimeout={int(_CONNECT_SECONDS * 1000)}&initialConnectAttempts=1"
    try:
        factory = machine.jvm.org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url)
        return factory.createConnection(user, password)
    except Py4JJavaError as error:
        # Its text is to be had only while the machine lives.
        reason = str(error.java_exception.getMessage())
        if "Security" in str(error.java_exception.getClass().getSimpleName()):
            raise EmbeddedBrokerError(
                f"{broker.host}:{broker.port} refused user {user}: {reason}.", "Give JmsClient user and password."
            ) from None
    except Py4JError:
        reason = "no answer"
    raise EmbeddedBrokerError(
        "Only the embedded broker and `pyspark-jms broker` let a Java client in at their STOMP port;"
        f" {broker.host}:{broker.port} does not: {reason}.",
        "Give the port of an Artemis acceptor for CORE: JmsClient('tcp://HOST:61616', user, password).",
    ) from None
