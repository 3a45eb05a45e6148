"""A broker that is away for a while, under a real Spark: the query waits for it, and starts again without it."""

import threading
import time

import pytest
from numbered import fill
from pyspark.errors.exceptions.captured import StreamingQueryException
from rawstomp import RawStomp
from streaming import access, batches_done, left, read, stopping
from waiting import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def started(frame, checkpoint, texts):
    writer = frame.writeStream.foreachBatch(lambda batch, _: texts.extend(row.text for row in batch.collect()))
    return writer.option("checkpointLocation", str(checkpoint)).start()


@pytest.mark.parametrize("seconds", [1, pytest.param(90, marks=pytest.mark.slow)])
def test_a_query_outlasts_the_outage_of_its_broker(spark, fresh_broker, tmp_path, seconds):
    broker, texts = fresh_broker(), []
    fill(broker, "q", 10)
    with stopping(started(read(spark, broker, queue="q"), tmp_path, texts)) as query:
        wait_until(lambda: len(texts) == 10, what="the first batch")
        broker.kill()
        time.sleep(seconds)
        broker.start()
        fill(broker, "q", 10, first=10)
        wait_until(lambda: len(texts) >= 20, what="the batch after the outage", seconds=120)
        assert query.exception() is None
        assert sorted(set(texts)) == sorted(f"text {n}" for n in range(20))
        assert left(broker, "q") == 0


@pytest.mark.deep
def test_a_query_that_starts_again_waits_for_its_broker_and_a_new_one_says_so_at_once(spark, fresh_broker, tmp_path):
    broker, texts = fresh_broker(), []
    fill(broker, "q", 3)
    frame = read(spark, broker, queue="q")
    query = started(frame, tmp_path / "old", texts)
    wait_until(lambda: len(texts) == 3, what="the first batch")
    query.stop()
    fill(broker, "q", 3, first=3)
    broker.kill()
    with pytest.raises(StreamingQueryException, match=r"\[JMS_BROKER_UNREACHABLE\]"):
        started(frame, tmp_path / "new", texts).awaitTermination(60)
    query = started(frame, tmp_path / "old", texts)
    starter = threading.Timer(8, broker.start)
    starter.start()
    try:
        # the first batch may come again: the query was stopped when its rows were seen
        wait_until(lambda: len(set(texts)) >= 6, what="the batch after the restart", seconds=120)
        assert set(texts) == {f"text {n}" for n in range(6)}
    finally:
        starter.join()
        query.stop()


@pytest.mark.deep
@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_query_that_writes_outlasts_the_outage_of_its_broker(spark, fresh_broker, tmp_path, guarantee):
    """Its first batch is another matter: a new query says at once that nobody is there."""
    broker, folder = fresh_broker(), tmp_path / "rows"
    folder.mkdir()
    (folder / "0.txt").write_text("text 0\n")
    stream = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(folder))
    writer = stream.selectExpr("value text").writeStream.format("jms").options(**access(broker), queue="q")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).option("brokerUrl", broker.amqp_url)
    with stopping(writer.option("deliveryGuarantee", guarantee).start()) as query:
        wait_until(lambda: batches_done(tmp_path) == 1, what="the first batch")
        broker.kill()
        (folder / "1.txt").write_text("text 1\n")
        time.sleep(4)
        assert query.isActive
        broker.start()
        wait_until(lambda: batches_done(tmp_path) == 2, what="the batch of the outage")
        assert query.exception() is None
        with RawStomp(broker) as client:
            assert [message.body for message in client.read("q", wanted=2)] == [b"text 0", b"text 1"]


def test_a_new_query_that_writes_to_nobody_says_so_at_once(spark, tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0.txt").write_text("text 0\n")
    stream = spark.readStream.format("text").load(str(tmp_path / "rows"))
    writer = stream.selectExpr("value text").writeStream.format("jms").option("brokerUrl", "stomp://127.0.0.1:1")
    query = writer.option("queue", "q").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(StreamingQueryException, match=r"\[JMS_BROKER_UNREACHABLE\]"):
        query.awaitTermination(60)
