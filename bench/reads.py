"""Reads through Spark to ``noop``, and what each costs by process, by thread or by kind of work. Six comparisons:

- ``readers``: exactly-once reads over AMQP beside an at-least-once one: rate, CPU, latency, idle CPU, memory.
- ``columns``: a few columns beside all columns, over both protocols: CPU of the tasks alone.
- ``threads``: CPU by thread of the broker and of Python, with several connections or readers.
- ``connections``: the messages of a Java producer, with several connections: rate, and CPU of the broker.
- ``planner``: CPU of the driver's Python for a batch and for a message of an exactly-once read.
- ``idle``: the first batch after an idle minute, of a read and of a write, over STOMP.

``python -m bench.reads readers --messages 60000 --rounds 2``. The broker pauses a queue until the clock starts. Every
round has all ways, one after the other. The first round does not count, because the JVM compiles in it.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import raw, raw_amqp
from bench.java_side import JavaSide
from bench.job import Job, Measured
from bench.one_query import idle_percent, latency
from bench.processes import collector_seconds, peak_bytes, thread_seconds
from bench.rounds import base_job
from bench.spark import Reading, SparkSide, Writing
from pyspark_jms.testing import EmbeddedArtemis

_WARM_UP = 2_000
_ONCE = {"deliveryGuarantee": "exactly-once"}
_READERS = {number: _ONCE | {"readers": str(number)} for number in (1, 2, 4)}
Line = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=_PARTS)
    parser.add_argument("--messages", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=2, help="counted rounds, after one uncounted round")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    options = parser.parse_args()
    settings = dict(setting.split("=", 1) for setting in options.set)
    with EmbeddedArtemis(benchmark=True, heap="3g") as broker, SparkSide(broker, settings) as side:
        _PARTS[options.part](side, base_job(broker, options.messages), options.rounds)


@contextmanager
def _filled(
    side: SparkSide, job: Job, options: Mapping[str, str], fill: Callable[[Job], object], **more: Any
) -> Iterator[Reading]:
    """A query that has read some messages, and whose queue is full and paused."""
    job = replace(job, queue=f"bench.reads.{time.time_ns()}")
    with Reading(side, job, options, fill=fill, **({"warm_up": _WARM_UP} | more)) as reading:
        fill(job)
        yield reading


def _in_rounds(ways: Mapping[str, Callable[[], Line]], rounds: int) -> dict[str, list[Line]]:
    """Way → its lines of the counted rounds. Prints all of them."""
    found: dict[str, list[Line]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            line = way()
            print(number, name, json.dumps(line), flush=True)
            found[name] += [line] if number else []
    return found


def _print_medians(found: Mapping[str, list[Line]], key: str, beside: Callable[[str], str]) -> None:
    """The medians of each way, and that of its ratios of ``key`` to the way ``beside`` it in the same round."""
    for name, lines in found.items():
        others = found[beside(name)]
        ratio = median(line[key] / other[key] for line, other in zip(lines, others, strict=True))
        medians = {each: round(median(line[each] for line in lines), 2) for each in lines[0]}
        print("median", name, json.dumps({"ratio": round(ratio, 2)} | medians), flush=True)


def _rounded(line: Mapping[str, float]) -> Line:
    return {name: round(value, 2) for name, value in line.items()}


# --- readers -------------------------------------------------------------------------------------


def _compare_readers(side: SparkSide, job: Job, rounds: int) -> None:
    amqp = {"brokerUrl": side.broker.amqp_url}
    ways = {"at-least-once": amqp} | {f"readers={number}": amqp | options for number, options in _READERS.items()}

    def read(options: Mapping[str, str]) -> Line:
        with _filled(side, job, options, raw_amqp.fill) as reading:
            measured = reading.measure()
            cpu = measured.microseconds()
            line = {"rate": measured.per_second, "batches": measured.notes["batches"], **cpu}
            return _rounded(line | {"all": sum(cpu.values()), "runner_mb": _peak_mb(reading)})

    found = _in_rounds({name: partial(read, options) for name, options in ways.items()}, rounds)
    _print_medians(found, "rate", lambda _: "at-least-once")
    for name, options in ways.items():
        waits = latency(side, job, options, per_second=100, seconds=8)
        idle = idle_percent(side, job, options, seconds=10)
        print("one query", name, json.dumps({"latency": waits, "idle": idle}), flush=True)


def _peak_mb(reading: Reading) -> float:
    """The most memory that the process of the source ever had."""
    return max(map(peak_bytes, reading.runners)) / 1e6


# --- columns -------------------------------------------------------------------------------------

_SCHEMAS: dict[str, str | None] = {
    "all": None,
    "asked": "text STRING, JMSType STRING, JMSPriority INT",
    "properties": "text STRING, customer STRING, amount DOUBLE",
}


def _compare_columns(side: SparkSide, job: Job, rounds: int) -> None:
    """A batch of a full queue has the messages of a second, so that its cost, the same for all ways, hardly counts."""
    options = {"maxBytesPerTrigger": "256m"}
    ways = {}
    urls = {"stomp": side.broker.url, "amqp": side.broker.amqp_url}
    for (protocol, url), size, (name, schema) in product(urls.items(), (1024, 100), _SCHEMAS.items()):
        case = replace(job, body_bytes=size), options | {"brokerUrl": url}, schema
        ways[f"{protocol} {size} B {name}"] = partial(_task_cpu, side, *case)
    _print_medians(_in_rounds(ways, rounds), "counted", lambda way: f"{way.rpartition(' ')[0]} all")


def _task_cpu(side: SparkSide, job: Job, options: Mapping[str, str], schema: str | None) -> Line:
    """CPU in µs a message. Counted is what tasks cost: the Python workers, and the JVM's task threads and collector.

    The JVM's other threads plan, report and answer this program. ``jvm`` is all of its threads without the compiler.
    """
    fill = raw_amqp.fill if options["brokerUrl"].startswith("amqp") else raw.fill
    with _filled(side, job, options, fill, warm_up=job.messages // 2, schema=schema) as reading:
        tasks, collector = side.task_seconds(), collector_seconds(side.jvm_pid)
        measured = reading.measure()
        seconds = {
            "workers": measured.cpu["workers"],
            "tasks": sum(spent - tasks.get(thread, 0.0) for thread, spent in side.task_seconds().items()),
            "collector": collector_seconds(side.jvm_pid) - collector,
        }
    cpu = {place: 1e6 * spent / job.messages for place, spent in seconds.items()}
    jvm = measured.microseconds()["jvm"] - measured.notes["jvm_compiling_us_per_message"]
    return _rounded(cpu | {"counted": sum(cpu.values()), "jvm": jvm, "batches": measured.notes["batches"]})


# --- threads -------------------------------------------------------------------------------------

_PLACES = {
    "GC": "garbage collector", "G1": "garbage collector", "C1": "compiler", "C2": "compiler",
    "Thread-": "connections", "activemq-netty": "connections",
}  # fmt: skip
"""The beginning of a thread's name → its place."""


