"""The sink through a real Spark, read back by a client that shares no code with it."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from proxy import Proxy
from pyspark.errors.exceptions.captured import StreamingQueryException
from rawstomp import RawStomp
from streaming import access, run_available, uncommit
from waiting import await_count, wait_until

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LEDGER_PREFIX, LedgerOwner
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import Sent, TaskResult
from pyspark_jms.spark.reports import TaskReport
from pyspark_jms.spark.stream_writer import JmsStreamWriter
from pyspark_jms.testing import EmbeddedArtemis, User

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def rows(spark, tmp_path, count=20, name="rows"):
    """A stream of one batch with columns n (0 …) and text."""
    folder = tmp_path / name
    spark.range(count).selectExpr("id n", "concat('row ', id) text").coalesce(1).write.parquet(str(folder))
    return spark.readStream.schema("n long, text string").parquet(str(folder))


def write(frame, broker, tmp_path, **options):
    return run_available(frame, tmp_path / "checkpoint", sink="jms", **(access(broker) | options))


def test_a_row_with_only_text_is_enough(spark, broker, queue, tmp_path):
    write(rows(spark, tmp_path).select("text"), broker, tmp_path, queue=queue)
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=20)
    assert [message.body for message in found] == [f"row {n}".encode() for n in range(20)]
    assert {message.headers["persistent"] for message in found} == {"true"}
    assert {message.headers["priority"] for message in found} == {"4"}


@pytest.mark.releases
def test_headers_properties_and_destinations_of_each_row(spark, broker, queue, tmp_path):
    frame = rows(spark, tmp_path, 4).selectExpr(
        f"concat('queue://{queue}.', n % 2) destination",
        "cast(concat('bytes\\0', n) as binary) bytes",
        "map('n', cast(n as string), 'odd$名', 'a:b\\\\c\\n') properties",
        "concat('c-', n) JMSCorrelationID",
        "'queue://answers' JMSReplyTo",
        "'kind' JMSType",
        "cast(n + 3 as int) JMSPriority",
        "cast(1 as int) JMSDeliveryMode",
        "3600000L time_to_live",
        "'application/x' content_type",
        "n sequence",
    )
    before = time.time() * 1000
    write(frame, broker, tmp_path)
    for k in (0, 1):
        with RawStomp(broker) as client:
            found = client.read(f"{queue}.{k}", wanted=2)
        for message, n in zip(found, sorted((k, k + 2), reverse=True), strict=True):  # priority first
            headers = message.headers
            assert message.body == b"bytes\0" + str(n).encode()
            assert (headers["n"], headers["odd$名"]) == (str(n), "a:b\\c\n")
            assert (headers["correlation-id"], headers["reply-to"]) == (f"c-{n}", "queue://answers")
            assert (headers["type"], headers["priority"], headers["persistent"]) == ("kind", str(n + 3), "false")
            assert before + 3_500_000 < int(headers["expires"]) < before + 3_700_000
            assert headers["content-type"] == "application/x"
            assert "sequence" not in headers


def test_options_are_the_defaults_of_rows(spark, broker, queue, tmp_path):
    options = {"topic": queue, "deliveryMode": "non_persistent", "priority": 7, "timeToLive": "1h"}
    broker.create_queue(queue, topic=True)
    with RawStomp(broker) as client:
        client.request("SUBSCRIBE", [("id", "t"), ("destination", queue), ("subscription-type", "MULTICAST")])
        write(rows(spark, tmp_path, 2).select("text"), broker, tmp_path, **options)
        found = [client.receive() for _ in range(2)]
    assert [message.body for message in found] == [b"row 0", b"row 1"]
    assert [(m.headers["priority"], m.headers["persistent"]) for m in found] == [("7", "false")] * 2


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        pytest.param(
            "cast(n as int) JMSPriority",
            r"\[JMS_MESSAGE_FORMAT\].*[Rr]ow 10.*priorit",
            marks=pytest.mark.releases,
        ),
        ("map('destination', 'x') properties", r"\[JMS_MESSAGE_FORMAT\].*[Rr]ow 0.*destination"),
        ("1 JMSPriorty", r"\[JMS_SCHEMA\].*JMSPriorty.*JMSPriority"),
    ],
)
def test_a_row_that_cannot_be_sent_fails_the_task_and_nothing_is_sent(spark, broker, queue, tmp_path, column, reason):
    frame = rows(spark, tmp_path).selectExpr("text", column)
    with pytest.raises(StreamingQueryException, match=reason):
        write(frame, broker, tmp_path, queue=queue)
    await_count(broker, queue, 0)


def test_bad_rows_are_dropped_and_typed_columns_sent(spark, broker, queue, tmp_path):
    frame = rows(spark, tmp_path, 10).selectExpr(
        "text", "map('n', if(n % 2 = 0, cast(n as string), 'x')) properties",
        "map('n', 'short') property_types", "n / 4 Price", "n > 4 big",
    )  # fmt: skip
    options = {"propertyColumns": "price, big", "onBadRow": "drop", "priority": 3}
    write(frame, broker, tmp_path, queue=queue, **options)
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=5)
    assert [message.headers["n"] for message in found] == ["0", "2", "4", "6", "8"]
    assert [message.headers["price"] for message in found] == ["0.0", "0.5", "1.0", "1.5", "2.0"]
    assert [message.headers["big"] for message in found] == ["false"] * 3 + ["true"] * 2
    types = '{"n":"short","price":"double","big":"boolean"}'
    assert {message.headers["spark_jms_types"] for message in found} == {types}


def test_the_driver_counts_what_was_dropped(caplog):
    options = SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1", "queue": "q"})
    JmsStreamWriter(options).commit([TaskReport(TaskResult(Sent(5, 2))), None, TaskReport(TaskResult(Sent(1, 1)))], 7)
    assert [record.message for record in caplog.records] == ["= batch 7: 3 of 9 rows were dropped (onBadRow=drop)"]


def test_rows_without_a_destination_name_the_remedy(spark, broker, tmp_path):
    with pytest.raises(StreamingQueryException, match=r"destination.*option"):
        write(rows(spark, tmp_path).select("text"), broker, tmp_path)


def test_an_unknown_option_is_refused(spark, broker, queue, tmp_path):
    with pytest.raises(StreamingQueryException, match=r"\[JMS_UNKNOWN_OPTION\] .*prioritty.*priority"):
        write(rows(spark, tmp_path).select("text"), broker, tmp_path, queue=queue, prioritty=3)


def test_a_user_who_may_not_send_gets_one_clear_error(spark, tmp_path):
    limited = User("limited", "pw", {"consume", "createDurableQueue", "createAddress"})
    with EmbeddedArtemis(users=[limited]) as broker:
        broker.create_queue("closed")
        frame = rows(spark, tmp_path).select("text")
        with pytest.raises(StreamingQueryException, match=r"\[JMS_\w+\].*AMQ339011") as caught:
            write(frame, broker, tmp_path, queue="closed", user="limited", password="pw")
        assert "row 1" not in str(caught.value)
        await_count(broker, "closed", 0)


def test_an_empty_batch_does_not_connect(spark, broker, tmp_path):
    frame = rows(spark, tmp_path).where("n < 0").select("text")
    write(frame, broker, tmp_path, queue="q", brokerUrl="stomp://127.0.0.1:1")


def test_order_within_a_partition_is_kept(spark, broker, queue, tmp_path):
    frame = rows(spark, tmp_path, 30_000).selectExpr("text", "map('n', cast(n as string)) properties")
    write(frame, broker, tmp_path, queue=queue)
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=30_000)
    assert [int(message.headers["n"]) for message in found] == list(range(30_000))


# --- exactly once ------------------------------------------------------------------------------------

DISCHARGE = b"\x00\x53\x32"
"""The descriptor of AMQP's discharge (AMQP 1.0 §4.5.3)."""
ACCEPTED = b"\x00\x53\x24"
"""The descriptor of AMQP's outcome accepted (§3.4.2): a broker answers a confirmed send, an acceptance in a
transaction and a discharge with it."""


