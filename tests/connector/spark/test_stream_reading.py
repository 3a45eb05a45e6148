"""The source through a real Spark of any release: every row once, acknowledged when its batch is done.

The reader without admission control gets the calls of Spark 4.0 and 4.1 by hand, and from these releases themselves.
"""

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from amqp_sending import put
from numbered import fill
from proxy import Proxy
from pyspark.errors.exceptions.captured import StreamingQueryException
from rawstomp import RawStomp
from streaming import access, last_offset, left, read, run_available, stopping
from waiting import await_value, wait_until

from bench.processes import source_runners
from pyspark_jms import monitoring
from pyspark_jms.errors import BrokerUnreachableError, UnsupportedError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL
from pyspark_jms.spark.stream_reading import JmsBasicStreamReader


@pytest.mark.releases
def test_reads_all_in_limited_batches_and_a_second_run_nothing(spark, broker, queue, tmp_path):
    fill(broker, queue, 1000)
    frame = read(spark, broker, queue=queue, maxMessagesPerTrigger=300, idleTimeout="500ms")
    query = run_available(frame, tmp_path, name="limited")
    assert [row[0] for row in spark.sql(f"select sequence from {'limited'} order by sequence").collect()] == list(
        range(1000)
    )
    assert max(progress["numInputRows"] for progress in query.recentProgress) <= 300
    assert left(broker, queue) == 0
    fill(broker, queue, 5)
    run_available(frame, tmp_path, sink="noop")
    again = run_available(frame, tmp_path, sink="noop")
    assert sum(progress["numInputRows"] for progress in again.recentProgress) == 0
    assert last_offset(again)["seq"] == 1005


@pytest.mark.releases
def test_the_default_trigger_acknowledges_and_reports(spark, broker, queue, tmp_path):
    frame = read(spark, broker, queue=queue)
    with stopping(frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()) as query:
        wait_until(lambda: broker.has_queue(queue) and broker.consumer_count(queue) == 1, what="the subscription")
        fill(broker, queue, 50)
        wait_until(lambda: query.lastProgress and sum(p["numInputRows"] for p in query.recentProgress) == 50)
        assert left(broker, queue) == 0  # also of the last batch, with the queue idle
        if HAS_ADMISSION_CONTROL:  # else the progress has no metrics
            metrics = json.loads(query.lastProgress["sources"][0]["latestOffset"])
            assert metrics["received"] == 50
            assert metrics["guarantee"] == "at-least-once"
            assert metrics["broker"].startswith("ActiveMQ-Artemis/")
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")


@pytest.mark.releases
def test_a_stopped_query_gives_back_untouched_what_it_did_not_read(spark, broker, queue, tmp_path):
    fill(broker, queue, 2000)
    frame = read(spark, broker, queue=queue, maxMessagesPerTrigger=100)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    wait_until(lambda: query.lastProgress and query.lastProgress["batchId"] >= 2, what="the third batch")
    query.stop()
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
    rest = broker.message_count(queue)
    assert 0 < rest < 2000
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    broker.purge(queue)


@pytest.mark.parametrize(("choice", "ends"), [("fail", False), pytest.param("keep", True, marks=pytest.mark.deep)])
def test_a_message_that_cannot_be_mapped(spark, broker, queue, tmp_path, choice, ends):
    with RawStomp(broker) as client:
        client.send(queue, [([], b"\xff\xfe"), ([], "good")])
    frame = read(spark, broker, queue=queue, bodyType="text", onBadMessage=choice, idleTimeout="300ms")
    if ends:
        run_available(frame, tmp_path, name="kept")
        bad, good = spark.sql("select text, bytes, body_error from kept order by sequence").collect()
        assert (bad.text, bytes(bad.bytes), bool(bad.body_error)) == (None, b"\xff\xfe", True)
        assert tuple(good) == ("good", None, None)
        assert left(broker, queue) == 0
    else:
        with pytest.raises(StreamingQueryException, match=r"\[JMS_BAD_MESSAGE\] 1 of 2"):
            run_available(frame, tmp_path, sink="noop")
        assert left(broker, queue, 2) == 2
        broker.purge(queue)


@pytest.mark.releases
@pytest.mark.parametrize(
    ("wrong", "answer"),
    [
        ({"password": "not-it"}, r"\[JMS_SECURITY\].*Check user and password"),
        ({"brokerUrl": "stomp://127.0.0.1:1"}, r"\[JMS_BROKER_UNREACHABLE\].*connection refused"),
    ],
)
def test_what_the_broker_refuses_is_one_clear_error(spark, broker, queue, tmp_path, wrong, answer):
    frame = spark.readStream.format("jms").options(**(access(broker) | {"queue": queue} | wrong)).load()
    with pytest.raises(StreamingQueryException, match=answer) as caught:
        run_available(frame, tmp_path, sink="noop")
    assert "not-it" not in str(caught.value)