def by_place(before: Mapping[str, tuple[str, float]], after: Mapping[str, tuple[str, float]]) -> dict[str, list[float]]:
    """Place → CPU seconds of each of its threads, the largest first."""
    found: dict[str, list[float]] = {}
    for thread, (name, seconds) in after.items():
        spent = seconds - before.get(thread, (name, 0.0))[1]
        if spent > 0:
            place = next((place for prefix, place in _PLACES.items() if name.startswith(prefix)), name)
            found.setdefault(place, []).append(spent)
    return {place: sorted(each, reverse=True) for place, each in found.items()}


def _compare_threads(side: SparkSide, job: Job, rounds: int) -> None:
    """The messages are of a STOMP client, which Artemis converts on the thread of a connection."""
    ways = {f"connections={number}": {"connections": str(number)} for number in _READERS}
    ways |= {f"readers={number}": dict(options) for number, options in _READERS.items()}
    amqp = {"brokerUrl": side.broker.amqp_url}
    _in_rounds({name: partial(_thread_cpu, side, job, amqp | options) for name, options in ways.items()}, rounds)


def _thread_cpu(side: SparkSide, job: Job, options: Mapping[str, str]) -> Line:
    """Process → place → µs a message of each thread."""
    with _filled(side, job, options, raw.fill) as reading:
        pids = [(role, pid) for pid, role in side.roles().items() if role != "jvm"]
        before = [thread_seconds(pid) for _, pid in pids]
        measured = reading.measure()
        after = [thread_seconds(pid) for _, pid in pids]
    found: Line = {"rate": round(measured.per_second)}
    for (role, _), was, now in zip(pids, before, after, strict=True):
        for place, each in by_place(was, now).items():
            spent = [round(1e6 * one / job.messages, 1) for one in each]
            found.setdefault(role, {}).setdefault(place, []).extend(one for one in spent if one)
    return found


