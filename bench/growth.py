"""Increases one quantity step by step and measures the time, CPU and memory of a read at each point."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bench.child import in_child
from bench.job import TIME_LIMIT, Job, Measured
from bench.memory import Sampler
from bench.protocols import Protocol
from bench.rounds import Stage
from bench.spark_read import Reading

__all__ = ["AXES", "PAGED", "PAGING_BYTES", "Point", "measured_points", "sized"]

PAGED, PAGING_BYTES = "backlog", 100 << 20
"""This axis needs a broker that pages an address above this number of bytes."""

_BYTES_A_ROUND = 200 << 20
_SLOWEST = 1000  # messages a second; a slower point counts as stuck
_SAMPLE_SECONDS = 0.25
_WARM_UP = 200
_LARGEST_BYTES, _LARGEST_MESSAGES = 100 << 20, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One place on an axis: the messages to read, and the options."""

    value: str
    job: Job
    options: Mapping[str, str] = field(default_factory=dict)
    queues: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Measurement of a step. ``cpu`` is in seconds and ``peaks`` is memory in bytes, both by role. ``bytes`` is the
    size of all messages, ``raw_per_s`` the rate of the raw drain.
    """

    axis: str
    value: str
    messages: int
    bytes: int
    batches: int
    tasks: int
    seconds: float
    raw_per_s: float | None
    cpu: dict[str, float]
    peaks: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def sized(job: Job, body_bytes: int) -> Job:
    """The job with bodies of that size, and as many messages as a round can move: 20 up to the job's number."""
    messages = max(20, min(job.messages, _BYTES_A_ROUND // (body_bytes + 300)))
    return replace(job, body_bytes=body_bytes, messages=messages, per_transaction=-(-messages // 8))


def _sizes(job: Job, _most: int) -> Iterator[Step]:
    for name, size in {"100 B": 100, "1 KB": 1 << 10, "10 KB": 10 << 10, "100 KB": 100 << 10}.items():
        yield Step(value=name, job=sized(job, size))
    for name, size in {"1 MB": 1 << 20, "10 MB": 10 << 20}.items():
        yield Step(value=name, job=sized(job, size))
    largest = replace(job, body_bytes=_LARGEST_BYTES, messages=_LARGEST_MESSAGES, per_transaction=1)
    yield Step(value="100 MB", job=largest, options={"maxMessageBytes": "128m"})


def _properties(job: Job, _most: int) -> Iterator[Step]:
    for number in (0, 1, 5, 20, 100):
        yield Step(value=str(number), job=replace(job, properties=number))


def _backlog(job: Job, most: int) -> Iterator[Step]:
    messages = 10_000
    while messages <= most:
        limit = max(TIME_LIMIT, messages / _SLOWEST)
        job_of = replace(job, body_bytes=100, messages=messages, per_transaction=5_000, time_limit=limit)
        yield Step(value=f"{messages:,}", job=job_of)
        messages *= 10


def _partitions(job: Job, _most: int) -> Iterator[Step]:
    for size in ("64m", "16m", "8m", "2m", "512k"):
        yield Step(value=f"partitionBytes={size}", job=job, options={"partitionBytes": size})


def _batches(job: Job, _most: int) -> Iterator[Step]:
    for most in (100_000, 20_000, 5_000, 1_000):
        yield Step(value=f"maxMessagesPerTrigger={most}", job=job, options={"maxMessagesPerTrigger": str(most)})


def _queues(job: Job, _most: int) -> Iterator[Step]:
    for number in (1, 2, 5, 20, 50):
        each = max(1, job.messages // number)
        yield Step(value=str(number), job=replace(job, messages=each, per_transaction=each), queues=number)


AXES: dict[str, Callable[[Job, int], Iterator[Step]]] = {
    "size": _sizes,
    "properties": _properties,
    PAGED: _backlog,
    "partitions": _partitions,
    "batches": _batches,
    "queues": _queues,
}


def measured_points(
    stage: Stage, job: Job, axis: str, protocol: Protocol, *, most: int, rounds: int
) -> Iterator[Point]:
    """``rounds`` points of each step, after the warm-up of ``Reading``. ``most``: messages of the largest backlog."""
    for step in AXES[axis](job, most):
        job_of = replace(step.job, queue=f"bench.{axis}")
        options = {**protocol.options(stage.broker), **step.options}
        warm_up = min(_WARM_UP, step.job.messages)
        with Reading(stage.spark, job_of, options, queues=step.queues, warm_up=warm_up) as reading:
            for _ in range(rounds):
                yield _point(stage, reading, step, axis, protocol)


def _point(stage: Stage, reading: Reading, step: Step, axis: str, protocol: Protocol) -> Point:
    drained = _raw(step, protocol) if step.queues == 1 and axis != "backlog" else None
    for queue in reading.queues:
        in_child(protocol.fill, replace(step.job, queue=queue))
    before = stage.spark.tasks_of(reading.query)
    with Sampler(stage.spark.roles, every=_SAMPLE_SECONDS) as sampler:
        measured = reading.measure(step.job.messages * step.queues)
    return Point(
        axis=axis,
        value=step.value,
        messages=measured.messages,
        bytes=measured.messages * protocol.message_bytes(step.job),
        batches=int(measured.notes["batches"]),
        tasks=stage.spark.tasks_of(reading.query) - before,
        seconds=measured.seconds,
        raw_per_s=None if drained is None else drained.per_second,
        cpu=measured.cpu,
        peaks=sampler.peaks(),
    )


def _raw(step: Step, protocol: Protocol) -> Measured:
    job = replace(step.job, queue=f"{protocol.prefix}{step.job.queue}")
    in_child(protocol.fill, job)
    return in_child(protocol.drain, job)