def once(broker, queue, **more):
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    return {"brokerUrl": broker.amqp_url, "queue": queue, "deliveryGuarantee": "exactly-once"} | more


def lines(tmp_path, files, count):
    """Text files in folder rows, for a batch each: lines 0-0, 0-1 …, 1-0 …"""
    (tmp_path / "rows").mkdir()
    for number in range(files):
        (tmp_path / "rows" / f"{number}.txt").write_text("\n".join(f"{number}-{n}" for n in range(count)))


def ledger_of(checkpoint):
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    return f"pyspark-jms.commits.{query}"


def texts(broker, queue):
    with RawStomp(broker) as client:
        return sorted(message.body.decode() for message in client.read(queue, quiet=0.5))


@pytest.mark.releases
def test_a_batch_that_is_not_in_the_commit_log_is_not_sent_again(spark, broker, queue, tmp_path):
    frame = rows(spark, tmp_path, 500).select("text")
    for _ in range(3):
        write(frame, broker, tmp_path, **once(broker, queue))
        uncommit(tmp_path / "checkpoint")
    await_count(broker, queue, 500)
    await_count(broker, f"{ledger_of(tmp_path / 'checkpoint')}.token", 1)


def test_at_least_once_a_batch_that_is_not_in_the_commit_log_is_sent_again(spark, broker, queue, tmp_path):
    """The default."""
    frame = rows(spark, tmp_path, 10).select("text")
    write(frame, broker, tmp_path, queue=queue)
    uncommit(tmp_path / "checkpoint")
    write(frame, broker, tmp_path, queue=queue)
    await_count(broker, queue, 20)


