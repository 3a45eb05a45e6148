"""`make bench` and `make bench-quick`: compares the connector with other clients, in interleaved rounds on one broker.

``python -m bench.compare full`` compares the base case with every client and then changes one thing at a time;
``quick`` has raw sockets and a naive source only. ``--out`` names the JSON file (default: bench/latest.json);
``--docs`` writes tables and chart into the pages. The benchmark starts its own broker.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.in_memory import codec_rates
from bench.job import Job
from bench.machine import ROOT, machine
from bench.one_query import idle_percent, import_ms, latencies, start_seconds, task_ms
from bench.results import cases_of, followed
from bench.rounds import AXIS, JOURNAL, OURS, PEERS, QUICK, Stage, Variant, base_job, measure, warm_up
from bench.table import as_text

_DEFAULTS: dict[str, dict[str, Any]] = {
    "full": {"messages": 150_000, "rounds": 5, "seconds": 10, "turns": 15},
    "quick": {"messages": 40_000, "rounds": 2, "seconds": 3, "turns": 5},
}
_AXIS_ROUNDS = 3
_IMPORTS = 9
_WARM_UP = 9
"""Multiple of ``--seconds``. After this time the JVM's compilers take a tenth of their first CPU."""
_LARGE_IN_A_SMALL = 5
"""A round of large messages has this many times fewer messages, so that it moves about as many bytes."""
_FLAT = {
    "latency": ("p50_ms", "p99_ms"),
    "latency_amqp": ("p50_ms", "p99_ms"),
    "latency_toy": ("p50_ms", "p99_ms"),
    "latency_rate": ("p50_ms", "p99_ms"),
    "idle": ("percent",),
    "task": ("workers_ms", "jvm_ms"),
}


def main() -> None:
    options, facts = _arguments(), machine()
    full = options.what == "full"
    document: dict[str, Any] = {**codec_rates(turns=options.turns), "import.ms": round(import_ms(times=_IMPORTS), 2)}
    document["warm_up_seconds"] = _WARM_UP * options.seconds if full else 0
    with Stage.built(java=full) as stage:
        job = base_job(stage.broker, options.messages)
        with Variant(stage, job, (*OURS, *PEERS) if full else QUICK) as variant:
            warm_up(variant, seconds=document["warm_up_seconds"])
            measurements = measure(variant, rounds=options.rounds)
        document |= followed(measurements) | {"cases": cases_of(measurements), "skipped": stage.skipped}
        document |= latencies(stage.spark, job, per_second=100, seconds=(3 if full else 1) * options.seconds)
        if full:
            document |= _fixed_costs(stage, job, options.seconds)
            document["axes"] = _axes(stage, job, document, min(options.rounds, _AXIS_ROUNDS))
        facts |= stage.versions()
    document |= {"messages": job.messages, "messages_per_transaction": job.per_transaction, "rounds": options.rounds}
    for part, names in _FLAT.items():
        document |= {f"{part}.{name}": document[part][name] for name in names if part in document}
    document["machine"] = facts
    options.out.write_text(json.dumps(document, indent=2) + "\n")
    print(as_text(document))
    print(f"written to {options.out}")
    if options.docs:
        from bench.publish import publish  # imports matplotlib, which only --docs needs

        publish(document, ROOT)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=_DEFAULTS)
    parser.add_argument("--messages", type=int, help="messages of each case in a round")
    parser.add_argument("--rounds", type=int, help="counted rounds, after one uncounted round")
    parser.add_argument("--seconds", type=float, help="duration of each timed measurement")
    parser.add_argument("--turns", type=int, help="repetitions of each measurement in memory")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "latest.json")
    parser.add_argument("--docs", action="store_true", help="write tables and chart into the pages")
    options = parser.parse_args()
    for name, value in _DEFAULTS[options.what].items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if min(options.messages, options.rounds, options.seconds, options.turns) < 1:
        parser.error("--messages, --rounds, --seconds and --turns must be at least 1")
    return options


def _fixed_costs(stage: Stage, job: Job, seconds: float) -> dict[str, Any]:
    side = stage.spark
    small = replace(job, body_bytes=100, messages=min(job.messages, 20_000))
    return {
        "idle": idle_percent(side, job, seconds=2 * seconds),
        "task": task_ms(side, small, turns=_AXIS_ROUNDS),
        "start.seconds": round(start_seconds(side, job, times=_AXIS_ROUNDS), 2),
    }


def _axes(stage: Stage, job: Job, document: dict[str, Any], rounds: int) -> dict[str, Any]:
    fewer = max(1, job.messages // _LARGE_IN_A_SMALL)
    variants = {
        "100 B": (replace(job, body_bytes=100), AXIS),
        "10 KB": (replace(job, body_bytes=10_240, messages=fewer, per_transaction=-(-fewer // 8)), AXIS),
        "non-persistent": (replace(job, persistent=False), AXIS),
        "journal": (job, JOURNAL),
    }
    axes = {}
    for name, (job_of, cases) in variants.items():
        with Variant(stage, job_of, cases) as variant:
            measurements = measure(variant, rounds=rounds)
        axes[name] = {"messages": job_of.messages, "cases": cases_of(measurements)}
        if "read.journal" in measurements:
            document["journal.ratio"] = followed(measurements)["journal.ratio"]
    return axes


if __name__ == "__main__":
    main()
