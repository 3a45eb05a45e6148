"""Whose CPU is it? What a write, a batch and a new Python worker cost Spark, and what they cost this connector.

``python -m bench.owners options batches idle profile`` runs all parts, in six minutes on two quiet cores. ``profile``
needs async-profiler: ``--profiler PATH`` of its ``libasyncProfiler.so`` (in the jar ``tools.profiler:async-profiler``).
``--set NAME=VALUE`` is a setting of Spark that a session has from its start, such as
``spark.python.daemon.module=pyspark_jms.spark.daemon`` or ``spark.python.udf.pipelined.enabled=true``.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from bench import raw
from bench.job import Job, Measured
from bench.processes import Meter, compiler_seconds
from bench.rounds import TASKS, Stage, base_job
from bench.spark_rate import rate_query
from bench.spark_read import Reading
from bench.spark_session import SparkSide, last_batch, until
from bench.spark_write import PROPERTIES, Writing, message_columns
from bench.stacks import shares

_IDLE_SECONDS = 75
"""Spark looks every ten seconds for Python workers that were idle for a minute."""

_SMALL_BATCHES = 12


def main() -> None:
    options = _arguments()
    settings = dict(setting.split("=", 1) for setting in options.set)
    with Stage.built(java=False, settings=settings) as stage:
        job = base_job(stage.broker, options.messages)
        for part in options.what:
            print(f"{part}:", flush=True)
            _PARTS[part](stage, job, options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=list(_PARTS))
    parser.add_argument("--messages", type=int, default=50_000, help="messages of a batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=60, help="seconds of writing before options and profile")
    parser.add_argument("--profiler", type=Path, help="libasyncProfiler.so")
    parser.add_argument("--stacks", type=Path, default=Path(), help="folder for the profiler's stacks")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    return parser.parse_args()


def _show(what: str, measured: Measured, count: float, unit: str, scale: float) -> None:
    cpu = {role: seconds * scale / count for role, seconds in measured.cpu.items()}
    cpu["compilers"] = measured.notes.get("compiling", 0.0) * scale / count
    line = "  ".join(f"{role} {spent:7.1f}" for role, spent in sorted(cpu.items()))
    print(f"  {what:36s} {measured.seconds * scale / count:9.1f} {unit} by the clock, CPU: {line}", flush=True)


def _measured(side: SparkSide, act: Callable[[], object]) -> Measured:
    compiling = compiler_seconds(side.jvm_pid)
    with Meter(side.roles) as meter:
        act()
    notes = {"compiling": compiler_seconds(side.jvm_pid) - compiling}
    return Measured(messages=1, seconds=meter.seconds, cpu=meter.cpu, notes=notes)


# --- what Spark lets a user choose for a write ----------------------------------------------------------


def _without_properties(job: Job) -> list[Any]:
    return message_columns(job)[:1]


def _with_columns(job: Job) -> list[Any]:
    return [*_without_properties(job), *(f.expr(value).alias(name) for name, value in PROPERTIES.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    columns: Callable[[Job], list[Any]] = message_columns
    options: dict[str, str] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    """Settings of Spark."""
    sink: str = "jms"

    @contextmanager
    def writing(self, side: SparkSide, job: Job) -> Iterator[Writing]:
        """A query takes its settings when it starts."""
        query = Writing(side, job, self.options, tasks=TASKS, columns=self.columns, sink=self.sink)
        for name, value in self.conf.items():
            side.spark.conf.set(name, value)
        with query:
            for name in self.conf:
                side.spark.conf.unset(name)
            yield query


_VARIANTS = {
    "map of properties": _Variant(),
    "property columns": _Variant(columns=_with_columns, options={"propertyColumns": ",".join(PROPERTIES)}),
    "no properties": _Variant(columns=_without_properties),
    "2,000 rows a record batch": _Variant(conf={"spark.sql.execution.arrow.maxRecordsPerBatch": "2000"}),
    "1 MB a record batch": _Variant(conf={"spark.sql.execution.arrow.maxBytesPerBatch": "1m"}),
    "Arrow compressed with lz4": _Variant(conf={"spark.sql.execution.arrow.compression.codec": "lz4"}),
    "noop: Spark's rows alone": _Variant(sink="noop"),
}


def _options(stage: Stage, job: Job, options: argparse.Namespace) -> None:
    """Microseconds a message of each variant, in interleaved turns."""
    with ExitStack() as stack:
        writings = {
            name: stack.enter_context(variant.writing(stage.spark, replace(job, queue=f"bench.options.{number}")))
            for number, (name, variant) in enumerate(_VARIANTS.items())
        }
        _warm_up(list(writings.values())[:1], job, options)
        for number in range(options.rounds + 1):  # the first round of each variant compiles code
            for name, writing in writings.items():
                files = writing.staged(job.messages)
                found = _measured(stage.spark, lambda w=writing, at=files: w.write_staged(at, job.messages))  # type: ignore[misc]
                if number:
                    _show(name, found, job.messages, "us", 1e6)


def _warm_up(writings: Sequence[Writing], job: Job, options: argparse.Namespace) -> None:
    end = time.monotonic() + options.warm_up
    while time.monotonic() < end:
        for writing in writings:
            writing.write(job.messages)


# --- a batch and a task ---------------------------------------------------------------------------------


def _batches(stage: Stage, job: Job, options: argparse.Namespace) -> None:
    """Milliseconds of a small batch: this connector's, and Spark's own with the same source or sink."""
    side = stage.spark
    ours = Writing(side, replace(job, queue="bench.batches"), tasks=1)
    alone = Writing(side, replace(job, queue="bench.nothing"), tasks=1, sink="noop")
    with ours, alone:
        for number in range(options.rounds + 1):
            for name, writing in (("jms", ours), ("noop", alone)):
                for tasks in (1, TASKS):
                    staged = [writing.staged(10 * TASKS, tasks=tasks) for _ in range(_SMALL_BATCHES)]
                    found = _measured(
                        side,
                        lambda w=writing, all_of=staged: [w.write_staged(one, 10 * TASKS) for one in all_of],  # type: ignore[misc]
                    )
                    if number:
                        _show(f"write to {name}, {tasks} tasks", found, _SMALL_BATCHES, "ms", 1e3)
    _read_batches(stage, job, options)


def _read_batches(stage: Stage, job: Job, options: argparse.Namespace) -> None:
    side, count = stage.spark, 2 * _SMALL_BATCHES
    small = replace(job, queue="bench.small")
    with Reading(side, small, {"maxMessagesPerTrigger": "10"}) as reading:
        for number in range(options.rounds + 1):
            raw.fill(raw.smaller(reading.job, 10 * count))
            before = last_batch(reading.query)
            ours = _measured(side, lambda: reading.measure(10 * count))
            batches = last_batch(reading.query) - before
            with rate_query(side, job, rows=10, tasks=1) as rate:
                first = last_batch(rate)
                alone = _measured(side, lambda query=rate, goal=first + count: _await_batch(query, goal))  # type: ignore[misc]
                rate_batches = last_batch(rate) - first
            if number:
                _show("read from jms, 1 task", ours, batches, "ms", 1e3)
                _show("read from Spark's rate source", alone, rate_batches, "ms", 1e3)


def _await_batch(query: StreamingQuery, number: int) -> None:
    until(query, lambda: last_batch(query) >= number)


# --- after an idle minute -------------------------------------------------------------------------------


def _idle(stage: Stage, job: Job, _: argparse.Namespace) -> None:
    """Milliseconds of a batch of 200 messages, warm and after more than a minute without a task."""
    side = stage.spark
    with (
        Reading(side, replace(job, queue="bench.idle.read")) as reading,
        Writing(side, replace(job, queue="bench.idle.write"), tasks=2) as writing,
    ):
        for wait, name in ((0, "first"), (0, "warm"), (0, "warm"), (_IDLE_SECONDS, "after idle time"), (0, "warm")):
            time.sleep(wait)
            staged = None if wait else writing.staged(200)
            raw.fill(raw.smaller(reading.job, 200))
            _show(f"read, {name}", _measured(side, lambda: reading.measure(200)), 1, "ms", 1e3)
            staged = staged or writing.staged(200)
            _show(f"write, {name}", _measured(side, lambda at=staged: writing.write_staged(at, 200)), 1, "ms", 1e3)  # type: ignore[misc]


# --- a profile ------------------------------------------------------------------------------------------


def _profile(stage: Stage, job: Job, options: argparse.Namespace) -> None:
    """Shares of the JVM's CPU, without compilers, of writes over both protocols."""
    side, amqp = stage.spark, {"brokerUrl": stage.broker.amqp_url}
    with (
        Writing(side, replace(job, queue="bench.profile.stomp"), tasks=TASKS) as stomp,
        Writing(side, replace(job, queue="bench.profile.amqp"), amqp, tasks=TASKS) as over_amqp,
    ):
        _warm_up([stomp, over_amqp], job, options)
        for name, writing in (("stomp", stomp), ("amqp", over_amqp)):
            staged = [writing.staged(job.messages) for _ in range(2 * options.rounds)]
            _profiler(side, options, "start,event=cpu,interval=2ms,threads")
            for one in staged:
                writing.write_staged(one, job.messages)
            file = (options.stacks / f"write-{name}.collapsed").absolute()
            _profiler(side, options, f"stop,file={file},collapsed,threads")
            print(f"  {name}: {json.dumps(shares(file.read_text().splitlines()), indent=2)}", flush=True)


def _profiler(side: SparkSide, options: argparse.Namespace, command: str) -> None:
    arguments = ["jcmd", str(side.jvm_pid), "JVMTI.agent_load", str(options.profiler), f'"{command}"']
    subprocess.run(arguments, check=True, capture_output=True, timeout=60)


_PARTS: dict[str, Callable[[Stage, Job, argparse.Namespace], None]] = {
    "options": _options,
    "batches": _batches,
    "idle": _idle,
    "profile": _profile,
}

if __name__ == "__main__":
    main()
