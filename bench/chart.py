"""The JSON document → a PNG with rates and their ranges, CPU by process, and other kinds of message."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.results import ROLES
from bench.table import CASES

__all__ = ["draw"]

_COLOURS = {"broker": "#8c8c8c", "jvm": "#d95f02", "runner": "#1b9e77", "workers": "#7570b3", "client": "#66a61e"}
_OURS, _OTHERS = "#1f77b4", "#c7d3e0"


def draw(document: dict[str, Any], path: Path) -> None:
    with mpl.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(11, 7.5), layout="constrained")
        rates, cpu, write, axes = figure.subplots(2, 2).flat
        _rates(rates, document, "read")
        _cpu(cpu, document)
        _rates(write, document, "write")
        _ratios(axes, document)
        machine = document["machine"]
        figure.suptitle(
            f"1 KB, five properties, persistent; {machine['cores']} cores shared by broker, Spark and clients;"
            f" medians of {document['rounds']} rounds, lines from lowest to highest"
        )
        figure.savefig(path, dpi=130)


def _measured(document: dict[str, Any], way: str) -> list[str]:
    """Measured cases in reverse order, because matplotlib draws bars from the bottom."""
    return [case for case in CASES if case.startswith(way) and case in document["cases"]][::-1]


def _rates(axes: Axes, document: dict[str, Any], way: str) -> None:
    cases = _measured(document, way)
    spreads = [document["cases"][case]["messages_per_s"] for case in cases]
    medians = [one["median"] for one in spreads]
    whiskers = [[one["median"] - one["lowest"] for one in spreads], [one["highest"] - one["median"] for one in spreads]]
    colours = [_OURS if case.endswith((".jms", ".journal")) else _OTHERS for case in cases]
    axes.barh([CASES[case] for case in cases], medians, xerr=whiskers, color=colours, ecolor="#444444", capsize=2)
    axes.set_title(f"{way}: messages a second")
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _cpu(axes: Axes, document: dict[str, Any]) -> None:
    cases = _measured(document, "read") + _measured(document, "write")
    left = [0.0] * len(cases)
    for role in ROLES:
        spent = [document["cases"][case]["cpu_us_per_message"].get(role, {"median": 0.0})["median"] for case in cases]
        axes.barh(cases, spent, left=left, color=_COLOURS[role], label=role)
        left = [before + more for before, more in zip(left, spent, strict=True)]
    axes.set_title("CPU, microseconds a message, by process")
    axes.legend(frameon=False)


def _ratios(axes: Axes, document: dict[str, Any]) -> None:
    """Ratio of the connector's rate to the raw socket's rate, for the base case and each other kind of message."""
    kinds = {"base case": document["cases"]} | {name: axis["cases"] for name, axis in document.get("axes", {}).items()}
    bars = [
        (f"{name}, {way}", cases[case]["ratio_to_raw"])
        for name, cases in kinds.items()
        for way, case in (("read", "read.journal" if name == "journal" else "read.jms"), ("write", "write.jms"))
        if case in cases
    ][::-1]
    medians = [spread["median"] for _, spread in bars]
    whiskers = [[s["median"] - s["lowest"] for _, s in bars], [s["highest"] - s["median"] for _, s in bars]]
    axes.barh([name for name, _ in bars], medians, xerr=whiskers, color=_OURS, ecolor="#444444", capsize=2)
    axes.axvline(1, color="#444444", linewidth=0.8)
    axes.set_title("format('jms') through Spark, of the raw socket's rate")
