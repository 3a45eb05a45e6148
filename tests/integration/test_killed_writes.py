"""A job that is killed while its exactly-once sink commits, and what the next runs do.

A worker or a driver that is killed while an outcome is unknown: tests/faults/test_cells.py.
"""

import sys

import pytest
from own_process import started
from proxy import Proxy
from pyspark.errors import StreamingQueryException
from rawstomp import take_texts
from streaming import access, ledger_of, lines, once_to, run_available
from waiting import await_count, wait_until

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LEDGER_PREFIX, LedgerOwner
from pyspark_jms.options.sink import SinkOptions

DISCHARGE = b"\x00\x53\x32"
"""The descriptor of AMQP's discharge (AMQP 1.0 §4.5.3)."""
JOB = """
import sys
from pyspark.sql import SparkSession

folder, url, user, password, queue, files, text = sys.argv[1:]
builder = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
spark = builder.config("spark.driver.memory", "512m").getOrCreate()

lines = spark.readStream.format("text").option("maxFilesPerTrigger", files).load(f"{folder}/rows")
sink = lines.selectExpr(f"{text} text").writeStream.format("jms")
sink = sink.options(brokerUrl=url, user=user, password=password, queue=queue, deliveryGuarantee="exactly-once")
sink = sink.option("checkpointLocation", f"{folder}/checkpoint")
sink.trigger(availableNow=True).start().awaitTermination()
"""
FILES, LINES = 24, 5
"""Spark packs so small files by their number: as many partitions as cores."""

SLOW_FIRST_HALF = "concat(value, if(spark_partition_id() < 2, java_method('java.lang.Thread', 'sleep', 60000L), ''))"


def job(folder, proxy, broker, queue, text="value"):
    """A Spark of its own with four cores, which is killed at the end of the block."""
    arguments = [str(folder), proxy.url, broker.user, broker.password, queue, str(FILES), text]
    return started([sys.executable, "-c", JOB, *arguments], folder / "job.log")


@pytest.mark.deep
def test_a_half_sent_batch_is_refused_in_other_partitions_and_finished_in_the_same_ones(
    spark, set_spark, broker, queue, tmp_path
):
    """A job is killed when the tasks 2 and 3 of four have sent, and another one at the second of its driver's COMMITs
    for what its tasks held. With half the cores the files make two partitions, whose names no earlier task had.
    """
    lines(tmp_path, FILES, LINES)
    options = access(broker) | once_to(broker, queue)
    rows = spark.readStream.format("text").option("maxFilesPerTrigger", FILES).load(str(tmp_path / "rows"))
    run = lambda: run_available(rows.selectExpr("value text"), tmp_path / "checkpoint", "jms", **options)  # noqa: E731
    set_spark("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        with job(tmp_path, proxy, broker, queue, SLOW_FIRST_HALF):
            wait_until(lambda: broker.message_count(queue) == FILES * LINES // 2, seconds=150, what="two of four tasks")
        assert not list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
        set_spark("spark.sql.leafNodeDefaultParallelism", "2")
        refused = (
            r"\[JMS_REPLAY_MISMATCH\] .*/0 is repeated in other partitions\. An earlier run sent 2 partitions; the 2"
            r" partitions of this run do not have the rows of partition 2 \(30 rows\), partition 3 \(30 rows\)\."
            r" None of these was sent\. "
        )
        with pytest.raises(StreamingQueryException, match=refused):
            run()
        await_count(broker, queue, FILES * LINES // 2)
        proxy.to_broker.cut_at(DISCHARGE, nth=2)
        with job(tmp_path, proxy, broker, queue):
            assert proxy.to_broker.cut_done.wait(180)
        await_count(broker, queue, FILES * LINES * 3 // 4)
    set_spark("spark.sql.leafNodeDefaultParallelism", "4")
    run()
    assert take_texts(broker, queue) == sorted(f"{number}-{n}" for number in range(FILES) for n in range(LINES))
    owner = LedgerOwner("query", ledger_of(tmp_path / "checkpoint").removeprefix(LEDGER_PREFIX))
    assert len(CommitLedger(SinkOptions.parse(options).connection, owner).find()) == 4


def test_files_are_cut_the_same_on_any_number_of_cores_when_their_partitions_are_counted(spark, tmp_path):
    """As docs/guarantees.md says."""
    lines(tmp_path, FILES, LINES)
    counts = {}
    for cores in (2, 4):
        for counted in (False, True):
            # what a session with so many cores would take
            spark.conf.set("spark.sql.leafNodeDefaultParallelism", cores)
            if counted:
                spark.conf.set("spark.sql.files.minPartitionNum", 3)
            counts[cores, counted] = spark.read.text(str(tmp_path / "rows")).rdd.getNumPartitions()
            spark.conf.unset("spark.sql.files.minPartitionNum")
    spark.conf.unset("spark.sql.leafNodeDefaultParallelism")
    assert counts == {(2, False): 2, (4, False): 4, (2, True): 3, (4, True): 3}
