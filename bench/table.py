"""The JSON documents → the tables of a run, of README and of pages. A step of growth is the median of its points."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any

from bench.results import ROLES

__all__ = ["CASES", "KINDS", "TARGETS", "Target", "as_text", "growth_as_text", "judged"]

CASES = {
    "read.raw": "raw socket, ids found and nothing parsed",
    "read.jms": 'format("jms") through Spark to noop',
    "read.journal": "the same with a journal",
    "read.amqp.raw": "AMQP: raw socket, messages of AMQP",
    "read.amqp.jms": "AMQP: through Spark, messages of AMQP",
    "read.amqp.once": "AMQP: the same exactly-once, one reader",
    "read.amqp.core.raw": "AMQP: raw socket, messages of STOMP",
    "read.amqp.core.jms": "AMQP: through Spark, messages of STOMP",
    "read.jet_none": "Hazelcast Jet (CORE), no guarantee",
    "read.amqp.core.sent_by_java": "AMQP: through Spark, messages of Java",
    "read.jet_at_least_once": "Hazelcast Jet (CORE), at-least-once",
    "read.amqp.core.sent_by_java_once": "AMQP: the same exactly-once, two readers",
    "read.jet_exactly_once": "Hazelcast Jet (CORE), exactly-once, two",
    "read.naive": "stomp.py in a simple Spark source",
    "read.stomp_py": "stomp.py listener, only ACKs, no Spark",
    "read.java": "Java JMS (CORE), individual ACKs",
    "read.java_transacted": "Java JMS (CORE), 1000 a transaction",
    "read.rate": "Spark's rate source to noop, no broker",
    "read.amqp.java": "AMQP: Qpid JMS, 1000 a transaction",
    "read.amqp.proton": "AMQP: Proton's Python API, no Spark",
    "write.raw": "raw sockets, 2 connections",
    "write.jms": 'Spark to format("jms"), 2 tasks at a time',
    "write.java": "Java JMS (CORE), 2 connections",
    "write.amqp.raw": "AMQP: raw sockets, 2 connections",
    "write.amqp.java": "AMQP: Qpid JMS, 2 connections",
    "write.amqp.jms": "AMQP: Spark, 2 tasks at a time",
}
_EXPLANATION = """\
Messages of 1 KB text and five string properties, persistent, one ACK a message. Medians of {rounds} interleaved rounds
(lowest-highest) of {messages:,} messages each. {warm_up_seconds:.0f} s of warm-up and one round before them do not
count. Broker, Spark and clients share the machine.
Read: a full queue is drained. Clients: from the start of delivery to the receipt of the last ACK. Spark: trigger time
of the batches with rows, from the moment the broker resumes the queue, with planning, offset log and commit log,
without the query's start-up and the last batch's ACK ("by the clock" includes that ACK).
Write: {messages_per_transaction:,} messages a transaction. Clients: from the first BEGIN to the receipt of the last
COMMIT, on open connections. Spark: trigger time of one batch, with a connection and a transaction for each task.
CPU in microseconds a message, user and system. The runner is the Python process of source or sink on the driver."""
_WIDTH = 42
_AXIS_WIDTHS = (29, 29, 19, 11, 11)


def as_text(document: dict[str, Any]) -> str:
    parts = [_EXPLANATION.format(**document), *(_cases(document, way) for way in ("read", "write"))]
    if document.get("axes"):
        parts.append(_axes(document))
    parts += [_beside(document), _targets(document)]
    if document.get("skipped"):
        parts.append("\n".join(f"{case} was not measured: {reason}" for case, reason in document["skipped"].items()))
    parts.append(", ".join(f"{name} {value}" for name, value in document["machine"].items()))
    return "\n\n".join(parts)


# --- one kind of message -------------------------------------------------------------------------


def _cases(document: dict[str, Any], way: str) -> str:
    heading = _row(way, "messages/s", "ratio to raw", list(ROLES))
    cases = document["cases"]
    rows = [_line(title, cases[case]) for case, title in CASES.items() if case.startswith(way) and case in cases]
    return "\n".join([heading, "-" * len(heading), *rows])


def _row(name: str, rate: str, ratio: str, cpu: list[str]) -> str:
    return f"{name:<{_WIDTH}}{rate:>29}{ratio:>19}" + "".join(f"{one:>9}" for one in cpu)


def _line(name: str, case: dict[str, Any]) -> str:
    cpu = case["cpu_us_per_message"]
    return _row(
        name,
        _rate(case["messages_per_s"]),
        _ratio(case["ratio_to_raw"]),
        [f"{cpu[role]['median']:.1f}" if role in cpu else "-" for role in ROLES],
    )


def _rate(spread: dict[str, float]) -> str:
    return "{median:,.0f} ({lowest:,.0f}-{highest:,.0f})".format(**spread)


def _ratio(spread: dict[str, float]) -> str:
    return "{median:.2f} ({lowest:.2f}-{highest:.2f})".format(**spread)


# --- other kinds ---------------------------------------------------------------------------------


def _axes(document: dict[str, Any]) -> str:
    heading = _axis_row(["as above, except", "raw/s", "Spark/s", "ratio to raw", "broker us", "Spark us"])
    lines = [heading, "-" * len(heading)]
    for name, axis in document["axes"].items():
        for way, case in (("read", "read.jms"), ("read", "read.journal"), ("write", "write.jms")):
            if case in axis["cases"] and not (case == "read.jms" and "read.journal" in axis["cases"]):
                lines.append(_axis_line(f"{name}, {way}", axis["cases"][f"{way}.raw"], axis["cases"][case]))
    return "\n".join(lines)


def _axis_row(cells: list[str]) -> str:
    return f"{cells[0]:<{_WIDTH}}" + "".join(
        f"{cell:>{width}}" for cell, width in zip(cells[1:], _AXIS_WIDTHS, strict=True)
    )


def _axis_line(name: str, raw: dict[str, Any], spark: dict[str, Any]) -> str:
    cpu = {role: spread["median"] for role, spread in spark["cpu_us_per_message"].items()}
    ours = sum(spent for role, spent in cpu.items() if role != "broker")
    rates = _rate(raw["messages_per_s"]), _rate(spark["messages_per_s"])
    return _axis_row([name, *rates, _ratio(spark["ratio_to_raw"]), f"{cpu['broker']:.1f}", f"{ours:.1f}"])


# --- beside the tables ---------------------------------------------------------------------------


def _beside(document: dict[str, Any]) -> str:
    lines = [_warm_up(document, way) for way in ("read", "write")]
    lines += [_latency(name, document[key]) for key, name in _LATENCIES.items() if key in document]
    if "latency_toy" in document:
        lines.append(
            "latency of a toy source in Python at {per_second} numbers/s: p50 {p50_ms:.0f} ms,"
            " p99 {p99_ms:.0f} ms".format(**document["latency_toy"])
        )
    if "latency_rate" in document:
        lines.append(
            "Spark's own floor at {per_second} messages/s, ten rows a batch of a rate source: p50 {p50_ms:.0f} ms,"
            " p99 {p99_ms:.0f} ms".format(**document["latency_rate"])
        )
    if "idle" in document:
        lines.append(
            "idle, percent of a core: {percent:.1f} with a waiting query (broker {broker:.1f}, JVM {jvm:.1f}, runner"
            " {runner:.1f}), {without_percent:.1f} without one".format(**document["idle"])
        )
    return "\n".join(lines)


_LATENCIES = {
    "latency": "latency",
    "latency_amqp": "latency over AMQP",
}


def _latency(name: str, latency: dict[str, Any]) -> str:
    return (
        "{name} at {per_second} messages/s, SEND to Spark's commit log: p50 {p50_ms:.0f} ms, p99 {p99_ms:.0f} ms;"
        " CPU meanwhile: broker {broker_percent:.0f} %, JVM {jvm_percent:.0f} %, runner {runner_percent:.1f} %,"
        " workers {workers_percent:.0f} % of a core"
    ).format(name=name, **latency)


def _warm_up(document: dict[str, Any], way: str) -> str:
    notes = {name: spread["median"] for name, spread in document["cases"][f"{way}.jms"]["notes"].items()}
    rate = document["messages"] / notes["by_the_clock_seconds"]
    return (
        f"Spark, {way}: {rate:,.0f} messages/s by the clock, {notes['batches']:.0f} batches; CPU of Spark's processes"
        f" {document[f'{way}.cpu_us_per_message']:.1f} us a message, in the first round"
        f" {document[f'{way}.cpu_us_per_message_first_round']:.1f}, without the JVM's compiler threads"
        f" {document[f'{way}.cpu_us_per_message_without_compiler']:.1f}"
    )


def _targets(document: dict[str, Any]) -> str:
    heading = f"{'target':<58}{'wanted':>14}{'measured':>14}"
    lines = [heading, "-" * len(heading)]
    for target, value, met in judged(document):
        wanted = f"{'<=' if target.most else '>='} {_short(target.bound)}"
        lines.append(f"{target.what:<58}{wanted:>14}{_short(value):>14}{'' if met else '  not met'}")
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# --- growth ----------------------------------------------------------------------------------------

_MEGABYTE = 1 << 20
KINDS = {"": "", "amqp.": " over AMQP"}
"""Prefix of a value → what it adds to its name."""
_GROWTH_AXES = {
    "size": "message size",
    "properties": "properties",
    "backlog": "backlog, 100 B",
    "partitions": "task size",
    "batches": "batch size",
    "queues": "queues",
}


def growth_as_text(document: dict[str, Any]) -> str:
    parts = [_growth_axis(axis, points) for axis, points in document["growth"].items() if points]
    if "cost" in document:
        parts.append(_cost(document["cost"]))
    parts += [_soak(name, document[name]) for name in (f"{prefix}soak" for prefix in KINDS) if name in document]
    return "\n\n".join(parts)


def _growth_axis(axis: str, points: list[dict[str, Any]]) -> str:
    prefix, _, name = axis.rpartition(".")
    title = _GROWTH_AXES[name] + KINDS[f"{prefix}." if prefix else ""]
    cells = [title, "messages/s", "MB/s", "to raw", "batches", "tasks"]
    heading = _growth_row([*cells, *(f"{role} us" for role in ROLES[:-1]), *(f"{role} MB" for role in ROLES[:-1])])
    steps = groupby(points, key=lambda point: point["value"])
    return "\n".join([heading, "-" * len(heading), *(_growth_step(value, list(of)) for value, of in steps)])


def _growth_row(cells: list[str]) -> str:
    return f"{cells[0]:<30}" + "".join(f"{cell:>{12 if place < 5 else 11}}" for place, cell in enumerate(cells[1:]))


def _growth_step(value: str, points: list[dict[str, Any]]) -> str:
    def middle(of: Any) -> float:
        return float(median(of(point) for point in points))

    raw = points[0]["raw_per_s"]
    return _growth_row(
        [
            value,
            f"{middle(lambda p: p['messages'] / p['seconds']):,.0f}",
            f"{middle(lambda p: p['bytes'] / p['seconds'] / _MEGABYTE):,.1f}",
            "-" if raw is None else f"{middle(lambda p: p['messages'] / p['seconds'] / p['raw_per_s']):.2f}",
            f"{middle(lambda p: p['batches']):,.0f}",
            f"{middle(lambda p: p['tasks']):,.0f}",
            *(f"{middle(lambda p, r=r: p['cpu'].get(r, 0) / p['messages'] * 1e6):,.1f}" for r in ROLES[:-1]),
            *(f"{middle(lambda p, r=r: p['peaks'].get(r, 0) / _MEGABYTE):,.0f}" for r in ROLES[:-1]),
        ]
    )


def _cost(cost: dict[str, float]) -> str:
    return (
        "CPU of Spark's processes: {us_a_message:.1f} us a message + {us_a_kilobyte:.2f} us a kilobyte +"
        " {ms_a_batch:.0f} ms a batch + {ms_a_task:.1f} ms a task (off by {percent:.0f} % in the median)"
    ).format(percent=100 * cost["error"], **cost)


def _soak(name: str, soak: dict[str, Any]) -> str:
    lines = [
        f"soak{KINDS[name.removesuffix('soak')]}: "
        "{minutes:g} minutes at {per_second:,}/s, {messages:,} messages, at most {most_waiting:,} waiting".format(
            **soak
        )
    ]
    for role, slope in soak["mb_per_hour"].items():
        peak = soak["peaks_mb"].get(role)
        lines.append(
            f"  {role:<8} {slope['slope']:+8.2f} MB/h +- {slope['error']:.2f}{'' if slope['flat'] else '  grows'}"
            + ("" if peak is None else f", at most {peak:,.0f} MB")
            + (f", {soak['busy_percent'][role]:.1f} % of a core" if role in soak["busy_percent"] else "")
        )
    if "storage_mb" in soak:
        lines.append(
            "  the broker's files: {before:,.0f} MB before, at most {most:,.0f}, {after:,.0f} after".format(
                **soak["storage_mb"]
            )
        )
    return "\n".join(lines)


# --- targets on two shared cores -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """``bound`` is the smallest accepted value of ``key``, or the largest if ``most`` is set.

    ``warm``: the value is that of a JVM whose compilers have finished, so a run without warm-up is not judged by it.
    """

    what: str
    key: str
    bound: float
    most: bool = False
    warm: bool = False

    def met(self, value: float) -> bool:
        return value <= self.bound if self.most else value >= self.bound


TARGETS = (
    Target("read through Spark, of the raw drain", "read.ratio_to_raw", 0.8),
    Target("read through Spark, of the naive source", "read.ratio_to_stomp_py", 3),
    Target("read: CPU of all of Spark's processes, us a message", "read.cpu_us_per_message", 20, most=True, warm=True),
    Target("read with a journal, of read without", "journal.ratio", 0.85),
    Target("write through Spark, of the raw transactions", "write.ratio_to_raw", 0.85, warm=True),
    Target("AMQP read through Spark, of the STOMP read", "read.amqp.ratio_to_stomp", 1.8),
    Target("AMQP read of STOMP's messages, of the STOMP read", "read.amqp.core.ratio_to_stomp", 1),
    Target("AMQP read of Java's messages, of Hazelcast Jet", "read.amqp.ratio_to_jet", 2.2, warm=True),
    Target("the same exactly-once, two readers, of Jet's two", "read.amqp.once_ratio_to_jet", 2.2, warm=True),
    Target("AMQP read: CPU of the runner, us a message", "read.amqp.runner_us_per_message", 4, most=True),
    Target("AMQP read: CPU of all of Spark's processes", "read.amqp.cpu_us_per_message", 18, most=True, warm=True),
    Target("AMQP write through Spark, of the STOMP write", "write.amqp.ratio_to_stomp", 1.5, warm=True),
    Target("AMQP decode of 1 KB, of the STOMP decoder", "decode.amqp.1_kb_ratio", 1.3),
    Target("AMQP decode of 100 B, of the STOMP decoder", "decode.amqp.100_b_ratio", 1.8),
    Target("AMQP decode of 10 KB, of the STOMP decoder", "decode.amqp.10_kb_ratio", 1),
    Target("AMQP decode of mixed layouts, of the STOMP decoder", "decode.amqp.mixed_ratio", 1.4),
    Target("AMQP decode of typed properties, of the STOMP decoder", "decode.amqp.typed_ratio", 1.5),
    Target("AMQP decode, 1 % broken rows, of none", "decode.amqp.slow_rows_ratio", 0.5),
    Target("AMQP encode of strings, of the STOMP encoder", "encode.amqp.plain_ratio", 0.8),
    Target("AMQP encode of typed properties, of STOMP's strings", "encode.amqp.typed_ratio", 1.3),
    Target("decode, one header layout, rows/s on a core", "decode.rows_per_s", 700_000),
    Target("decode, mixed layouts, rows/s on a core", "decode.mixed_rows_per_s", 350_000),
    Target("encode with nulls and escapes, frames/s on a core", "encode.rows_per_s", 1_500_000),
    Target("one more read task, ms of CPU of its Python worker", "task.workers_ms", 15, most=True),
    Target("latency at 100 messages/s, median, ms", "latency.p50_ms", 200, most=True),
    Target("the same, ms more than a toy source in Python", "latency_more_than_toy_ms", 10, most=True),
    Target("the same over AMQP", "latency_amqp_more_than_toy_ms", 10, most=True),
    Target("idle query, broker and Spark, percent of a core", "idle.percent", 2, most=True),
    Target("load() to the first row, warm JVM, s", "start.seconds", 5, most=True),
    Target("import pyspark_jms, ms", "import.ms", 10, most=True),
)


def judged(document: Mapping[str, Any]) -> list[tuple[Target, float, bool]]:
    """The targets whose value is in the document, with the value and whether it meets the target."""
    is_warm = document["warm_up_seconds"] > 0
    values = [(one, document[one.key]) for one in TARGETS if one.key in document and (is_warm or not one.warm)]
    return [(one, value, one.met(value)) for one, value in values]
