"""Interleaved rounds of every case on one broker → what each case measured in each round."""

from dataclasses import dataclass, replace

from bench import peers, raw
from bench.child import in_child
from bench.job import Job, Measured
from bench.spark_side import SparkSide

from pyspark_jms.testing import EmbeddedArtemis

__all__ = ["Outcome", "run"]

TASKS = 8
"""Transactions of a round: the tasks of the sink's batch, and as many of the raw sender."""


@dataclass(frozen=True, slots=True)
class Outcome:
    figures: dict[str, list[Measured]]
    """By case; of each case one a round."""
    per_transaction: int
    versions: dict[str, str]


def run(*, messages: int, rounds: int) -> Outcome:
    """One round to warm up the broker and Spark, then ``rounds`` that count."""
    with EmbeddedArtemis(benchmark=True, heap="3g") as broker, SparkSide(broker, tasks=TASKS) as spark:
        job = _job(broker, messages)
        _round(job, spark)
        every = [_round(job, spark) for _ in range(rounds)]
        versions = spark.versions() | {"artemis": str(broker.server.getVersion().getFullVersion())}
    return Outcome({case: [one[case] for one in every] for case in every[0]}, job.per_transaction, versions)


def _round(job: Job, spark: SparkSide) -> dict[str, Measured]:
    """Neighbours are compared with each other: what disturbs the machine disturbs both."""
    measured = {"write.raw": in_child(raw.send, job)}
    measured["read.raw"] = in_child(raw.drain, job)
    in_child(raw.send, replace(job, queue=spark.queue))
    measured["read.jms"] = spark.read(job.messages)
    in_child(raw.send, job)
    measured["read.stomp_py"] = in_child(peers.stomp_py, job)
    measured["write.jms"] = spark.write(job.messages)
    return measured


def _job(broker: EmbeddedArtemis, messages: int) -> Job:
    return Job(
        host=broker.host,
        port=broker.port,
        user=broker.user,
        password=broker.password,
        broker_pid=broker.pid,
        queue="bench.clients",
        messages=messages,
        per_transaction=-(-messages // TASKS),
    )
