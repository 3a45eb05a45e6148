"""The benchmark's own Spark beside a broker: its session, and the queries that read and write.

A query reads to ``noop``, and the broker pauses its queue until the clock starts, so measurements contain no start-up
time. A query that writes waits at an empty folder until files arrive: numbers, which Spark's own code turns into
messages with the least CPU. Spark alone reads rows of its rate source: its upper limit, and its lower limit of latency.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from bench import raw
from bench.job import DIFFERENT, TIME_LIMIT, Job, Measured, text_at
from bench.machine import ROOT
from bench.processes import Meter, compiler_seconds, source_runners, spark_roles
from pyspark_jms.testing import EmbeddedArtemis

__all__ = [
    "Progress", "Reading", "SparkSide", "Writing", "began", "ended", "last_batch", "message_columns", "progress_since",
    "rate_source", "rows_of", "small_batches", "start_query", "until",
]  # fmt: skip

Progress = dict[str, Any]
"""Spark's progress of a batch: ``StreamingQueryProgress`` as JSON."""

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
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("pyspark-jms bench")
    every = _CONFIGURATION | {"spark.sql.warehouse.dir": str(folder / "warehouse")} | dict(configuration)
    for name, value in every.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def until(query: StreamingQuery, true: Callable[[], bool], seconds: float = TIME_LIMIT) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        if not query.isActive or time.monotonic() > deadline:
            raise RuntimeError(f"the query did not reach its goal: {query.exception() or query.lastProgress}")
        time.sleep(_POLL_SECONDS)


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


# --- reading ---------------------------------------------------------------------------------------

_STOP_SECONDS = 15.0
_WAKING_MESSAGES, _WAKING_BYTES = 4_000, 10_240


class Reading:
    """``with Reading(side, job) as reading: fill(reading.job); reading.measure()``.

    ``source`` must count its messages in an offset ``{"seq": n}``. ``acknowledges``: whether its queue is empty at the
    end; the queue of the naive source is not. ``fill`` sends the ``warm_up`` messages.
    """

    def __init__(
        self,
        side: SparkSide,
        job: Job,
        options: Mapping[str, str] | None = None,
        *,
        source: str = "jms",
        acknowledges: bool = True,
        warm_up: int = 200,
        fill: Callable[[Job], object] = raw.fill,
        schema: str | None = None,
        queues: int = 1,
    ) -> None:
        self.job = job
        self.queues = [job.queue] if queues == 1 else [f"{job.queue}.{number}" for number in range(queues)]
        self._side, self._source, self._options = side, source, dict(options or {})
        self._acknowledges, self._warm_up, self._fill, self._schema = acknowledges, warm_up, fill, schema
        # The offset then counts batches, and the queue has a consumer only while a task receives.
        self._tasks_receive = "deliveryGuarantee" in self._options and "journalLocation" not in self._options

    def __enter__(self) -> Self:
        broker = self._side.broker
        for queue in self.queues:
            broker.create_queue(queue)
        self._held = [broker.server.locateQueue(queue) for queue in self.queues]
        self._hold()
        named = self.queues[0] if len(self.queues) == 1 else json.dumps(self.queues)
        others = self._side.runners()
        self.query = start_query(self._side, named, self._options, source=self._source, schema=self._schema)
        until(self.query, lambda: bool(self._side.runners() - others))
        self.runners = self._side.runners() - others
        if not self._tasks_receive:
            until(self.query, lambda: all(broker.consumer_count(queue) for queue in self.queues))
        if self._warm_up:
            self._fill(raw.smaller(replace(self.job, queue=self.queues[0]), self._warm_up))
            self.measure(self._warm_up)
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()
        deadline = time.monotonic() + _STOP_SECONDS  # stop() returns before the source's process has ended
        for queue, held in zip(self.queues, self._held, strict=True):
            while self._side.broker.consumer_count(queue) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            self._side.broker.purge(queue)
            self._side.broker.gateway.detach(held)

    def _hold(self) -> None:
        for held in self._held:
            held.pause()

    def release(self) -> None:
        """Resume delivery of the paused queues."""
        for held in self._held:
            held.resume()

    def wake(self) -> None:
        """Read some uncounted batches first. Spark ends Python workers that had no task for a minute, and a new worker
        has a start-up cost. The messages are large enough for several tasks, so that each core gets a worker.
        """
        job = raw.smaller(replace(self.job, queue=self.queues[0], body_bytes=_WAKING_BYTES), _WAKING_MESSAGES)
        raw.fill(job)
        self.measure(job.messages)

    def sequence(self) -> int:
        """Number of messages in the query's finished batches since its start."""
        if self._tasks_receive:
            return rows_of(self.query)
        last = last_progress(self.query)
        return 0 if last is None else _sequence(last["sources"][0]["endOffset"])

    def measure(self, messages: int | None = None) -> Measured:
        """Resume the queue and wait until the last message is read and, if the source does so, acknowledged.

        ``seconds`` is trigger time from the resume on: the triggers that had rows, with planning and logs, without idle
        waits before them. ``by_the_clock_seconds`` ends with the last ACK.
        """
        messages = messages or self.job.messages
        goal = self.sequence() + messages
        roles = partial(self._side.roles_of, self.runners)
        with _Batches(self._side, self.query, roles) as batches:
            self.release()
            for held in self._held if self._acknowledges else ():
                until(self.query, lambda held=held: held.getMessageCount() == 0, self.job.time_limit)  # type: ignore[misc]
            until(self.query, lambda: self.sequence() >= goal, self.job.time_limit)
        self._hold()
        return batches.measured(messages)


