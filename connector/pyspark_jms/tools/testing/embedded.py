"""An Apache Artemis broker in its own Java virtual machine. Needs Python and Java, and a package registry once."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.config import Acceptor, AddressSettings, Tls, User, broker_xml
from pyspark_jms.tools.testing.jars import ARTEMIS_PACKAGES
from pyspark_jms.tools.testing.java import tail
from pyspark_jms.tools.testing.lifecycle import JavaBroker
from pyspark_jms.tools.testing.operations import Broker, ExternalBroker
from pyspark_jms.tools.testing.ports import free_port

__all__ = ["EmbeddedArtemis", "broker"]

# Measured: with the serial collector and only the first compiler, the broker starts fastest and takes 140 MB. Under
# load that broker pauses for seconds, so a benchmark uses the options of a server.
_DEMO_MACHINE = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_BENCHMARK_MACHINE = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=100")


class EmbeddedArtemis(JavaBroker, Broker):
    """An Apache Artemis for a demo, a notebook or a test.

        with EmbeddedArtemis() as broker:
            spark.readStream.format("jms").options(
                brokerUrl=broker.url, user=broker.user, password=broker.password, queue="orders"
            )

    ``directory`` stores the data; default: a temporary folder, removed at the end. ``port`` 0 selects a free port,
    which stays the same after restarts. With ``tls`` that port accepts TLS, and ``plain_port`` opens a second port
    without TLS. ``port`` accepts AMQP clients too; ``amqp_port`` opens another port for them. ``benchmark`` uses the
    garbage collector and compiler of a server, and needs a ``heap`` of a gigabyte or more. ``acceptor_options`` are
    options of Artemis (``{"connectionTtl": "5000"}``).
    """

    _packages = ARTEMIS_PACKAGES

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        port: int = 0,
        user: str = "artemis",
        password: str = "artemis",
        *,
        host: str = "127.0.0.1",
        tls: Tls | None = None,
        plain_port: int | None = None,
        amqp_port: int | None = None,
        users: Sequence[User] = (),
        max_delivery_attempts: int = 10,
        address_settings: Sequence[AddressSettings] = (),
        acceptor_options: Mapping[str, str] | None = None,
        heap: str = "512m",
        benchmark: bool = False,
        start_timeout: float = 60,
    ) -> None:
        super().__init__(directory, port, user, password, host=host, start_timeout=start_timeout)
        if tls is not None and tls.client_ca is not None and plain_port is None:
            plain_port = 0  # the readiness probe has no client certificate
        self.plain_port = free_port(host) if plain_port == 0 else plain_port
        self.amqp_port = (free_port(host) if amqp_port == 0 else amqp_port) or self.port
        self._tls = tls
        self._users = (User(user, password), *users)
        self._address_settings = (_general_settings(max_delivery_attempts), *address_settings)
        self._acceptor_options = dict(acceptor_options or {})
        self._java_options = (f"-Xmx{heap}", *(_BENCHMARK_MACHINE if benchmark else _DEMO_MACHINE))

    @property
    def url(self) -> str:
        return f"{'stomp+ssl' if self._tls else 'stomp'}://{self.host}:{self.port}"

    @property
    def amqp_url(self) -> str:
        """The URL for AMQP 1.0 clients. Without an ``amqp_port`` it has the port of ``url``: Artemis detects the
        protocol of a client on each port.
        """
        return f"{'amqps' if self._tls else 'amqp'}://{self.host}:{self.amqp_port}"

    @property
    def plain_url(self) -> str | None:
        """The URL without TLS, or None if there is no port without TLS."""
        if self._tls is None:
            return self.url
        return f"stomp://{self.host}:{self.plain_port}" if self.plain_port else None

    def connection_factory(self) -> Any:
        return self.jvm.org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory("vm://0")

    # --- starting ----------------------------------------------------------------------------

    def _ports(self) -> tuple[int, ...]:
        ports = [self.port] if self.amqp_port == self.port else [self.port, self.amqp_port]
        return (*ports, self.plain_port) if self.plain_port else tuple(ports)

    def _configure(self) -> None:
        super()._configure()
        xml = broker_xml(self.directory, self._acceptors(), self._users, self._address_settings)
        (self.directory / "broker.xml").write_text(xml)

    def _acceptors(self) -> list[Acceptor]:
        options = {"protocols": "STOMP,CORE,AMQP", **self._acceptor_options}
        tls = {"sslEnabled": "true"} | _tls_options(self._tls, self.directory) if self._tls else {}
        acceptors = [self._acceptor("stomp-tls" if tls else "stomp", self.port, options | tls)]
        if self.amqp_port != self.port:
            acceptors.append(self._acceptor("amqp", self.amqp_port, options | {"protocols": "AMQP"} | tls))
        if tls and self.plain_port:
            acceptors.append(self._acceptor("stomp", self.plain_port, options))
        return acceptors

    def _acceptor(self, name: str, port: int, options: Mapping[str, str]) -> Acceptor:
        return Acceptor(name=name, host=self.host, port=port, options=options)

    def _boot(self, jvm: Any) -> None:
        artemis = jvm.org.apache.activemq.artemis
        accounts = artemis.core.config.impl.SecurityConfiguration()
        for user in self._users:
            accounts.addUser(user.name, user.password)
            accounts.addRole(user.name, user.name)
        embedded = artemis.core.server.embedded.EmbeddedActiveMQ()
        embedded.setConfigResourcePath((self.directory / "broker.xml").as_uri())
        login = "org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule"
        embedded.setSecurityManager(artemis.spi.core.security.ActiveMQJAASSecurityManager(login, accounts))
        embedded.start()
        self._server = embedded.getActiveMQServer()
        if not self._server.isActive():  # for instance because a port is in use
            raise EmbeddedBrokerError("The broker did not become active.", tail(self.log))

    def _await_ready(self, deadline: float) -> None:
        tls = self._tls is not None and self.plain_port is None
        port = self.port if self._tls is None or tls else self.plain_port
        self._wait_until_ready(deadline, port or 0, tls=tls)

    def _shut_down(self) -> None:
        self._server.stop()


def _general_settings(max_delivery_attempts: int) -> AddressSettings:
    return AddressSettings(
        match="#",
        max_delivery_attempts=max_delivery_attempts,
        dead_letter_address="DLQ",
        expiry_address="ExpiryQueue",
        address_full_policy="PAGE",
    )


def _tls_options(tls: Tls, directory: Path) -> dict[str, str]:
    """Return the acceptor's TLS options. Artemis needs key and certificate in one PEM file."""
    store = directory / "tls.pem"
    store.touch(mode=0o600)
    store.write_text("\n".join(Path(file).read_text() for file in (tls.key, tls.cert) if file))
    options = {"keyStoreType": "PEM", "keyStorePath": str(store)}
    if tls.client_ca is None:
        return options
    trust = {"trustStoreType": "PEMCA", "trustStorePath": str(tls.client_ca), "needClientAuth": "true"}
    return options | trust


@contextlib.contextmanager
def broker(**embedded: Any) -> Iterator[Broker]:
    """Yield the broker that JMS_BROKER_URL, _USER and _PASSWORD name, or else ``EmbeddedArtemis(**embedded)``."""
    url = os.environ.get("JMS_BROKER_URL")
    if not url:
        with EmbeddedArtemis(**embedded) as artemis:
            yield artemis
        return
    get = os.environ.get
    yield ExternalBroker(url, get("JMS_BROKER_USER", "artemis"), get("JMS_BROKER_PASSWORD", "artemis"))
