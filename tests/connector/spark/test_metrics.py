import datetime as dt
import json
from types import SimpleNamespace

import pytest
from numbered import fill
from streaming import access, stopping
from waiting import wait_until

from pyspark_jms.spark.metrics import JmsListener, SourceMetrics, metrics_of

STOMP = {
    "seq": 326, "inFlightMessages": 176, "inFlightBytes": 43074, "received": 200, "acknowledged": 24, "redelivered": 3,
    "recognised": 2, "reconnects": 1, "journalBytes": 53721, "backlog": 176, "backlogAgeSeconds": 1.5,
    "selectorDropped": "not known: tasks run on other machines", "deadLetters": 5, "droppedTooLarge": 6,
    "guarantee": "exactly-once into Spark", "broker": "ActiveMQ-Artemis/2.55.0", "depth": 200, "delivering": 91,
    "consumers": 1, "depthTime": "2026-11-24T07:20:34.243+00:00", "stuckInDelivery": 0, "undelivered": 109,
}  # fmt: skip
AMQP = {
    "seq": 274, "inFlightMessages": 98, "inFlightBytes": 18702, "received": 100, "acknowledged": 2, "redelivered": 0,
    "recognised": 0, "reconnects": 0, "selectorDropped": 4, "deadLetters": 0, "droppedTooLarge": 0,
    "guarantee": "at-least-once", "broker": "apache-activemq-artemis/2.55.0", "lostCredit": 7,
}  # fmt: skip
STAGED = {
    "seq": 50, "staged": 9, "emptyBatches": 2, "backlog": 0, "moved": 50, "retired": 41, "redelivered": 0,
    "reconnects": 0, "selectorDropped": 0, "deadLetters": 0, "droppedTooLarge": 0,
    "guarantee": "exactly-once into Spark", "broker": None,
    "movedBytes": 5000, "movedByReader": [40, 10], "movedBytesByReader": [4000, 1000],
}  # fmt: skip


def progress(*latest, **more):
    return {
        "id": "i", "runId": "r", "name": "orders", "timestamp": "2026-11-24T07:20:35.188Z", "batchId": 2,
        "batchDuration": 928,
        "sources": [
            {"latestOffset": each, "numInputRows": 176, "inputRowsPerSecond": 142.9, "processedRowsPerSecond": 189.7}
            for each in latest
        ],
    } | more  # fmt: skip


def test_a_read_with_a_journal():
    (metrics,) = metrics_of(progress(STOMP))
    assert metrics == SourceMetrics(
        query_id="i", run_id="r", query_name="orders", source=0, is_idle=False, batch_id=2,
        timestamp=dt.datetime(2026, 11, 24, 7, 20, 35, 188_000, dt.UTC), batch_seconds=0.928, rows=176,
        input_rows_per_second=142.9, processed_rows_per_second=189.7, guarantee="exactly-once into Spark",
        broker="ActiveMQ-Artemis/2.55.0", sequence=326, received=200, received_bytes=None,
        received_by_reader=(), received_bytes_by_reader=(), acknowledged=24, redelivered=3, recognised=2,
        reconnects=1, dead_letters=5, dropped_too_large=6, selector_dropped=None, in_flight_messages=176,
        empty_batches=None,
        in_flight_bytes=43074, lost_credit=None, backlog=176, backlog_age_seconds=1.5, journal_bytes=53721, depth=200,
        delivering=91, consumers=1, undelivered=109, stuck_in_delivery=0,
    )  # fmt: skip
    assert metrics.lag == 176 + 109


def test_a_read_over_amqp_and_one_by_a_staging_queue():
    plain, staged = metrics_of(progress(json.dumps(AMQP), json.dumps(STAGED)))
    assert (plain.source, plain.lost_credit, plain.selector_dropped, plain.depth, plain.lag) == (0, 7, 4, None, 98)
    assert (plain.backlog, plain.journal_bytes) == (None, None)
    assert (staged.source, staged.received, staged.acknowledged, staged.backlog) == (1, 50, 41, 0)
    assert (plain.empty_batches, staged.empty_batches) == (None, 2)
    assert (staged.backlog_age_seconds, staged.broker, staged.lag) == (None, None, 0)


