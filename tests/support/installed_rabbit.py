"""A RabbitMQ broker of a test, from the installed ``rabbitmq-server``, with its own ports and folder.

Erlang needs a port mapper (epmd) and would leave it running, so the port mapper is a child process of this one.
"""

import base64
import contextlib
import hashlib
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
from typing import Any

import pika
from pika.exceptions import AMQPError, ChannelClosedByBroker

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.java import tail
from pyspark_jms.tools.testing.lifecycle import OwnBroker
from pyspark_jms.tools.testing.ports import free_port, is_free

__all__ = ["InstalledRabbit", "RabbitUser"]

_pika_log = logging.getLogger("pika")
if _pika_log.level == logging.NOTSET:
    _pika_log.setLevel(logging.CRITICAL)  # it logs every refused connection with a stack trace

_SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's path. The script on the PATH requires root or the user rabbitmq."""

_STOP_SECONDS = 60
_END_SECONDS = 20
_SECONDS = 30.0
"""Limits of a connection over AMQP 0-9-1."""


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
            except (AMQPError, OSError):
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

    @contextlib.contextmanager
    def amqp(self) -> Iterator[Any]:
        """Open a channel of pika over AMQP 0-9-1, for tests that need another client."""
        self._require_running()
        login = pika.PlainCredentials(self.user, self.password)
        limits = dict.fromkeys(("socket_timeout", "stack_timeout", "blocked_connection_timeout"), _SECONDS)
        with pika.BlockingConnection(
            pika.ConnectionParameters(self.host, self.amqp_port, credentials=login, heartbeat=0, **limits)
        ) as connection:
            yield connection.channel()

    def _declared(self, queue: str) -> Any:
        with self.amqp() as channel:
            return channel.queue_declare(queue, passive=True).method

    def has_queue(self, queue: str) -> bool:
        try:
            self._declared(queue)
        except ChannelClosedByBroker as error:
            if "NOT_FOUND" not in error.reply_text:
                raise
            return False
        return True

    def message_count(self, queue: str) -> int:
        """Return the number of waiting messages, without those in delivery; 0 if the queue does not exist."""
        return int(self._declared(queue).message_count) if self.has_queue(queue) else 0

    def consumer_count(self, queue: str) -> int:
        return int(self._declared(queue).consumer_count)

    def create_queue(self, name: str, arguments: Mapping[str, str] | None = None) -> None:
        with self.amqp() as channel:
            channel.queue_declare(name, durable=True, arguments=dict(arguments or {}))


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
