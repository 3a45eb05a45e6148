"""Runs a query at a constant rate for a long time, to see whether its memory grows and whether it keeps up."""

import contextlib
import threading
import time
from dataclasses import replace
from typing import Any

from bench import raw
from bench.child import in_child
from bench.job import Job
from bench.memory import Sampler, Trend, trend
from bench.processes import Meter
from bench.protocols import Protocol
from bench.rounds import Stage
from bench.spark_read import Reading
from bench.spark_session import until

__all__ = ["soak"]

_SAMPLES = 180
_WARM_UP = 1 / 3
"""Share of the time at the start whose memory samples are not counted."""

_MEGABYTE = 1 << 20
_SETTLING_SECONDS = 60
"""The broker deletes files of its journal some time after their last message is gone."""


def soak(stage: Stage, job: Job, protocol: Protocol, *, minutes: float, per_second: int) -> dict[str, Any]:
    """Slopes in MB an hour with twice their standard error. The JVM's heap is measured after a garbage collection."""
    side, seconds = stage.spark, minutes * 60
    messages = int(seconds * per_second)
    job = replace(job, queue="bench.soak", messages=messages, per_transaction=per_second, time_limit=2 * seconds + 120)
    heap: list[tuple[float, float]] = []
    waiting: list[int] = []
    stored = [_stored_mb(stage)]
    with Reading(side, job, protocol.options(stage.broker)) as reading:
        reading.release()
        first = reading.sequence()
        sender = threading.Thread(target=in_child, args=(raw.paced, job), daemon=True)
        with Sampler(side.roles, every=seconds / _SAMPLES) as sampler, Meter(side.roles) as meter:
            began = time.monotonic()
            sender.start()
            while sender.is_alive():
                sender.join(seconds / 30)
                heap.append((time.monotonic() - began, side.used_heap()))
                waiting.append(stage.broker.message_count(job.queue))
                stored.append(_stored_mb(stage))
            until(reading.query, lambda: reading.sequence() >= first + messages, job.time_limit)
    time.sleep(_SETTLING_SECONDS)
    late = [(at, used) for at, used in heap if at >= _WARM_UP * seconds]
    trends = sampler.trends(after=_WARM_UP * seconds) | {"heap": trend(*zip(*late, strict=True))}
    return {
        "minutes": minutes,
        "per_second": per_second,
        "messages": messages,
        "most_waiting": max(waiting),
        "storage_mb": {"before": stored[0], "most": max(stored), "after": _stored_mb(stage)},
        "busy_percent": {role: round(100 * spent / meter.seconds, 1) for role, spent in meter.cpu.items()},
        "peaks_mb": {role: round(peak / _MEGABYTE, 1) for role, peak in sampler.peaks().items()},
        "mb_per_hour": {role: _slope(one) for role, one in trends.items()},
    }


def _stored_mb(stage: Stage) -> float:
    """What the files of the broker occupy."""
    occupied = 0
    for path in stage.broker.directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # deleted since
            occupied += path.stat().st_blocks * 512
    return round(occupied / _MEGABYTE, 1)


def _slope(one: Trend) -> dict[str, Any]:
    return {
        "slope": round(one.per_hour / _MEGABYTE, 2),
        "error": round(one.error / _MEGABYTE, 2),
        "flat": one.flat,
    }
