import contextlib
import subprocess
import sys
import urllib.request
import uuid
from dataclasses import dataclass

import pytest
from monitoring_files import ROOT, dashboard_expressions, names_in, rule_expressions
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pyspark_jms.spark.metrics import metrics_of
from pyspark_jms.spark.prometheus import _FAMILIES, PrometheusExporter

LATEST = {
    "seq": 326, "inFlightMessages": 176, "inFlightBytes": 43074, "received": 200, "acknowledged": 24, "redelivered": 3,
    "recognised": 2, "reconnects": 1, "journalBytes": 53721, "backlog": 176, "backlogAgeSeconds": 1.5,
    "selectorDropped": 4, "deadLetters": 5, "droppedTooLarge": 6, "lostCredit": 7, "depth": 200, "delivering": 91,
    "consumers": 1, "movedByReader": [7], "movedBytesByReader": [21], "stuckInDelivery": 8, "emptyBatches": 9,
    "undelivered": 109, "guarantee": "exactly-once into Spark", "broker": "b",
}  # fmt: skip


@dataclass
class Ended:
    id: uuid.UUID
    exception: str | None


@dataclass
class Batch:
    progress: dict


def batch(query_id, name="orders", **latest):
    source = {"latestOffset": LATEST | latest, "numInputRows": 9, "inputRowsPerSecond": 1, "processedRowsPerSecond": 2}
    return Batch({
        "id": str(query_id), "runId": "r", "name": name, "timestamp": "1970-01-01T00:01:40Z", "batchId": 2,
        "batchDuration": 928, "durationMs": {"addBatch": 900}, "sources": [source],
    })  # fmt: skip


def idle(query_id, timestamp):
    source = {"latestOffset": LATEST | {"backlog": 0, "inFlightMessages": 0, "undelivered": 0}, "numInputRows": 0}
    return Batch({
        "id": str(query_id), "runId": "r", "name": "orders", "timestamp": timestamp, "batchId": 3,
        "batchDuration": 3, "durationMs": {"latestOffset": 3}, "sources": [source],
    })  # fmt: skip


def samples(registry):
    """``(name, labels without ids)`` → value."""
    return {
        (each.name, *(each.labels[key] for key in ("query", "guarantee") if key in each.labels)): each.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for each in family.samples
    }


@pytest.fixture
def exporter():
    return PrometheusExporter(CollectorRegistry())


def test_every_metric_is_exported(exporter):
    query = uuid.uuid4()
    exporter.onQueryProgress(batch(query))
    found = samples(exporter._registry)
    assert len(found) == len(_FAMILIES) + 4
    expected = {
        "lag_messages": 285, "oldest_age_seconds": 1.5, "journal_bytes": 53721, "received_messages_total": 200,
        "redelivered_messages_total": 3, "duplicate_messages_total": 2, "reconnects_total": 1, "dead_letters_total": 5,
        "dropped_messages_total": 6, "selector_dropped_messages_total": 4, "lost_credit_messages_total": 7,
        "empty_batches": 9,
        "stuck_messages": 8, "queue_messages": 200, "queue_delivering_messages": 91, "queue_consumers": 1,
        "batch_seconds": 0.928, "last_batch_timestamp_seconds": 100.0, "progress_timestamp_seconds": 100.0,
        "input_rows_per_second": 1, "processed_rows_per_second": 2, "query_up": 1,
        "in_flight_messages": 176, "in_flight_bytes": 43074,
        "reader_messages_total": 7, "reader_bytes_total": 21,
        "backlog_messages": 176, "acknowledged_messages_total": 24,
    }  # fmt: skip
    assert {key[0]: value for key, value in found.items() if len(key) == 2} == {
        f"pyspark_jms_{name}": value for name, value in expected.items()
    }
    assert found["pyspark_jms_guarantee_info", "orders", "exactly-once into Spark"] == 1


