"""The life cycle of a broker of this process: folder, ports, start, stop, kill. Independent of the kind of broker.

``OwnBroker`` is a broker in any process, ``JavaBroker`` a broker in its own Java virtual machine.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self

from py4j.protocol import Py4JError, Py4JJavaError

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.network.connection import closed_on
from pyspark_jms.tools.testing.config import LOGGING_PROPERTIES
from pyspark_jms.tools.testing.jars import resolve
from pyspark_jms.tools.testing.java import JavaMachine, tail
from pyspark_jms.tools.testing.ports import free_port, is_free, stomp_answer

__all__ = ["JavaBroker", "OwnBroker"]

_STOP_SECONDS = 30


class OwnBroker(ABC):
    """``directory`` stores the data; with None, it is a temporary folder that is removed at the end. ``port`` 0 selects
    a free port, which stays the same after restarts.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        port: int,
        user: str,
        password: str,
        *,
        host: str,
        start_timeout: float,
    ) -> None:
        self.host, self.user, self.password = host, user, password
        self.port = port or free_port(host)
        self.directory = Path(directory or tempfile.mkdtemp(prefix="broker-")).resolve()
        self.log = self.directory / "broker.log"
        self._start_timeout = start_timeout
        self._lock: IO[str] | None = None
        self._remove_directory: Any = lambda: None
        if directory is None:  # removed at the latest when the broker or the process ends
            self._remove_directory = weakref.finalize(self, shutil.rmtree, self.directory, ignore_errors=True)

    @property
    def url(self) -> str:
        return f"stomp://{self.host}:{self.port}"

    @property
    @abstractmethod
    def running(self) -> bool: ...

    @property
    @abstractmethod
    def pid(self) -> int: ...

    def start(self) -> Self:
        """Start with the stored messages, and wait until the broker answers CONNECTED to a STOMP client."""
        if self.running:
            return self
        self._fetch()
        self._lock = _claim(self.directory, self.host, self._ports())
        try:
            self._configure()
            if self.log.exists():  # so an error quotes the log of this start only
                self.log.replace(self.log.with_suffix(".log.1"))
            self._launch(time.monotonic() + self._start_timeout)
        except BaseException:
            self.kill()
            raise
        return self

    @abstractmethod
    def stop(self) -> None:
        """Stop cleanly. Stored messages stay."""

    def kill(self) -> None:
        """Stop like a crash (SIGKILL). Messages that the broker confirmed stay."""
        self._end()
        if self._lock is not None:
            self._lock.close()
        self._lock = None

    @abstractmethod
    def wait(self) -> None:
        """Block until the broker's process ends for any reason."""

    def restart(self) -> Self:
        """Stop cleanly, unless the broker was killed, and start with the same port and folder."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop, and remove a temporary folder."""
        self.stop()
        self._remove_directory()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return f"<{type(self).__name__} {self.url} user={self.user} in {self.directory}, {state}>"

    # --- for subclasses -------------------------------------------------------------------------

    @abstractmethod
    def _fetch(self) -> None:
        """Download what the broker needs, before folder and ports are claimed."""

    def _ports(self) -> tuple[int, ...]:
        return (self.port,)

    @abstractmethod
    def _configure(self) -> None:
        """Write the broker's configuration files."""

    @abstractmethod
    def _launch(self, deadline: float) -> None:
        """Start the process, and return when the broker is ready."""

    @abstractmethod
    def _end(self) -> None:
        """Kill the process, if there is one."""

    # --- starting ------------------------------------------------------------------------------

    def _wait_until_ready(self, deadline: float, port: int, *, tls: bool = False) -> None:
        answer = "nothing"
        while not answer.startswith("CONNECTED"):
            left = deadline - time.monotonic()
            if left <= 0 or not self.running:
                raise EmbeddedBrokerError(f"The broker answered {answer!r} to a CONNECT.", tail(self.log))
            try:
                answer = stomp_answer(self.host, port, self.user, self.password, tls=tls, timeout=left)
            except OSError as error:
                answer = str(error)
                time.sleep(0.05)

    def _require_running(self) -> None:
        if not self.running:
            raise EmbeddedBrokerError("The broker is not running.", "Call start() first.")


