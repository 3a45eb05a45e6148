"""CPU by thread of the broker and of the Python processes, while a query reads with several connections or readers.

    python -m bench.threads [MESSAGES [ROUNDS]]

Over AMQP through Spark to ``noop``: at-least-once with ``connections``, and exactly-once with ``readers``. The messages
are of a STOMP client, which Artemis converts on the thread of a connection. The broker pauses the queue until the clock
starts. The last round counts; those before it warm up.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace

from bench import raw
from bench.job import Job
from bench.processes import thread_seconds
from bench.readers import ONCE
from bench.rounds import base_job
from bench.spark_read import start_query
from bench.spark_session import SparkSide, began, ended, progress_since, rows_of, until
from pyspark_jms.testing import EmbeddedArtemis

WAYS: dict[str, Mapping[str, str]] = {
    **{f"connections={number}": {"connections": str(number)} for number in (1, 2, 4)},
    **{f"readers={number}": ONCE | {"readers": str(number)} for number in (1, 2, 4)},
}
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


def profile(side: SparkSide, job: Job, options: Mapping[str, str]) -> tuple[float, dict[str, dict[str, list[float]]]]:
    """Messages a second, and process → place → µs a message of each thread."""
    job = replace(job, queue=f"bench.threads.{time.time_ns()}")
    side.broker.create_queue(job.queue)
    held = side.broker.server.locateQueue(job.queue)
    query = start_query(side, job.queue, {"brokerUrl": side.broker.amqp_url, **options})
    try:
        raw.fill(replace(job, messages=2_000))
        until(query, lambda: rows_of(query) >= 2_000)
        held.pause()
        raw.fill(job)
        pids = [(role, pid) for pid, role in side.roles().items() if role != "jvm"]
        last = max((batch["batchId"] for batch in progress_since(query)), default=-1)
        before = [thread_seconds(pid) for _, pid in pids]
        began_at = time.time()
        held.resume()
        until(query, lambda: rows_of(query) >= 2_000 + job.messages)
        after = [thread_seconds(pid) for _, pid in pids]
        busy = sum(ended(batch) - max(began(batch), began_at) for batch in progress_since(query, last))
    finally:
        query.stop()
    found: dict[str, dict[str, list[float]]] = {}
    for (role, _), was, now in zip(pids, before, after, strict=True):
        for place, each in by_place(was, now).items():
            found.setdefault(role, {}).setdefault(place, []).extend(1e6 * one / job.messages for one in each)
    return job.messages / busy, found


def main(messages: int, rounds: int) -> None:
    with EmbeddedArtemis(benchmark=True, heap="3g") as broker, SparkSide(broker) as side:
        job = base_job(broker, messages)
        for number in range(rounds):
            for way, options in WAYS.items():
                rate, found = profile(side, job, options)
                rounded = {
                    role: {place: [round(one, 1) for one in each if one >= 0.05] for place, each in places.items()}
                    for role, places in found.items()
                }
                print(number, way, f"{rate:,.0f} messages/s", json.dumps(rounded), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