def start_query(
    side: SparkSide,
    queue: str,
    options: Mapping[str, str] | None = None,
    *,
    source: str = "jms",
    schema: str | None = None,
) -> StreamingQuery:
    """``queue``: a name, or a JSON array of names."""
    reader = side.spark.readStream.format(source).options(**{**side.access(), "queue": queue, **(options or {})})
    frame = (reader.schema(schema) if schema else reader).load()
    checkpoint = str(side.folder / f"reading-{time.time_ns()}")
    return frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()


def _sequence(offset: Any) -> int:
    if offset is None:
        return 0
    return int((json.loads(offset) if isinstance(offset, str) else offset)["seq"])


class _Batches:
    """``with _Batches(side, query, roles) as batches: …`` and then ``measured``: the trigger time of its batches."""

    def __init__(self, side: SparkSide, query: StreamingQuery, roles: Callable[[], dict[int, str]]) -> None:
        self._side, self._query, self._meter = side, query, Meter(roles)

    def __enter__(self) -> Self:
        self._before, self._compiling = last_batch(self._query), compiler_seconds(self._side.jvm_pid)
        self._meter.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._meter.__exit__()
        self._compiling = compiler_seconds(self._side.jvm_pid) - self._compiling
        self._progress = progress_since(self._query, self._before)

    def measured(self, messages: int | None = None) -> Measured:
        rows = sum(batch["numInputRows"] for batch in self._progress)
        if messages not in {None, rows}:
            raise RuntimeError(f"{messages} messages were sent and {rows} rows read")
        notes = {"by_the_clock_seconds": self._meter.seconds, "batches": float(len(self._progress))}
        notes["jvm_compiling_us_per_message"] = self._compiling / rows * 1e6
        for part in ("latestOffset", "addBatch"):
            notes[f"{part}_seconds"] = sum(batch["durationMs"].get(part, 0) for batch in self._progress) / 1000
        busy = sum(ended(batch) - max(began(batch), self._meter.began) for batch in self._progress)
        return Measured(messages=rows, seconds=busy, cpu=self._meter.cpu, notes=notes)


# --- writing ---------------------------------------------------------------------------------------

_WARM_UP_ROWS = 20_000