@pytest.mark.releases
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory")
def test_batches_after_the_first_are_mapped_where_tasks_run_on_this_machine(spark, broker, queue, tmp_path):
    """``local[2]``: the tasks of the first batch find out, the bytes of later ones do not travel."""
    fill(broker, queue, 400)
    frame = read(spark, broker, queue=queue, maxMessagesPerTrigger=100, partitionBytes=4000, idleTimeout="300ms")
    texts, sizes = [], []

    def collect(batch, _number):
        rows = batch.select("sequence", "text").orderBy("sequence").collect()
        texts.extend(row.text for row in rows)
        if rows:  # without admission control, the first batch of a run is empty
            sizes.append(_shared_memory())

    run_available(frame, tmp_path, each=collect)
    assert texts == [f"text {n}" for n in range(400)]
    first, *later = sizes
    assert max(first) < 100, "the first batch travels, and finds out where tasks run"
    assert later
    assert all(len(found) == 2 and max(found) > 4000 for found in later), "what is done is released"
    assert left(broker, queue) == 0


def _shared_memory():
    """Sizes of the files in memory that this Spark's sources hold open."""
    opened = [file for pid in source_runners(os.getpid()) for file in Path(f"/proc/{pid}/fd").iterdir()]
    return [file.stat().st_size for file in opened if str(file.readlink()).startswith("/memfd:pyspark-jms")]


# --- without admission control, by hand -----------------------------------------------------------

single_batch = pytest.mark.skipif(HAS_ADMISSION_CONTROL, reason="this release has Trigger.AvailableNow for the source")


class Run:
    """The calls that Spark makes in a run, in its order. ``checkpoint``: the offset of its last batch."""

    def __init__(self, broker, queue, checkpoint=None, **options):
        given = access(broker) | {"queue": queue} | {name: str(value) for name, value in options.items()}
        self.reader = JmsBasicStreamReader(SourceOptions.parse(given))
        self.last = checkpoint
        if checkpoint is not None:
            assert self.reader.partitions(checkpoint, checkpoint) == []

    def batch(self):
        """The texts of the next batch; None if there is no new offset, and so no batch."""
        end = self.reader.latestOffset()
        if end == self.last:
            return None
        if self.last is None:
            start = self.reader.initialOffset()
        else:
            start = self.last
            self.reader.commit(start)
        self.last = end
        return self.rows(start, end)

    def rows(self, start, end):
        return [
            text
            for part in self.reader.partitions(start, end)
            for rows in self.reader.read(part)
            for text in rows.column("text").to_pylist()
        ]

    def until(self, count):
        """The texts of the next batches, at least ``count``."""
        found, ends = [], time.monotonic() + 60
        while len(found) < count:
            assert time.monotonic() < ends, f"{len(found)} of {count} messages"
            found += self.batch() or []
        return found

    def stop(self):
        self.reader.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def texts(first, last):
    return [f"text {n}" for n in range(first, last)]


@pytest.mark.releases
def test_each_question_proves_that_the_batch_before_is_in_the_commit_log(broker, queue):
    fill(broker, queue, 30)
    with Run(broker, queue, maxMessagesPerTrigger=10) as run:
        assert run.batch() == []
        assert run.until(30) == texts(0, 30)
        assert run.batch() is None
        assert left(broker, queue) == 0, "also of the last batch"
    fill(broker, queue, 5, first=30)
    with Run(broker, queue, run.last) as again:
        assert again.batch() == []
        assert again.until(5) == texts(30, 35)
        assert again.last["seq"] == 35


@pytest.mark.releases
def test_a_run_of_one_batch_takes_nothing_and_says_so(broker, queue, caplog):
    fill(broker, queue, 30)
    checkpoint = None
    for _ in range(2):
        with Run(broker, queue, checkpoint) as run:
            assert run.batch() == []
        assert run.last != checkpoint
        checkpoint = run.last
        assert "! the run ended after its first batch, which is empty" in caplog.text
        assert "processAllAvailable()" in caplog.text
        caplog.clear()
    assert left(broker, queue, 30) == 30
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    with Run(broker, queue, checkpoint) as run:
        run.batch()
        assert run.until(30) == texts(0, 30)
        run.batch()
    assert caplog.text == ""


@pytest.mark.releases
def test_a_batch_that_did_not_end_comes_again_in_a_later_one(broker, queue):
    fill(broker, queue, 10)
    with Run(broker, queue) as run:
        run.batch()
        start = run.last
        assert run.until(10) == texts(0, 10)
        end = run.last
    with Run(broker, queue, end) as again:
        assert again.rows(start, end) == []
        assert again.batch() == []
        assert again.until(10) == texts(0, 10)
        again.batch()
    assert left(broker, queue) == 0