def test_an_idle_query_has_new_metrics_and_keeps_the_time_of_its_last_batch(exporter):
    query = uuid.uuid4()
    exporter._report(batch(query).progress)
    exporter._report(idle(query, "1970-01-01T00:05:00Z").progress, only_idle=True)
    found = {key[0].removeprefix("pyspark_jms_"): value for key, value in samples(exporter._registry).items()}
    now = ("lag_messages", "backlog_messages", "in_flight_messages", "processed_rows_per_second")
    assert [found[name] for name in now] == [0, 0, 0, 0]
    assert (found["progress_timestamp_seconds"], found["last_batch_timestamp_seconds"]) == (300, 100)
    assert found["batch_seconds"] == 0.928


def test_a_query_that_was_never_seen_with_a_batch_counts_from_its_first_metrics(exporter):
    query = uuid.uuid4()
    for minute in ("01", "02"):
        exporter._report(idle(query, f"1970-01-01T00:{minute}:00Z").progress, only_idle=True)
    assert samples(exporter._registry)["pyspark_jms_last_batch_timestamp_seconds", "orders"] == 60


def test_an_unknown_metric_has_no_sample(exporter):
    exporter.onQueryProgress(batch(uuid.uuid4(), depth=None, backlogAgeSeconds=None, selectorDropped="not known"))
    names = {name for name, *_ in samples(exporter._registry)}
    assert not names & {
        "pyspark_jms_queue_messages", "pyspark_jms_oldest_age_seconds", "pyspark_jms_selector_dropped_messages_total"
    }  # fmt: skip


def test_a_query_that_fails_is_down_until_it_runs_again_and_one_that_is_stopped_is_forgotten(exporter):
    failed, stopped = uuid.uuid4(), uuid.uuid4()
    for query, name in ((failed, "failed"), (stopped, "stopped")):
        exporter.onQueryProgress(batch(query, name))
    exporter.onQueryTerminated(Ended(failed, "[JMS_SECURITY] …"))
    exporter.onQueryTerminated(Ended(stopped, None))
    exporter.onQueryTerminated(Ended(uuid.uuid4(), "not a query with a jms source"))
    assert samples(exporter._registry) == {("pyspark_jms_query_up", "failed"): 0}
    exporter.onQueryProgress(batch(failed, "failed", received=5))
    found = samples(exporter._registry)
    assert found["pyspark_jms_query_up", "failed"] == 1
    assert found["pyspark_jms_received_messages_total", "failed"] == 5


def test_it_answers_over_http_until_it_is_stopped(exporter):
    exporter.onQueryProgress(batch(uuid.uuid4(), None))
    server = exporter.serve(0)
    port = server.port
    with contextlib.closing(server), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert "pyspark_jms_lag_messages{query=" in text
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10)


def test_without_prometheus_client_the_extra_is_named():
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "from pyspark_jms.monitoring import PrometheusExporter\n"
        "try: PrometheusExporter()\n"
        "except Exception as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.startswith(
        "[JMS_UNSUPPORTED] prometheus-client is not installed. Install it: pip install 'pyspark-jms"
    )


@pytest.mark.parametrize("expressions", [dashboard_expressions, rule_expressions])
def test_dashboard_and_alerts_use_metrics_that_exist(exporter, expressions):
    exporter.onQueryProgress(batch(uuid.uuid4()))
    exposed = {name for name, *_ in samples(exporter._registry)}
    used = {name for expression in expressions() for name in names_in(expression)}
    assert len(used) > 8
    assert used <= exposed


def test_the_dashboard_shows_every_metric(exporter):
    exporter.onQueryProgress(batch(uuid.uuid4()))
    exposed = {name for name, *_ in samples(exporter._registry)}
    assert {name for expression in dashboard_expressions() for name in names_in(expression)} == exposed


def test_the_page_names_every_metric(exporter):
    exporter.onQueryProgress(batch(uuid.uuid4()))
    page = (ROOT / "docs/monitoring.md").read_text()
    assert [name for name, *_ in samples(exporter._registry) if f"`{name}`" not in page] == []


def test_metrics_of_these_batches_are_read():
    assert metrics_of(batch("i").progress)[0].lag == 285
