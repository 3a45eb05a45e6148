"""A RabbitMQ broker of a test, from the installed ``rabbitmq-server``, with its own ports and folder.

Erlang needs a port mapper (epmd) and would leave it running, so the port mapper is a child process of this one.
"""

import base64
import contextlib
import hashlib
import importlib
import json
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.java import tail
from pyspark_jms.tools.testing.lifecycle import OwnBroker
from pyspark_jms.tools.testing.ports import free_port, is_free

__all__ = ["Amqp", "InstalledRabbit", "RabbitUser", "require_pika"]

_SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's path. The script on the PATH requires root or the user rabbitmq."""

_STOP_SECONDS = 60
_END_SECONDS = 20


@dataclass(frozen=True, slots=True)
class RabbitUser:
    """A user, with RabbitMQ's regular expressions of the names that the user may configure, write and read."""

    name: str
    password: str = field(repr=False)
    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"


class InstalledRabbit(OwnBroker):
    """The RabbitMQ of this machine, on ports and in a folder of its own. ``installed()`` tests whether there is one."""

    _programs: tuple[list[str], list[str]] | None = None
    """The commands that start the server and the port mapper. None: those that are installed."""

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        port: int = 0,
        user: str = "guest",
        password: str = "guest",
        *,
        host: str = "127.0.0.1",
        users: Sequence[RabbitUser] = (),
        start_timeout: float = 180,
    ) -> None:
        super().__init__(directory, port, user, password, host=host, start_timeout=start_timeout)
        self.amqp_port, self._node_port, self._mapper_port = free_port(host), free_port(host), free_port(host)
        self._users = (RabbitUser(user, password), *users)
        self._process: subprocess.Popen[bytes] | None = None
        self._mapper: subprocess.Popen[bytes] | None = None

    @staticmethod
    def installed() -> bool:
        return _server() is not None and shutil.which("epmd") is not None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the Erlang machine, and not of the shell that started it."""
        self._require_running()
        return int((self.directory / "pid").read_text())

    def stop(self) -> None:
        if self._process is not None and self.running:
            with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
                os.kill(self.pid, signal.SIGTERM)
                self._process.wait(_STOP_SECONDS)
        self.kill()

    def wait(self) -> None:
        if self._process is not None:
            self._process.wait()

    # --- starting ------------------------------------------------------------------------------

    def _fetch(self) -> None:
        if not self.installed():
            raise EmbeddedBrokerError("No rabbitmq-server is installed.", "apt-get install rabbitmq-server.")
        require_pika()

    def _ports(self) -> tuple[int, ...]:
        return (self.port, self.amqp_port, self._node_port, self._mapper_port)

    def _configure(self) -> None:
        settings = [
            f"listeners.tcp.1 = {self.host}:{self.amqp_port}",
            f"stomp.listeners.tcp.1 = {self.host}:{self.port}",
            f"load_definitions = {self.directory}/definitions.json",
        ]
        (self.directory / "rabbitmq.conf").write_text("\n".join([*settings, ""]))
        (self.directory / "enabled_plugins").write_text("[rabbitmq_stomp].\n")
        (self.directory / "definitions.json").write_text(json.dumps(_definitions(self._users)))

    def _launch(self, deadline: float) -> None:
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server, epmd = self._programs or ([str(_server())], ["epmd"])
        mapper = [*epmd, "-port", str(self._mapper_port), "-address", self.host]
        self._mapper = subprocess.Popen(mapper, start_new_session=True, **quiet)  # type: ignore[call-overload]
        (self.directory / "pid").unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                server,
                env=os.environ | self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,  # shell and machine are one process group, which is killed as a whole
            )
        try:
            self._wait_until_ready(deadline, self.port)
            self._wait_for_amqp(deadline)
        except EmbeddedBrokerError as error:
            raise EmbeddedBrokerError(f"RabbitMQ did not start: {error.fact}", tail(self.log)) from None

    def _wait_for_amqp(self, deadline: float) -> None:
        """It listens for STOMP first."""
        while True:
            try:
                with self.amqp():
                    return
            except EmbeddedBrokerError:
                if time.monotonic() > deadline or not self.running:
                    raise EmbeddedBrokerError("nobody answers at its AMQP port.") from None
                time.sleep(0.05)

    def _environment(self) -> dict[str, str]:
        folder = str(self.directory)
        return {
            "HOME": folder,  # for the Erlang cookie
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",  # not the file of the service
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/enabled_plugins",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_LOG_BASE": folder,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": self.host,
        }

    def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._mapper is not None:
            self._mapper.kill()
            self._mapper.wait()
            self._await_freed_ports()  # the machine is a child of the shell, so this process cannot wait for it
        self._process = self._mapper = None

    def _await_freed_ports(self) -> None:
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline and not all(is_free(self.host, port) for port in self._ports()):
            time.sleep(0.02)

    # --- queues ----------------------------------------------------------------------------------

    def amqp(self) -> "Amqp":
        """Open a connection over AMQP 0-9-1, for tests that need another client."""
        self._require_running()
        return Amqp(self.host, self.amqp_port, self.user, self.password)

    def has_queue(self, queue: str) -> bool:
        try:
            with self.amqp() as amqp:
                amqp.count(queue)
        except EmbeddedBrokerError as error:
            if "NOT_FOUND" not in error.fact:
                raise
            return False
        return True

    def message_count(self, queue: str) -> int:
        """Return the number of waiting messages, without those in delivery; 0 if the queue does not exist."""
        if not self.has_queue(queue):
            return 0
        with self.amqp() as amqp:
            return amqp.count(queue)[0]

    def consumer_count(self, queue: str) -> int:
        with self.amqp() as amqp:
            return amqp.count(queue)[1]

    def create_queue(self, name: str, arguments: dict[str, str] | None = None) -> None:
        with self.amqp() as amqp:
            amqp.declare(name, arguments)

    def purge(self, queue: str) -> int:
        """Delete the waiting messages and return their number."""
        with self.amqp() as amqp:
            return amqp.purge(queue)


def _server() -> Path | None:
    if _SERVER.exists():
        return _SERVER
    found = shutil.which("rabbitmq-server")
    return None if found is None else Path(found)


def _definitions(users: Sequence[RabbitUser]) -> dict[str, object]:
    return {
        "vhosts": [{"name": "/"}],
        "users": [
            {"name": user.name, "password_hash": _hashed(user.password), "tags": "administrator"} for user in users
        ],
        "permissions": [
            {"user": user.name, "vhost": "/", "configure": user.configure, "write": user.write, "read": user.read}
            for user in users
        ],
    }


def _hashed(password: str) -> str:
    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


# --- messages over AMQP 0-9-1 ------------------------------------------------------------------------

# pika has queue operations that STOMP does not have, and is a foreign producer. One channel, one request at a time.
# It is imported when a connection is made: it is in the extra ``test``.

_SECONDS = 30.0

_pika_log = logging.getLogger("pika")
if _pika_log.level == logging.NOTSET:
    _pika_log.setLevel(logging.CRITICAL)  # it logs every refused connection with a stack trace


def require_pika() -> Any:
    """The module ``pika``; ``EmbeddedBrokerError`` if it is not installed."""
    try:
        return importlib.import_module("pika")
    except ImportError:
        raise EmbeddedBrokerError(
            "The package pika, which RabbitMQ in tests needs, is not installed.", "pip install 'pyspark-jms[test]'."
        ) from None


class Amqp:
    """``with Amqp(host, port, user, password) as amqp: amqp.count("orders")``. Raises ``EmbeddedBrokerError``."""

    def __init__(self, host: str, port: int, user: str, password: str) -> None:
        self._pika = require_pika()
        parameters = self._pika.ConnectionParameters(
            host=host,
            port=port,
            credentials=self._pika.PlainCredentials(user, password),
            heartbeat=0,
            socket_timeout=_SECONDS,
            stack_timeout=_SECONDS,
            blocked_connection_timeout=_SECONDS,
        )
        with self._errors():
            self._connection = self._pika.BlockingConnection(parameters)
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(self._pika.exceptions.AMQPError):
            self._connection.close()

    def count(self, queue: str) -> tuple[int, int]:
        """Waiting messages, without those in delivery, and consumers. An error if the queue does not exist."""
        with self._errors():
            declared = self._channel.queue_declare(queue, passive=True).method
        return declared.message_count, declared.consumer_count

    def declare(self, queue: str, arguments: Mapping[str, str] | None = None) -> None:
        """Create a durable queue."""
        with self._errors():
            self._channel.queue_declare(queue, durable=True, arguments=dict(arguments or {}))

    def purge(self, queue: str) -> int:
        """Delete the waiting messages, and return their number."""
        with self._errors():
            return int(self._channel.queue_purge(queue).method.message_count)

    def publish(
        self, queue: str, body: bytes, *, content_type: str | None = None, message_id: str | None = None
    ) -> None:
        """Send a persistent message, and wait for the broker's confirmation."""
        properties = self._pika.BasicProperties(content_type=content_type, message_id=message_id, delivery_mode=2)
        with self._errors():
            self._channel.basic_publish("", queue, body, properties)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        known = self._pika.exceptions
        try:
            yield
        except (known.ChannelClosedByBroker, known.ConnectionClosedByBroker) as error:
            raise EmbeddedBrokerError(
                f"RabbitMQ refuses: {error.reply_text}.", "Check that there is such a queue."
            ) from None
        except (known.AMQPError, OSError) as error:
            raise EmbeddedBrokerError(
                f"The AMQP connection to RabbitMQ failed: {error or type(error).__name__}.", "Look at RabbitMQ's log."
            ) from None
