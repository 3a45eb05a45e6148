"""A Spark standalone cluster on this machine: a master and workers as processes, ended by their ids.

Each worker is its own session with all it starts (executor, Python workers), so it can be lost like a machine. What is
in ``unseen`` the workers do not see, as if they were other machines: they have a mount of their own there, where Linux
lets us.
"""

import contextlib
import functools
import http.client
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import class_archive
import session
from waiting import wait_until

HOST = "127.0.0.1"
EXECUTOR = b"CoarseGrainedExecutorBackend"
_START_SECONDS = 120
_CLASSES = "org.apache.spark.deploy"


def await_logged(process, log, pattern, name, seconds):
    """Wait until the log of a process has the pattern, and return the match."""
    found = []

    def there():
        assert process.poll() is None, f"{name} ended:\n{log.read_text(errors='replace')[-4000:]}"
        found[:] = filter(None, [re.search(pattern, log.read_text(errors="replace"))])
        return found

    wait_until(there, seconds, f"{pattern!r} in the log of {name}")
    return found[0]


class Daemon:
    """A master or a worker. Its log has ``port`` and ``pages`` (the port of its web pages)."""

    def __init__(self, name, folder, command, *, host=HOST, unseen=None):
        self.name = name
        self.log = folder / f"{name}.log"
        spark_class = str(Path(spark_home(), "bin", "spark-class"))
        arguments = ["--host", host, "--port", "0", "--webui-port", "0"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*_without(unseen), spark_class, *command[:1], *arguments, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=_environment(folder, host),
                start_new_session=True,
            )

    @property
    def port(self):
        return int(self.logged(r"Successfully started service 'spark(?:Master|Worker)' on port (\d+)")[1])

    @property
    def pages(self):
        return int(self.logged(r"Successfully started service '(?:Master|Worker)UI' on port (\d+)")[1])

    def logged(self, pattern):
        """Wait for a log line with the pattern and return the match."""
        return await_logged(self._process, self.log, pattern, self.name, _START_SECONDS)

    @property
    def session_id(self):
        return self._process.pid

    def kill(self):
        """Kill the daemon and all its processes at once, as when a machine fails."""
        session.kill_session(self.session_id)
        self._process.wait(30)

    def end(self):
        """End the processes by SIGTERM, and the remaining ones by SIGKILL."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
        self.kill()


class Worker(Daemon):
    """A worker with one core, an address of its own, and one executor for each job."""

    def __init__(self, number, folder, master, *, unseen):
        self.folder = folder / f"worker-{number}"
        sizes = ["-c", "1", "-m", "1g", "-d", str(self.folder)]
        command = [f"{_CLASSES}.worker.Worker", *sizes, master]
        super().__init__(f"worker-{number}", folder, command, host=f"127.0.0.{1 + number}", unseen=unseen)

    def executors(self):
        """The process ids of the executors that run here."""
        return [each.pid for each in session.of_session(self.session_id) if EXECUTOR in each.command]

    def finished_tasks(self, application):
        """The number of finished tasks of this job in the logs of the worker's executors."""
        logs = (self.folder / application).glob("*/stderr")
        return sum(len(re.findall(r"Finished task ", log.read_text(errors="replace"))) for log in logs)

    def output(self):
        """The output of the executors of all jobs."""
        return "\n".join(log.read_text(errors="replace") for log in sorted(self.folder.glob("*/*/stderr")))


class Standalone:
    """``with Standalone() as cluster``: two workers that are ready. ``restore`` starts missing workers again."""

    def __init__(self, workers=2):
        self._folder = Path(tempfile.mkdtemp(prefix="standalone-"))
        self.unseen = self._folder / "unseen"
        self.unseen.mkdir()
        self._started = 0
        self._wanted = workers
        self.workers = []

    def __enter__(self):
        self._master = Daemon("master", self._folder, [f"{_CLASSES}.master.Master"])
        try:
            self.url = f"spark://{HOST}:{self._master.port}"
            self.restore()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in [*self.workers, self._master]:
            daemon.end()
        shutil.rmtree(self._folder)

    def restore(self):
        """Wait until all workers are registered."""
        self.workers = [worker for worker in self.workers if session.of_session(worker.session_id)]
        while len(self.workers) < self._wanted:
            self._started += 1
            self.workers.append(Worker(self._started, self._folder, self.url, unseen=self.unseen))
        wait_until(lambda: self._alive() == self._wanted, _START_SECONDS, "the registration of every worker")

    def _alive(self):
        """The number of workers on the master's page; 0 before there is a page."""
        page = http.client.HTTPConnection(HOST, self._master.pages, timeout=30)
        with contextlib.closing(page):
            page.request("GET", "/json/")
            answer = page.getresponse()
            is_json = "json" in answer.headers.get("Content-Type", "")  # while it starts, the master shows a page
            workers = json.load(answer)["workers"] if is_json and answer.status == http.client.OK else []
        return sum(worker["state"] == "ALIVE" for worker in workers)


def _environment(folder, host):
    return os.environ | {
        "SPARK_HOME": spark_home(),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": java_options(),
    }


def java_options():
    """JVM options for a process of a minute: a quick start."""
    return class_archive.environment()["SPARK_SUBMIT_OPTS"]


def spark_home():
    """The home folder of the installed PySpark, found without importing it."""
    return str(Path(importlib.util.find_spec("pyspark").origin).parent)


def _without(folder):
    """The beginning of a command that finds ``folder`` empty, whatever is in it for others; [] where forbidden."""
    if folder is None or (unshare := may_hide()) is None:
        return []
    return [*unshare, "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder)]


@functools.cache
def may_hide():
    """The command that gives a process mounts of its own, or None: it takes Linux, and root or user namespaces."""
    for command in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        with contextlib.suppress(OSError):
            tried = [*command, "mount", "-t", "tmpfs", "none", tempfile.gettempdir()]
            if subprocess.run(tried, capture_output=True, timeout=30, check=False).returncode == 0:
                return command
    return None
