"""`make bench-long`: measures growth and runs the soak. Arguments select the measurements: size properties backlog
partitions batches queues soak. Without arguments all run, in about two hours; the soak takes 30 minutes of them.
``--protocol amqp`` measures the same over AMQP; the messages of a soak are sent over STOMP.

Growth increases one quantity step by step and measures the time, CPU and memory of a read at each point. The soak runs
a query at a constant rate, to see whether its memory grows and whether it keeps up.
"""

import argparse
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from bench import raw, raw_amqp
from bench.child import in_child
from bench.job import TIME_LIMIT, Job
from bench.machine import ROOT, machine
from bench.processes import Meter, Sampler, Trend, trend
from bench.rounds import Stage, Variant, base_job, warm_up
from bench.spark import Reading, until
from bench.table import growth_as_text

__all__ = ["fitted"]

_SOAK, _PAGED = "soak", "backlog"
_PAGING_BYTES = 100 << 20
"""``backlog`` needs a broker that pages an address above this number of bytes. Other queues would suffer from it."""
_WARM_UP_SECONDS = 45
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class _Protocol:
    """The names of its measurements begin with ``prefix``, and ``client`` has its raw sockets."""

    prefix: str
    client: ModuleType
    message: Callable[[Job, int], bytes]
    url: str
    """The attribute of the broker."""

    def options(self, stage: Stage) -> dict[str, str]:
        return {"brokerUrl": getattr(stage.broker, self.url)}


_PROTOCOLS = {
    "stomp": _Protocol("", raw, raw.frame, "url"),
    "amqp": _Protocol("amqp.", raw_amqp, raw_amqp.message, "amqp_url"),
}


def main() -> None:
    options = _arguments()
    facts = machine()
    # This run replaces only what it measures of an earlier run.
    document: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {"growth": {}}
    wanted = options.what or [*_AXES, _SOAK]
    paged, others = ([what for what in wanted if (what == _PAGED) is is_paged] for is_paged in (True, False))
    for paging_bytes, parts in ((None, others), (_PAGING_BYTES, paged)):
        if parts:
            with Stage.built(java=False, paging_bytes=paging_bytes) as stage:
                _measure(stage, parts, options, document, facts)
    print(growth_as_text(document))
    if options.docs:
        from bench.publish import publish_growth  # imports matplotlib, which only --docs needs

        publish_growth(document, ROOT)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*_AXES, _SOAK, []], metavar="WHAT")
    parser.add_argument("--messages", type=int, default=100_000, help="messages of a point, except for the backlog")
    parser.add_argument("--rounds", type=int, default=3, help="measured points of each step")
    parser.add_argument("--most", type=int, default=10_000_000, help="messages of the largest backlog")
    parser.add_argument("--protocol", choices=_PROTOCOLS, default="stomp")
    parser.add_argument("--minutes", type=float, default=30, help="duration of the soak")
    parser.add_argument("--per-second", type=int, default=5_000, help="messages a second in the soak")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "growth.json")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/notebook/benchmark.md")
    return parser.parse_args()


def _measure(
    stage: Stage, parts: Sequence[str], options: argparse.Namespace, document: dict[str, Any], facts: dict[str, Any]
) -> None:
    job = base_job(stage.broker, options.messages)
    with Variant(stage, job, ("read.jms",)) as variant:
        warm_up(variant, seconds=_WARM_UP_SECONDS)
    protocol = _PROTOCOLS[options.protocol]
    for part in parts:
        if part == _SOAK:
            found = _soak(stage, job, protocol, minutes=options.minutes, per_second=options.per_second)
            document[protocol.prefix + _SOAK] = found
        else:
            steps = _AXES[part](job, options.most)
            document["growth"][protocol.prefix + part] = _points(stage, part, steps, protocol, options.rounds)
        document[f"{protocol.prefix}machine"] = facts | stage.versions()
        # The model is that of reading over STOMP.
        points = [point for axis, points in document["growth"].items() if axis in _AXES for point in points]
        document |= {"cost": fitted(points)} if len(points) > len(_COSTS) else {}
        options.out.write_text(json.dumps(document, indent=2) + "\n")  # a later failure must not lose these results


