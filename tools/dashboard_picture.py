"""Runs three queries for some minutes, lets a Prometheus scrape them, and draws the dashboard from its answers.

    .venv/bin/python -m tools.dashboard_picture docs/monitoring/dashboard.png

Needs Java and Prometheus (``apt-get install prometheus``). In the run, a burst of messages arrives, the broker is
restarted, messages are too large, and a query fails.
"""

import argparse
import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_jms.monitoring import PrometheusExporter
from pyspark_jms.testing import EmbeddedArtemis
from tools.dashboard_panels import Answers, Ask, draw, panels

_CONFIGURATION = """
global: {{scrape_interval: 5s}}
scrape_configs:
  - job_name: spark
    static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""
_START_SECONDS = 60
_PAUSE_SECONDS = 2.0

Send = Callable[[str, int, str], None]
"""``send(queue, count, text)``: the messages of a DataFrame with the column ``id``."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the dashboard of docs/monitoring from a real run.")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0)
    given = parser.parse_args(arguments)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # and not the first python3 on the PATH
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    exporter = PrometheusExporter()
    spark.streams.addListener(exporter)
    server = exporter.serve(0)
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedArtemis() as broker,
        prometheus(Path(folder), server.port) as ask,
    ):
        running = queries(spark, broker, Path(folder))
        began = time.time()
        play(broker, sender(spark, broker), given.minutes * 60)
        for query in running[:2]:  # the third one fails in the run
            if not query.isActive:
                raise SystemExit(f"query {query.name} ended: {query.exception()}")
        full = draw(panels(), Answers(ask, began, time.time()), given.picture)
        for query in running:
            query.stop()
    spark.stop()
    print(f"{given.picture}: {given.picture.stat().st_size:,} bytes; panels with data: {', '.join(full)}")
    return 0


@contextlib.contextmanager
def prometheus(folder: Path, port: int) -> Iterator[Ask]:
    """A Prometheus that scrapes this port of this machine."""
    configuration = folder / "prometheus.yml"
    configuration.write_text(_CONFIGURATION.format(port=port))
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    command = ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'prometheus'}"]

    def ask(path: str, **parameters: Any) -> dict[str, Any]:
        address = f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())["data"]
        return found

    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={url[7:]}"], stdout=log, stderr=log)
        try:
            _await(lambda: ask("query", query="1"))
            yield ask
        finally:
            process.terminate()
            process.wait(30)


def _await(question: Callable[[], object]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            question()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def queries(spark: SparkSession, broker: EmbeddedArtemis, folder: Path) -> list[StreamingQuery]:
    """One is started after the other: two first starts at the same time can break a session."""
    access = {"user": broker.user, "password": broker.password}
    stomp, amqp = access | {"brokerUrl": broker.url}, access | {"brokerUrl": broker.amqp_url}
    large = {"maxMessageBytes": "10k", "onTooLarge": "deadLetter", "deadLetterQueue": "too.large"}
    sources = {
        "orders": (
            stomp
            | {
                "deliveryGuarantee": "exactly-once",
                "journalLocation": f"{folder}/journal",
                "maxMessagesPerTrigger": "2000",
            },
            "text",
        ),
        "payments": (amqp | large | {"deliveryGuarantee": "exactly-once"}, "text"),
        "refunds": (amqp, "CAST(text AS INT) AS text"),  # a text that is not a number is an error
    }
    started = []
    for name, (options, column) in sources.items():
        rows = spark.readStream.format("jms").options(**options, queue=name).load().selectExpr(column)
        writer = rows.writeStream.format("noop").queryName(name).trigger(processingTime="2 seconds")
        query = writer.option("checkpointLocation", f"{folder}/checkpoints/{name}").start()
        while query.status["message"].startswith("Initializing"):
            time.sleep(0.1)
        started.append(query)
    return started


def sender(spark: SparkSession, broker: EmbeddedArtemis) -> Send:
    access = {"brokerUrl": broker.url, "user": broker.user, "password": broker.password}

    def send(queue: str, count: int, text: str) -> None:
        rows = spark.range(count).coalesce(1).selectExpr(f"{text} AS text")
        rows.write.format("jms").options(**access, queue=queue).mode("append").save()

    return send


def play(broker: EmbeddedArtemis, send: Send, seconds: float) -> None:
    """Messages in a wave, and four events at their times."""
    events: list[tuple[float, Callable[[], object]]] = [
        (0.25, lambda: send("orders", 30_000, "repeat('x', 200)")),
        (0.45, broker.restart),
        (0.60, lambda: send("payments", 40, "repeat('x', 20000)")),
        (0.75, lambda: send("refunds", 1, "'not a number'")),
    ]
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < seconds:
        if events and elapsed >= events[0][0] * seconds:
            events.pop(0)[1]()
        level = 1 + math.sin(elapsed / seconds * 4 * math.pi)
        send("orders", int(200 + 400 * level), "repeat('x', 200)")
        send("payments", int(100 + 150 * level), "repeat('x', 500)")
        send("refunds", 50, "string(id)")
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
