"""What was measured → the JSON document, and the document → the table."""

from statistics import median
from typing import Any

from bench.job import Measured

__all__ = ["as_json", "as_text"]

_ROLES = ("broker", "jvm", "runner", "workers", "client")
_SPARK_ROLES = ("jvm", "runner", "workers")
_CASES = {
    "read.raw": "raw socket, ids found and nothing parsed",
    "read.stomp_py": "stomp.py listener, only ACKs",
    "read.jms": 'format("jms") through Spark to noop',
    "write.raw": "raw sockets, 2 connections",
    "write.jms": 'Spark to format("jms"), 2 tasks at a time',
}
_FOLLOWED = {
    "read.ratio_to_raw": ("read.jms", "read.raw"),
    "read.ratio_to_stomp_py": ("read.jms", "read.stomp_py"),
    "write.ratio_to_raw": ("write.jms", "write.raw"),
}
_EXPLANATION = """\
Messages of 1 KB text and five string properties, persistent. Medians of {rounds} interleaved rounds
(lowest-highest) of {messages:,} messages each, after one round that is not counted. Broker, Spark and clients
share the machine.
Read: a full queue is drained, one ACK a message. Raw socket and stomp.py: SUBSCRIBE to the last ACK's receipt.
Spark: trigger time of the batches with rows from the moment the broker lets messages go: planning, offset and
commit logs are in it, the query's start-up and the last batch's ACK are not (by the clock: that ACK too).
Write: {messages_per_transaction:,} messages a transaction. Raw: first BEGIN to last COMMIT's receipt, connected before.
Spark: trigger time of one batch, a connection and a transaction each task.
CPU in microseconds a message, user and system; runner is the Python process of source or sink on the driver."""


def as_json(figures: dict[str, list[Measured]], *, per_transaction: int) -> dict[str, Any]:
    """Flat keys for the figures that are followed over time, ``cases`` for all that was measured."""
    document: dict[str, Any] = {}
    for key, (ours, theirs) in _FOLLOWED.items():
        document[key] = _spread(_ratios(figures[ours], figures[theirs]))["median"]
    for way in ("read", "write"):
        document[f"{way}.messages_per_s"] = _spread([one.per_second for one in figures[f"{way}.jms"]])["median"]
        document[f"{way}.cpu_us_per_message"] = _spread([_spark_cpu(one) for one in figures[f"{way}.jms"]])["median"]
    document["messages"] = figures["read.jms"][0].messages
    document["messages_per_transaction"] = per_transaction
    document["rounds"] = len(figures["read.jms"])
    document["cases"] = {case: _case(every, figures[_raw(case)]) for case, every in figures.items()}
    return document


def _raw(case: str) -> str:
    return case.partition(".")[0] + ".raw"


def _ratios(ours: list[Measured], theirs: list[Measured]) -> list[float]:
    """Round by round: what disturbed one round does not enter the ratio of another."""
    return [one.per_second / other.per_second for one, other in zip(ours, theirs, strict=True)]


def _spark_cpu(measured: Measured) -> float:
    spent = measured.microseconds()
    return sum(spent.get(role, 0.0) for role in _SPARK_ROLES)


def _spread(values: list[float]) -> dict[str, float]:
    return {name: round(of(values), 3) for name, of in (("median", median), ("lowest", min), ("highest", max))}


def _case(every: list[Measured], raw: list[Measured]) -> dict[str, Any]:
    cpu = [one.microseconds() for one in every]
    roles = [role for role in _ROLES if any(role in one for one in cpu)]
    return {
        "messages_per_s": _spread([one.per_second for one in every]),
        "ratio_to_raw": _spread(_ratios(every, raw)),
        "cpu_us_per_message": {role: _spread([one.get(role, 0.0) for one in cpu]) for role in roles},
        "notes": {note: _spread([one.notes[note] for one in every]) for note in every[0].notes},
    }


# --- the table ---------------------------------------------------------------------------------


def as_text(document: dict[str, Any]) -> str:
    lines = [_EXPLANATION.format(**document), ""]
    for way in ("read", "write"):
        heading = _row(way, "messages/s", "ratio to raw", list(_ROLES))
        lines += [heading, "-" * len(heading)]
        lines += [_line(_CASES[case], document["cases"][case]) for case in _CASES if case.startswith(way)]
        lines.append("")
    lines += [f"{key} {document[key]:.2f}" for key in _FOLLOWED]
    lines += [_beside(document, way) for way in ("read", "write")]
    lines.append(", ".join(f"{name} {value}" for name, value in document["machine"].items()))
    return "\n".join(lines)


def _row(name: str, rate: str, ratio: str, cpu: list[str]) -> str:
    return f"{name:<40}{rate:>25}{ratio:>19}" + "".join(f"{one:>9}" for one in cpu)


def _line(name: str, figures: dict[str, Any]) -> str:
    rate, ratio, cpu = figures["messages_per_s"], figures["ratio_to_raw"], figures["cpu_us_per_message"]
    return _row(
        name,
        "{median:,.0f} ({lowest:,.0f}-{highest:,.0f})".format(**rate),
        "{median:.2f} ({lowest:.2f}-{highest:.2f})".format(**ratio),
        [f"{cpu[role]['median']:.1f}" if role in cpu else "-" for role in _ROLES],
    )


def _beside(document: dict[str, Any], way: str) -> str:
    notes = {name: spread["median"] for name, spread in document["cases"][f"{way}.jms"]["notes"].items()}
    rate = document["messages"] / notes["by_the_clock_seconds"]
    return (
        f"Spark, {way}: {rate:,.0f} messages/s by the clock, {notes['batches']:.0f} batches; of the JVM's CPU"
        f" {notes['jvm_compiling_us_per_message']:.1f} us a message went into compiling itself"
    )
