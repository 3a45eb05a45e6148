import json

from jms_selector.conformance.cases import Failure, cases, report


def test_a_case_without_an_id_has_its_line_as_id(tmp_path):
    path = tmp_path / "cases"
    path.write_text(json.dumps({"id": "x1"}) + "\n\n" + json.dumps({"selector": "TRUE"}) + "\n")
    assert [case["id"] for case in cases(path)] == ["x1", "line 3"]


def test_the_report_lists_failures_and_counts():
    failure = Failure("x1", "spec", "a = 1", expected=None, found="error")
    found = report([None, failure, None])
    assert (found.passed, found.failures) == (2, (failure,))
    assert str(found) == 'x1 [spec] a = 1: expected null, got "error"\n2 passed, 1 failed'
