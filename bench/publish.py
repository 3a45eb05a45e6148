"""Write the JSON documents into docs/performance.md, docs/notebook/benchmark.md, a chart and README:
``python -m bench.publish``.
"""

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.machine import ROOT
from bench.results import ROLES, SPARK_ROLES
from bench.table import CASES, KINDS, as_text, growth_as_text

__all__ = ["as_expected", "as_rows", "between_marks", "draw", "publish", "publish_growth"]

CHART = "performance.png"
_PAGE, _TABLES = "docs/performance.md", "docs/notebook/benchmark.md"
_SHOWN = {
    "read.raw": "reading: a raw socket that parses nothing",
    "read.jms": "reading: this source, through Spark",
    "read.naive": "reading: a minimal source with stomp.py, through Spark",
    "read.stomp_py": "reading: a stomp.py listener that does nothing, without Spark",
    "read.java": "reading: a Java JMS client on the broker's own protocol",
    "read.amqp.raw": "reading over AMQP: a raw socket that parses nothing",
    "read.amqp.jms": "reading over AMQP: this source, through Spark",
    "read.amqp.java": "reading over AMQP: a Qpid JMS client",
    "write.raw": "writing: raw sockets, transacted",
    "write.jms": "writing: this sink, through Spark",
    "write.java": "writing: two Java JMS clients on the broker's own protocol",
    "write.amqp.raw": "writing over AMQP: raw sockets, transacted",
    "write.amqp.jms": "writing over AMQP: this sink, through Spark",
}

_OURS = {
    "read.jms": "read over STOMP",
    "read.journal": "read over STOMP, exactly-once with a journal",
    "read.amqp.jms": "read over AMQP",
    "read.amqp.once": "read over AMQP, exactly-once",
    "read.amqp.core.jms": "read over AMQP, sent over STOMP",
    "write.jms": "write over STOMP",
    "write.amqp.jms": "write over AMQP",
}
_EXPECTED = (
    "1 KB of text, five properties, persistent; AMQP: sent by an AMQP client. CPU is in microseconds a message. Broker,"
    " Spark and clients\nshare the machine. `of a raw socket` is the median of the ratios of the rounds."
)


def publish(document: dict[str, Any], root: Path) -> None:
    draw(document, root / "docs" / CHART)
    machine = _machine(document)
    _put(root / _PAGE, "expect", f"{as_expected(document)}\n\n{_EXPECTED}\n{machine}.")
    _put(root / _TABLES, "results", f"{machine}:\n\n{_fenced(as_text(document))}")
    more = f"[Which options to set]({_PAGE}#what-to-set), [how it was measured]({_PAGE}#how-it-was-measured)."
    rounds = (
        f"Medians of {document['rounds']} interleaved rounds; broker, Spark and clients share the machine. A ratio"
        " is the median of the ratios of the rounds, not the ratio of the two medians."
    )
    shown = f"{as_rows(document)}\n\n{rounds}\n{machine}.\n{more}"
    _put(root / "README.md", "speed", shown)


def publish_growth(document: dict[str, Any], root: Path) -> None:
    machines = "\n".join(
        f"-{kind or ' over STOMP'}: {_machine(document, prefix)}"
        for prefix, kind in KINDS.items()
        if f"{prefix}machine" in document
    )
    _put(root / _TABLES, "growth", f"{machines}\n\n{_fenced(growth_as_text(document))}")


def _put(page: Path, name: str, block: str) -> None:
    page.write_text(between_marks(page.read_text(), name, block))


def _fenced(text: str) -> str:
    return "```\n" + "\n".join(line.rstrip() for line in text.splitlines()) + "\n```"


def as_rows(document: dict[str, Any]) -> str:
    """The table of README: a selection of the cases."""
    rows = ["| 1 KB text, five properties, persistent | messages/s | of a raw socket, same protocol |", "|---|---|---|"]
    for case, title in _SHOWN.items():
        if measured := document["cases"].get(case):
            rate, ratio = measured["messages_per_s"]["median"], measured["ratio_to_raw"]["median"]
            rows.append(f"| {title} | {round(rate, -2):,.0f} | {ratio:.2f} |")
    return "\n".join(rows)


def as_expected(document: dict[str, Any]) -> str:
    """The first table of docs/performance.md: what this source and sink do, and no other client."""
    rows = [
        "| | messages/s | of a raw socket | CPU of the broker | CPU of Spark |",
        "|---|---|---|---|---|",
        *(_expected(title, document["cases"].get(case)) for case, title in _OURS.items()),
        *(_axis(name, axis["cases"]) for name, axis in document["axes"].items()),
    ]
    return "\n".join([row for row in rows if row] + ["", *_small_costs(document)]).rstrip()


def _axis(name: str, cases: dict[str, Any]) -> str:
    if name == "journal":  # the other case of this kind is the read without a journal, for the ratio of the two
        return _expected(_OURS["read.journal"], cases.get("read.journal"))
    return "\n".join(_expected(f"{title}, {name}", cases[case]) for case, title in _OURS.items() if case in cases)


