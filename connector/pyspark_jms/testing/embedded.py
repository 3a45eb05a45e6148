"""A real Apache Artemis in a Java virtual machine of its own. Needs Python, Java, and once a package registry."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from py4j.protocol import Py4JError, Py4JJavaError

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing.config import Acceptor, AddressSettings, Tls, User, broker_xml, logging_properties
from pyspark_jms.testing.jars import broker_classpath
from pyspark_jms.testing.java import JavaMachine, tail
from pyspark_jms.testing.operations import Broker
from pyspark_jms.testing.ports import free_port, is_free
from pyspark_jms.testing.probe import stomp_answer

__all__ = ["EmbeddedArtemis"]

# Measured: the serial collector and the first compiler alone start fastest and take 140 MB. Under load that
# broker pauses for seconds, so a benchmark takes the machine a server would run on.
_DEMO_MACHINE = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_BENCHMARK_MACHINE = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=100")

_STOP_SECONDS = 30


class EmbeddedArtemis(Broker):
    """A broker for a demo, a notebook or a test::

        with EmbeddedArtemis() as broker:
            spark.readStream.format("jms").options(
                brokerUrl=broker.url, user=broker.user, password=broker.password, queue="orders"
            )

    ``directory`` keeps the data (None: a temporary one, removed at the end); ``port`` 0 is any free one, the
    same over restarts. With ``tls`` that port speaks TLS, and ``plain_port`` opens a second one without.
    ``benchmark`` takes a server's collector and compiler; give it a ``heap`` of a gigabyte or more.
    ``acceptor_options`` are Artemis' own (``{"connectionTtl": "5000"}``).
    """

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
        users: Sequence[User] = (),
        max_delivery_attempts: int = 10,
        address_settings: Sequence[AddressSettings] = (),
        acceptor_options: Mapping[str, str] | None = None,
        heap: str = "512m",
        benchmark: bool = False,
        start_timeout: float = 60,
    ) -> None:
        if tls is not None and tls.client_ca is not None and plain_port is None:
            plain_port = 0  # readiness has to be asked by somebody without a client certificate
        self.host, self.user, self.password = host, user, password
        self.port = port or free_port(host)
        self.plain_port = free_port(host) if plain_port == 0 else plain_port
        self.directory = Path(directory or tempfile.mkdtemp(prefix="artemis-")).resolve()
        self._tls = tls
        self._users = (User(user, password), *users)
        self._address_settings = (_general_settings(max_delivery_attempts), *address_settings)
        self._acceptor_options = dict(acceptor_options or {})
        self._java_options = (f"-Xmx{heap}", *(_BENCHMARK_MACHINE if benchmark else _DEMO_MACHINE))
        self._start_timeout = start_timeout
        self._machine: JavaMachine | None = None
        self._embedded: Any = None
        self._server: Any = None
        self._lock: IO[str] | None = None
        self._forget = (lambda: None) if directory else _removal(self, self.directory)

    @property
    def url(self) -> str:
        return f"{'stomp+ssl' if self._tls else 'stomp'}://{self.host}:{self.port}"

    @property
    def plain_url(self) -> str | None:
        """The way in without TLS, where there is one."""
        if self._tls is None:
            return self.url
        return f"stomp://{self.host}:{self.plain_port}" if self.plain_port else None

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    @property
    def running(self) -> bool:
        return self._machine is not None and self._machine.alive()

    @property
    def pid(self) -> int:
        return self._running_machine.pid

    @property
    def jvm(self) -> Any:
        return self._running_machine.jvm

    @property
    def gateway(self) -> Any:
        return self._running_machine.gateway

    @property
    def server(self) -> Any:
        self._require_running()
        return self._server

    def start(self) -> Self:
        """Start and wait until a STOMP client is answered CONNECTED; what is stored is there again."""
        if self.running:
            return self
        classpath = broker_classpath()
        self._claim()
        self._configure()
        options = (*self._java_options, f"-Djava.util.logging.config.file={self.directory}/logging.properties")
        self._machine = JavaMachine(classpath, log=self.log, options=options)
        try:
            with self._machine.killed_after(self._start_timeout):
                self._boot(self._machine.connect().jvm)
                self._wait_until_ready(time.monotonic() + self._start_timeout)
        except Py4JError as error:
            fact = f"The broker did not start: {_cause(error)}."
            self.kill()
            raise EmbeddedBrokerError(fact, tail(self.log)) from None
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop as an operator would; what is stored stays."""
        if self._machine is not None and self.running:
            with contextlib.suppress(Py4JError), self._machine.killed_after(_STOP_SECONDS):
                self._embedded.stop()
        self.kill()

    def kill(self) -> None:
        """Stop as a crash would (SIGKILL); what was acknowledged as stored stays."""
        if self._machine is not None:
            self._machine.kill()
        self._machine = self._embedded = self._server = None
        if self._lock is not None:
            self._lock.close()
        self._lock = None

    def wait(self) -> None:
        """Block until the broker's machine ends, by whatever cause."""
        if self._machine is not None:
            self._machine.wait()

    def restart(self) -> Self:
        """Stop cleanly, unless it was killed before, and start on the same port and folder."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop; a temporary folder goes too."""
        self.stop()
        self._forget()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return f"<EmbeddedArtemis {self.url} user={self.user} in {self.directory}, {state}>"

    # --- starting ----------------------------------------------------------------------------

    def _claim(self) -> None:
        """Take folder and ports, or say who has them: Artemis itself would wait for its lock for ever."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = (self.directory / "embedded.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise EmbeddedBrokerError(
                f"Another broker runs in {self.directory}.", "Stop it, or choose another directory."
            ) from None
        taken = [port for port in (self.port, self.plain_port) if port and not is_free(self.host, port)]
        if taken:
            lock.close()
            raise EmbeddedBrokerError(
                f"Port {taken[0]} of {self.host} is in use.", "Choose another port, or 0 for any free one."
            )
        self._lock = lock

    def _configure(self) -> None:
        xml = broker_xml(self.directory, self._acceptors(), self._users, self._address_settings)
        (self.directory / "broker.xml").write_text(xml)
        (self.directory / "logging.properties").write_text(logging_properties())
        if self.log.exists():  # one earlier log is kept; an error then quotes this start only
            self.log.replace(self.log.with_suffix(".log.1"))

    def _acceptors(self) -> list[Acceptor]:
        options = {"protocols": "STOMP,CORE", **self._acceptor_options}
        if self._tls is None:
            return [Acceptor(name="stomp", host=self.host, port=self.port, options=options)]
        tls = options | {"sslEnabled": "true"} | _tls_options(self._tls, self.directory)
        acceptors = [Acceptor(name="stomp-tls", host=self.host, port=self.port, options=tls)]
        if self.plain_port:
            acceptors.append(Acceptor(name="stomp", host=self.host, port=self.plain_port, options=options))
        return acceptors

    def _boot(self, jvm: Any) -> None:
        artemis = jvm.org.apache.activemq.artemis
        accounts = artemis.core.config.impl.SecurityConfiguration()
        for user in self._users:
            accounts.addUser(user.name, user.password)
            accounts.addRole(user.name, user.name)
        self._embedded = artemis.core.server.embedded.EmbeddedActiveMQ()
        self._embedded.setConfigResourcePath((self.directory / "broker.xml").as_uri())
        login = "org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule"
        self._embedded.setSecurityManager(artemis.spi.core.security.ActiveMQJAASSecurityManager(login, accounts))
        self._embedded.start()
        self._server = self._embedded.getActiveMQServer()
        if not self._server.isActive():  # how it says, for instance, that a port was taken
            raise EmbeddedBrokerError("The broker did not become active.", tail(self.log))

    def _wait_until_ready(self, deadline: float) -> None:
        tls = self._tls is not None and self.plain_port is None
        port = self.port if self._tls is None or tls else self.plain_port
        answer = "nothing"
        while not answer.startswith("CONNECTED"):
            left = deadline - time.monotonic()
            if left <= 0 or not self.running:
                raise EmbeddedBrokerError(f"The broker answered {answer!r} to a CONNECT.", tail(self.log))
            try:
                answer = stomp_answer(self.host, port or 0, self.user, self.password, tls=tls, timeout=left)
            except OSError as error:
                answer = str(error)
                time.sleep(0.05)

    # --- in the JVM --------------------------------------------------------------------------

    @property
    def _running_machine(self) -> JavaMachine:
        self._require_running()
        assert self._machine is not None
        return self._machine

    def _require_running(self) -> None:
        if not self.running:
            raise EmbeddedBrokerError("The broker is not running.", "start() it first.")

    def _release(self, _reference: Any) -> None:
        self.gateway.detach(_reference)


def _general_settings(max_delivery_attempts: int) -> AddressSettings:
    return AddressSettings(
        match="#",
        max_delivery_attempts=max_delivery_attempts,
        dead_letter_address="DLQ",
        expiry_address="ExpiryQueue",
        address_full_policy="PAGE",
    )


def _cause(error: Py4JError) -> str:
    """To be asked while Java still answers."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString())
    return "its virtual machine ended, or took too long and was killed"


def _tls_options(tls: Tls, directory: Path) -> dict[str, str]:
    """Artemis takes PEM, but key and certificate in one file."""
    store = directory / "tls.pem"
    store.touch(mode=0o600)
    store.write_text("\n".join(Path(file).read_text() for file in (tls.key, tls.cert) if file))
    options = {"keyStoreType": "PEM", "keyStorePath": str(store)}
    if tls.client_ca is None:
        return options
    trust = {"trustStoreType": "PEMCA", "trustStorePath": str(tls.client_ca), "needClientAuth": "true"}
    return options | trust


def _removal(broker: EmbeddedArtemis, directory: Path) -> Any:
    """Removes a temporary folder on call, and at the latest when broker or process end."""
    return weakref.finalize(broker, shutil.rmtree, directory, ignore_errors=True)
