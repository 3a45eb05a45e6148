"""A real Prometheus scrapes a real query, knows the alert rules, and answers every expression of the dashboard."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest
from monitoring_files import FOLDER, dashboard_expressions, rule_expressions
from numbered import fill
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from streaming import access, journal_in, stopping
from waiting import wait_until

from pyspark_jms.monitoring import PrometheusExporter

pytestmark = pytest.mark.deep

NOT_INSTALLED = "no prometheus is installed (apt-get install prometheus)"

CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: spark
    static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""


@pytest.fixture(scope="module")
def tools():
    """PYSPARK_JMS_REQUIRE_PROMETHEUS=1 makes a failure of what is skipped without Prometheus: CI sets it."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        (pytest.fail if os.environ.get("PYSPARK_JMS_REQUIRE_PROMETHEUS") else pytest.skip)(NOT_INSTALLED)


@pytest.fixture
def prometheus(tools, tmp_path):
    """``prometheus(port)`` scrapes that port of this machine; returns ``ask(path, **parameters)``."""
    started = []

    def prometheus(port):
        configuration = tmp_path / "prometheus.yml"
        configuration.write_text(CONFIGURATION.format(rules=FOLDER / "alerts.yml", port=port))
        with socket.create_server(("127.0.0.1", 0)) as free:
            own = free.getsockname()[1]
        log = (tmp_path / "prometheus.log").open("w")
        command = ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path / 'data'}"]
        started.append((
            subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{own}"], stdout=log, stderr=log), log
        ))  # fmt: skip

        def ask(path, **parameters):
            query = urllib.parse.urlencode(parameters)
            with urllib.request.urlopen(f"http://127.0.0.1:{own}/{path}?{query}", timeout=10) as answer:
                return answer.read()

        def ready():
            try:
                return ask("-/ready")
            except (urllib.error.URLError, ConnectionError):
                return False

        wait_until(ready, what="the start of Prometheus")
        return lambda path, **parameters: json.loads(ask(f"api/v1/{path}", **parameters))["data"]

    yield prometheus
    for process, log in started:
        process.terminate()
        process.wait(30)
        log.close()


@pytest.mark.parametrize("command", [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]])
def test_the_rules_are_valid_and_fire_when_they_should(tools, command):
    ended = subprocess.run(["promtool", *command], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


ALL_ALERTS = re.findall(r"alert: (\w+)", (FOLDER / "alerts.yml").read_text())


def recorded(registry):
    """Name of each sample and its labels, as promtool reads them → value."""
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        f"{each.name}{{{', '.join(f'{key}={json.dumps(value)}' for key, value in each.labels.items())}}}": each.value
        for family in families
        for each in family.samples
    }


def series(samples, *, reports):
    """What a Prometheus has after an hour in which the samples stay as they are.

    ``reports``: the query goes on to report, as it does while it is idle. Promtool's clock begins at 0.
    """
    now = max(value for name, value in samples.items() if "progress_timestamp" in name)
    for name, value in samples.items():
        each = f"{value}+0x60"
        if "timestamp_seconds" in name:
            moves = reports and "progress_timestamp" in name
            each = f"{value - now}+{60 if moves else 0}x60"
        yield {"series": name, "values": each}


def fired(tools, folder, samples, *, reports):
    """The alerts that fire within the hour, by promtool."""
    alerts = [{"eval_time": "50m", "alertname": name, "exp_alerts": []} for name in ALL_ALERTS]
    test = {"interval": "1m", "input_series": list(series(samples, reports=reports)), "alert_rule_test": alerts}
    shutil.copy(FOLDER / "alerts.yml", folder)
    file = folder / "recorded.test.yml"
    file.write_text(json.dumps({"rule_files": ["alerts.yml"], "evaluation_interval": "1m", "tests": [test]}))
    ended = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    found = set(re.findall(r"alertname: *(\w+)", ended.stdout + ended.stderr))
    assert (ended.returncode == 0) == (not found), ended.stdout + ended.stderr
    return found


@pytest.fixture
def exporter(spark, set_spark):
    """Of a Spark that reports an idle query at once."""
    set_spark("spark.sql.streaming.noDataProgressEventInterval", "100")
    exporter = PrometheusExporter(CollectorRegistry())
    spark.streams.addListener(exporter)
    yield exporter
    spark.streams.removeListener(exporter)


def test_no_alert_fires_for_an_idle_queue_that_was_read(spark, broker, queue, read, tools, exporter, tmp_path):
    fill(broker, queue, 300)
    frame = spark.readStream.format("jms").options(**read, maxMessagesPerTrigger=100).load()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def is_idle():
        found = {name.partition("{")[0]: value for name, value in recorded(exporter._registry).items()}
        return found.get("pyspark_jms_received_messages_total") == 300 and found.get("pyspark_jms_lag_messages") == 0

    with stopping(query):
        wait_until(is_idle, seconds=120, what="the metrics of an idle queue")
        samples = recorded(exporter._registry)
    assert fired(tools, tmp_path, samples, reports=True) == set()


