"""Results into a page, between its marks."""

import json
import shutil
from pathlib import Path

import pytest

from bench.publish import as_expected, between_marks, publish, publish_growth

ROOT = Path(__file__).parents[2]
PAGE = "before\n<!-- results: begin (from a file) -->\n\nold\nolder\n\n<!-- results: end -->\nafter\n"


def test_what_stood_there_is_replaced_and_the_rest_stays():
    page = between_marks(PAGE, "results", r"new \1 line")
    assert page == "before\n<!-- results: begin (from a file) -->\n\nnew \\1 line\n\n<!-- results: end -->\nafter\n"
    assert between_marks(page, "results", "again") == PAGE.replace("old\nolder", "again")


def test_a_page_without_the_marks_is_an_error():
    with pytest.raises(ValueError, match="no marks named growth"):
        between_marks(PAGE, "growth", "new")


PAGES = ("README.md", "docs/performance.md", "docs/notebook/benchmark.md")


def test_the_pages_have_the_figures_of_the_json_files(tmp_path):
    (tmp_path / "docs/notebook").mkdir(parents=True)
    for page in PAGES:
        shutil.copy(ROOT / page, tmp_path / page)
    publish(json.loads((ROOT / "bench/latest.json").read_text()), tmp_path)
    publish_growth(json.loads((ROOT / "bench/growth.json").read_text()), tmp_path)
    changed = [page for page in PAGES if (tmp_path / page).read_text() != (ROOT / page).read_text()]
    assert changed == [], "python -m bench.publish writes them"


def test_a_figure_that_was_not_measured_has_no_line():
    case = {"messages_per_s": {"median": 12_345.6}, "ratio_to_raw": {"median": 0.5}}
    case["cpu_us_per_message"] = {role: {"median": 2.0} for role in ("broker", "jvm", "runner")}
    document = {"cases": {"read.jms": case}, "axes": {"journal": {"cases": {"read.jms": case}}}}
    table = as_expected(document)
    assert table.splitlines()[2:] == ["| read over STOMP | 12,300 | 0.50 | 2 | 4 |"]
    shown = as_expected(document | {"idle": {"percent": 1.23}, "latency": {"p50_ms": 90.4, "p99_ms": 150}})
    latency, idle = shown.splitlines()[-2:]
    assert latency.endswith("median: 90 ms over STOMP (99 %: 150 ms).")
    assert idle == "- **An idle query** and its broker: 1.2 % of a core."
