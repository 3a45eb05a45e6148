"""Measures the time from SEND to the end of the message's batch, at a constant rate, through Spark to ``noop``."""

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench import raw
from bench.job import Job
from bench.processes import Meter
from bench.spark_rate import small_batches
from bench.spark_read import Reading
from bench.spark_session import Progress, SparkSide, began, ended, last_batch, progress_since, until

__all__ = ["delays", "floor", "latencies", "latency", "percentile", "rate_latency"]


def latencies(side: SparkSide, job: Job, *, per_second: int, seconds: float) -> dict[str, Any]:
    """Return the latencies over STOMP, over AMQP, and of Spark alone."""
    amqp = {"brokerUrl": side.broker.amqp_url}
    stomp = latency(side, job, per_second=per_second, seconds=seconds)
    plain = latency(side, job, amqp, per_second=per_second, seconds=seconds)
    rate = rate_latency(side, job, per_second=per_second, seconds=seconds)
    return {"latency": stomp, "latency_amqp": plain, "latency_rate": rate}


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
    document = {"p50_ms": percentile(found, 50), "p99_ms": percentile(found, 99)} | busy
    rounded = {name: round(value, 2) for name, value in document.items()}
    return {"per_second": per_second, "messages": len(found)} | rounded


def rate_latency(side: SparkSide, job: Job, *, per_second: int, seconds: float) -> dict[str, float]:
    """What Spark alone would need: a source that has each message at once, and ten rows a batch.

    Of Spark's rate sources, ``rate`` shows its rows once a second only. So batches of ``rate-micro-batch`` are timed.
    """
    batches = small_batches(side, job, rows=10, seconds=seconds)
    found = floor(batches, per_second)
    return {
        "per_second": per_second,
        "batches": len(batches),
        "p50_ms": round(percentile(found, 50), 2),
        "p99_ms": round(percentile(found, 99), 2),
    }


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


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
