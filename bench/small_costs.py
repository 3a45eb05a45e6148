"""Measures the fixed costs of a query: a task, idle time, a start, an import."""

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from bench import raw
from bench.child import in_child
from bench.job import Job
from bench.processes import Meter
from bench.spark_read import Reading, start_query
from bench.spark_session import SparkSide, ended, progress_since, until

__all__ = ["idle_percent", "import_ms", "start_seconds", "task_ms"]

_FEW, _MANY = "64m", "64k"
_IMPORT = "import time; began = time.perf_counter(); import pyspark_jms; print((time.perf_counter() - began) * 1000)"


def task_ms(side: SparkSide, job: Job, *, turns: int) -> dict[str, float]:
    """Milliseconds of CPU for one more read task, by process. Compares the same messages in many tasks and in few."""
    few, many = (replace(job, queue=f"bench.tasks.{name}") for name in ("few", "many"))
    with (
        Reading(side, few, {"partitionBytes": _FEW}) as in_few,
        Reading(side, many, {"partitionBytes": _MANY}) as in_many,
    ):
        pairs = [(_tasks_and_cpu(side, in_few), _tasks_and_cpu(side, in_many)) for _ in range(1 + turns)][1:]
    found = {}
    for role in ("workers", "jvm", "runner"):
        costs = [(m[role] - f[role]) / (m_tasks - f_tasks) for (f_tasks, f), (m_tasks, m) in pairs if m_tasks > f_tasks]
        found[f"{role}_ms"] = median(costs) * 1000 if costs else float("nan")
    return {name: round(cost, 2) for name, cost in found.items()} | {"tasks": median(many for _, (many, _) in pairs)}


def _tasks_and_cpu(side: SparkSide, reading: Reading) -> tuple[int, dict[str, float]]:
    in_child(raw.fill, reading.job)
    before = side.tasks_of(reading.query)
    measured = reading.measure()
    return side.tasks_of(reading.query) - before, measured.cpu


def idle_percent(
    side: SparkSide, job: Job, options: Mapping[str, str] | None = None, *, seconds: float
) -> dict[str, float]:
    """Percent of one core that broker and Spark use with a waiting query, and without a query."""
    found = {f"without_{role}": share for role, share in _idle(side, seconds).items()}
    with Reading(side, replace(job, queue=f"bench.idle.{time.time_ns()}"), options) as reading:
        reading.release()
        time.sleep(min(seconds, 2))
        found |= _idle(side, seconds)
    found["percent"] = sum(share for role, share in found.items() if not role.startswith("without_"))
    found["without_percent"] = sum(share for role, share in found.items() if role.startswith("without_"))
    return {name: round(share, 2) for name, share in found.items()}


def _idle(side: SparkSide, seconds: float) -> dict[str, float]:
    with Meter(side.roles) as meter:
        time.sleep(seconds)
    return {role: 100 * spent / meter.seconds for role, spent in meter.cpu.items()}


def start_seconds(side: SparkSide, job: Job, *, times: int) -> float:
    """Seconds from ``load()`` to the end of the first batch, for a queue with one message and a warm JVM."""
    return median(_start(side, replace(job, queue=f"bench.start.{number}")) for number in range(times))


def _start(side: SparkSide, job: Job) -> float:
    side.broker.create_queue(job.queue)
    raw.fill(raw.smaller(job, 1))
    began = time.time()
    query = start_query(side, job.queue)
    try:
        until(query, lambda: bool(progress_since(query)))
        return ended(progress_since(query)[0]) - began
    finally:
        query.stop()


def import_ms(*, times: int) -> float:
    """Milliseconds of ``import pyspark_jms`` in a new interpreter. Every Python worker of Spark runs it first."""
    command = [sys.executable, "-c", _IMPORT]
    return median(
        float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
        for _ in range(times)
    )