def test_a_replay_with_other_rows_stops_the_query_or_is_sent_as_asked(spark, broker, queue, tmp_path):
    frame, options = rows(spark, tmp_path, 5), once(broker, queue)
    write(frame.select("text"), broker, tmp_path, **options)
    uncommit(tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match=r"\[JMS_REPLAY_MISMATCH\] .*/0/0 .*\b5\b"):
        write(frame.where("n > 0").select("text"), broker, tmp_path, **options)
    await_count(broker, queue, 5)
    write(frame.where("n > 0").select("text"), broker, tmp_path, **options, onReplayMismatch="send")
    assert texts(broker, queue) == sorted([f"row {n}" for n in range(5)] + [f"row {n}" for n in range(1, 5)])


@pytest.mark.deep
def test_each_worker_process_looks_into_the_ledger_once_in_a_run(spark, broker, queue, tmp_path):
    """A task has one connection. The first task of a query has one more, to create the ledger. Spark has a few idle
    processes and takes any of them.
    """
    batches = 8
    lines(tmp_path, batches, 3)
    frame = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "rows"))
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        options = once(broker, queue) | {"brokerUrl": proxy.url}
        write(frame.selectExpr("value text"), broker, tmp_path, **options)
        assert 1 <= proxy.accepted - batches - 1 < batches // 2
    await_count(broker, queue, batches * 3)


def test_two_queries_on_one_queue_have_ledgers_of_their_own(spark, broker, queue, tmp_path):
    frame = rows(spark, tmp_path, 5).select("text")
    for name in ("a", "b"):
        write(frame, broker, tmp_path / name, **once(broker, queue))
    await_count(broker, queue, 10)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"transaction": 10}, r"\[JMS_OPTION_CONFLICT\] .*transaction=10.*Remove option transaction"),
        ({"transaction": "none"}, r"\[JMS_OPTION_CONFLICT\] .*transaction=none"),
        ({"writeId": "w"}, r"\[JMS_OPTION_CONFLICT\] .*writeId.*writeStream"),
        ({"writeId": "it's"}, r"\[JMS_INVALID_OPTION\] .*writeId.*letters, digits"),
        ({"deliveryGuarantee": "at-least-once", "onReplayMismatch": "send"}, r"\[JMS_OPTION_CONFLICT\] .*onReplay"),
        ({"deliveryGuarantee": "at-least-once", "transaction": 0}, r"\[JMS_INVALID_OPTION\] .*task, none, or a number"),
        ({"brokerUrl": "stomp://127.0.0.1:1"}, r"\[JMS_UNSUPPORTED\] .*over STOMP.*COMMIT.*amqp://"),
        ({"deliveryGuarantee": "exactly once"}, r"\[JMS_INVALID_OPTION\] .*at-least-once, exactly-once"),
    ],
)
def test_what_cannot_be_promised_is_refused_before_anything_connects(spark, tmp_path, options, reason):
    frame = rows(spark, tmp_path, 1).select("text")
    nowhere = {"brokerUrl": "amqp://127.0.0.1:1", "user": "u", "password": "p", "queue": "q"}
    everything = nowhere | {"deliveryGuarantee": "exactly-once"} | options
    with pytest.raises(StreamingQueryException, match=reason):
        run_available(frame, tmp_path / "checkpoint", sink="jms", **everything)


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
        proxy.to_client.cut_at(ACCEPTED, nth=3)
        with job(tmp_path, proxy, broker, queue):
            assert proxy.to_client.cut_done.wait(90)
        await_count(broker, queue, 50)
        assert not (tmp_path / "checkpoint" / "commits" / "0").exists()
        proxy.accept()
        with job(tmp_path, proxy, broker, queue) as second:
            assert second.wait(120) == 0
    assert texts(broker, queue) == sorted(f"{number}-{n}" for number in range(3) for n in range(50))


@pytest.mark.deep
def test_a_worker_killed_after_its_commit_was_carried_out(broker, queue, tmp_path):
    """SIGKILL while the worker does not know the outcome: Spark retries the task in a new worker."""
    lines(tmp_path, 1, 50)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        proxy.to_client.before_cut = proxy.refuse
        proxy.to_client.cut_at(ACCEPTED, nth=3)  # after those of the first token and of its acceptance
        # slow rows, and wide ones, or Spark's buffers would hold them back until the last
        slow = "concat(value, repeat(' ', 20000), coalesce(java_method('java.lang.Thread', 'sleep', 100L), ''))"
        with job(tmp_path, proxy, broker, queue, master="local[2,3]", text=slow) as running:
            assert proxy.to_client.cut_done.wait(150)
            wait_until(lambda: broker.message_count(queue) == 50, what="the commit")
            kill_workers(running.pid)
            proxy.accept()
            assert running.wait(120) == 0
        assert proxy.accepted >= 4  # the killed attempt's two, the next one's look-up and connection
    assert [text.split()[0] for text in texts(broker, queue)] == sorted(f"0-{n}" for n in range(50))


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
    assert texts(broker, queue) == all_lines()
    options = SinkOptions.parse(access(broker) | once(broker, queue))
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
    assert texts(broker, queue) == all_lines()


def test_files_are_cut_the_same_on_any_number_of_cores_when_their_partitions_are_counted(spark, tmp_path):
    """As docs/exactly-once-sink.md says."""
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
