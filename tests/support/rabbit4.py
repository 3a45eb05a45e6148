"""RabbitMQ 4 from the packages of a newer Debian, in a root of its own: ``with Rabbit4("sid") as broker``.

Debian 12 has RabbitMQ 3.10. The packages of Debian 13 (``trixie``) and of the release in preparation (``sid``) are
fetched by apt as they are published, unpacked into the cache once, and run in a mount namespace of their own. That
needs root and Debian's apt; ``require_rabbit4`` skips a test where it cannot be had.
"""

import fcntl
import functools
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import own_process
import pytest
from installed_rabbit import InstalledRabbit

from pyspark_jms.tools.testing.jars import cache_directory

_PACKAGES = ("rabbitmq-server", "dash", "coreutils", "sed", "grep", "mawk", "base-files")
"""The server, and what its scripts call: apt leaves out what every Debian has."""

_COUNT_OFTEN = "-rabbit quorum_tick_interval 200"
"""In ms. A quorum queue counts its messages every 5 s otherwise, and ``counts`` would show the past."""
_FETCH_SECONDS = 90
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TOOLS = ("apt-get", "dpkg", "dpkg-deb", "tar", "unshare", "chroot")
_LIBRARY = "usr/lib/rabbitmq"

# Everything outside of the root that the broker uses: devices, processes, and its folder under the same path.
_ENTER = """
set -e
mount --make-rprivate /
for folder in /proc /dev "$2"; do
  mkdir -p "$1$folder"
  mount --rbind "$folder" "$1$folder"
done
root=$1
shift 2
exec chroot "$root" "$@"
"""

_APT = """
Dir::Etc::sourcelist "{0}/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::status "{0}/status";
Dir::State::lists "{0}/lists";
Dir::Cache "{0}/cache";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Check-Valid-Until "false";
Acquire::http::Timeout "10";
Acquire::Retries "1";
"""


class UnavailableError(Exception):
    """Why there is no RabbitMQ 4 on this machine."""


class Rabbit4(InstalledRabbit):
    """``suite``: ``trixie`` has RabbitMQ 4.0, ``sid`` the newest. Speaks AMQP 1.0, AMQP 0.9.1 and STOMP."""

    def __init__(self, suite="sid", *arguments, **options):
        super().__init__(*arguments, **options)
        self._root = root_of(suite)
        self._programs = (self._command(f"/{_LIBRARY}/bin/rabbitmq-server"), self._command("/usr/bin/epmd"))

    @property
    def amqp_url(self):
        return f"amqp://{self.host}:{self.amqp_port}"

    @property
    def version(self):
        return version_in(self._root)

    def control(self, *arguments):
        """The output of ``rabbitmqctl``."""
        command = self._command(f"/{_LIBRARY}/bin/rabbitmqctl", *arguments)
        return own_process.run(command, env=os.environ | self._environment()).stdout

    def counts(self, queue):
        """``messages``, and how many of them are ``messages_unacknowledged``."""
        columns = ("messages", "messages_unacknowledged")
        queues = json.loads(self.control("-q", "list_queues", "--formatter", "json", "name", *columns))
        return next(each for each in queues if each["name"] == queue)

    @staticmethod
    def installed():
        return True

    def _environment(self):
        return super()._environment() | {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _COUNT_OFTEN}

    def _command(self, *arguments):
        return ["unshare", "-m", "sh", "-c", _ENTER, "enter", str(self._root), str(self.directory), *arguments]


def require_rabbit4(suite):
    """Skip the test where RabbitMQ 4 cannot be had: also because the server of the packages has moved on."""
    try:
        root_of(suite)
    except UnavailableError as reason:
        pytest.skip(f"no RabbitMQ 4 from Debian's {suite}: {reason}")


def version_in(root):
    [server] = (root / _LIBRARY / "lib").glob("rabbitmq_server-*")
    return server.name.partition("-")[2]


@functools.cache
def _outcome(suite):
    """The root, or why there is none. A failure is not tried again."""
    try:
        return _made(suite)
    except UnavailableError as reason:
        return reason
    except subprocess.TimeoutExpired:
        return UnavailableError(f"its packages did not come within {_FETCH_SECONDS} s")


def root_of(suite):
    found = _outcome(suite)
    if isinstance(found, UnavailableError):
        raise found
    return found


def _made(suite):
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing or not _KEYRING.exists():
        raise UnavailableError(f"this machine has no {', '.join(missing) or _KEYRING}")
    if os.geteuid() != 0:
        raise UnavailableError("another root needs the user root")
    root = cache_directory() / f"rabbitmq-{suite}"
    with _locked(root.with_suffix(".lock")):
        if not root.exists():
            _unpack(suite, root)
    _run(["unshare", "-m", "sh", "-c", _ENTER, "enter", str(root), "/tmp", "/usr/bin/epmd", "-help"], (0, 1))
    return root


@contextmanager
def _locked(file):
    """Several processes of a test run want the same root."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _unpack(suite, root):
    work = root.with_suffix(".new")
    shutil.rmtree(work, ignore_errors=True)
    packages = work.with_suffix(".packages")
    shutil.rmtree(packages, ignore_errors=True)
    _fetch(suite, packages)
    work.mkdir()
    for package in sorted((packages / "cache/archives").glob("*.deb")):
        tar = f'dpkg-deb --fsys-tarfile "{package}" | tar -C "{work}" -x --keep-directory-symlink --skip-old-files'
        _run(["sh", "-c", tar])
    for folder in ("bin", "sbin", "lib", "lib64"):
        if not (work / folder).exists():
            (work / folder).symlink_to(f"usr/{folder}")
    for name, target in (("awk", "mawk"), ("sh", "dash")):
        if not (work / "usr/bin" / name).exists():
            (work / "usr/bin" / name).symlink_to(target)
    (work / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (work / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    shutil.rmtree(packages)
    work.rename(root)


def _fetch(suite, folder):
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING}] http://deb.debian.org/debian {suite} main\n")
    (folder / "apt.conf").write_text(_APT.format(folder))
    environment = os.environ | {"APT_CONFIG": str(folder / "apt.conf")}
    _run(["apt-get", "-q", "update"], environment=environment)
    _run(["apt-get", "-q", "-y", "--download-only", "install", *_PACKAGES], environment=environment)


def _run(command, allowed=(0,), environment=None):
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=_FETCH_SECONDS)
    if done.returncode not in allowed:
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no reason given"]
        raise UnavailableError(f"{command[0]} failed: {reason[0]}")
