"""`make bench`: compares the base case with every alternative client, then changes one thing at a time.

``--messages`` and ``--rounds`` set the size of the run; ``--docs`` writes tables and chart into docs/benchmarks.md.
"""

from dataclasses import replace
from typing import Any

from bench.command import arguments, finish, fixed_costs, machine
from bench.job import Job
from bench.one_query import idle_percent, latencies, start_seconds, task_ms
from bench.results import cases_of, followed
from bench.rounds import AXIS, JOURNAL, OURS, PEERS, Stage, Variant, base_job, measure, warm_up

_AXIS_ROUNDS = 3
_WARM_UP = 9
"""Multiple of ``--seconds``. After this time the JVM's compilers take a tenth of their first CPU."""
_LARGE_IN_A_SMALL = 5
"""A round of large messages has this many times fewer messages, so that it moves about as many bytes."""


def main() -> None:
    options = arguments(__doc__, messages=150_000, rounds=5)
    facts = machine()
    document = fixed_costs(turns=options.turns) | {"warm_up_seconds": _WARM_UP * options.seconds}
    with Stage.built(java=True) as stage:
        job = base_job(stage.broker, options.messages)
        with Variant(stage, job, (*OURS, *PEERS)) as variant:
            warm_up(variant, seconds=document["warm_up_seconds"])
            measurements = measure(variant, rounds=options.rounds)
        document |= followed(measurements) | {"cases": cases_of(measurements), "skipped": stage.skipped}
        document |= _single(stage, job, options.seconds)
        document["axes"] = _axes(stage, job, document, min(options.rounds, _AXIS_ROUNDS))
        facts |= stage.versions()
    finish(document, options, job, facts)


def _single(stage: Stage, job: Job, seconds: float) -> dict[str, Any]:
    """Measurements of a single query."""
    side = stage.spark
    small = replace(job, body_bytes=100, messages=min(job.messages, 20_000))
    return latencies(side, job, per_second=100, seconds=3 * seconds) | {
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
