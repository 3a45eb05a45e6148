"""Measures what one query costs beside its rate: latency, a task, idle time, a start, an import."""

import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from bench import raw
from bench.child import in_child
from bench.job import Job
from bench.processes import Meter
from bench.spark import (
    Progress,
    Reading,
    SparkSide,
    began,
    ended,
    last_batch,
    progress_since,
    rows_of,
    small_batches,
    start_query,
    until,
)

__all__ = [
    "delays", "floor", "idle_percent", "import_ms", "latencies", "latency", "percentile", "start_seconds", "task_ms",
    "toy_latency",
]  # fmt: skip

_TOY_STARTS_SECONDS, _TOY_WARMS_SECONDS = 3.0, 1.0
"""A number is due so long after the start of the query, and those of the first batches are not counted."""


def latencies(side: SparkSide, job: Job, *, per_second: int, seconds: float) -> dict[str, Any]:
    """Return the latencies over STOMP, over AMQP, of a toy source in Python, and of Spark alone."""
    amqp = {"brokerUrl": side.broker.amqp_url}
    pairs = {
        "latency": latency(side, job, per_second=per_second, seconds=seconds),
        "latency_amqp": latency(side, job, amqp, per_second=per_second, seconds=seconds),
    }
    toy = toy_latency(side, per_second=per_second, seconds=seconds)
    rate = rate_latency(side, job, per_second=per_second, seconds=seconds)
    more = {f"{name}_more_than_toy_ms": each["p50_ms"] - toy["p50_ms"] for name, each in pairs.items()}
    return {**pairs, "latency_toy": toy, "latency_rate": rate, **more}


def latency(
    side: SparkSide, job: Job, options: Mapping[str, str] | None = None, *, per_second: int, seconds: float
) -> dict[str, float]:
    """Milliseconds until Spark has written its commit log. A sink may show rows earlier."""
    job = replace(job, queue=f"bench.latency.{time.time_ns()}", messages=int(per_second * seconds))
    with Reading(side, job, options) as reading:
        reading.release()
        sequence, before = reading.sequence(), last_batch(reading.query)
        with Meter(side.roles) as meter:
            sent = _send(job, per_second)
            until(reading.query, lambda: reading.sequence() >= sequence + len(sent))
        batches = progress_since(reading.query, before)
    found = delays(sent, batches)
    busy = {f"{role}_percent": 100 * spent / meter.seconds for role, spent in meter.cpu.items()}
    rounded = {name: round(value, 2) for name, value in busy.items()}
    return {"per_second": per_second, "messages": len(found), **_percentiles(found)} | rounded


def toy_latency(side: SparkSide, *, per_second: int, seconds: float) -> dict[str, float]:
    """Return what a query with the least source in Python needs: what is beyond it is this product's."""
    began, numbers = time.time() + _TOY_STARTS_SECONDS, int(per_second * seconds)
    options = {"began": str(began), "perSecond": str(per_second), "numbers": str(numbers)}
    query = start_query(side, "none", options, source="toy")
    try:
        until(query, lambda: rows_of(query) >= numbers)
        batches = progress_since(query)
    finally:
        query.stop()
    warm = int(per_second * _TOY_WARMS_SECONDS)
    found = delays([began + number / per_second for number in range(numbers)], batches)[warm:]
    return {"per_second": per_second, "messages": len(found), **_percentiles(found)}


def rate_latency(side: SparkSide, job: Job, *, per_second: int, seconds: float) -> dict[str, float]:
    """What Spark alone would need: a source that has each message at once, and ten rows a batch.

    Of Spark's rate sources, ``rate`` shows its rows once a second only. So batches of ``rate-micro-batch`` are timed.
    """
    batches = small_batches(side, job, rows=10, seconds=seconds)
    found = floor(batches, per_second)
    return {"per_second": per_second, "batches": len(batches), **_percentiles(found)}


def floor(batches: Sequence[Progress], per_second: int) -> list[float]:
    """Milliseconds of messages that arrive at a constant rate: each is in the first batch that begins after it."""
    ordered = sorted(batches, key=lambda batch: batch["batchId"])
    begins, ends = [began(batch) for batch in ordered], [ended(batch) for batch in ordered]
    messages = int((begins[-1] - begins[0]) * per_second)
    times = [begins[0] + number / per_second for number in range(messages)]
    return [(ends[bisect_left(begins, at)] - at) * 1000 for at in times]


def _send(job: Job, per_second: int) -> list[float]:
    """Times at which the messages were written to the socket. A late message does not delay the next ones."""
    frames = [raw.frame(job, i) for i in range(job.messages)]
    sent = []
    with raw.connect(job) as connection:
        start = time.monotonic()
        for number, data in enumerate(frames):
            time.sleep(max(0.0, start + number / per_second - time.monotonic()))
            sent.append(time.time())
            connection.sendall(data)
    return sent


def delays(sent: Sequence[float], batches: Sequence[Progress]) -> list[float]:
    """Milliseconds from ``sent[i]`` to the end of the batch that has row ``i`` of these batches."""
    ordered = sorted(batches, key=lambda batch: batch["batchId"])
    times = [ended(batch) for batch in ordered for _ in range(batch["numInputRows"])]
    return [(time - at) * 1000 for at, time in zip(sent, times, strict=True)]


def _percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}_ms": round(percentile(milliseconds, percent), 2) for percent in (50, 99)}


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


# --- small costs -----------------------------------------------------------------------------------

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
