import json
from pathlib import Path

import pytest

from jms_selector.conformance import verdicts

DATA = Path(__file__).parents[1] / "data"
CASES = DATA / "selector_cases.jsonl"


@pytest.mark.parametrize("dialect", [None, "spec", "lenient", "artemis", "classic", "ibm"])
def test_every_case_passes(dialect):
    report = verdicts.run(CASES, dialect)
    assert report.failures == ()
    assert report.passed == {None: 868, "spec": 600, "lenient": 600, "artemis": 653, "classic": 631, "ibm": 6}[dialect]


def test_every_measured_case_passes():
    report = verdicts.run(DATA / "measured_cases.jsonl")
    assert (report.failures, report.passed) == ((), 43)


def write(path, *cases):
    path.write_text("\n".join(map(json.dumps, cases)) + "\n\n")
    return path


ROW = {
    "selector": "a = 1",
    "message": {"headers": {}, "properties": {"a": {"type": "int", "value": 1}}},
    "expect": True,
    "spec_or_broker": "spec",
}


@pytest.mark.parametrize("verdict", [True, False, None, "error", "exception"])
def test_only_the_right_verdict_passes(tmp_path, verdict):
    report = verdicts.run(write(tmp_path / "cases", ROW | {"expect": verdict}))
    assert (report.passed, len(report.failures)) == ((1, 0) if verdict is True else (0, 1))


def test_a_case_is_checked_once_for_each_of_its_dialects(tmp_path):
    path = write(tmp_path / "cases", ROW | {"artemis": True, "classic": False, "lenient": True, "qpid_j": "error"})
    report = verdicts.run(path)
    assert report.passed == 3
    assert [(failure.dialect, failure.expected, failure.found) for failure in report.failures] == [
        ("classic", False, True)
    ]
    assert str(report).endswith("3 passed, 1 failed")
    assert "line 1 [classic] a = 1: expected false, got true" in str(report)


def test_one_dialect_checks_its_own_and_shared_results(tmp_path):
    path = write(tmp_path / "cases", ROW, ROW | {"artemis": "error"}, ROW | {"spec_or_broker": "ibm"})
    assert [verdicts.run(path, d).passed for d in ("spec", "artemis", "classic", "ibm")] == [2, 1, 2, 1]


def test_unknown_equals_false_in_a_live_case(tmp_path):
    row = ROW | {"selector": "b = 1", "expect": False, "spec_or_broker": "classic"}
    assert verdicts.run(write(tmp_path / "run", row)).passed == 0
    assert verdicts.run(write(tmp_path / "live", row | {"source": "live broker"})).passed == 1


def test_numbers_that_json_cannot_represent():
    stated = {"f": {"type": "float", "value": "NaN"}, "d": {"type": "double", "value": "-0.0"}}
    found = verdicts.parse_message({"properties": stated}).properties
    assert found["f"].value != found["f"].value
    assert str(found["d"].value) == "-0.0"
