"""A job that is stopped, or killed, in the middle and started again: nothing is lost, and repeats are counted."""

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest
from numbered import fill
from streaming import access, batches_done, left, read, run_available
from waiting import await_count, await_value, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 1500
BATCH = 100

JOB = """
import sys
from pyspark.sql import SparkSession

url, user, password, queue, folder, batch = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.sql.warehouse.dir", folder + "/warehouse").getOrCreate())
frame = (spark.readStream.format("jms").options(brokerUrl=url, user=user, password=password, queue=queue)
         .option("maxMessagesPerTrigger", batch).option("idleTimeout", "1s").options(**OPTIONS).load())
query = (frame.selectExpr("properties.n n", "text").writeStream.format("parquet").option("path", folder + "/out")
         .option("checkpointLocation", folder + "/checkpoint").start())
query.awaitTermination()
"""


@pytest.fixture
def job(broker, queue, tmp_path):
    """``job(**options)`` starts the job in a process of its own, driver and all."""
    started = []

    def start(**options):
        script = tmp_path / "job.py"
        script.write_text(JOB.replace("OPTIONS", repr(options)))
        arguments = [*access(broker).values(), queue, str(tmp_path), str(BATCH)]
        log = (tmp_path / "job.log").open("ab")
        started.append(
            subprocess.Popen(
                [sys.executable, str(script), *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYSPARK_PYTHON": sys.executable},
                start_new_session=True,
            )
        )
        log.close()
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def rows(spark, folder):
    """How often each message is in the sink; the file sink's own log says which files count."""
    read = spark.read.parquet(str(folder / "out"))
    return Counter(int(row.n) for row in read.select("n").toLocalIterator())


def finish(spark, broker, queue, folder, **options):
    """Read on from the job's checkpoint, in the session of the tests, until the queue is empty."""
    frame = read(spark, broker, queue=queue, maxMessagesPerTrigger=COUNT, idleTimeout="1s", **options)
    rows = frame.selectExpr("properties.n n", "text")
    run_available(rows, folder / "checkpoint", "parquet", path=str(folder / "out"))
    assert left(broker, queue) == 0


@pytest.mark.slow
def test_a_graceful_stop_repeats_at_most_a_batch_and_costs_no_delivery_attempt(spark, broker, queue, job, tmp_path):
    dead = broker.message_count("DLQ")
    fill(broker, queue, COUNT)
    process = job()
    wait_until(lambda: batches_done(tmp_path) >= 3, seconds=150, what="the third batch")
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
    rest = broker.message_count(queue)
    assert 0 < rest < COUNT
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    finish(spark, broker, queue, tmp_path)
    found = rows(spark, tmp_path)
    assert set(found) == set(range(COUNT))
    assert sum(count - 1 for count in found.values()) <= BATCH
    await_count(broker, "DLQ", dead)


@pytest.mark.releases
@pytest.mark.slow
def test_kill_9_of_the_driver_loses_nothing(spark, broker, queue, job, tmp_path, report):
    dead = broker.message_count("DLQ")
    fill(broker, queue, COUNT)
    process = job()
    wait_until(lambda: batches_done(tmp_path) >= 3, seconds=150, what="the third batch")
    os.killpg(process.pid, signal.SIGKILL)  # the driver, its JVM and its workers, all at once
    process.wait(30)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
    assert broker.message_count(queue) > 0
    finish(spark, broker, queue, tmp_path)
    found = rows(spark, tmp_path)
    assert set(found) == set(range(COUNT))
    repeated = sum(count - 1 for count in found.values())
    report(f"kill -9 of the driver: {COUNT} sent, {COUNT} read, {repeated} repeated")
    assert repeated <= 2 * BATCH  # the batch Spark had not committed, and the one whose ACK was on its way
    await_count(broker, "DLQ", dead)


@pytest.mark.releases
@pytest.mark.deep
def test_kill_9_of_the_driver_with_a_journal_loses_and_repeats_nothing(spark, broker, queue, job, tmp_path):
    dead = broker.message_count("DLQ")
    fill(broker, queue, COUNT)
    journal = {"deliveryGuarantee": "exactly-once", "journalLocation": str(tmp_path / "journal")}
    process = job(**journal)
    wait_until(lambda: batches_done(tmp_path) >= 3, seconds=150, what="the third batch")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
    finish(spark, broker, queue, tmp_path, **journal)
    assert rows(spark, tmp_path) == Counter(range(COUNT))
    await_count(broker, "DLQ", dead)
