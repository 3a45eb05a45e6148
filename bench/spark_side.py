"""The connector through Spark: one query that reads, one that writes, both running all the time.

So start-up is in no figure, and the JVM is as warm as in a job that has run for a while. The reading query
waits at a queue that the broker holds back until the clock starts; the writing one at an empty folder.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from bench.job import BODY_BYTES, TIME_LIMIT, Measured
from bench.processes import Meter, compiler_seconds, spark_roles
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_jms.testing import EmbeddedArtemis

__all__ = ["SparkSide"]

_READ_QUEUE, _WRITE_QUEUE = "bench.spark.read", "bench.spark.write"
_POLL_SECONDS = 0.05
_CONFIGURATION = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:-UseDynamicNumberOfCompilerThreads",  # one that ended could not be asked
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.sql.files.maxPartitionBytes": "1m",  # one task a file: the sink's transactions
}


@dataclass(slots=True)
class _Noted:
    """``batches``: the progress of those with rows. ``compiling``: CPU seconds of the JVM's compilers."""

    batches: list[dict[str, Any]] = field(default_factory=list)
    compiling: float = 0.0


class SparkSide:
    """``with SparkSide(broker, tasks=8) as side: fill(side.queue); side.read(n); side.write(n)``."""

    queue = _READ_QUEUE

    def __init__(self, broker: EmbeddedArtemis, *, tasks: int) -> None:
        self._broker = broker
        self._tasks = tasks

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="bench-"))
        for queue in (_READ_QUEUE, _WRITE_QUEUE):
            self._broker.create_queue(queue)
        self._held = self._broker.server.locateQueue(_READ_QUEUE)
        self._held.pause()
        try:
            self._spark = _session(self._folder)
            self._jvm_pid = int(self._java.lang.ProcessHandle.current().pid())
            self._reading, self._writing = self._start_reading(), self._start_writing()
            self._until(self._reading, lambda: self._broker.consumer_count(_READ_QUEUE) == 1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        spark = getattr(self, "_spark", None)
        if spark is not None:
            for query in spark.streams.active:
                query.stop()
            spark.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def versions(self) -> dict[str, str]:
        return {"spark": self._spark.version, "java": str(self._java.lang.System.getProperty("java.version"))}

    @property
    def _java(self) -> Any:
        """Packages of Spark's JVM; PySpark has no public way to it."""
        jvm: Any = self._spark._jvm  # noqa: SLF001
        return jvm.java

    # --- reading -------------------------------------------------------------------------------

    def _start_reading(self) -> StreamingQuery:
        frame = self._spark.readStream.format("jms").options(**self._access(), queue=_READ_QUEUE).load()
        checkpoint = str(self._folder / "reading")
        return frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()

    def read(self, messages: int) -> Measured:
        """Let the messages go; over when the last one is acknowledged.

        ``seconds`` is trigger time from that moment on: of the triggers that had rows, planning and
        logs included, idle waits before them left out. ``by_the_clock_seconds`` ends with the last ACK.
        """
        with self._noting(self._reading) as noted, Meter(self._roles) as meter:
            self._held.resume()
            self._until(self._reading, lambda: self._held.getMessageCount() == 0)
        self._held.pause()
        return _trigger_time(meter, noted, messages)

    # --- writing -------------------------------------------------------------------------------

    def _start_writing(self) -> StreamingQuery:
        """Numbers from small files, made into messages by Spark's own code: the cheapest source there is."""
        (self._folder / "in" / "nothing").mkdir(parents=True)
        numbers = self._spark.readStream.schema("id long").parquet(str(self._folder / "in" / "*"))
        writer = numbers.select(*_message_columns()).writeStream.format("jms").options(**self._access())
        writer = writer.option("queue", _WRITE_QUEUE).option("checkpointLocation", str(self._folder / "writing"))
        return writer.trigger(processingTime="500 milliseconds").start()

    def write(self, messages: int) -> Measured:
        """One batch of ``tasks`` tasks. ``seconds`` is its trigger time."""
        staged, arrived = self._folder / "staged", self._folder / "in" / f"batch-{time.time_ns()}"
        self._spark.range(0, messages, 1, self._tasks).write.parquet(str(staged))
        with self._noting(self._writing) as noted, Meter(self._roles) as meter:
            staged.rename(arrived)
            self._until(self._writing, lambda: _rows(self._writing, meter.began) >= messages)
        stored = self._broker.message_count(_WRITE_QUEUE)
        if stored != messages:
            raise RuntimeError(f"{messages} rows were written, {stored} messages arrived")
        self._broker.purge(_WRITE_QUEUE)
        return _trigger_time(meter, noted, messages)

    # --- both ----------------------------------------------------------------------------------

    def _access(self) -> dict[str, str]:
        return {"brokerUrl": self._broker.url, "user": self._broker.user, "password": self._broker.password}

    def _roles(self) -> dict[int, str]:
        return {self._broker.pid: "broker", **spark_roles(self._jvm_pid)}

    @contextmanager
    def _noting(self, query: StreamingQuery) -> Iterator["_Noted"]:
        """Filled after the block, with what happened in it."""
        noted, before, compiling = _Noted(), _last_batch(query), compiler_seconds(self._jvm_pid)
        yield noted
        noted.compiling = compiler_seconds(self._jvm_pid) - compiling
        noted.batches = [batch for batch in _progress(query) if batch["numInputRows"] and batch["batchId"] > before]

    @staticmethod
    def _until(query: StreamingQuery, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIME_LIMIT
        while not true():
            if not query.isActive or time.monotonic() > deadline:
                raise RuntimeError(f"the query did not get there: {query.exception() or query.lastProgress}")
            time.sleep(_POLL_SECONDS)


def _session(folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("pyspark-jms bench")
    for name, value in (_CONFIGURATION | {"spark.sql.warehouse.dir": str(folder / "warehouse")}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _message_columns() -> list[Any]:
    """What ``job.text`` and ``job.properties`` make, as columns of ``id``."""
    return [
        f.expr(f"concat(lpad(id, 12, '0'), '{'x' * (BODY_BYTES - 12)}')").alias("text"),
        f.expr(
            "map('customer', concat('C', id % 1000), 'region', elt(id % 4 + 1, 'north', 'south', 'east', 'west'),"
            " 'amount', concat(id * 7 % 100000, '.50'), 'created', concat('2026-01-01T12.', id % 60),"
            " 'note', concat('path ', id))"
        ).alias("properties"),
    ]


def _progress(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(progress.json) for progress in query.recentProgress]


def _last_batch(query: StreamingQuery) -> int:
    return max((batch["batchId"] for batch in _progress(query) if batch["numInputRows"]), default=-1)


def _rows(query: StreamingQuery, since: float) -> int:
    """Rows of the batches that ended since then."""
    return sum(batch["numInputRows"] for batch in _progress(query) if _ended(batch) > since)


def _began(batch: dict[str, Any]) -> float:
    return datetime.fromisoformat(batch["timestamp"]).timestamp()


def _ended(batch: dict[str, Any]) -> float:
    return float(_began(batch) + batch["durationMs"]["triggerExecution"] / 1000)


def _trigger_time(meter: Meter, noted: _Noted, messages: int) -> Measured:
    batches = noted.batches
    rows = sum(batch["numInputRows"] for batch in batches)
    if rows != messages:
        raise RuntimeError(f"{messages} messages were sent and {rows} rows read")
    notes = {"by_the_clock_seconds": meter.seconds, "batches": float(len(batches))}
    notes["jvm_compiling_us_per_message"] = noted.compiling / messages * 1e6
    for part in ("latestOffset", "addBatch"):
        notes[f"{part}_seconds"] = sum(batch["durationMs"].get(part, 0) for batch in batches) / 1000
    busy = sum(_ended(batch) - max(_began(batch), meter.began) for batch in batches)
    return Measured(messages=messages, seconds=busy, cpu=meter.cpu, notes=notes)