class Writing:
    """``with Writing(side, job, tasks=8) as writing: writing.measure()``: one batch of ``tasks`` tasks."""

    def __init__(self, side: SparkSide, job: Job, options: Mapping[str, str] | None = None, *, tasks: int) -> None:
        self.job = job
        self._side, self._tasks, self._options = side, tasks, dict(options or {})

    def __enter__(self) -> Self:
        self._folder = self._side.folder / f"writing-{time.time_ns()}"
        (self._folder / "in" / "nothing").mkdir(parents=True)
        self._side.broker.create_queue(self.job.queue)
        self.query = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()

    def _start(self) -> StreamingQuery:
        numbers = self._side.spark.readStream.schema("id long").parquet(str(self._folder / "in" / "*"))
        rows = numbers.select(*message_columns(self.job))
        options = {**self._side.access(), "queue": self.job.queue, **self._options}
        writer = rows.writeStream.format("jms").options(**options)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        return writer.trigger(processingTime="500 milliseconds").start()

    def measure(self, messages: int | None = None) -> Measured:
        """``seconds`` is the trigger time of the batch.

        Some uncounted rows are written first, because Spark ends Python workers that had no task for a minute, and a
        new worker has a start-up cost.
        """
        self.write_staged(self.staged(_WARM_UP_ROWS), _WARM_UP_ROWS)
        messages = messages or self.job.messages
        return self.write_staged(self.staged(messages), messages)

    def staged(self, messages: int) -> Path:
        """The files of a batch, where the query does not see them."""
        folder = self._folder / f"staged-{time.time_ns()}"
        self._side.spark.range(0, messages, 1, self._tasks).write.parquet(str(folder))
        return folder

    def write_staged(self, staged: Path, messages: int) -> Measured:
        arrived = self._folder / "in" / f"batch-{time.time_ns()}"
        before = last_batch(self.query)
        # A source of files has no runner.
        with _Batches(self._side, self.query, partial(self._side.roles_of, ())) as batches:
            staged.rename(arrived)
            until(self.query, lambda: last_batch(self.query) > before, self.job.time_limit)
        shutil.rmtree(arrived)  # of more than 32 folders Spark makes a job to list them, at each trigger
        self._empty(messages)
        return batches.measured(messages)

    def _empty(self, messages: int) -> None:
        # The broker confirms a durable commit. Once in hundreds of batches it has not yet queued all rows then.
        count = self._side.broker.message_count
        until(self.query, lambda: count(self.job.queue) >= messages, self.job.time_limit)
        stored = count(self.job.queue)
        if stored != messages:
            raise RuntimeError(f"{messages} rows were written, {stored} messages arrived")
        self._side.broker.purge(self.job.queue)


_PROPERTIES = {
    "customer": "concat('C', id % 1000)",
    "region": "elt(id % 4 + 1, 'north', 'south', 'east', 'west')",
    "amount": "concat(id * 7 % 100000, '.50')",
    "created": "concat('2026-01-01T12.', id % 60)",
    "note": "concat('path ', id)",
}
"""Name → Spark's expression for ``Job.properties_of``."""


def message_columns(job: Job) -> list[Any]:
    """The messages of ``Job.text_of``, ``Job.properties_of`` and ``Job.persistent``: columns computed from ``id``."""
    texts = f.lit([text_at(number, job.body_bytes - 12) for number in range(DIFFERENT)])
    entries = ", ".join(f"'{name}', {value}" for name, value in _PROPERTIES.items())
    columns = [
        f.concat(f.expr("lpad(id, 12, '0')"), f.element_at(texts, f.expr(f"int(id % {DIFFERENT} + 1)"))).alias("text"),
        f.expr(f"map({entries})").alias("properties"),
    ]
    return columns if job.persistent else [*columns, f.lit(1).alias("JMSDeliveryMode")]


# --- Spark alone -----------------------------------------------------------------------------------

_ROWS_A_BATCH = 20_000
"""About the size of the connector's batches while it drains a queue."""


def rate_source(side: SparkSide, job: Job) -> Measured:
    """Trigger time of the batches with ``job.messages`` rows; the first batch is not counted."""
    rows = min(_ROWS_A_BATCH, job.messages)
    with rate_query(side, job, rows=rows, tasks=2) as query:
        goal = last_batch(query) + -(-job.messages // rows)
        with _Batches(side, query, lambda: {side.jvm_pid: "jvm"}) as batches:
            until(query, lambda: last_batch(query) >= goal)
    return batches.measured()


def small_batches(side: SparkSide, job: Job, *, rows: int, seconds: float) -> list[Progress]:
    """Batches of a few rows and one task that follow each other without a pause, for about so many seconds."""
    with rate_query(side, job, rows=rows, tasks=1) as query:
        begin = last_batch(query)
        time.sleep(seconds)
        return progress_since(query, begin)


@contextmanager
def rate_query(side: SparkSide, job: Job, *, rows: int, tasks: int) -> Iterator[StreamingQuery]:
    """It has ended its first batch."""
    source = side.spark.readStream.format("rate-micro-batch").options(rowsPerBatch=rows, numPartitions=tasks).load()
    frame = source.withColumnRenamed("value", "id").select(*message_columns(job))
    checkpoint = str(side.folder / f"rate-{time.time_ns()}")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        until(query, lambda: last_batch(query) >= 0)
        yield query
    finally:
        query.stop()
