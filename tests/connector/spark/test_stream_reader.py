"""The source through a real Spark: every row once, acknowledged when its batch is done."""

import json
import pickle

import pytest
from pyspark.errors.exceptions.captured import StreamingQueryException
from rawstomp import RawStomp
from streaming import access, left, read, run_available, wait_until

from pyspark_jms.options import SourceOptions
from pyspark_jms.spark.stream_reader import JmsStreamReader

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def fill(broker, queue, count, first=0):
    with RawStomp(broker) as client:
        client.send(queue, [([("n", str(n))], f"text {n}") for n in range(first, first + count)])


def sequences(spark, table):
    return [row[0] for row in spark.sql(f"select sequence from {table} order by sequence").collect()]


def test_available_now_reads_all_in_limited_batches_and_a_second_run_nothing(spark, broker, queue, tmp_path):
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
    assert json.loads(again.lastProgress["sources"][0]["endOffset"]) == {"seq": 1005}


def test_the_default_trigger_acknowledges_and_reports(spark, broker, queue, tmp_path):
    frame = read(spark, broker, queue=queue)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    try:
        wait_until(lambda: broker.has_queue(queue) and broker.consumer_count(queue) == 1, what="the subscription")
        fill(broker, queue, 50)
        wait_until(lambda: query.lastProgress and sum(p["numInputRows"] for p in query.recentProgress) == 50)
        assert left(broker, queue) == 0  # also of the last batch, with the queue idle
        figures = json.loads(query.lastProgress["sources"][0]["latestOffset"])
        assert figures["received"] == 50
        assert figures["guarantee"] == "at-least-once"
        assert figures["broker"].startswith("ActiveMQ-Artemis/")
    finally:
        query.stop()
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")


def test_a_stopped_query_gives_back_untouched_what_it_did_not_read(spark, broker, queue, tmp_path):
    fill(broker, queue, 2000)
    frame = read(spark, broker, queue=queue, maxMessagesPerTrigger=100)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    wait_until(lambda: query.lastProgress and query.lastProgress["batchId"] >= 2, what="the third batch")
    query.stop()
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
    rest = broker.message_count(queue)
    assert 0 < rest < 2000
    assert set(broker.delivery_counts(queue)) == {0}
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
    run_available(read(spark, broker, queue=queue, bodyType="bytes", idleTimeout="300ms"), tmp_path, name="octets")
    rows = spark.sql("select body_type, bytes, text from octets order by sequence").collect()
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


def test_trigger_once_is_refused(spark, broker, queue, tmp_path):
    fill(broker, queue, 3)
    writer = read(spark, broker, queue=queue).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(once=True).start()
    with pytest.raises(StreamingQueryException, match=r"JMS_UNSUPPORTED.*availableNow"):
        query.awaitTermination(60)
    assert left(broker, queue, 3) == 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"password": "not-it"}, r"\[JMS_SECURITY\].*Check user and password"),
        ({"brokerUrl": "stomp://127.0.0.1:1"}, r"\[JMS_BROKER_UNREACHABLE\].*connection refused"),
    ],
)
def test_what_the_broker_refuses_is_one_clear_error(spark, broker, queue, tmp_path, wrong, said):
    frame = spark.readStream.format("jms").options(**(access(broker) | {"queue": queue} | wrong)).load()
    with pytest.raises(StreamingQueryException, match=said) as caught:
        run_available(frame, tmp_path, sink="noop")
    assert "not-it" not in str(caught.value)


def test_the_copy_for_executors_carries_the_options_only(broker):
    reader = JmsStreamReader(SourceOptions.parse(access(broker) | {"queue": "q"}))
    assert set(vars(pickle.loads(pickle.dumps(reader)))) == {"_options"}
    assert reader.partitions({"seq": 0}, {"seq": 5}) == []
    assert reader.initialOffset() == {"seq": 0}