@pytest.mark.parametrize("read", ["stomp with a journal", "amqp"], indirect=True)
def test_an_alert_fires_when_messages_wait_and_no_batch_comes(spark, broker, queue, read, tools, exporter, tmp_path):
    """The queue is paused at the broker. An exactly-once read over AMQP would make batches without messages."""
    fill(broker, queue, 10)
    broker.server.locateQueue(queue).pause()
    frame = spark.readStream.format("jms").options(**read).load()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def lag():
        found = recorded(exporter._registry)
        return next((value for name, value in found.items() if "lag_messages" in name), None)

    with stopping(query):
        wait_until(lambda: lag() == 10, seconds=120, what="the messages that wait")
        samples = recorded(exporter._registry)
    assert fired(tools, tmp_path, samples, reports=True) == {"JmsNoBatch"}


def test_an_alert_fires_when_a_batch_hangs(spark, broker, queue, tools, exporter, tmp_path):
    goes_on, hangs = threading.Event(), threading.Event()

    def hang(rows, number):
        if number > 0:
            hangs.set()
            goes_on.wait()

    fill(broker, queue, 10)
    frame = spark.readStream.format("jms").options(**access(broker), queue=queue).load()
    query = frame.writeStream.foreachBatch(hang).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        wait_until(lambda: recorded(exporter._registry), seconds=120, what="the metrics of a batch")
        fill(broker, queue, 10, first=10)
        assert hangs.wait(120)
        samples = recorded(exporter._registry)
    finally:
        goes_on.set()
        query.stop()
    assert "JmsBatchHangs" in fired(tools, tmp_path, samples, reports=False)


@pytest.fixture(params=["stomp with a journal", "amqp", "amqp exactly-once"])
def read(request, broker, queue, tmp_path):
    if request.param.startswith("amqp"):
        guarantee = request.param.removeprefix("amqp").strip() or "at-least-once"
        return access(broker, "amqp") | {"queue": queue, "deliveryGuarantee": guarantee}
    return access(broker) | {"queue": queue} | journal_in(tmp_path / "journal")


def test_prometheus_sees_a_query_and_answers_the_dashboard(spark, broker, queue, read, prometheus, tmp_path):
    exporter = PrometheusExporter(CollectorRegistry())
    spark.streams.addListener(exporter)
    server = exporter.serve(0)
    frame = spark.readStream.format("jms").options(**read).load()
    checkpoint = str(tmp_path / "checkpoint")
    query = frame.writeStream.format("noop").queryName("orders").option("checkpointLocation", checkpoint).start()
    try:
        ask = prometheus(server.port)

        def value(expression):
            found = ask("query", query=expression)["result"]
            return float(found[0]["value"][1]) if found else None

        sent = 0

        def received():
            nonlocal sent
            fill(broker, queue, 10, first=sent)  # the metrics come with batches
            sent += 10
            return value("pyspark_jms_received_messages_total") and value("pyspark_jms_queue_consumers") is not None

        wait_until(received, seconds=120, what="a scrape of the metrics")
        assert value("pyspark_jms_query_up") == 1
        assert 0 < value("pyspark_jms_received_messages_total") <= sent
        (guarantee,) = ask("query", query="pyspark_jms_guarantee_info")["result"]
        exactly_once, with_journal = read["deliveryGuarantee"] == "exactly-once", "journalLocation" in read
        is_staged = exactly_once and not with_journal
        assert guarantee["metric"]["guarantee"] == ("exactly-once into Spark" if exactly_once else "at-least-once")
        assert guarantee["metric"]["query"] == "orders"
        assert value("pyspark_jms_lag_messages") is not None
        assert (value("pyspark_jms_journal_bytes") is not None) == with_journal
        for expression in dashboard_expressions():
            ask("query", query=expression)  # an error is an HTTP error
        empty = {each for each in dashboard_expressions() if value(each) is None and "[1m]" not in each}
        absent = {"oldest_age", "journal", "backlog", "empty_batches"}
        if exactly_once:
            absent = {"lost_credit", "empty_batches"}
            if is_staged:
                absent = {"lost_credit", "journal", "in_flight", "oldest_age", "stuck"}
        assert all(any(part in each for part in absent) for each in empty), empty
        rules = [rule for group in ask("rules")["groups"] for rule in group["rules"]]
        assert len(rules) == len(rule_expressions())
        wait_until(
            lambda: {rule["health"] for group in ask("rules")["groups"] for rule in group["rules"]} == {"ok"},
            what="an evaluation of each rule",
        )
        query.stop()
        wait_until(lambda: value("pyspark_jms_query_up") is None, what="the end of the query")
    finally:
        query.stop()
        spark.streams.removeListener(exporter)
        server.close()
