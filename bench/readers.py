"""Exactly-once reads over AMQP beside an at-least-once one, in one run: the tasks receive, or the driver does.

    python -m bench.readers [MESSAGES [ROUNDS]]

Through Spark to ``noop``, from a queue that the broker pauses until the clock starts. Then latency at 100 messages/s,
and what the processes do while nothing comes. Every round has all ways, one after the other.
"""

import json
import statistics
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from bench import raw, raw_amqp
from bench.job import Job
from bench.latency import percentile
from bench.memory import peak_bytes
from bench.processes import Meter
from bench.rounds import base_job
from bench.spark_read import start_query
from bench.spark_session import Progress, SparkSide, began, ended, progress_since, rows_of, until
from pyspark_jms.testing import EmbeddedArtemis

ONCE = {"deliveryGuarantee": "exactly-once"}
WAYS: dict[str, Mapping[str, str]] = {
    "at-least-once": {},
    "readers=1": ONCE,
    "readers=2": ONCE | {"readers": "2"},
    "readers=4": ONCE | {"readers": "4"},
}
PER_SECOND, SECONDS, IDLE_SECONDS = 100, 8.0, 10.0


class Running:
    """A query of a way and its queue."""

    def __init__(self, side: SparkSide, job: Job, options: Mapping[str, str]) -> None:
        self.side, self.job = side, replace(job, queue=f"bench.{time.time_ns()}")
        side.broker.create_queue(self.job.queue)
        self.held = side.broker.server.locateQueue(self.job.queue)
        self.query = start_query(side, self.job.queue, {"brokerUrl": side.broker.amqp_url, **options})

    def fill(self, messages: int) -> None:
        """The queue is paused until ``read``."""
        self.held.pause()
        raw_amqp.fill(replace(self.job, messages=messages))

    def read(self, messages: int) -> tuple[Meter, list[Progress]]:
        """Measure until all that ``fill`` sent is read."""
        goal = rows_of(self.query) + messages
        last = max((batch["batchId"] for batch in progress_since(self.query)), default=-1)
        with Meter(self.side.roles) as meter:
            self.held.resume()
            until(self.query, lambda: rows_of(self.query) >= goal)
        assert rows_of(self.query) == goal, (goal, rows_of(self.query))
        return meter, progress_since(self.query, last)

    def latency(self) -> tuple[float, float]:
        first, sent = rows_of(self.query), []
        last = max((batch["batchId"] for batch in progress_since(self.query)), default=-1)
        frames = [raw.frame(self.job, number) for number in range(int(PER_SECOND * SECONDS))]
        with raw.connect(self.job) as connection:
            start = time.monotonic()
            for number, data in enumerate(frames):
                time.sleep(max(0.0, start + number / PER_SECOND - time.monotonic()))
                sent.append(time.time())
                connection.sendall(data)
        until(self.query, lambda: rows_of(self.query) >= first + len(sent))
        found, at = [], 0
        for batch in sorted(progress_since(self.query, last), key=lambda batch: batch["batchId"]):
            for _ in range(batch["numInputRows"]):
                found.append(1000 * (ended(batch) - sent[at]))
                at += 1
        return percentile(found, 50), percentile(found, 99)

    def idle(self) -> dict[str, float]:
        time.sleep(2)
        with Meter(self.side.roles) as meter:
            time.sleep(IDLE_SECONDS)
        return {role: 100 * spent / meter.seconds for role, spent in meter.cpu.items()}

    def peak(self) -> float:
        """The most memory that the process of the source ever had, in MB."""
        return max(peak_bytes(pid) for pid, role in self.side.roles().items() if role == "runner") / 1e6

    def stop(self) -> None:
        self.query.stop()
        self.side.broker.purge(self.job.queue)


def main(messages: int, rounds: int) -> None:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    with EmbeddedArtemis(benchmark=True, heap="3g") as broker, SparkSide(broker) as side, ExitStack() as stack:
        job = replace(base_job(broker, messages), queue="", per_transaction=1_000, port=broker.amqp_port)
        first = 0.0
        for number in range(rounds + 1):
            for name, options in WAYS.items():
                running = Running(side, job, options)
                stack.callback(running.stop)
                running.fill(2_000)
                running.read(2_000)
                running.fill(messages)
                meter, batches = running.read(messages)
                busy = sum(ended(batch) - max(began(batch), meter.began) for batch in batches)
                cpu = {role: 1e6 * spent / messages for role, spent in meter.cpu.items()}
                first = messages / busy if name == "at-least-once" else first
                line = {
                    "rate": messages / busy,
                    "ratio": messages / busy / first,
                    "batches": len(batches),
                    **cpu,
                    "all": sum(cpu.values()),
                    "runner_mb": running.peak(),
                }
                if number == rounds:
                    line["p50_ms"], line["p99_ms"] = running.latency()
                    idle = running.idle()
                    line["idle_percent_runner"] = idle.get("runner", 0.0)
                    line["idle_percent_broker"] = idle.get("broker", 0.0)
                if number:
                    found[name].append(line)
                print(number, name, json.dumps({key: round(value, 2) for key, value in line.items()}), flush=True)
                running.query.stop()
    for name, lines in found.items():
        medians = {key: round(statistics.median(line[key] for line in lines if key in line), 2) for key in lines[-1]}
        print("median", name, json.dumps(medians), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000, int(sys.argv[2]) if len(sys.argv) > 2 else 2)
