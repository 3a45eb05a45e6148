"""Runs three queries for some minutes, lets a Prometheus scrape them, and draws the dashboard from its answers.

    .venv/bin/python -m tools.dashboard_picture docs/monitoring/dashboard.png

Needs Java and Prometheus (``apt-get install prometheus``). In the run, a burst of messages arrives, the broker is
restarted, messages are too large, and a query fails. Each panel of docs/monitoring/grafana-dashboard.json shows what
Prometheus answers to its expressions, at its place. Grafana is not involved.
"""

import argparse
import contextlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter
from PIL import Image
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_jms.monitoring import PrometheusExporter
from pyspark_jms.testing import EmbeddedArtemis
from pyspark_jms.tools.testing.ports import free_port

DASHBOARD = Path(__file__).resolve().parent.parent / "docs" / "monitoring" / "grafana-dashboard.json"
_COLUMNS = 24  # of Grafana's grid
_STEP_SECONDS = 5
_VARIABLES = {"$query": ".*", "$__rate_interval": "30s"}
_STATES = {0: ("failed", "#c4162a"), 1: ("running", "#37872d")}
_COLOURS = ("#1f77b4", "#d95f02", "#7570b3", "#1b9e77", "#e7298a", "#66a61e", "#a6761d", "#666666")
_UNITS = {"s": " s", "cps": "/s", "short": "", "bytes": "B", "Bps": "B/s"}

Ask = Callable[..., dict[str, Any]]
"""``ask("query_range", query=…, start=…, …)``: the field ``data`` of an answer of Prometheus' HTTP API."""
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
    url = f"http://127.0.0.1:{free_port('127.0.0.1')}"
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


# --- the panels --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answers:
    """What Prometheus knows of the time from ``start`` to ``end``, in seconds since 1970."""

    ask: Ask
    start: float
    end: float

    def at_the_end(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", query=expression, time=self.end)["result"]
        return found

    def series(self, expression: str) -> list[dict[str, Any]]:
        answer = self.ask("query_range", query=expression, start=self.start, end=self.end, step=_STEP_SECONDS)
        return sorted(answer["result"], key=lambda one: str(one["metric"].get("query")))


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    kind: str
    """stat, table or timeseries."""
    unit: str
    place: tuple[int, int, int, int]
    """Left, top, width and height in cells of the grid."""
    targets: tuple[tuple[str, str], ...]
    """Expression, and the format of its legend."""


def panels(dashboard: Path = DASHBOARD) -> list[Panel]:
    return [
        Panel(
            each["title"],
            each["type"],
            each["fieldConfig"]["defaults"]["unit"],
            tuple(each["gridPos"][name] for name in "xywh"),
            tuple((_filled(target["expr"]), target["legendFormat"]) for target in each["targets"]),
        )
        for each in json.loads(dashboard.read_text(encoding="utf-8"))["panels"]
    ]


def _filled(expression: str) -> str:
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def draw(shown: Sequence[Panel], answers: Answers, path: Path) -> list[str]:
    """Write the PNG. Returns the titles of the panels that have data."""
    rows = max(top + height for _, top, _, height in (panel.place for panel in shown))
    with mpl.rc_context({"font.size": 7, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(12, rows * 0.22))
        grid = figure.add_gridspec(rows, _COLUMNS, left=0.02, right=0.99, top=0.99, bottom=0.02, hspace=0)
        full = [panel.title for panel in shown if _panel(figure, grid, panel, answers)]
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=90)
    Image.open(data).convert("RGB").quantize(48).save(path, optimize=True)
    return full


def _panel(figure: Figure, grid: Any, panel: Panel, answers: Answers) -> bool:
    left, top, width, height = panel.place
    axes = figure.add_subplot(grid[top + 1 : top + height - 1, left + 1 : left + width])
    axes.set_title(panel.title, loc="left", fontsize=8, fontweight="bold")
    if panel.kind == "timeseries":
        has_data = _lines(axes, panel, answers)
    else:
        axes.set_axis_off()
        found = answers.at_the_end(panel.targets[0][0])
        (_states if panel.kind == "stat" else _table)(axes, found)
        has_data = bool(found)
    if not has_data:
        axes.text(0.5, 0.5, "No data", ha="center", va="center", color="#777777", transform=axes.transAxes)
    return has_data


def _lines(axes: Axes, panel: Panel, answers: Answers) -> bool:
    """Against minutes since the start."""
    count = 0
    for expression, legend in panel.targets:
        for series in answers.series(expression):
            points = [((float(at) - answers.start) / 60, float(value)) for at, value in series["values"]]
            finite = [(at, value) for at, value in points if math.isfinite(value)]
            style = {"color": _COLOURS[count % len(_COLOURS)], "label": _legend(legend, series["metric"])}
            axes.plot([at for at, _ in finite], [value for _, value in finite], linewidth=1, **style)  # type: ignore[arg-type]
            count += 1
    axes.set_xlim(0, (answers.end - answers.start) / 60)
    axes.set_ylim(bottom=0)
    axes.grid(linewidth=0.3)
    axes.yaxis.set_major_formatter(EngFormatter(_UNITS[panel.unit], sep=""))
    axes.xaxis.set_major_formatter("{x:g} min")
    if count:
        axes.legend(frameon=False, fontsize=6, loc="upper left", ncols=2, borderpad=0.1, handlelength=1)
    return count > 0


def _legend(text: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], "?"), text)


def _states(axes: Axes, found: Sequence[dict[str, Any]]) -> None:
    """A coloured field for each query."""
    for number, one in enumerate(found):
        text, colour = _STATES[int(float(one["value"][1]))]
        left, width = number / len(found), 0.96 / len(found)
        axes.add_patch(Rectangle((left, 0), width, 1, color=colour, transform=axes.transAxes))
        axes.text(
            left + width / 2,
            0.5,
            f"{one['metric']['query']}\n{text}",
            ha="center",
            va="center",
            color="white",
            fontsize=10,
            transform=axes.transAxes,
        )


def _table(axes: Axes, found: Sequence[dict[str, Any]]) -> None:
    columns = ("query", "guarantee", "broker")
    if found:
        cells = [[one["metric"].get(name, "") for name in columns] for one in found]
        table = axes.table(cellText=cells, colLabels=columns, loc="center", cellLoc="left")
        table.scale(1, 1.4)


if __name__ == "__main__":
    sys.exit(main())
