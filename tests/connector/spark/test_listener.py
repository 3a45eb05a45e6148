import pytest
from numbered import fill
from streaming import access
from waiting import wait_until

from pyspark_jms.monitoring import JmsListener, metrics_of


@pytest.fixture
def listening(spark):
    """``listening(listener)`` adds it for the test."""
    added = []

    def listening(listener):
        added.append(listener)
        spark.streams.addListener(listener)

    yield listening
    for listener in added:
        spark.streams.removeListener(listener)


def test_an_idle_query_tells_its_metrics_and_they_are_those_of_now(spark, broker, queue, tmp_path, listening):
    seen = []
    listening(JmsListener(seen.append))
    interval = "spark.sql.streaming.noDataProgressEventInterval"
    spark.conf.set(interval, "100")
    try:
        frame = spark.readStream.format("jms").options(**access(broker), queue=queue).load()
        query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    finally:
        spark.conf.unset(interval)
    try:
        fill(broker, queue, 30)
        wait_until(
            lambda: seen and seen[-1].is_idle and seen[-1].acknowledged == 30,
            seconds=120,
            what="the metrics of an idle query",
        )
        assert (seen[-1].rows, seen[-1].in_flight_messages) == (0, 0)
    finally:
        query.stop()


def test_each_batch_of_a_jms_source_is_told_and_an_error_does_not_end_the_query(
    spark, broker, queue, tmp_path, listening, caplog
):
    seen, failing = [], []

    def fail(metrics):
        failing.append(metrics)
        raise ValueError("a mistake of the user")

    listening(JmsListener(fail))
    listening(JmsListener(seen.append))
    frame = spark.readStream.format("jms").options(**access(broker), queue=queue).load()
    query = frame.writeStream.format("noop").queryName("told").option("checkpointLocation", str(tmp_path)).start()
    try:
        for batch in range(1, 4):
            fill(broker, queue, 10, first=10 * batch)
            wait_until(lambda: sum(each.rows for each in seen) >= 10 * (batch - 1), what="a batch")  # noqa: B023
        wait_until(lambda: seen and seen[-1].received == 30, what="the last batch")
        assert query.isActive
        assert (seen[-1].query_name, seen[-1].query_id, seen[-1].guarantee) == ("told", query.id, "at-least-once")
        assert seen[-1].broker.startswith("ActiveMQ-Artemis/")
        assert metrics_of(query.lastProgress)[0].query_id == query.id
        assert failing
    finally:
        query.stop()
    assert "a listener of jms metrics failed" in caplog.text
    rate = spark.readStream.format("rate").load().writeStream.format("noop").start()
    told = len(seen)
    wait_until(lambda: rate.lastProgress is not None, what="a batch of another source")
    rate.stop()
    assert len(seen) == told
