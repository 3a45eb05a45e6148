"""Jobs on a cluster. A job has legs, each from a source to a sink; ``tests/cluster/legs_job.py`` runs them."""

import json
import os
import subprocess
from pathlib import Path

import session
from standalone import HOST, java_options, spark_home
from streaming import access

JOB = Path(__file__).parents[1] / "cluster" / "legs_job.py"
_SMALL = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "640m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.unix.domain.socket.enabled": "true",
}


def from_queue(broker, queue, **options):
    return {"source": {"format": "jms", "options": access(broker) | {"queue": queue, "idleTimeout": "1s"} | options}}


def from_files(folder):
    return {"source": {"format": "parquet", "options": {"path": str(folder)}, "schema": "n STRING, text STRING"}}


def to_queue(broker, queue, checkpoint, **options):
    return {
        "columns": ["text", "map('n', n) AS properties"],
        "sink": {"format": "jms", "options": access(broker) | {"queue": queue} | options},
        "checkpoint": str(checkpoint),
    }


def to_files(folder, checkpoint):
    return {"sink": {"format": "parquet", "options": {"path": str(folder)}}, "checkpoint": str(checkpoint)}


def to_nothing(checkpoint):
    """A leg without output, which runs until it is killed."""
    return {
        "sink": {"format": "noop", "options": {}},
        "checkpoint": str(checkpoint),
        "trigger": {"processingTime": "0 seconds"},
    }


class Submission:
    """A ``spark-submit`` in a new session. ``end`` waits for it and returns the job's report."""

    def __init__(self, cluster, folder, legs, *, python, driver=None, register=False, together=False, **choices):
        """``python`` is PYSPARK_PYTHON; ``driver`` is the Python of the driver if it is another one.

        On a ``machine`` of its own (``own_machine.Machine``) the job reports to the disk of that machine: use ``wait``.
        """
        self._start(
            cluster,
            folder,
            {"legs": legs, "register": register, "together": together},
            python,
            driver or python,
            **choices,
        )

    def _start(
        self,
        cluster,
        folder,
        order,
        python,
        driver,
        *,
        conf=None,
        arguments=(),
        environment=None,
        cwd=None,
        machine=None,
    ):
        folder.mkdir()
        self._reported = (machine.disk if machine else folder) / "reported.json"
        self.log = folder / "log"
        (folder / "legs.json").write_text(json.dumps(order | {"reported": str(self._reported)}))
        ours = {"spark.executor.extraJavaOptions": java_options(), "spark.pyspark.driver.python": driver}
        options = [
            part for name, value in (_SMALL | ours | (conf or {})).items() for part in ("--conf", f"{name}={value}")
        ]
        command = [f"{spark_home()}/bin/spark-submit", "--master", cluster.url, *options, *arguments]
        command = [*(machine.command if machine else ()), *command]
        variables = os.environ | {
            "SPARK_HOME": spark_home(),
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_PYTHON": str(python),
            **(environment or {}),
            **(machine.environment if machine else {}),
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(JOB), str(folder / "legs.json")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cwd or folder,
                env=variables,
                start_new_session=True,
            )

    @property
    def session_id(self):
        return self._process.pid

    def ended(self):
        return self._process.poll() is not None

    def wait(self, seconds=200):
        """The exit code."""
        return self._process.wait(seconds)

    def end(self, seconds=200):
        """The report of the job, which must end with exit code 0."""
        assert self.wait(seconds) == 0, self.output()[-6000:]
        return json.loads(self._reported.read_text())

    def output(self):
        return self.log.read_text(errors="replace")

    def kill(self):
        session.kill_session(self.session_id)
        self._process.wait(30)
