"""The benchmark's own Spark beside a broker: session, processes, and the progress of queries."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.job import TIME_LIMIT
from bench.processes import source_runners, spark_roles
from pyspark_jms.testing import EmbeddedArtemis

__all__ = [
    "Progress",
    "SparkSide",
    "began",
    "ended",
    "last_batch",
    "last_progress",
    "progress_since",
    "rows_of",
    "until",
]

Progress = dict[str, Any]
"""Spark's progress of a batch: ``StreamingQueryProgress`` as JSON."""

_ROOT = Path(__file__).resolve().parent.parent
_POLL_SECONDS = 0.02
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_CONFIGURATION = {
    "spark.driver.memory": "2g",
    # The CPU of a compiler thread that has ended could not be read.
    "spark.driver.extraJavaOptions": "-XX:-UseDynamicNumberOfCompilerThreads",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",  # a stopped query logs its cancelled tasks as errors; a failed one raises
    "spark.python.unix.domain.socket.enabled": "true",
    # The default starts processes for each batch, to resolve links in the checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.sql.files.maxPartitionBytes": "1m",  # one task for each file: the sink's transactions
}


class SparkSide:
    """``with SparkSide(broker) as side:``, for ``Reading`` and ``Writing``. ``folder`` is deleted at the end."""

    def __init__(self, broker: EmbeddedArtemis, configuration: Mapping[str, str] | None = None) -> None:
        self.broker = broker
        self._configuration = dict(configuration or {})

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="bench-"))
        try:
            self.spark = _session(self.folder, self._configuration)
            self.jvm_pid = int(self._java.lang.ProcessHandle.current().pid())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        spark = getattr(self, "spark", None)
        if spark is not None:
            for query in spark.streams.active:
                query.stop()
            spark.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def versions(self) -> dict[str, str]:
        return {"spark": self.spark.version, "java": str(self._java.lang.System.getProperty("java.version"))}

    @property
    def _java(self) -> Any:
        """Packages of Spark's JVM. PySpark has no public API for them."""
        jvm: Any = self.spark._jvm  # noqa: SLF001
        return jvm.java

    def used_heap(self) -> int:
        """Used bytes after a garbage collection. A leak would increase them."""
        self._java.lang.System.gc()
        memory = self._java.lang.management.ManagementFactory.getMemoryMXBean()
        return int(memory.getHeapMemoryUsage().getUsed())

    def task_seconds(self) -> dict[int, float]:
        """CPU seconds of each of the JVM's task threads, without those that plan and report.

        Spark ends a task thread after a minute without a task.
        """
        threads = self._java.lang.management.ManagementFactory.getThreadMXBean()
        every = [(each, threads.getThreadInfo(each)) for each in threads.getAllThreadIds()]
        named = [each for each, info in every if info is not None and info.getThreadName().startswith("Executor task")]
        return {int(each): threads.getThreadCpuTime(each) / 1e9 for each in named}

    def roles(self) -> dict[int, str]:
        return {self.broker.pid: "broker", **spark_roles(self.jvm_pid)}

    def runners(self) -> set[int]:
        """The processes of the sources of all queries."""
        return source_runners(self.jvm_pid)

    def roles_of(self, runners: Collection[int]) -> dict[int, str]:
        """``roles`` without the source runners of other queries, which poll while the measured query runs."""
        others = self.runners().difference(runners)
        return {pid: role for pid, role in self.roles().items() if pid not in others}

    def access(self) -> dict[str, str]:
        return {"brokerUrl": self.broker.url, "user": self.broker.user, "password": self.broker.password}

    def tasks_of(self, query: StreamingQuery) -> int:
        """Number of tasks of the query's jobs so far, as far as Spark keeps them."""
        tracker = self.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(query.runId)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numTasks for stage in stages if stage)


def _session(folder: Path, configuration: Mapping[str, str]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("pyspark-jms bench")
    every = _CONFIGURATION | {"spark.sql.warehouse.dir": str(folder / "warehouse")} | dict(configuration)
    for name, value in every.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def until(
    query: StreamingQuery, true: Callable[[], bool], seconds: float = TIME_LIMIT, *, pause: float = _POLL_SECONDS
) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        if not query.isActive or time.monotonic() > deadline:
            raise RuntimeError(f"the query did not reach its goal: {query.exception() or query.lastProgress}")
        time.sleep(pause)


def last_progress(query: StreamingQuery) -> Progress | None:
    """The last progress. This is cheap enough for polling, unlike ``recentProgress``."""
    progress = query.lastProgress
    return None if progress is None else json.loads(progress.json)


def last_batch(query: StreamingQuery) -> int:
    """Number of the last batch with rows; -1 before the first one."""
    last = last_progress(query)
    if last is None:
        return -1
    # A trigger without rows has the number of the next batch.
    return int(last["batchId"]) - (0 if last["numInputRows"] else 1)


def progress_since(query: StreamingQuery, batch: int = -1) -> list[Progress]:
    """Progress of the batches with rows after ``batch``."""
    every = [json.loads(progress.json) for progress in query.recentProgress]
    return [one for one in every if one["numInputRows"] and one["batchId"] > batch]


def rows_of(query: StreamingQuery) -> int:
    """How many rows the query's batches had so far."""
    return sum(batch["numInputRows"] for batch in progress_since(query))


def began(batch: Progress) -> float:
    return datetime.fromisoformat(batch["timestamp"]).timestamp()


def ended(batch: Progress) -> float:
    return float(began(batch) + batch["durationMs"]["triggerExecution"] / 1000)