def _expected(title: str, measured: dict[str, Any] | None) -> str:
    if measured is None:
        return ""
    rate, ratio = measured["messages_per_s"]["median"], measured["ratio_to_raw"]["median"]
    cpu = {role: spread["median"] for role, spread in measured["cpu_us_per_message"].items()}
    spark = sum(cpu.get(role, 0.0) for role in SPARK_ROLES)
    return f"| {title} | {round(rate, -2):,.0f} | {ratio:.2f} | {cpu['broker']:.0f} | {spark:.0f} |"


def _small_costs(document: dict[str, Any]) -> list[str]:
    """Latency, an idle query and a start, where the document has them."""
    latencies = {
        "latency": "over STOMP",
        "latency_amqp": "over AMQP",
        "latency_toy": "by a toy source in Python",
        "latency_rate": "by Spark alone",
    }
    shown = [
        f"{document[key]['p50_ms']:.0f} ms {name} (99 %: {document[key]['p99_ms']:.0f} ms)"
        for key, name in latencies.items()
        if key in document
    ]
    lines = [f"- **Latency** at 100 messages/s, from the send to Spark's commit log, median: {', '.join(shown)}."]
    if "idle" in document:
        lines.append(f"- **An idle query** and its broker: {document['idle']['percent']:.1f} % of a core.")
    if "start.seconds" in document:
        lines.append(
            f"- **Start**, from `load()` to the end of the first batch, warm JVM: {document['start.seconds']:.1f} s."
        )
    return lines if shown else lines[1:]


def _machine(document: dict[str, Any], prefix: str = "") -> str:
    machine = document[f"{prefix}machine"]
    return (
        f"{machine['date'][:10]}, {machine['cores']} cores ({machine['cpu']}), {machine['memory_gib']:.0f} GiB, Python"
        f" {machine['python']}, Spark {machine['spark']}, Java {machine['java']}, Artemis {machine['artemis']}"
    )


def between_marks(page: str, name: str, block: str) -> str:
    """The page with ``block`` between the two marks of that name."""
    found = re.compile(rf"(<!-- {name}: begin.*?-->\n).*?(\n<!-- {name}: end -->)", re.DOTALL)
    if not found.search(page):
        raise ValueError(f"the page has no marks named {name}")
    return found.sub(lambda marks: f"{marks[1]}\n{block}\n{marks[2]}", page, count=1)


# --- the chart: rates with their ranges, CPU by process, other kinds of message --------------------

_COLOURS = {"broker": "#8c8c8c", "jvm": "#d95f02", "runner": "#1b9e77", "workers": "#7570b3", "client": "#66a61e"}
_OUR_COLOUR, _OTHERS = "#1f77b4", "#c7d3e0"


def draw(document: dict[str, Any], path: Path) -> None:
    with mpl.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(11, 7.5), layout="constrained")
        rates, cpu, write, axes = figure.subplots(2, 2).flat
        _draw_rates(rates, document, "read")
        _draw_cpu(cpu, document)
        _draw_rates(write, document, "write")
        _draw_ratios(axes, document)
        machine = document["machine"]
        figure.suptitle(
            f"1 KB, five properties, persistent; {machine['cores']} cores shared by broker, Spark and clients;"
            f" medians of {document['rounds']} rounds, lines from lowest to highest"
        )
        figure.savefig(path, dpi=130)


def _measured(document: dict[str, Any], way: str) -> list[str]:
    """Measured cases in reverse order, because matplotlib draws bars from the bottom."""
    return [case for case in CASES if case.startswith(way) and case in document["cases"]][::-1]


def _draw_rates(axes: Axes, document: dict[str, Any], way: str) -> None:
    cases = _measured(document, way)
    spreads = [document["cases"][case]["messages_per_s"] for case in cases]
    medians = [one["median"] for one in spreads]
    whiskers = [[one["median"] - one["lowest"] for one in spreads], [one["highest"] - one["median"] for one in spreads]]
    colours = [_OUR_COLOUR if case.endswith((".jms", ".journal")) else _OTHERS for case in cases]
    axes.barh([CASES[case] for case in cases], medians, xerr=whiskers, color=colours, ecolor="#444444", capsize=2)
    axes.set_title(f"{way}: messages a second")
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _draw_cpu(axes: Axes, document: dict[str, Any]) -> None:
    cases = _measured(document, "read") + _measured(document, "write")
    left = [0.0] * len(cases)
    for role in ROLES:
        spent = [document["cases"][case]["cpu_us_per_message"].get(role, {"median": 0.0})["median"] for case in cases]
        axes.barh(cases, spent, left=left, color=_COLOURS[role], label=role)
        left = [before + more for before, more in zip(left, spent, strict=True)]
    axes.set_title("CPU, microseconds a message, by process")
    axes.legend(frameon=False)


def _draw_ratios(axes: Axes, document: dict[str, Any]) -> None:
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
    axes.barh([name for name, _ in bars], medians, xerr=whiskers, color=_OUR_COLOUR, ecolor="#444444", capsize=2)
    axes.axvline(1, color="#444444", linewidth=0.8)
    axes.set_title("format('jms') through Spark, of the raw socket's rate")


if __name__ == "__main__":
    publish(json.loads((ROOT / "bench" / "latest.json").read_text()), ROOT)
    if (ROOT / "bench" / "growth.json").exists():
        publish_growth(json.loads((ROOT / "bench" / "growth.json").read_text()), ROOT)
