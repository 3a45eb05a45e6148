"""What a schema saves: ``text`` and two headers against all columns, over both protocols, in one run.

    python -m bench.columns [MESSAGES [ROUNDS]]

Through Spark to ``noop``, from a queue that the broker pauses until the clock starts; messages have five properties. A
batch waits for a quarter of the messages: what the JVM spends on a batch is the same for all ways then.
Every round has all ways of a case, one after the other. Prints the CPU of the workers and of the JVM without its
compiler threads, in µs a message, and the median ratio to all columns.
"""

import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql.streaming.query import StreamingQuery

from bench import raw, raw_amqp
from bench.job import Job
from bench.processes import Meter, compiler_seconds
from bench.rounds import base_job
from bench.spark_session import SparkSide, rows_of, until
from pyspark_jms.testing import EmbeddedArtemis

WAYS: dict[str, str | None] = {
    "all": None,
    "asked": "text STRING, JMSType STRING, JMSPriority INT",
    "properties": "text STRING, customer STRING, amount DOUBLE",
}
CASES = [("stomp", 1024), ("stomp", 100), ("amqp", 1024), ("amqp", 100)]
LIMITS = {1024: 0.6, 100: 0.4}
WARM_UP = 4_000
BATCHES = 4


@contextmanager
def running(side: SparkSide, url: str, job: Job, schema: str | None) -> Iterator[StreamingQuery]:
    options = {
        **side.access(), "brokerUrl": url, "queue": job.queue,
        "minMessagesPerTrigger": str(job.messages // BATCHES), "maxTriggerDelay": "1s",
    }  # fmt: skip
    reader = side.spark.readStream.format("jms").options(**options)
    frame = (reader if schema is None else reader.schema(schema)).load()
    checkpoint = str(side.folder / f"columns-{time.time_ns()}")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        yield query
    finally:
        query.stop()


def measured(side: SparkSide, job: Job, protocol: str, schema: str | None) -> dict[str, float]:
    """CPU of the workers and of the JVM without its compiler threads, in µs a message."""
    broker = side.broker
    job = replace(job, queue=f"bench.{time.time_ns()}", port=broker.amqp_port if protocol == "amqp" else broker.port)
    broker.create_queue(job.queue)
    held = broker.server.locateQueue(job.queue)
    fill = raw_amqp.fill if protocol == "amqp" else raw.fill
    with running(side, broker.amqp_url if protocol == "amqp" else broker.url, job, schema) as query:
        fill(replace(job, messages=WARM_UP))
        until(query, lambda: rows_of(query) >= WARM_UP)
        held.pause()
        fill(job)
        compiling = compiler_seconds(side.jvm_pid)
        with Meter(side.roles) as meter:
            held.resume()
            until(query, lambda: rows_of(query) >= WARM_UP + job.messages)
        meter.cpu["jvm"] -= compiler_seconds(side.jvm_pid) - compiling
    return {role: 1e6 * meter.cpu[role] / job.messages for role in ("workers", "jvm")}


def main(messages: int, rounds: int) -> None:
    with EmbeddedArtemis(benchmark=True, heap="1g") as broker, SparkSide(broker) as side:
        job = replace(base_job(broker, messages), queue="", per_transaction=1_000)
        for protocol, size in CASES:
            sized, ratios = replace(job, body_bytes=size), {way: list[float]() for way in WAYS if way != "all"}
            for number in range(rounds + 1):  # the first round is not counted
                found = {way: measured(side, sized, protocol, schema) for way, schema in WAYS.items()}
                cost = {way: sum(cpu.values()) for way, cpu in found.items()}
                if number:
                    for way, values in ratios.items():
                        values.append(cost[way] / cost["all"])
                shown = {f"{way}.{role}": round(value, 1) for way, cpu in found.items() for role, value in cpu.items()}
                print(number, protocol, size, json.dumps(shown), flush=True)
            medians = {way: round(statistics.median(values), 2) for way, values in ratios.items()}
            print("median ratio", protocol, size, json.dumps(medians), "limit", LIMITS[size], flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 80_000, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
