"""What a schema saves: a few columns against all columns, over both protocols, in one run.

    python -m bench.columns [MESSAGES [ROUNDS]]

Through Spark to ``noop``, from a queue that the broker pauses until the clock starts; messages have five properties.
What is compared is the cost of a message: batches are so large that the cost of a batch, which is the same for all
ways, hardly counts. Every round has all ways of all cases, one after the other, and the first round is not counted,
because the JVM compiles in it. Counted is what tasks cost: the Python workers, and the JVM's task threads and garbage
collector. The JVM's other threads plan, report and answer this program, and cost as much as the read takes time;
``jvm`` is all of them without the compiler. Prints µs a message, the median ratio to all columns, and the median costs.
Way ``text`` is the least that a read of texts costs.
"""

import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql.streaming.query import StreamingQuery

from bench import raw, raw_amqp
from bench.job import Job
from bench.processes import Meter, collector_seconds, compiler_seconds
from bench.rounds import base_job
from bench.spark_session import SparkSide, progress_since, rows_of, until
from pyspark_jms.testing import EmbeddedArtemis

WAYS: dict[str, str | None] = {
    "all": None,
    "asked": "text STRING, JMSType STRING, JMSPriority INT",
    "properties": "text STRING, customer STRING, amount DOUBLE",
    "text": "text STRING",
}


@dataclass(frozen=True, slots=True)
class Case:
    protocol: str
    body_bytes: int
    limit: float | None = None
    """The most that way ``asked`` may cost, as a share of all columns."""
    guarantee: str = "at-least-once"

    def __str__(self) -> str:
        return f"{self.protocol} {self.body_bytes} {self.guarantee}"


CASES = [
    Case("stomp", 1024, 0.6),
    Case("stomp", 100, 0.4),
    Case("amqp", 1024, 0.6),
    Case("amqp", 100, 0.4),
    Case("amqp", 1024, guarantee="exactly-once"),
    Case("amqp", 100, guarantee="exactly-once"),
]
BATCHES = 2
COUNTED = ("workers", "tasks", "collector")
POLL_SECONDS = 0.2


@contextmanager
def running(side: SparkSide, case: Case, job: Job, schema: str | None) -> Iterator[StreamingQuery]:
    options = {
        **side.access(),
        "brokerUrl": side.broker.amqp_url if case.protocol == "amqp" else side.broker.url,
        "queue": job.queue,
        "deliveryGuarantee": case.guarantee,
        "minMessagesPerTrigger": str(job.messages // BATCHES),
        "maxTriggerDelay": "5s",
        "maxBytesPerTrigger": "256m",
    }
    reader = side.spark.readStream.format("jms").options(**options)
    frame = (reader if schema is None else reader.schema(schema)).load()
    checkpoint = str(side.folder / f"columns-{time.time_ns()}")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        yield query
    finally:
        query.stop()


def measured(side: SparkSide, job: Job, case: Case, schema: str | None) -> dict[str, float]:
    """CPU in µs a message by place, and the number of batches."""
    broker, over_amqp = side.broker, case.protocol == "amqp"
    job = replace(job, queue=f"bench.{time.time_ns()}", port=broker.amqp_port if over_amqp else broker.port)
    job = replace(job, body_bytes=case.body_bytes)
    broker.create_queue(job.queue)
    held = broker.server.locateQueue(job.queue)
    fill = raw_amqp.fill if over_amqp else raw.fill
    first = job.messages // BATCHES
    with running(side, case, job, schema) as query:
        fill(replace(job, messages=first))
        until(query, lambda: rows_of(query) >= first)
        held.pause()
        fill(job)
        tasks, others = side.task_seconds(), of_the_jvm(side)
        with Meter(side.roles) as meter:
            held.resume()
            until(query, lambda: rows_of(query) >= first + job.messages, pause=POLL_SECONDS)
        cpu = {"workers": meter.cpu["workers"]}
        cpu["tasks"] = sum(spent - tasks.get(thread, 0.0) for thread, spent in side.task_seconds().items())
        cpu |= {place: spent - others[place] for place, spent in of_the_jvm(side).items()}
        cpu["jvm"] = meter.cpu["jvm"] - cpu.pop("compiler")
        batches = len(progress_since(query)) - 1
    return {place: 1e6 * spent / job.messages for place, spent in cpu.items()} | {"batches": batches}


def of_the_jvm(side: SparkSide) -> dict[str, float]:
    """CPU seconds so far of the threads that belong to no task."""
    return {"collector": collector_seconds(side.jvm_pid), "compiler": compiler_seconds(side.jvm_pid)}


def total(cost: dict[str, float]) -> float:
    return sum(cost[role] for role in COUNTED)


def main(messages: int, rounds: int) -> None:
    found = {case: {way: list[dict[str, float]]() for way in WAYS} for case in CASES}
    with EmbeddedArtemis(benchmark=True, heap="3g") as broker, SparkSide(broker) as side:
        job = replace(base_job(broker, messages), queue="", per_transaction=1_000)
        for number in range(rounds + 1):
            for case in CASES:
                costs = {way: measured(side, job, case, schema) for way, schema in WAYS.items()}
                shown = {f"{way}.{role}": round(cpu, 1) for way, cost in costs.items() for role, cpu in cost.items()}
                print(number, case, json.dumps(shown), flush=True)
                if number:
                    for way, cost in costs.items():
                        found[case][way].append(cost)
    for case, ways in found.items():
        whole = [total(cost) for cost in ways["all"]]
        for way, each in ways.items():
            ratio = statistics.median(total(cost) / of for cost, of in zip(each, whole, strict=True))
            medians = {role: round(statistics.median(cost[role] for cost in each), 1) for role in COUNTED}
            limit = f"limit {case.limit}" if way == "asked" and case.limit else ""
            print("median", case, way, round(ratio, 2), json.dumps(medians), limit, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
