"""The tables, the chart and the JSON say the same."""

import pytest

from bench.job import Measured
from bench.publish import as_rows, draw
from bench.results import cases_of, followed
from bench.table import CASES, TARGETS, Target, as_text, growth_as_text, judged


def rounds(*rates):
    cpu = {"broker": 0.03, "jvm": 0.0123, "runner": 0.004, "workers": 0.003}
    notes = {"jvm_compiling_us_per_message": 2.0, "by_the_clock_seconds": 0.05, "batches": 4.0}
    return [Measured(messages=1000, seconds=1000 / rate, cpu=cpu, notes=notes) for rate in rates]


@pytest.fixture
def document():
    measurements = {case: rounds(1, 30_000, 40_000, 50_000) for case in CASES}
    measurements["read.jms"] = rounds(1, 15_000, 32_000, 30_000)
    return {
        **followed(measurements),
        "cases": cases_of(measurements),
        "axes": {"100 B": {"cases": cases_of({case: measurements[case] for case in ("read.raw", "read.jms")})}},
        "latency": {
            "per_second": 100, "p50_ms": 111.4, "p99_ms": 222.4, "broker_percent": 1, "jvm_percent": 2,
            "runner_percent": 3, "workers_percent": 4,
        },
        "latency.p50_ms": 111.4,
        "skipped": {"read.other": "no such thing here"},
        "messages": 1000,
        "messages_per_transaction": 125,
        "rounds": 3,
        "warm_up_seconds": 90,
        "machine": {"cores": 2, "date": "2026-01-01"},
    }  # fmt: skip


def test_readme_has_the_medians_of_what_was_measured(document):
    del document["cases"]["read.java"]
    rows = as_rows(document).splitlines()[2:]
    assert "| reading: this source, through Spark | 30,000 | 0.60 |" in rows
    assert "| reading: a raw socket that parses nothing | 40,000 | 1.00 |" in rows
    assert len(rows) == 12


def test_every_case_has_its_line(document):
    lines = as_text(document).splitlines()
    for case, title in CASES.items():
        found = [line for line in lines if line.startswith(title)]
        assert len(found) == 1, case
        assert f"{document['cases'][case]['messages_per_s']['median']:,.0f} (" in found[0]
    ours = next(line for line in lines if line.startswith(CASES["read.jms"]))
    assert "30,000 (15,000-32,000)" in ours
    assert "0.60 (0.50-0.80)" in ours
    assert ours.split()[-5:] == ["30.0", "12.3", "4.0", "3.0", "-"]


def test_what_is_not_met_is_said(document):
    lines = as_text(document).splitlines()
    verdicts = {line.split("  ")[0]: line for line in lines if ">= " in line or "<= " in line}
    assert verdicts["read through Spark, of the raw drain"].endswith("0.6  not met")
    assert verdicts["latency at 100 messages/s, median, ms"].endswith("111")


def test_the_rest_is_told(document):
    text = as_text(document)
    assert "p50 111 ms, p99 222 ms" in text
    assert "read.other was not measured: no such thing here" in text
    assert "100 B, read" in text
    assert "100 B, write" not in text


@pytest.mark.deep
def test_a_chart_is_a_picture(document, tmp_path):
    draw(document, tmp_path / "chart.png")
    data = (tmp_path / "chart.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(data) > 10_000


def test_a_step_of_growth_is_the_median_of_its_points():
    def point(value, seconds, jvm):
        return {
            "value": value, "messages": 1000, "bytes": 2 << 20, "batches": 2, "tasks": 4, "seconds": seconds,
            "raw_per_s": 1000, "cpu": {"jvm": jvm}, "peaks": {"jvm": 3 << 20},
        }  # fmt: skip

    points = [point("a", 2, 0.001), point("a", 1, 0.004), point("a", 4, 0.002), point("b", 10, 0.003)]
    soak = {
        "minutes": 30, "per_second": 5000, "messages": 9_000_000, "most_waiting": 1234, "busy_percent": {"runner": 5.5},
        "peaks_mb": {"runner": 99.0}, "mb_per_hour": {"runner": {"slope": 1.5, "error": 0.5, "flat": False}},
        "storage_mb": {"before": 20.4, "most": 130.2, "after": 90.1},
    }  # fmt: skip
    lines = growth_as_text({"growth": {"size": points}, "amqp.soak": soak}).splitlines()
    first = next(line for line in lines if line.startswith("a "))
    assert first.split() == ["a", "500", "1.0", "0.50", "2", "4", "0.0", "2.0", "0.0", "0.0", "0", "3", "0", "0"]
    assert sum(line.startswith(("a ", "b ")) for line in lines) == 2
    assert "+1.50 MB/h +- 0.50  grows, at most 99 MB, 5.5 % of a core" in lines[-2]
    assert lines[-1].split(":")[1] == " 20 MB before, at most 130, 90 after"
    assert lines[-3].startswith("soak over AMQP: 30 minutes")


def test_a_bound_is_met_at_the_bound():
    least, most = Target("a", "a", 0.8), Target("b", "b", 20, most=True)
    assert [least.met(value) for value in (0.79, 0.8, 0.9)] == [False, True, True]
    assert [most.met(value) for value in (19, 20, 21)] == [True, True, False]


def test_what_was_not_measured_is_not_judged():
    verdicts = judged({"read.ratio_to_raw": 0.7, "import.ms": 3, "other": 1, "warm_up_seconds": 90})
    assert [(target.key, value, met) for target, value, met in verdicts] == [
        ("read.ratio_to_raw", 0.7, False),
        ("import.ms", 3, True),
    ]


def test_a_cold_jvm_is_not_judged_by_what_a_warm_one_shows():
    found = {"read.ratio_to_raw": 0.7, "write.ratio_to_raw": 0.5}
    keys = [[target.key for target, _, _ in judged(found | {"warm_up_seconds": warm})] for warm in (0, 90)]
    assert keys == [["read.ratio_to_raw"], [*found]]


def test_a_figure_has_one_target():
    keys = [target.key for target in TARGETS]
    assert len(keys) == len(set(keys))