# --- connections ---------------------------------------------------------------------------------


def _compare_connections(side: SparkSide, job: Job, rounds: int) -> None:
    urls = {"AMQP": side.broker.amqp_url, "STOMP": side.broker.url}
    with JavaSide(side.broker) as java:

        def read(url: str, number: int) -> Line:
            options = {"brokerUrl": url, "connections": str(number)}
            with _filled(side, job, options, java.send) as reading:
                collector = collector_seconds(job.broker_pid)
                measured = reading.measure()
                collector = 1e6 * (collector_seconds(job.broker_pid) - collector) / job.messages
            return _rounded({"rate": measured.per_second, **measured.microseconds(), "broker_collector": collector})

        ways = {
            f"{protocol} connections={number}": partial(read, url, number)
            for (protocol, url), number in product(urls.items(), _READERS)
        }
        _print_medians(_in_rounds(ways, rounds), "rate", lambda way: f"{way.partition(' ')[0]} connections=1")


# --- the driver's Python -------------------------------------------------------------------------

_BATCHES = {500: 10_000, 5_000: 60_000, 50_000: 200_000}
"""Messages of a batch → messages in total."""
_LARGE_BATCH = {"maxBytesPerTrigger": "256m", "windowBytes": "512m"}


def _measure_planner(side: SparkSide, job: Job, _: int) -> None:
    """A line through batches of different sizes: so much CPU for each batch, and so much for each message."""
    for number, readers in _READERS.items():
        counts, seconds, peaks = [], [], {}
        for size, total in _BATCHES.items():
            options = readers | _LARGE_BATCH | {"maxMessagesPerTrigger": str(size), "brokerUrl": side.broker.amqp_url}
            with _filled(side, replace(job, messages=total), options, raw_amqp.fill) as reading:
                before = _scheduled_seconds(reading.runners)
                counts.append((reading.measure().notes["batches"], total))
                seconds.append(_scheduled_seconds(reading.runners) - before)
                peaks[size] = round(_peak_mb(reading), 1)
        (a_batch, a_message), *_rest = np.linalg.lstsq(np.array(counts, float), np.array(seconds), rcond=None)
        line = {"ms a batch": round(1e3 * a_batch, 2), "us a message": round(1e6 * a_message, 3), "peak MB": peaks}
        counted = {"batches": [batches for batches, _ in counts], "ms": [round(1e3 * spent, 1) for spent in seconds]}
        print(f"readers={number}", json.dumps(line | counted), flush=True)


def _scheduled_seconds(pids: Iterable[int]) -> float:
    """CPU seconds of the living threads of processes, from the scheduler: finer than clock ticks."""
    files = (file for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


# --- after an idle minute ------------------------------------------------------------------------

_IDLE_SECONDS = 75
"""Spark looks every ten seconds for Python workers that were idle for a minute."""


def _measure_idle(side: SparkSide, job: Job, _: int) -> None:
    """``--set spark.python.daemon.module=pyspark_jms.spark.daemon`` measures the daemon."""
    job = raw.smaller(job, 200)
    with Reading(side, replace(job, queue="bench.idle.read")) as reading, Writing(side, job, tasks=2) as writing:
        for wait, name in ((0, "first"), (0, "warm"), (0, "warm"), (_IDLE_SECONDS, "after idle time"), (0, "warm")):
            time.sleep(wait)
            raw.fill(reading.job)
            _print_batch(f"read, {name}", reading.measure())
            staged = writing.staged(job.messages)
            _print_batch(f"write, {name}", writing.write_staged(staged, job.messages))


def _print_batch(name: str, measured: Measured) -> None:
    cpu = _rounded({f"{role}_ms": 1e3 * spent for role, spent in measured.cpu.items()})
    print(name, json.dumps({"ms": round(1e3 * measured.notes["by_the_clock_seconds"]), **cpu}), flush=True)


_PARTS: dict[str, Callable[[SparkSide, Job, int], None]] = {
    "readers": _compare_readers,
    "columns": _compare_columns,
    "threads": _compare_threads,
    "connections": _compare_connections,
    "planner": _measure_planner,
    "idle": _measure_idle,
}

if __name__ == "__main__":
    main()
