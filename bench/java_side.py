"""Java applications on the same broker: ``JavaClient`` and ``JetClient``, each in a JVM of its own, which is warm after
its first jobs.

The measured loops run in Java; Python only starts them. This needs a Java with a compiler (a JDK).
"""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from bench.job import Job, Measured, orders
from bench.processes import Meter
from pyspark_jms.testing import EmbeddedArtemis
from pyspark_jms.tools.testing.jars import ARTEMIS_PACKAGES, resolve
from pyspark_jms.tools.testing.java import find_java

__all__ = ["JavaSide", "JetSide"]

_COMPILER = "jdk.compiler"
_POLL_SECONDS = 0.01


class JavaSide:
    """``with JavaSide(broker) as java: java.drain(job); java.send(job)``. ``amqp``: with Qpid JMS."""

    program = "JavaClient"
    flags: tuple[str, ...] = ()
    packages: tuple[str, ...] = ("org.apache.qpid:qpid-jms-client:2.7.0",)

    def __init__(self, broker: EmbeddedArtemis, *, amqp: bool = False) -> None:
        self._broker = broker
        self._url = broker.amqp_url if amqp else f"tcp://{broker.host}:{broker.port}"

    @staticmethod
    def missing() -> str | None:
        """The reason why the Java client cannot run here, or None."""
        ended = subprocess.run([find_java(), "--list-modules"], capture_output=True, text=True, timeout=60, check=True)
        if any(line.startswith(f"{_COMPILER}@") for line in ended.stdout.splitlines()):
            return None
        return "this Java has no compiler (a JRE, not a JDK)"

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="bench-java-"))
        classpath = os.pathsep.join([*resolve(ARTEMIS_PACKAGES), *resolve(self.packages)])
        try:
            self._compile(classpath)
            self._process = self._start(os.pathsep.join([str(self._folder), classpath]))
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._stdin, self._stdout = self._process.stdin, self._process.stdout
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _compile(self, classpath: str) -> None:
        source = Path(__file__).parent / f"{self.program}.java"
        command = [find_java(), "-m", f"{_COMPILER}/com.sun.tools.javac.Main", "-d", str(self._folder)]
        ended = subprocess.run(
            [*command, "-classpath", classpath, str(source)], capture_output=True, text=True, timeout=120, check=False
        )
        if ended.returncode:
            raise RuntimeError(f"{source.name} was not compiled:\n{ended.stderr}")

    def _start(self, classpath: str) -> subprocess.Popen[str]:
        texts = self._folder / "orders"
        texts.write_text(orders())
        with (self._folder / "log").open("w") as log:
            java = [find_java(), "-Xmx1g", *self.flags, "-classpath", classpath, self.program]
            return subprocess.Popen(
                [*java, self._url, self._broker.user, str(texts)],
                env=os.environ | {"JAVA_CLIENT_PASSWORD": self._broker.password},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def drain(self, job: Job, acknowledgement: str = "individual") -> Measured:
        """Measures from ``connection.start()`` until the session is closed. The client reads text and properties."""
        return self._run(job, f"drain {job.queue} {job.messages} {acknowledgement}")

    def send(self, job: Job) -> Measured:
        """Measures sending on open connections. The client creates each message just before it sends it."""
        size, persistent = job.body_bytes, str(job.persistent).lower()
        return self._run(job, f"send {job.queue} {job.messages} {job.per_transaction} {size} {persistent}")

    def _run(self, job: Job, line: str, begin: Callable[[], object] = lambda: None) -> Measured:
        """``begin`` is called when the program is ready, at the beginning of the measurement."""
        limit = threading.Timer(job.time_limit, self._process.kill)
        limit.start()
        try:
            self._write_line(line)
            self._expect("ready")
            with Meter(lambda: {job.broker_pid: "broker", self._process.pid: "client"}) as meter:
                begin()
                self._write_line("go")
                self._expect("done")
        finally:
            limit.cancel()
        return meter.measured(job.messages)

    def _write_line(self, line: str) -> None:
        self._stdin.write(line + "\n")
        self._stdin.flush()

    def _expect(self, word: str) -> None:
        if (answer := self._stdout.readline().strip()) != word:
            log = (self._folder / "log").read_text()[-2000:]
            raise RuntimeError(f"the Java client answered {answer!r} instead of {word!r}:\n{log}")


class JetSide(JavaSide):
    """``with JetSide(broker) as jet: jet.read(job, "AT_LEAST_ONCE")``."""

    program = "JetClient"
    flags = ("--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED")
    packages = ("com.hazelcast:hazelcast:5.7.0",)

    def read(self, job: Job, guarantee: str, *, parallelism: int = 1) -> Measured:
        """Measures from the moment the broker resumes the full queue until the source has returned the last message.

        The snapshot that acknowledges the last ones is not waited for: some messages may come back.
        """
        held = self._broker.server.locateQueue(job.queue)
        held.pause()
        measured = self._run(job, f"{job.queue} {job.messages} {guarantee} {parallelism}", held.resume)
        self._write_line("end")
        self._expect("ended")
        deadline = time.monotonic() + job.time_limit
        while self._broker.consumer_count(job.queue):  # its sessions end after the job
            if time.monotonic() > deadline:
                raise RuntimeError(f"queue {job.queue} still has a consumer")
            time.sleep(_POLL_SECONDS)
        return measured
