"""Measures the time from SEND to the end of the message's batch, at a constant rate, through Spark to ``noop``."""

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from bench import raw
from bench.job import Job
from bench.processes import Meter
from bench.spark_read import Reading
from bench.spark_session import Progress, SparkSide, ended, progress_since, until

__all__ = ["delays", "latency", "percentile"]


def latency(side: SparkSide, job: Job, *, per_second: int, seconds: float) -> dict[str, float]:
    """Milliseconds until Spark has written its commit log. A sink may show rows earlier."""
    job = replace(job, queue="bench.latency", messages=int(per_second * seconds))
    with Reading(side, job) as reading:
        reading.release()
        sequence = reading.sequence()
        with Meter(side.roles) as meter:
            sent = _send(job, per_second)
            until(reading.query, lambda: reading.sequence() >= sequence + len(sent))
        batches = progress_since(reading.query)
    found = delays(sent, sequence, batches)
    busy = {f"{role}_percent": 100 * spent / meter.seconds for role, spent in meter.cpu.items()}
    document = {"p50_ms": percentile(found, 50), "p99_ms": percentile(found, 99)} | busy
    rounded = {name: round(value, 2) for name, value in document.items()}
    return {"per_second": per_second, "messages": len(found)} | rounded


def _send(job: Job, per_second: int) -> list[float]:
    """Times at which the messages were written to the socket. A late message does not delay the next ones."""
    frames = [raw.frame(job, i) for i in range(job.messages)]
    sent = []
    with raw.connect(job) as connection:
        began = time.monotonic()
        for number, data in enumerate(frames):
            time.sleep(max(0.0, began + number / per_second - time.monotonic()))
            sent.append(time.time())
            connection.sendall(data)
    return sent


def delays(sent: Sequence[float], first: int, batches: Sequence[Progress]) -> list[float]:
    """Milliseconds from ``sent[i]`` to the end of the batch that holds sequence ``first + i``."""
    ordered = sorted(batches, key=lambda batch: batch["batchId"])
    ends = [_end(batch) for batch in ordered]
    times = [ended(batch) for batch in ordered]
    return [(times[bisect_left(ends, first + i + 1)] - at) * 1000 for i, at in enumerate(sent)]


def _end(batch: Progress) -> int:
    return int(batch["sources"][0]["endOffset"]["seq"])


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
