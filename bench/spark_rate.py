"""Measures Spark alone: its rate source creates rows with the same columns, and ``noop`` consumes them. This is Spark's
upper limit, and its lower limit of latency.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql.streaming.query import StreamingQuery

from bench.job import Job, Measured
from bench.processes import Meter
from bench.spark_read import noting, trigger_time
from bench.spark_session import Progress, SparkSide, last_batch, progress_since, until
from bench.spark_write import message_columns

__all__ = ["ROWS_A_BATCH", "rate_query", "rate_source", "small_batches"]

ROWS_A_BATCH = 20_000
"""About the size of the connector's batches while it drains a queue."""


def rate_source(side: SparkSide, job: Job) -> Measured:
    """Trigger time of the batches with ``job.messages`` rows; the first batch is not counted."""
    rows = min(ROWS_A_BATCH, job.messages)
    with rate_query(side, job, rows=rows, tasks=2) as query:
        goal = last_batch(query) + -(-job.messages // rows)
        with noting(side, query) as noted, Meter(lambda: {side.jvm_pid: "jvm"}) as meter:
            until(query, lambda: last_batch(query) >= goal)
    return trigger_time(meter, noted, sum(batch["numInputRows"] for batch in noted.batches))


def small_batches(side: SparkSide, job: Job, *, rows: int, seconds: float) -> list[Progress]:
    """Batches of a few rows and one task that follow each other without a pause, for about so many seconds."""
    with rate_query(side, job, rows=rows, tasks=1) as query:
        begin = last_batch(query)
        time.sleep(seconds)
        return progress_since(query, begin)


@contextmanager
def rate_query(side: SparkSide, job: Job, *, rows: int, tasks: int) -> Iterator[StreamingQuery]:
    """It has ended its first batch."""
    source = side.spark.readStream.format("rate-micro-batch").options(rowsPerBatch=rows, numPartitions=tasks).load()
    frame = source.withColumnRenamed("value", "id").select(*message_columns(job))
    checkpoint = str(side.folder / f"rate-{time.time_ns()}")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        until(query, lambda: last_batch(query) >= 0)
        yield query
    finally:
        query.stop()