@pytest.mark.releases
@pytest.mark.parametrize("first", [True, False], ids=["a new checkpoint", "a restart"])
def test_only_a_new_query_does_not_wait_for_its_broker(broker, queue, first):
    fill(broker, queue, 3)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.refuse()
        more = {"brokerUrl": proxy.url, "reconnectTimeout": "60s"}
        with Run(broker, queue, None if first else {"seq": 7}, **more) as run:
            assert run.batch() == []
            if first:
                with pytest.raises(BrokerUnreachableError):
                    run.batch()
            else:
                proxy.accept()
                assert run.until(3) == texts(0, 3)
                run.batch()


@pytest.mark.releases
def test_a_question_before_the_offset_of_the_checkpoint_is_refused(broker, queue):
    """With spark.sql.streaming.triggerAvailableNowWrapper.enabled."""
    fill(broker, queue, 3)
    with Run(broker, queue) as run:
        run.reader.latestOffset()
        with pytest.raises(UnsupportedError, match="triggerAvailableNowWrapper"):
            run.reader.partitions({"seq": 7}, {"seq": 7})
    assert left(broker, queue, 3) == 3


@pytest.mark.releases
def test_with_a_journal_runs_of_one_batch_read_each_message_once(broker, queue, tmp_path):
    fill(broker, queue, 50)
    found, checkpoint = [], None
    while len(found) < 50:
        with Run(
            broker,
            queue,
            checkpoint,
            deliveryGuarantee="exactly-once",
            journalLocation=tmp_path,
            maxMessagesPerTrigger=20,
        ) as run:
            found += run.batch() or []
            checkpoint = run.last
    assert found == texts(0, 50)
    assert left(broker, queue) == 0
    with Run(broker, queue, checkpoint, deliveryGuarantee="exactly-once", journalLocation=tmp_path) as run:
        assert run.batch() is None


# --- without admission control, by Spark ----------------------------------------------------------

TRIGGERS = ["availableNow", pytest.param("once", marks=pytest.mark.slow)]


def run_once(frame, folder, **trigger):
    """A run with Trigger.AvailableNow or Trigger.Once to the files in ``folder``."""
    writer = frame.select("text").writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(**trigger).start()
    assert query.awaitTermination(120), "the query did not end"
    return query


def found_in(spark, folder):
    return Counter(row.text for row in spark.read.schema("text string").parquet(str(folder / "out")).collect())


@pytest.mark.releases
@single_batch
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_runs_of_one_batch_lose_and_repeat_nothing(spark, broker, queue, tmp_path, trigger):
    fill(broker, queue, 30)
    frame = read(spark, broker, queue=queue)
    for _ in range(2):
        query = run_once(frame, tmp_path, **{trigger: True})
        assert [progress["numInputRows"] for progress in query.recentProgress] == [0]
        assert left(broker, queue, 30) == 30
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    query = run_available(frame.select("text"), tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    assert last_offset(query)["seq"] == 30
    assert monitoring.metrics_of(query.lastProgress) == (), "these releases ask no Python source for metrics"
    assert found_in(spark, tmp_path) == Counter(texts(0, 30))
    assert left(broker, queue) == 0


AMQP = {"deliveryGuarantee": "exactly-once"}


@pytest.mark.releases
@single_batch
@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize(
    "more",
    [{"deliveryGuarantee": "exactly-once", "journalLocation": "journal"}, AMQP, AMQP | {"readers": "2"}],
    ids=["journal", "staging queue", "two readers"],
)
def test_exactly_once_runs_of_one_batch_read_each_message_once(spark, broker, queue, tmp_path, more, trigger):
    if "journalLocation" in more:
        given = access(broker) | {"deliveryGuarantee": "exactly-once", "journalLocation": str(tmp_path / "journal")}
    else:
        given = access(broker) | more | {"brokerUrl": broker.amqp_url}
    frame = spark.readStream.format("jms").options(**given, queue=queue, maxMessagesPerTrigger=20).load()
    put(broker, queue, *texts(0, 50))
    runs = []
    ends = time.monotonic() + 200
    while sum(runs) < 50:
        assert time.monotonic() < ends, runs
        progress = run_once(frame, tmp_path, **{trigger: True}).recentProgress
        runs.append(sum(each["numInputRows"] for each in progress))
        assert runs[-1] <= 20
    assert found_in(spark, tmp_path) == Counter(texts(0, 50))
    assert runs[0], "the first batch is not empty"
    run_once(frame, tmp_path, **{trigger: True})
    assert found_in(spark, tmp_path) == Counter(texts(0, 50))
    assert left(broker, queue) == 0


@pytest.mark.releases
@single_batch
def test_the_wrapper_of_available_now_is_refused_by_a_restart(spark, set_spark, broker, queue, tmp_path):
    fill(broker, queue, 3)
    frame = read(spark, broker, queue=queue)
    run_available(frame, tmp_path / "checkpoint", "noop")
    setting = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
    set_spark(setting, "true")
    with pytest.raises(StreamingQueryException, match=rf"\[JMS_UNSUPPORTED\].*{setting}"):
        run_once(frame, tmp_path, availableNow=True)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