def test_a_read_whose_tasks_receive():
    (metrics,) = metrics_of(progress(json.dumps(STAGED)))
    assert (metrics.received, metrics.received_bytes, metrics.lag) == (50, 5000, 0)
    assert (metrics.received_by_reader, metrics.received_bytes_by_reader) == ((40, 10), (4000, 1000))


@pytest.mark.parametrize(
    ("latest", "lag"),
    [
        ({"inFlightMessages": 10, "backlog": 10, "depth": 10, "undelivered": 0}, 10),  # sent 10: none counts twice
        ({"inFlightMessages": 4, "backlog": 10, "depth": 9, "undelivered": 5}, 15),
        ({"inFlightMessages": 4, "depth": 9, "undelivered": 5}, 9),
        ({"backlog": 0, "staged": 300, "depth": 0, "undelivered": 0}, 0),  # the last batch stays staged
        ({"inFlightMessages": 0, "depth": 300}, 0),  # with a selector: 300 messages for others
        ({"undelivered": 5}, 5),
        ({}, None),
    ],
)
def test_the_lag_counts_each_message_once(latest, lag):
    (metrics,) = metrics_of(progress({"seq": 1, "guarantee": "at-least-once"} | latest))
    assert metrics.lag == lag


@pytest.mark.parametrize(
    ("durations", "idle"),
    [({"latestOffset": 3, "triggerExecution": 4}, True), ({"addBatch": 90, "latestOffset": 3}, False), (None, False)],
)
def test_a_progress_without_a_batch_is_idle(durations, idle):
    assert metrics_of(progress(STOMP, durationMs=durations))[0].is_idle is idle


@pytest.mark.parametrize("latest", [None, "", "{", "5", '{"0": 7}', {"seq": 1}, '{"seq": 1, "guarantee": 2}'])
def test_other_sources_and_a_first_progress_have_no_metrics(latest):
    assert metrics_of(progress(latest)) == ()
    assert metrics_of(progress(latest, AMQP))[0].source == 1


def test_a_query_without_sources():
    assert metrics_of(progress(sources=None)) == ()


def test_a_progress_object_is_read_by_its_json():
    assert metrics_of(SimpleNamespace(json=json.dumps(progress(AMQP))))[0].sequence == 274


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


def test_an_idle_query_tells_its_metrics_and_they_are_those_of_now(
    spark, set_spark, broker, queue, tmp_path, listening
):
    seen = []
    listening(JmsListener(seen.append))
    set_spark("spark.sql.streaming.noDataProgressEventInterval", "100")
    frame = spark.readStream.format("jms").options(**access(broker), queue=queue).load()
    with stopping(frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()):
        fill(broker, queue, 30)
        wait_until(
            lambda: seen and seen[-1].is_idle and seen[-1].acknowledged == 30,
            seconds=120,
            what="the metrics of an idle query",
        )
        assert (seen[-1].rows, seen[-1].in_flight_messages) == (0, 0)


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
    with stopping(
        frame.writeStream.format("noop").queryName("told").option("checkpointLocation", str(tmp_path)).start()
    ) as query:
        for batch in range(1, 4):
            fill(broker, queue, 10, first=10 * batch)
            wait_until(lambda: sum(each.rows for each in seen) >= 10 * (batch - 1), what="a batch")  # noqa: B023
        wait_until(lambda: seen and seen[-1].received == 30, what="the last batch")
        assert query.isActive
        assert (seen[-1].query_name, seen[-1].query_id, seen[-1].guarantee) == ("told", query.id, "at-least-once")
        assert seen[-1].broker.startswith("ActiveMQ-Artemis/")
        assert metrics_of(query.lastProgress)[0].query_id == query.id
        assert failing
    assert "a listener of jms metrics failed" in caplog.text
    rate = spark.readStream.format("rate").load().writeStream.format("noop").start()
    told = len(seen)
    wait_until(lambda: rate.lastProgress is not None, what="a batch of another source")
    rate.stop()
    assert len(seen) == told
