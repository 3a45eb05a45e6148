"""Jobs that stand ready: a Spark driver takes seconds to start, so one is always started ahead."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import class_archive
import session
from breakpoints import VARIABLE, Breakpoints

HERE = Path(__file__).parent
_START_SECONDS = 180
# Small, and quick to start rather than quick to run: a job lives for some seconds.
_CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "640m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.unix.domain.socket.enabled": "true",
}


class JobError(Exception):
    """The job's own words about an order that failed."""


class Driver:
    """One ``spark-submit hit_job.py``, in a session of its own."""

    def __init__(self, configuration, failures):
        self._folder = Path(tempfile.mkdtemp(prefix="driver-"))
        self.breakpoints = Breakpoints(self._folder / "breakpoints")
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._folder / "orders"))
        self._server.listen(1)
        self._lines = None
        self.log = self._folder / "log"
        submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", f"local[2,{failures}]"]
        options = [part for item in (_CONFIGURATION | configuration).items() for part in ("--conf", "=".join(item))]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*submit, *options, str(HERE / "hit_job.py"), str(self._folder / "orders")],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=_environment(self._folder),
                start_new_session=True,
            )

    # --- orders ----------------------------------------------------------------------------------

    def await_ready(self):
        if self._lines is not None:
            return
        self._server.settimeout(1)
        until = time.monotonic() + _START_SECONDS
        while self._lines is None:
            with contextlib.suppress(TimeoutError):
                link, _ = self._server.accept()
                link.settimeout(_START_SECONDS)
                self._lines = link.makefile("rw")
                link.close()
            if self._process.poll() is not None or time.monotonic() > until:
                raise JobError(f"the job did not start:\n{self.tail()}")
        if self._lines.readline() != '"ready"\n':
            raise JobError(f"the job did not start:\n{self.tail()}")

    def order(self, do, **arguments):
        self.send(do, **arguments)
        return self.answer()

    def send(self, do, **arguments):
        """An order whose answer is not awaited yet."""
        print(json.dumps({"do": do} | arguments), file=self._lines, flush=True)

    def answer(self):
        line = self._lines.readline()
        if not line:
            raise JobError(f"the job is gone:\n{self.tail()}")
        answer = json.loads(line)
        if "failed" in answer:
            raise JobError(answer["failed"])
        return answer["done"]

    # --- its processes ---------------------------------------------------------------------------

    @property
    def alive(self):
        return self._process.poll() is None

    @property
    def session_id(self):
        return self._process.pid

    def runners(self):
        return session.runners(self.session_id)

    def workers(self):
        return session.workers(self.session_id)

    def kill(self):
        session.kill_session(self.session_id)
        self._process.wait(30)

    def signal(self, number):
        """To ``spark-submit``, and to nothing it started."""
        self._process.send_signal(number)

    def await_exit(self):
        """Of all of it; returns the exit code."""
        code = self._process.wait(60)
        until = time.monotonic() + 30
        while session.of_session(self.session_id) and time.monotonic() < until:
            time.sleep(0.02)
        return code

    def close(self):
        self.kill()
        if self._lines is not None:
            with contextlib.suppress(BrokenPipeError):  # an order was not sent whole
                self._lines.close()
        self._server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def tail(self, lines=25):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def _environment(folder):
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return (
        os.environ
        | class_archive.environment()
        | {
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": path,
            VARIABLE: str(folder / "breakpoints"),
            "SPARK_LOCAL_DIRS": str(folder / "spark"),
        }
    )


class Drivers:
    """``take`` one that is ready; another is started meanwhile. ``give`` it back if it lives.

    ``failures``: how often Spark tries a task.
    """

    def __init__(self, configuration, failures):
        self._configuration, self._failures = configuration, failures
        self._ready = [Driver(configuration, failures)]
        self._all = list(self._ready)

    def take(self):
        driver = self._ready.pop() if self._ready else self._new()
        if not self._ready:
            self._ready.append(self._new())
        driver.await_ready()
        driver.breakpoints.release()
        return driver

    def give(self, driver):
        """Back for the next one; what was killed is cleared away."""
        if driver.alive:
            self._ready.append(driver)
        else:
            self._all.remove(driver)
            driver.close()

    def _new(self):
        self._all.append(Driver(self._configuration, self._failures))
        return self._all[-1]

    def close(self):
        for driver in self._all:
            driver.close()
