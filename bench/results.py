"""Measurements → the JSON document: flat keys for comparison over time, and all details."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.job import Measured

__all__ = ["ROLES", "cases_of", "followed", "spread"]

ROLES = ("broker", "jvm", "runner", "workers", "client")
SPARK_ROLES = ("jvm", "runner", "workers")

Spread = dict[str, float]
Measurements = Mapping[str, Sequence[Measured]]
"""Case → its measurements: the round to warm up first, then the counted rounds."""

_RATIOS = {
    "read.ratio_to_raw": ("read.jms", "read.raw"),
    "read.ratio_to_stomp_py": ("read.jms", "read.naive"),
    "read.ratio_to_stomp_py_listener": ("read.jms", "read.stomp_py"),
    "read.ratio_to_java": ("read.jms", "read.java"),
    "read.ratio_to_rate_source": ("read.jms", "read.rate"),
    "write.ratio_to_raw": ("write.jms", "write.raw"),
    "write.ratio_to_java": ("write.jms", "write.java"),
    "journal.ratio": ("read.journal", "read.jms"),
    "read.amqp.ratio_to_raw": ("read.amqp.jms", "read.amqp.raw"),
    "read.amqp.ratio_to_stomp": ("read.amqp.jms", "read.jms"),
    "read.amqp.ratio_to_java": ("read.amqp.jms", "read.amqp.java"),
    "read.amqp.ratio_to_proton": ("read.amqp.jms", "read.amqp.proton"),
    "read.amqp.once_ratio": ("read.amqp.once", "read.amqp.jms"),
    "write.amqp.ratio_to_java": ("write.amqp.jms", "write.amqp.java"),
    "read.amqp.core.ratio_to_raw": ("read.amqp.core.jms", "read.amqp.core.raw"),
    "read.amqp.core.ratio_to_stomp": ("read.amqp.core.jms", "read.jms"),
    "read.amqp.ratio_to_jet": ("read.amqp.core.sent_by_java", "read.jet_at_least_once"),
    "read.amqp.once_ratio_to_jet": ("read.amqp.core.sent_by_java_once", "read.jet_exactly_once"),
    "write.amqp.ratio_to_raw": ("write.amqp.jms", "write.amqp.raw"),
    "write.amqp.ratio_to_stomp": ("write.amqp.jms", "write.jms"),
}
_OURS = {"read": "read.jms", "write": "write.jms", "read.amqp": "read.amqp.jms", "write.amqp": "write.amqp.jms"}


def spread(values: Sequence[float]) -> Spread:
    return {name: round(of(values), 3) for name, of in (("median", median), ("lowest", min), ("highest", max))}


def cases_of(measurements: Measurements) -> dict[str, Any]:
    """For each case: medians and ranges over the counted rounds, and the values of the first round."""
    return {
        case: _case(every, measurements.get(case.rpartition(".")[0] + ".raw")) for case, every in measurements.items()
    }


def _case(every: Sequence[Measured], raw: Sequence[Measured] | None) -> dict[str, Any]:
    first, counted = every[0], every[1:]
    cpu = [one.microseconds() for one in counted]
    roles = [role for role in ROLES if any(role in one for one in cpu)]
    case: dict[str, Any] = {"messages_per_s": spread([one.per_second for one in counted])}
    if raw is not None:
        case["ratio_to_raw"] = spread(_ratios(counted, raw[1:]))
    case["cpu_us_per_message"] = {role: spread([one.get(role, 0.0) for one in cpu]) for role in roles}
    case["notes"] = {note: spread([one.notes[note] for one in counted]) for note in first.notes}
    case["first_round"] = {
        "messages_per_s": round(first.per_second, 3),
        "cpu_us_per_message": {role: round(spent, 3) for role, spent in first.microseconds().items()},
    }
    return case


def followed(measurements: Measurements) -> dict[str, float]:
    """The flat keys of these cases."""
    document = {
        key: spread(_ratios(measurements[ours][1:], measurements[theirs][1:]))["median"]
        for key, (ours, theirs) in _RATIOS.items()
        if ours in measurements and theirs in measurements
    }
    for way, case in _OURS.items():
        if case in measurements:
            document |= {f"{way}.{name}": value for name, value in _ours(measurements[case]).items()}
    return document


def _ours(every: Sequence[Measured]) -> dict[str, float]:
    first, counted = every[0], every[1:]
    compiling = [one.notes["jvm_compiling_us_per_message"] for one in counted]
    return {
        "messages_per_s": round(median(one.per_second for one in counted), 1),
        "cpu_us_per_message": round(median(map(_spark_cpu, counted)), 3),
        "runner_us_per_message": round(median(one.microseconds().get("runner", 0.0) for one in counted), 3),
        "cpu_us_per_message_first_round": round(_spark_cpu(first), 3),
        "cpu_us_per_message_without_compiler": round(
            median(_spark_cpu(one) - spent for one, spent in zip(counted, compiling, strict=True)), 3
        ),
    }


def _ratios(ours: Sequence[Measured], theirs: Sequence[Measured]) -> list[float]:
    """One ratio for each round, so that a disturbed round does not affect the ratios of other rounds."""
    return [one.per_second / other.per_second for one, other in zip(ours, theirs, strict=True)]


def _spark_cpu(measured: Measured) -> float:
    """CPU of Spark's processes together, without the broker."""
    spent = measured.microseconds()
    return sum(spent.get(role, 0.0) for role in SPARK_ROLES)
