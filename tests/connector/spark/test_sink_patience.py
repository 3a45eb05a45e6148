"""How long a task waits for its broker: a query's later batches, and nothing else."""

import pytest

from pyspark_jms.options.parsing import SinkOptions
from pyspark_jms.spark.sink_patience import task_patience

OPTIONS = SinkOptions.parse({"brokerUrl": "stomp://nowhere:61613", "queue": "q", "reconnectTimeout": "77s"})


@pytest.mark.spark
@pytest.mark.parametrize(("batch", "seconds"), [(None, 0.0), ("0", 0.0), ("1", 77.0), ("2000", 77.0)])
def test_only_a_query_that_was_under_way_waits(spark, batch, seconds):
    spark.sparkContext.setLocalProperty("streaming.sql.batchId", batch)
    try:
        found = spark.sparkContext.parallelize([0], 1).map(lambda _: task_patience(OPTIONS)).collect()
    finally:
        spark.sparkContext.setLocalProperty("streaming.sql.batchId", None)
    assert found == [seconds]


def test_what_is_no_task_does_not_wait():
    assert task_patience(OPTIONS) == 0.0
