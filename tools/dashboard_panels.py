"""The panels of docs/monitoring/grafana-dashboard.json and answers of a Prometheus → one PNG.

Each panel shows what Prometheus answers to the panel's expressions, at the panel's place. Grafana is not involved.
"""

import io
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter
from PIL import Image

__all__ = ["DASHBOARD", "Answers", "Ask", "Panel", "draw", "panels"]

DASHBOARD = Path(__file__).resolve().parent.parent / "docs" / "monitoring" / "grafana-dashboard.json"
_COLUMNS = 24  # of Grafana's grid
_STEP_SECONDS = 5
_VARIABLES = {"$query": ".*", "$__rate_interval": "30s"}
_STATES = {0: ("failed", "#c4162a"), 1: ("running", "#37872d")}
_COLOURS = ("#1f77b4", "#d95f02", "#7570b3", "#1b9e77", "#e7298a", "#66a61e", "#a6761d", "#666666")
_UNITS = {"s": " s", "cps": "/s", "short": "", "bytes": "B", "Bps": "B/s"}

Ask = Callable[..., dict[str, Any]]
"""``ask("query_range", query=…, start=…, …)``: the field ``data`` of an answer of Prometheus' HTTP API."""


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
