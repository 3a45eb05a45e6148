"""The source through a real Spark: every row once, acknowledged when its batch is done."""

import json
import pickle
import sys
import threading
from pathlib import Path

import pytest
from numbered import fill
from proxy import Proxy
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadMaxBytes
from rawstomp import RawStomp
from runners import runners
from streaming import access, left, read, run_available
from waiting import await_value, wait_until

from pyspark_jms.errors import BrokerUnreachableError, JournalError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.stream_reader import JmsStreamReader

pytestmark = [pytest.mark.broker, pytest.mark.spark]


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


def test_trigger_once_is_refused(spark, broker, queue, tmp_path):
    fill(broker, queue, 3)
    writer = read(spark, broker, queue=queue).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(once=True).start()
    with pytest.raises(StreamingQueryException, match=r"JMS_UNSUPPORTED.*availableNow"):
        query.awaitTermination(60)
    assert left(broker, queue, 3) == 3


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


def test_the_copy_for_executors_carries_the_options_only(broker):
    reader = JmsStreamReader(SourceOptions.parse(access(broker) | {"queue": "q"}))
    assert set(vars(pickle.loads(pickle.dumps(reader)))) == {"_options", "_source"}
    assert reader.partitions({"seq": 0}, {"seq": 5}) == []
    assert reader.initialOffset() == {"seq": 0}


@pytest.mark.parametrize("repeated", [False, True])
def test_a_query_whose_first_batch_did_not_end_waits_for_its_broker_too(broker, queue, repeated):
    """Its checkpoint has no batch in the commit log: Spark asks for the first offset, as for a new query."""
    fill(broker, queue, 3)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.refuse()
        raw = access(broker) | {"brokerUrl": proxy.url, "queue": queue, "reconnectTimeout": "60s"}
        reader = JmsStreamReader(SourceOptions.parse(raw))
        try:
            start = reader.initialOffset()
            if repeated:
                assert reader.partitions(start, {"seq": 3}) == []
                threading.Timer(2, proxy.accept).start()
                wait_until(lambda: reader.latestOffset({"seq": 3}, ReadMaxBytes(1)) == {"seq": 6})
            else:
                with pytest.raises(BrokerUnreachableError):
                    reader.latestOffset(start, ReadMaxBytes(1))
        finally:
            reader.stop()


@pytest.mark.parametrize("journal", [None, "false", "true"], ids=["plain", "journal", "shared journal"])
def test_counts_what_spark_drops_for_the_selector(broker, queue, tmp_path, journal):
    fill(broker, queue, 10)
    options = access(broker) | {"queue": queue, "selectorResidual": "spark"}
    # Artemis knows no JMSRedelivered.
    options |= {"selector": "n IN ('0', '1', '2', '3', '4') AND JMSRedelivered = TRUE"}
    if journal:
        options |= {"journalLocation": str(tmp_path), "journalShared": journal}
    reader = JmsStreamReader(SourceOptions.parse(options))
    try:
        start = end = {"seq": 0}
        while end["seq"] < 5:
            start, end = end, reader.latestOffset(end, ReadMaxBytes(1))
            parts = [part for _ in range(2) for part in reader.partitions(start, end)]  # a stage that runs twice
            assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 0
        assert reader.reportLatestOffset()["selectorDropped"] == 5
    finally:
        reader.stop()
    broker.purge(queue)


def test_with_data_loss_allowed_a_batch_is_what_the_journal_still_holds_of_it(broker, queue, tmp_path):
    fill(broker, queue, 10)
    options = access(broker) | {"queue": queue, "journalLocation": str(tmp_path), "maxMessagesPerTrigger": "5"}

    def rows(start, end, **more):
        reader = JmsStreamReader(SourceOptions.parse(options | more))
        try:
            end = end or reader.latestOffset({"seq": start}, ReadMaxBytes(1))
            parts = reader.partitions({"seq": start}, end)
            found = [n for part in parts for batch in reader.read(part) for n in batch.column("sequence").to_pylist()]
            return end["seq"], found
        finally:
            reader.stop()

    assert rows(0, None) == (5, [0, 1, 2, 3, 4])
    end, found = rows(5, None)
    assert found == list(range(5, end)), "up to five: what has arrived by then"
    end, found = restored = rows(3, None, failOnDataLoss="false")  # a checkpoint older than the journal
    assert found == list(range(5, end))
    assert rows(3, {"seq": end}, failOnDataLoss="false") == restored


def test_a_task_that_does_not_see_the_journal_says_what_to_do(broker, queue, tmp_path):
    fill(broker, queue, 3)
    journal = {"journalLocation": str(tmp_path / "journal"), "journalShared": "true"}
    reader = JmsStreamReader(SourceOptions.parse(access(broker) | {"queue": queue} | journal))
    try:
        parts = reader.partitions({"seq": 0}, reader.latestOffset({"seq": 0}, ReadMaxBytes(1)))
        elsewhere = pickle.loads(pickle.dumps(reader))
        (tmp_path / "journal").rename(tmp_path / "out of sight")
        with pytest.raises(JournalError, match=r"\[JMS_JOURNAL_IO\].*: No such file.*journalShared"):
            list(elsewhere.read(parts[0]))
        (tmp_path / "out of sight").rename(tmp_path / "journal")
        assert [batch.num_rows for batch in elsewhere.read(parts[0])] == [3]
    finally:
        reader.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory")
def test_batches_after_the_first_are_mapped_where_tasks_run_on_this_machine(spark, broker, queue, tmp_path):
    """``local[2]``: the tasks of the first batch find out, the bytes of later ones do not travel."""
    fill(broker, queue, 400)
    frame = read(spark, broker, queue=queue, maxMessagesPerTrigger=100, partitionBytes=4000, idleTimeout="300ms")
    texts, sizes = [], []

    def collect(batch, _number):
        texts.extend(row.text for row in batch.select("sequence", "text").orderBy("sequence").collect())
        sizes.append(_shared_memory())

    writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(tmp_path))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
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
