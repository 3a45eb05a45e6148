"""A job whose driver or worker is killed while its exactly-once sink commits, and what the next run does."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from proxy import Proxy
from rawstomp import take_texts
from streaming import access, ledger_of, lines, once_to
from waiting import await_count, wait_until

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LEDGER_PREFIX, LedgerOwner
from pyspark_jms.options.sink import SinkOptions

DISCHARGE = b"\x00\x53\x32"
"""The descriptor of AMQP's discharge (AMQP 1.0 §4.5.3)."""
ACCEPTED = b"\x00\x53\x24"
"""The descriptor of AMQP's outcome accepted (§3.4.2): a broker answers a confirmed send, an acceptance in a
transaction and a discharge with it."""


DISCHARGED = 7
"""The discharge's, after two requests to the management for a new queue and two for the ledger, the first token and its
acceptance."""


JOB = """
import json
import sys
from pyspark.sql import SparkSession

folder, url, user, password, queue, master, settings = sys.argv[1:]
settings = {"files": 1, "text": "value"} | json.loads(settings)
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
spark = builder.config("spark.driver.memory", "512m").getOrCreate()

lines = spark.readStream.format("text").option("maxFilesPerTrigger", settings["files"]).load(f"{folder}/rows")
sink = lines.selectExpr(f"{settings['text']} text").writeStream.format("jms")
sink = sink.options(brokerUrl=url, user=user, password=password, queue=queue, deliveryGuarantee="exactly-once")
sink = sink.option("checkpointLocation", f"{folder}/checkpoint")
sink.trigger(availableNow=True).start().awaitTermination()
"""


@contextlib.contextmanager
def job(tmp_path, proxy, broker, queue, master="local[2]", **settings):
    """A Spark of its own, in a session of its own; what is left of it is killed. What it says goes to ``job.log``."""
    arguments = [str(tmp_path), proxy.url, broker.user, broker.password, queue, master, json.dumps(settings)]
    command = [sys.executable, "-c", JOB, *arguments]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    with (
        (tmp_path / "job.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment) as running,
    ):
        try:
            yield running
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def kill_workers(session):
    """SIGKILL for the Python workers of a job's session, and for the daemons that fork them."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(status[3]) == session and b"pyspark.daemon\0pyspark.worker" in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)


@pytest.mark.slow
def test_a_driver_killed_between_the_sink_and_sparks_commit_log(broker, queue, tmp_path):
    """SIGKILL for the whole job when the rows of batch 0 are sent, before the commit log has an entry."""
    lines(tmp_path, 3, 50)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        proxy.to_client.before_cut = proxy.refuse
        proxy.to_client.cut_at(ACCEPTED, nth=DISCHARGED)
        with job(tmp_path, proxy, broker, queue):
            assert proxy.to_client.cut_done.wait(90)
        await_count(broker, queue, 50)
        assert not (tmp_path / "checkpoint" / "commits" / "0").exists()
        proxy.accept()
        with job(tmp_path, proxy, broker, queue) as second:
            assert second.wait(120) == 0
    assert take_texts(broker, queue) == sorted(f"{number}-{n}" for number in range(3) for n in range(50))


@pytest.mark.deep
def test_a_worker_killed_after_its_commit_was_carried_out(broker, queue, tmp_path):
    """SIGKILL while the worker does not know the outcome: Spark retries the task in a new worker."""
    lines(tmp_path, 1, 50)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        proxy.to_client.before_cut = proxy.refuse
        proxy.to_client.cut_at(ACCEPTED, nth=DISCHARGED)
        # slow rows, and wide ones, or Spark's buffers would hold them back until the last
        slow = "concat(value, repeat(' ', 20000), coalesce(java_method('java.lang.Thread', 'sleep', 100L), ''))"
        with job(tmp_path, proxy, broker, queue, master="local[2,3]", text=slow) as running:
            assert proxy.to_client.cut_done.wait(150)
            wait_until(lambda: broker.message_count(queue) == 50, what="the commit")
            kill_workers(running.pid)
            proxy.accept()
            assert running.wait(120) == 0
        assert proxy.accepted >= 4  # the killed attempt's three, the next one's look-up and connection
    assert [text.split()[0] for text in take_texts(broker, queue)] == sorted(f"0-{n}" for n in range(50))


FILES, LINES = 24, 5
"""Spark packs so small files by their number: as many partitions as cores."""

SLOW_FIRST_HALF = "concat(value, if(spark_partition_id() < 2, java_method('java.lang.Thread', 'sleep', 60000L), ''))"


def all_lines():
    return sorted(f"{number}-{n}" for number in range(FILES) for n in range(LINES))


@contextlib.contextmanager
def half_sent(tmp_path, broker, queue):
    """A batch of many files that was killed when the tasks 2 and 3 of four had sent, and 0 and 1 had not."""
    lines(tmp_path, FILES, LINES)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        with job(tmp_path, proxy, broker, queue, "local[4]", files=FILES, text=SLOW_FIRST_HALF):
            wait_until(lambda: broker.message_count(queue) == FILES * LINES // 2, seconds=150, what="two of four tasks")
        assert not list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
        yield proxy


def ended(tmp_path, proxy, broker, queue, master, **settings):
    """Its exit code and its output."""
    with job(tmp_path, proxy, broker, queue, master, files=FILES, **settings) as running:
        code = running.wait(120)
    return code, (tmp_path / "job.log").read_text()


@pytest.mark.deep
def test_a_batch_that_is_repeated_in_other_partitions_is_refused_and_in_the_same_ones_finished(broker, queue, tmp_path):
    """With half the cores the files make two partitions, whose names none of the earlier tasks had."""
    with half_sent(tmp_path, broker, queue) as proxy:
        code, reason = ended(tmp_path, proxy, broker, queue, "local[2]")
        await_count(broker, queue, FILES * LINES // 2)
        assert code
        assert "[JMS_REPLAY_MISMATCH]" in reason
        assert re.search(
            r"/0 is repeated in other partitions\. An earlier run sent 2 partitions; the 2 partitions of this run do"
            r" not have the rows of partition 2 \(30 rows\), partition 3 \(30 rows\)\. None of these was sent\. ",
            reason,
        )
        code, reason = ended(tmp_path, proxy, broker, queue, "local[4]")
        assert code == 0, reason
    assert take_texts(broker, queue) == all_lines()
    options = SinkOptions.parse(access(broker) | once_to(broker, queue))
    owner = LedgerOwner("query", ledger_of(tmp_path / "checkpoint").removeprefix(LEDGER_PREFIX))
    assert len(CommitLedger(options.connection, owner).find()) == 4


@pytest.mark.deep
def test_a_job_killed_while_its_driver_sends_what_tasks_held(broker, queue, tmp_path):
    """At the second of two COMMITs; the third run finds three entries, and holds and sends the last."""
    with half_sent(tmp_path, broker, queue) as proxy:
        proxy.to_broker.cut_at(DISCHARGE, nth=2)
        with job(tmp_path, proxy, broker, queue, "local[4]", files=FILES):
            assert proxy.to_broker.cut_done.wait(180)
        await_count(broker, queue, FILES * LINES * 3 // 4)
        code, reason = ended(tmp_path, proxy, broker, queue, "local[4]")
        assert code == 0, reason
    assert take_texts(broker, queue) == all_lines()


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
