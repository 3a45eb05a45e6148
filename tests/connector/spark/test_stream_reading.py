"""The source through a real Spark of any release: every row once, acknowledged when its batch is done."""

import json
import sys
from pathlib import Path

import pytest
from numbered import fill
from pyspark.errors.exceptions.captured import StreamingQueryException
from rawstomp import RawStomp
from runners import runners
from streaming import access, last_offset, left, read, run_available
from waiting import await_value, wait_until

from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def sequences(spark, table):
    return [row[0] for row in spark.sql(f"select sequence from {table} order by sequence").collect()]


@pytest.mark.releases
def test_reads_all_in_limited_batches_and_a_second_run_nothing(spark, broker, queue, tmp_path):
    fill(broker, queue, 1000)
    frame = read(spark, broker, queue=queue, maxMessagesPerTrigger=300, idleTimeout="500ms")
    query = run_available(frame, tmp_path, name="limited")
    assert sequences(spark, "limited") == list(range(1000))
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
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    try:
        wait_until(lambda: broker.has_queue(queue) and broker.consumer_count(queue) == 1, what="the subscription")
        fill(broker, queue, 50)
        wait_until(lambda: query.lastProgress and sum(p["numInputRows"] for p in query.recentProgress) == 50)
        assert left(broker, queue) == 0  # also of the last batch, with the queue idle
        if HAS_ADMISSION_CONTROL:  # else the progress has no metrics
            metrics = json.loads(query.lastProgress["sources"][0]["latestOffset"])
            assert metrics["received"] == 50
            assert metrics["guarantee"] == "at-least-once"
            assert metrics["broker"].startswith("ActiveMQ-Artemis/")
    finally:
        query.stop()
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


def test_several_partitions_keep_the_sequence(spark, broker, queue, tmp_path):
    fill(broker, queue, 500)
    frame = read(spark, broker, queue=queue, partitionBytes=2000, idleTimeout="300ms")
    run_available(frame, tmp_path, name="partitioned")
    rows = spark.sql("select sequence, properties.n n, text from partitioned order by sequence").collect()
    assert [(row.n, row.text) for row in rows] == [(str(n), f"text {n}") for n in range(500)]
    assert [row.sequence for row in rows] == list(range(500))


def test_body_type_for_all(spark, broker, queue, tmp_path):
    fill(broker, queue, 3)
    run_available(read(spark, broker, queue=queue, bodyType="bytes", idleTimeout="300ms"), tmp_path, name="bodies")
    rows = spark.sql("select body_type, bytes, text from bodies order by sequence").collect()
    assert [tuple(row) for row in rows] == [("bytes", f"text {n}".encode(), None) for n in range(3)]


@pytest.mark.parametrize(("choice", "ends"), [("fail", False), ("keep", True)])
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


def test_a_selector_filters_at_the_broker(spark, broker, queue, tmp_path):
    fill(broker, queue, 10)
    run_available(read(spark, broker, queue=queue, selector="n = '3'", idleTimeout="300ms"), tmp_path, name="chosen")
    assert [row.text for row in spark.sql("select text from chosen").collect()] == ["text 3"]
    assert left(broker, queue, 9) == 9
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
    opened = [file for pid in runners() for file in Path(f"/proc/{pid}/fd").iterdir()]
    return [file.stat().st_size for file in opened if str(file.readlink()).startswith("/memfd:pyspark-jms")]
