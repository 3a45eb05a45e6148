"""Measures Spark alone: its rate source creates rows with the same columns, and ``noop`` consumes them. This is Spark's
upper limit.
"""

import time

from bench.job import Job, Measured
from bench.processes import Meter
from bench.spark_read import noting, trigger_time
from bench.spark_session import SparkSide, last_batch, until
from bench.spark_write import message_columns

__all__ = ["ROWS_A_BATCH", "rate_source"]

ROWS_A_BATCH = 20_000
"""About the size of the connector's batches while it drains a queue."""


def rate_source(side: SparkSide, job: Job) -> Measured:
    """Trigger time of the batches with ``job.messages`` rows; the first batch is not counted."""
    rows = min(ROWS_A_BATCH, job.messages)
    source = side.spark.readStream.format("rate-micro-batch").options(rowsPerBatch=rows, numPartitions=2).load()
    frame = source.withColumnRenamed("value", "id").select(*message_columns(job))
    checkpoint = str(side.folder / f"rate-{time.time_ns()}")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        until(query, lambda: last_batch(query) >= 0)
        goal = last_batch(query) + -(-job.messages // rows)
        with noting(side, query) as noted, Meter(lambda: {side.jvm_pid: "jvm"}) as meter:
            until(query, lambda: last_batch(query) >= goal)
    finally:
        query.stop()
    return trigger_time(meter, noted, sum(batch["numInputRows"] for batch in noted.batches))
