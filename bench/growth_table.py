"""The JSON document of ``bench.long`` → its tables. The values of a step are medians over its points."""

from itertools import groupby
from statistics import median
from typing import Any

__all__ = ["KINDS", "as_text"]

_ROLES = ("broker", "jvm", "runner", "workers")
_MEGABYTE = 1 << 20
KINDS = {"": "", "amqp.": " over AMQP"}
"""Prefix of a value → what it adds to its name."""
_AXES = {
    "size": "message size",
    "properties": "properties",
    "backlog": "backlog, 100 B",
    "partitions": "task size",
    "batches": "batch size",
    "queues": "queues",
}


def as_text(document: dict[str, Any]) -> str:
    parts = [_axis(axis, points) for axis, points in document["growth"].items() if points]
    if "cost" in document:
        parts.append(_cost(document["cost"]))
    parts += [_soak(name, document[name]) for name in (f"{prefix}soak" for prefix in KINDS) if name in document]
    return "\n\n".join(parts)


def _axis(axis: str, points: list[dict[str, Any]]) -> str:
    prefix, _, name = axis.rpartition(".")
    cells = [
        _AXES[name] + KINDS[f"{prefix}." if prefix else ""],
        "messages/s",
        "MB/s",
        "to raw",
        "batches",
        "tasks",
    ]
    heading = _row([*cells, *(f"{role} us" for role in _ROLES), *(f"{role} MB" for role in _ROLES)])
    steps = groupby(points, key=lambda point: point["value"])
    return "\n".join([heading, "-" * len(heading), *(_step(value, list(of)) for value, of in steps)])


def _row(cells: list[str]) -> str:
    return f"{cells[0]:<30}" + "".join(f"{cell:>{12 if place < 5 else 11}}" for place, cell in enumerate(cells[1:]))


def _step(value: str, points: list[dict[str, Any]]) -> str:
    def middle(of: Any) -> float:
        return float(median(of(point) for point in points))

    raw = points[0]["raw_per_s"]
    return _row(
        [
            value,
            f"{middle(lambda p: p['messages'] / p['seconds']):,.0f}",
            f"{middle(lambda p: p['bytes'] / p['seconds'] / _MEGABYTE):,.1f}",
            "-" if raw is None else f"{middle(lambda p: p['messages'] / p['seconds'] / p['raw_per_s']):.2f}",
            f"{middle(lambda p: p['batches']):,.0f}",
            f"{middle(lambda p: p['tasks']):,.0f}",
            *(f"{middle(lambda p, r=r: p['cpu'].get(r, 0) / p['messages'] * 1e6):,.1f}" for r in _ROLES),
            *(f"{middle(lambda p, r=r: p['peaks'].get(r, 0) / _MEGABYTE):,.0f}" for r in _ROLES),
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
