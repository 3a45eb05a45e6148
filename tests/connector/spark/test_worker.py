import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_jms.errors import IllegalStateError, TransactionRolledBackError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.spark.worker import _find_input, require_all_rows, task_patience


def main(infile):
    """Like the function of pyspark.worker, it reads from a variable ``infile``."""
    return list(require_all_rows(iter("abc")))


def read_from(data):
    """A worker whose input has these bytes after the rows, and then ends."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    with os.fdopen(reading, "rb") as infile:
        return main(infile), infile.read()


PROBE = """
import gc
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.spark.worker import run_task
run_task(SinkOptions.parse({"brokerUrl": "PROTOCOL://localhost:1", "queue": "q"}), iter(()), None)
print(gc.get_freeze_count() > 1000)
"""


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_task_freezes_what_is_imported(protocol):
    """Spark collects garbage after every task."""
    command = [sys.executable, "-c", PROBE.replace("PROTOCOL", protocol)]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "True\n"


def test_rows_before_the_marker_of_spark_are_all_and_the_marker_stays_in_the_input():
    assert read_from(b"\xff\xff\xff\xfc") == (["a", "b", "c"], b"\xff\xff\xff\xfc")


def test_rows_that_end_with_the_input_are_not_all():
    with pytest.raises(TransactionRolledBackError, match="last"):
        read_from(b"")


def test_outside_of_a_worker_the_rows_are_not_checked():
    assert list(require_all_rows(iter("abc"))) == ["a", "b", "c"]


# --- in a worker of Spark -----------------------------------------------------------------------------


def in_a_task(spark, call):
    """What the call returns in a task of Spark."""
    (reported,) = spark.sparkContext.parallelize([0], 1).mapPartitions(lambda _: [call()]).collect()
    return reported


@pytest.mark.spark
def test_the_worker_of_this_spark_shows_its_input(spark):
    """If this fails, Spark has renamed ``infile`` of ``pyspark.worker.main`` or opens it otherwise."""
    assert in_a_task(spark, lambda: isinstance(_find_input(), io.BufferedIOBase))


@pytest.mark.spark
def test_a_worker_that_does_not_show_its_input_is_refused_before_the_first_row(spark):
    """A thread of the task has no frame of ``pyspark.worker.main`` below it."""

    def first_row():
        try:
            return next(require_all_rows(iter("abc")))
        except IllegalStateError as error:
            return str(error)

    def in_a_thread():
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(first_row).result()

    reason = in_a_task(spark, in_a_thread)
    assert reason.startswith(
        "[JMS_ILLEGAL_STATE] The Python worker of this Spark does not show where it reads the rows"
    )
    assert "Nothing was sent." in reason


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