class JavaBroker(OwnBroker):
    """A broker whose Java classes are called through py4j."""

    _packages: tuple[str, ...] = ()
    """Of its jars, which the first start may download."""

    _machine: JavaMachine | None = None
    _server: Any = None
    """The broker's main object, which ``_boot`` sets."""

    _excluded: tuple[str, ...] = ()
    _java_options: Sequence[str] = ()

    @abstractmethod
    def _boot(self, jvm: Any) -> None:
        """Create and start the broker's objects."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Stop the broker's objects."""

    def connection_factory(self) -> Any:
        """Return a Jakarta JMS connection factory for clients in the broker's virtual machine."""
        raise NotImplementedError(f"{type(self).__name__} has no JMS client of its own")

    def _await_ready(self, deadline: float) -> None:
        self._wait_until_ready(deadline, self.port)

    @property
    def running(self) -> bool:
        return self._machine is not None and self._machine.alive()

    @property
    def pid(self) -> int:
        return self._running_machine.pid

    @property
    def jvm(self) -> Any:
        """The broker's JVM: ``broker.jvm.java.lang.System``, and every class on its class path."""
        return self._running_machine.jvm

    @property
    def gateway(self) -> Any:
        """The py4j gateway to the broker's JVM, for instance for arrays."""
        return self._running_machine.gateway

    @property
    def server(self) -> Any:
        """The running ``ActiveMQServer`` of Artemis, or ``BrokerService`` of Classic."""
        self._require_running()
        return self._server

    @property
    def _running_machine(self) -> JavaMachine:
        self._require_running()
        assert self._machine is not None
        return self._machine

    def stop(self) -> None:
        if self._machine is not None and self.running:
            with contextlib.suppress(Py4JError), self._machine.killed_after(_STOP_SECONDS):
                self._shut_down()
        self.kill()

    def wait(self) -> None:
        if self._machine is not None:
            self._machine.wait()

    def _fetch(self) -> None:
        resolve(self._packages, exclusions=self._excluded)

    def _configure(self) -> None:
        (self.directory / "logging.properties").write_text(LOGGING_PROPERTIES)

    def _launch(self, deadline: float) -> None:
        options = (*self._java_options, f"-Djava.util.logging.config.file={self.directory}/logging.properties")
        self._machine = JavaMachine(resolve(self._packages, exclusions=self._excluded), log=self.log, options=options)
        try:
            with self._machine.killed_after(max(deadline - time.monotonic(), 0.0)):
                self._boot(self._machine.connect().jvm)
                self._await_ready(deadline)
        except Py4JError as error:
            fact = f"The broker did not start: {_cause(error)}."
            self.kill()  # afterwards the log is complete
            raise EmbeddedBrokerError(fact, tail(self.log)) from None

    def _end(self) -> None:
        if self._machine is not None:
            self._machine.kill()
        self._machine = self._server = None


def _claim(directory: Path, host: str, ports: Sequence[int]) -> IO[str]:
    """Lock the folder and check the ports, or raise an error that names them: a broker itself might wait for ever."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = (directory / "embedded.lock").open("w")
    with closed_on(EmbeddedBrokerError, lock.close):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fact = f"Another broker runs in {directory}."
            raise EmbeddedBrokerError(fact, "Stop it, or choose another directory.") from None
        if len(set(ports)) < len(ports):
            fact = f"Two of the ports {', '.join(map(str, ports))} are equal."
            raise EmbeddedBrokerError(fact, "Choose different ports.")
        if taken := [port for port in ports if not is_free(host, port)]:
            fact = f"Port {taken[0]} of {host} is in use."
            raise EmbeddedBrokerError(fact, "Choose another port, or 0 for a free port.")
    return lock


def _cause(error: Py4JError) -> str:
    """Return the text of a Java exception, which must be read while the machine runs."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString())
    return "its virtual machine ended, or was killed after the time limit"
