"""Spark's asynchronous progress tracking: a journal refuses it before anything is deleted that a restart needs."""

import pytest
from numbered import fill
from pyspark.errors.exceptions.captured import StreamingQueryException
from streaming import journal_in, left, read, stopping
from waiting import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark]

ASYNC = {
    "asyncProgressTrackingEnabled": True,
    "asyncProgressTrackingCheckpointIntervalMs": 60_000,
    "_asyncProgressTrackingOverrideSinkSupportCheck": True,  # Spark allows it for Kafka and noop
}


def started(frame, checkpoint, **options):
    writer = frame.writeStream.format("noop").options(**options).option("checkpointLocation", str(checkpoint))
    return writer.start()


def rows(query):
    return sum(progress["numInputRows"] for progress in query.recentProgress)


@pytest.mark.deep
def test_is_refused_with_a_journal_and_nothing_is_lost(spark, broker, queue, tmp_path):
    fill(broker, queue, 10)
    frame = read(spark, broker, queue=queue, maxMessagesPerTrigger=5, **journal_in(tmp_path / "journal"))
    query = started(frame, tmp_path / "checkpoint", **ASYNC)
    with pytest.raises(StreamingQueryException, match=r"\[JMS_UNSUPPORTED\].*asyncProgressTrackingEnabled"):
        query.awaitTermination(60)
    texts = set()
    writer = frame.writeStream.foreachBatch(lambda batch, _: texts.update(row.text for row in batch.collect()))
    again = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert again.awaitTermination(60)  # without [JMS_DATA_LOSS]
    assert {f"text {n}" for n in range(5, 10)} <= texts
    assert left(broker, queue) == 0


def test_without_a_journal_a_batch_is_acknowledged_when_the_sink_has_it(spark, broker, queue, tmp_path):
    fill(broker, queue, 10)
    with stopping(started(read(spark, broker, queue=queue, maxMessagesPerTrigger=5), tmp_path, **ASYNC)) as query:
        wait_until(lambda: rows(query) == 10, what="the second batch")
        assert left(broker, queue) == 0


def test_the_first_batch_of_a_run_leaves_the_journal_when_the_second_is_planned(spark, broker, queue, tmp_path):
    frame = read(spark, broker, queue=queue, **journal_in(tmp_path / "journal"))
    query = started(frame, tmp_path / "checkpoint")
    segments = (tmp_path / "journal").glob
    with stopping(query):
        for n in range(3):
            fill(broker, queue, 10, first=10 * n)
            wait_until(lambda n=n: rows(query) == 10 * n + 10, what=f"batch {n}")
        wait_until(lambda: not list(segments("segment-*")), what="the deletion of what is done")
