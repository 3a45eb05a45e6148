"""YARN and HDFS on this machine, in one process, and what a shell does with them. The jars come from Maven Central."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pythons
from legs import Submission
from standalone import await_logged, spark_home

from pyspark_jms.tools.testing.jars import resolve
from pyspark_jms.tools.testing.java import find_java

HADOOP = "3.5.0"
"""The version of the Hadoop client in the wheel of PySpark 4.3."""

_PACKAGES = (
    f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}",
    "org.junit.jupiter:junit-jupiter-api:5.13.4",
    "org.slf4j:slf4j-reload4j:1.7.36",
    "org.bouncycastle:bcpkix-jdk18on:1.82",
)
_LOGGING = """log4j.rootLogger=WARN, A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1} %m%n
"""
_START_SECONDS = 300
_APPLICATION = r"application_\d+_\d+"
APPLICATION_MASTER, EXECUTOR = b"yarn.ApplicationMaster", b"YarnCoarseGrainedExecutorBackend"
PYTHON = "./environment/bin/python"
"""Of a container, in which YARN has unpacked the environment."""


class Yarn:
    url = "yarn"

    def __init__(self, folder):
        self._folder = folder
        self.conf = folder / "conf"
        self._log = folder / "log"
        self.hdfs = ""
        self._process = None

    def __enter__(self):
        (self._folder / "logging").mkdir(parents=True)
        (self._folder / "logging" / "log4j.properties").write_text(_LOGGING)
        jars = [str(self._folder / "logging"), *resolve(_PACKAGES)]
        self._classes = ":".join(jars)
        source = Path(__file__).with_name("YarnCluster.java")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [find_java(), "-Xmx900m", "-cp", self._classes, str(source), str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )
        self.hdfs = self._answer(r"ready (\S+)")[1]
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)

    def carry_out(self, line):
        """``stop-node N``, ``restart-resourcemanager`` or ``restart-namenode``."""
        before = self._log.read_text().count(f"done {line}")
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        self._answer(rf"(?s)(.*done {re.escape(line)}){{{before + 1}}}")

    def _answer(self, pattern):
        return await_logged(self._process, self._log, pattern, "the cluster", _START_SECONDS)

    def logs(self, application):
        """The ends of the logs of its containers."""
        files = [each for each in self._folder.rglob(f"{application}/*/std*") if each.stat().st_size]
        return "\n".join(f"--- {each}\n{each.read_text(errors='replace')[-3000:]}" for each in files)

    def kill_application(self, application):
        """As ``yarn application -kill ID`` does."""
        command = [find_java(), "-cp", f"{self.conf}:{self._classes}"]
        command += ["org.apache.hadoop.yarn.client.cli.ApplicationCLI", "application", "-kill", application]
        subprocess.run(command, check=True, timeout=120, capture_output=True)


class YarnJob(Submission):
    """A ``spark-submit`` to YARN. ``archive`` is the packed environment."""

    def __init__(self, yarn, folder, legs, archive, *, mode="cluster", conf=None):
        self._yarn = yarn
        given = {
            "spark.yarn.jars": f"local:{spark_home()}/jars/*",
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": PYTHON,
            "spark.executorEnv.PYSPARK_PYTHON": PYTHON,
            "spark.yarn.maxAppAttempts": "20",
            "spark.yarn.am.memory": "512m",
            "spark.executor.instances": "2",
            "spark.executor.cores": "1",
            "spark.python.unix.domain.socket.enabled": "false",  # a container's path is too long for a socket
        }
        hadoop = {"HADOOP_CONF_DIR": str(yarn.conf), "YARN_CONF_DIR": str(yarn.conf)}
        super().__init__(
            yarn,
            folder,
            legs,
            python=PYTHON,
            conf=given | (conf or {}),
            arguments=["--deploy-mode", mode, "--archives", f"{archive}#environment"],
            environment=hadoop,
            cwd=archive.with_name("client"),  # of a driver in client mode: the environment is beside it, too
        )

    def kill_application(self, seconds=400):
        self._yarn.kill_application(self.application)
        self.wait(seconds)

    @property
    def application(self):
        """The id that YARN has given it."""
        return await_logged(self._process, self.log, _APPLICATION, "spark-submit", 200)[0]

    def output(self):
        """With that of its containers."""
        own = super().output()
        found = re.search(_APPLICATION, own)
        return own + (self._yarn.logs(found[0]) if found else "")

    def processes(self, word):
        """The pids of its containers' JVMs whose command has the word."""
        application, found = self.application.encode(), []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                command = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
                name = Path(os.fsdecode(command.partition(b"\0")[0])).name
                if name == "java" and word in command and application in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return sorted(found)


def pack(folder, wheel):
    """Pack an environment without PySpark, as deployment.md says. Returns the archive; it is unpacked beside it."""
    python = pythons.make(folder / "environment", *pythons.OF_SPARK, *pythons.OF_OURS, wheel=wheel)
    packages = next(python.parents[1].glob("lib/python3*/site-packages"))
    for link in [each for each in packages.iterdir() if each.is_symlink()]:  # an archive needs the files
        target = link.resolve()
        link.unlink()
        (shutil.copytree if target.is_dir() else shutil.copy)(target, link)
    archive, unpacked = folder / "environment.tar.gz", folder / "client" / "environment"
    tool = str(Path(sys.executable).with_name("venv-pack"))
    subprocess.run([tool, "-q", "-p", str(python.parents[1]), "-o", str(archive)], check=True, timeout=300)
    unpacked.mkdir(parents=True)
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(unpacked)], check=True, timeout=100)
    return archive
