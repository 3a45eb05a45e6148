"""Code that the commands share: arguments, measurements without a broker, and output of the results."""

import argparse
import json
import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.in_memory import codec_rates
from bench.job import Job
from bench.one_query import import_ms
from bench.table import as_text

__all__ = ["ROOT", "arguments", "finish", "fixed_costs", "machine"]

ROOT = Path(__file__).resolve().parent.parent
_IMPORTS = 9
_FLAT = {
    "latency": ("p50_ms", "p99_ms"),
    "latency_amqp": ("p50_ms", "p99_ms"),
    "latency_rate": ("p50_ms", "p99_ms"),
    "idle": ("percent",),
    "task": ("workers_ms", "jvm_ms"),
}


def arguments(
    what: str | None, *, messages: int, rounds: int, seconds: float = 10, turns: int = 15
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=messages, help="messages of each case in a round")
    parser.add_argument("--rounds", type=int, default=rounds, help="counted rounds, after one uncounted round")
    parser.add_argument("--seconds", type=float, default=seconds, help="duration of each timed measurement")
    parser.add_argument("--turns", type=int, default=turns, help="repetitions of each measurement in memory")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "latest.json")
    parser.add_argument("--docs", action="store_true", help="write tables and chart into docs/benchmarks.md")
    options = parser.parse_args()
    if min(options.messages, options.rounds, options.seconds, options.turns) < 1:
        parser.error("--messages, --rounds, --seconds and --turns must be at least 1")
    return options


def machine() -> dict[str, Any]:
    """Facts about the machine, before a run: a high load means that other programs disturb its measurements."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "cpu": model[1] if model else platform.machine(),
        "system": platform.system() + " " + platform.release(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def fixed_costs(*, turns: int) -> dict[str, Any]:
    """Measurements on one core, in memory."""
    return {**codec_rates(turns=turns), "import.ms": round(import_ms(times=_IMPORTS), 2)}


def finish(document: dict[str, Any], options: argparse.Namespace, job: Job, machine: dict[str, Any]) -> None:
    """Write the JSON, print the tables and, with ``--docs``, write them into the documentation."""
    document |= {"messages": job.messages, "messages_per_transaction": job.per_transaction, "rounds": options.rounds}
    for part, names in _FLAT.items():
        document |= {f"{part}.{name}": document[part][name] for name in names if part in document}
    document["machine"] = machine
    options.out.write_text(json.dumps(document, indent=2) + "\n")
    text = as_text(document)
    print(text)
    print(f"written to {options.out}")
    if options.docs:
        from bench.publish import publish  # imports matplotlib, which only --docs needs

        publish(document, ROOT)
