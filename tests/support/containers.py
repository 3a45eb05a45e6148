"""Artemis in a container of testcontainers, and faults of that container."""

import contextlib
import subprocess
import time
import uuid

import artemis_image
import root_fs
from rawstomp import RawStomp
from testcontainers.core.container import DockerContainer

from pyspark_jms.tools.testing.ports import free_port


def engine():
    """The version of the Docker engine; None without an engine."""
    with contextlib.suppress(OSError):
        reported = subprocess.run(
            ["docker", "info", "--format", "{{.ServerVersion}}"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return reported.stdout.strip() if reported.returncode == 0 else None
    return None


def image():
    """The image of Artemis in docker-compose.yml."""
    return there(artemis_image.NAME, artemis_image.build)


def there(name, build):
    """Find or pull the official image, or build it with ``build``; return its name."""
    if not root_fs.present(name):
        pulled = subprocess.run(["docker", "pull", "--quiet", name], capture_output=True, timeout=300, check=False)
        if pulled.returncode:
            build(name)
    return name


class ArtemisContainer:
    """One broker with a fixed port, which stays the same after a restart."""

    user, password = "artemis", "container-secret"

    def __init__(self, *, network=None, files=(), volumes=()):
        self.host, self.port = "127.0.0.1", free_port("127.0.0.1")
        self._container = DockerContainer(image(), docker_client_kw={"timeout": 60})
        self._container.with_env("ARTEMIS_USER", self.user).with_env("ARTEMIS_PASSWORD", self.password)
        self._container.with_bind_ports(61613, self.port).with_name(f"pyspark-jms-{uuid.uuid4().hex[:12]}")
        for path, target in volumes:
            self._container.with_volume_mapping(path, target, "rw")
        for path, target in files:
            self._container.with_volume_mapping(str(path), target, "ro")
        self._network = network
        if network:
            self._container.with_network(network)

    @property
    def url(self):
        return f"stomp://{self.host}:{self.port}"

    def __enter__(self):
        self._container.start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):  # a paused container cannot be removed
            self.wrapped.unpause()
        self._container.stop()

    @property
    def wrapped(self):
        return self._container.get_wrapped_container()

    def wait_until_serving(self, seconds=60):
        deadline = time.monotonic() + seconds
        while True:
            try:
                with RawStomp(self, timeout=5):
                    return self
            except (OSError, EOFError):
                assert time.monotonic() < deadline, f"no CONNECTED within {seconds} s:\n{self.log()}"
                time.sleep(0.2)

    def log(self):
        return b"\n".join(self._container.get_logs()).decode(errors="replace")

    # --- faults --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def killed(self):
        self.wrapped.kill("SIGKILL")
        yield
        self.wrapped.start()

    @contextlib.contextmanager
    def paused(self):
        self.wrapped.pause()
        yield
        self.wrapped.unpause()

    @contextlib.contextmanager
    def disconnected(self):
        network = self._network._network  # testcontainers has no public method
        network.disconnect(self.wrapped)
        yield
        network.connect(self.wrapped)