# --- growth --------------------------------------------------------------------------------------

_BYTES_A_ROUND = 200 << 20
_SLOWEST = 1000  # messages a second; a slower point counts as stuck
_SAMPLE_SECONDS = 0.25
_WARM_UP = 200
_LARGEST_BYTES, _LARGEST_MESSAGES = 100 << 20, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One place on an axis: the messages to read, and the options."""

    value: str
    job: Job
    options: Mapping[str, str] = field(default_factory=dict)
    queues: int = 1


def _sized(job: Job, body_bytes: int) -> Job:
    """The job with bodies of that size, and as many messages as a round can move: 20 up to the job's number."""
    messages = max(20, min(job.messages, _BYTES_A_ROUND // (body_bytes + 300)))
    return replace(job, body_bytes=body_bytes, messages=messages, per_transaction=-(-messages // 8))


def _sizes(job: Job, _most: int) -> Iterator[_Step]:
    for number, unit in ((100, "B"), (1, "KB"), (10, "KB"), (100, "KB"), (1, "MB"), (10, "MB")):
        size = number * {"B": 1, "KB": 1 << 10, "MB": 1 << 20}[unit]
        yield _Step(value=f"{number} {unit}", job=_sized(job, size))
    largest = replace(job, body_bytes=_LARGEST_BYTES, messages=_LARGEST_MESSAGES, per_transaction=1)
    yield _Step(value="100 MB", job=largest, options={"maxMessageBytes": "128m"})


def _properties(job: Job, _most: int) -> Iterator[_Step]:
    for number in (0, 1, 5, 20, 100):
        yield _Step(value=str(number), job=replace(job, properties=number))


def _backlog(job: Job, most: int) -> Iterator[_Step]:
    messages = 10_000
    while messages <= most:
        limit = max(TIME_LIMIT, messages / _SLOWEST)
        job_of = replace(job, body_bytes=100, messages=messages, per_transaction=5_000, time_limit=limit)
        yield _Step(value=f"{messages:,}", job=job_of)
        messages *= 10


def _option(name: str, *values: str) -> Callable[[Job, int], Iterator[_Step]]:
    def steps(job: Job, _most: int) -> Iterator[_Step]:
        for value in values:
            yield _Step(value=f"{name}={value}", job=job, options={name: value})

    return steps


def _queues(job: Job, _most: int) -> Iterator[_Step]:
    for number in (1, 2, 5, 20, 50):
        each = max(1, job.messages // number)
        yield _Step(value=str(number), job=replace(job, messages=each, per_transaction=each), queues=number)


_AXES: dict[str, Callable[[Job, int], Iterator[_Step]]] = {
    "size": _sizes,
    "properties": _properties,
    _PAGED: _backlog,
    "partitions": _option("partitionBytes", "64m", "16m", "8m", "2m", "512k"),
    "batches": _option("maxMessagesPerTrigger", "100000", "20000", "5000", "1000"),
    "queues": _queues,
}


def _points(stage: Stage, axis: str, steps: Iterator[_Step], protocol: _Protocol, rounds: int) -> list[dict[str, Any]]:
    """``rounds`` points of each step, after the warm-up of ``Reading``."""
    points = []
    for step in steps:
        job, options = replace(step.job, queue=f"bench.{axis}"), {**protocol.options(stage), **step.options}
        warm_up = min(_WARM_UP, step.job.messages)
        with Reading(stage.spark, job, options, queues=step.queues, warm_up=warm_up) as reading:
            for _ in range(rounds):
                points.append(point := _point(stage, reading, step, axis, protocol))
                print(f"{axis} {step.value}: {point['messages'] / point['seconds']:,.0f} messages/s", flush=True)
    return points


def _point(stage: Stage, reading: Reading, step: _Step, axis: str, protocol: _Protocol) -> dict[str, Any]:
    """``cpu`` is in seconds and ``peaks`` is memory in bytes, both by role. ``bytes`` is the size of all messages,
    ``raw_per_s`` the rate of the raw drain.
    """
    drained = None
    if step.queues == 1 and axis != _PAGED:
        job = replace(step.job, queue=f"bench.raw.{axis}")
        in_child(protocol.client.fill, job)
        drained = in_child(protocol.client.drain, job)
    for queue in reading.queues:
        in_child(protocol.client.fill, replace(step.job, queue=queue))
    before = stage.spark.tasks_of(reading.query)
    with Sampler(stage.spark.roles, every=_SAMPLE_SECONDS) as sampler:
        measured = reading.measure(step.job.messages * step.queues)
    return {
        "axis": axis,
        "value": step.value,
        "messages": measured.messages,
        "bytes": measured.messages * len(protocol.message(step.job, 0)),
        "batches": int(measured.notes["batches"]),
        "tasks": stage.spark.tasks_of(reading.query) - before,
        "seconds": measured.seconds,
        "raw_per_s": None if drained is None else drained.per_second,
        "cpu": measured.cpu,
        "peaks": sampler.peaks(),
    }


# --- the cost model ------------------------------------------------------------------------------

_COSTS = {"us_a_message": 1e6, "us_a_kilobyte": 1e6, "ms_a_batch": 1e3, "ms_a_task": 1e3}


def fitted(points: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """CPU of Spark's processes for a message, a kilobyte, a batch and a task, from measured points.

    Least squares of the relative errors, so that small and large reads count the same. A negative cost is fixed at
    zero, and the others are fitted again. ``error`` is the median relative error of the model over all points.
    """
    spent = [sum(spent for role, spent in point["cpu"].items() if role != "broker") for point in points]
    rows = np.array(
        [
            (point["messages"] / cpu, point["bytes"] / 1024 / cpu, point["batches"] / cpu, point["tasks"] / cpu)
            for point, cpu in zip(points, spent, strict=True)
            if cpu
        ]
    )
    costs, zero = np.full(len(_COSTS), -1.0), np.zeros(len(_COSTS), bool)
    while (costs < 0).any():
        costs = np.zeros(len(_COSTS))
        costs[~zero], *_ = np.linalg.lstsq(rows[:, ~zero], np.ones(len(rows)), rcond=None)
        zero[np.argmin(costs)] |= (costs < 0).any()
    found = {name: round(float(cost * scale), 3) for (name, scale), cost in zip(_COSTS.items(), costs, strict=True)}
    return found | {"error": round(float(np.median(np.abs(rows @ costs - 1))), 3)}


# --- the soak ------------------------------------------------------------------------------------

_SAMPLES = 180
_UNCOUNTED = 1 / 3
"""Share of the time at the start whose memory samples are not counted."""
_SETTLING_SECONDS = 60
"""The broker deletes files of its journal some time after their last message is gone."""


def _soak(stage: Stage, job: Job, protocol: _Protocol, *, minutes: float, per_second: int) -> dict[str, Any]:
    """Slopes in MB an hour with twice their standard error. The JVM's heap is measured after a garbage collection."""
    side, seconds = stage.spark, minutes * 60
    messages = int(seconds * per_second)
    job = replace(job, queue="bench.soak", messages=messages, per_transaction=per_second, time_limit=2 * seconds + 120)
    heap: list[tuple[float, float]] = []
    waiting: list[int] = []
    stored = [_stored_mb(stage)]
    with Reading(side, job, protocol.options(stage)) as reading:
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
    late = [(at, used) for at, used in heap if at >= _UNCOUNTED * seconds]
    trends = sampler.trends(after=_UNCOUNTED * seconds) | {"heap": trend(*zip(*late, strict=True))}
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
    slope, error = (round(value / _MEGABYTE, 2) for value in (one.per_hour, one.error))
    return {"slope": slope, "error": error, "flat": one.flat}


if __name__ == "__main__":
    main()
