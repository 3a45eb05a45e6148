"""CPU by thread of the broker and of the driver's Python, while a query reads with several connections.

    python -m bench.threads [MESSAGES [ROUNDS]]

At-least-once over AMQP through Spark to ``noop``, with messages of a STOMP client, which Artemis converts on the thread
of a connection. The broker pauses the queue until the clock starts. The last round counts; those before it warm up.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace

from bench import raw
from bench.job import Job
from bench.processes import thread_seconds
from bench.rounds import base_job
from bench.spark_read import start_query
from bench.spark_session import SparkSide, rows_of, until
from pyspark_jms.testing import EmbeddedArtemis

CONNECTIONS = (1, 2, 4)
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


def profile(side: SparkSide, job: Job, connections: int) -> dict[str, dict[str, list[float]]]:
    """Process → place → µs a message of each thread."""
    job = replace(job, queue=f"bench.threads.{time.time_ns()}")
    side.broker.create_queue(job.queue)
    held = side.broker.server.locateQueue(job.queue)
    query = start_query(side, job.queue, {"brokerUrl": side.broker.amqp_url, "connections": str(connections)})
    try:
        raw.fill(replace(job, messages=2_000))
        until(query, lambda: rows_of(query) >= 2_000)
        held.pause()
        raw.fill(job)
        pids = {role: pid for pid, role in side.roles().items() if role in {"broker", "runner"}}
        before = {role: thread_seconds(pid) for role, pid in pids.items()}
        held.resume()
        until(query, lambda: rows_of(query) >= 2_000 + job.messages)
        after = {role: thread_seconds(pid) for role, pid in pids.items()}
    finally:
        query.stop()
    return {
        role: {
            place: [1e6 * one / job.messages for one in each]
            for place, each in by_place(before[role], after[role]).items()
        }
        for role in pids
    }


def main(messages: int, rounds: int) -> None:
    with EmbeddedArtemis(benchmark=True, heap="1g") as broker, SparkSide(broker) as side:
        job = base_job(broker, messages)
        for number in range(rounds):
            for connections in CONNECTIONS:
                found = profile(side, job, connections)
                rounded = {
                    role: {place: [round(one, 1) for one in each if one >= 0.05] for place, each in places.items()}
                    for role, places in found.items()
                }
                print(number, f"connections={connections}", json.dumps(rounded), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
