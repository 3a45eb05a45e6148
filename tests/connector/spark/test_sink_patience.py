"""How long a task waits for its broker: only the later batches of a query do."""

import pytest

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.spark.sink_patience import task_patience

OPTIONS = SinkOptions.parse({"brokerUrl": "stomp://nowhere:61613", "queue": "q", "reconnectTimeout": "77s"})


@pytest.mark.spark
@pytest.mark.parametrize(("batch", "seconds"), [(None, 0.0), ("0", 0.0), ("1", 77.0), ("2000", 77.0)])
def test_only_a_running_query_waits(spark, batch, seconds):
    spark.sparkContext.setLocalProperty("streaming.sql.batchId", batch)
    try:
        found = spark.sparkContext.parallelize([0], 1).map(lambda _: task_patience(OPTIONS)).collect()
    finally:
        spark.sparkContext.setLocalProperty("streaming.sql.batchId", None)
    assert found == [seconds]


def test_outside_of_a_task_there_is_no_wait():
    assert task_patience(OPTIONS) == 0.0
