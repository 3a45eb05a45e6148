import json
from pathlib import Path

import pytest

from jms_selector.conformance import pushed_texts
from jms_selector.syntax.dialects import ARTEMIS, CLASSIC

CASES = Path(__file__).parents[1] / "data" / "selector_pushdown_cases.jsonl"


def test_every_case_passes():
    report = pushed_texts.run(CASES)
    assert report.failures == ()
    assert report.passed == 42


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("a = 1", "(a = 1)", True),
        ("u IS NOT NULL", "NOT (u IS NULL)", True),
        ("a > 1 AND a < 9", "a < 9 AND a > 1", True),
        ("a = 5", "5 = a", False),
        ("a <> 'x'", "NOT (a IN ('x'))", False),
        ("a = 1", "a = 1 OR b = 1", False),
        ("a LIKE 'x'", "a = 'x'", True),
        ("a > 5", "a > 5 OR a > 5.0", True),
        ("a > 5", "a >= 6", False),
    ],
)
def test_texts_that_deliver_the_same_messages_agree(text, other, same):
    assert pushed_texts.deliver_the_same_messages(text, other, ARTEMIS) is same
    assert pushed_texts.deliver_the_same_messages(other, text, ARTEMIS) is same


def test_classic_always_converts():
    assert not pushed_texts.deliver_the_same_messages("a > 5", "a > 5 OR a > 5.0", CLASSIC)


@pytest.mark.parametrize(
    ("change", "passed"),
    [
        ({}, True),
        ({"artemis_stomp": "a = 2"}, False),
        ({"artemis_stomp": None}, False),
        ({"selector": "a ="}, False),
        ({"selector": "a / 2 = 1", "artemis_stomp": None, "push": "none"}, True),
        ({"selector": "a / 2 = 1", "artemis_stomp": "a = 2"}, False),
    ],
)
def test_only_the_right_text_passes(tmp_path, change, passed):
    path = tmp_path / "cases"
    path.write_text(json.dumps({"selector": "a = 1", "artemis_stomp": "a = 1", "push": "full"} | change))
    report = pushed_texts.run(path)
    assert (report.passed, len(report.failures)) == ((1, 0) if passed else (0, 1))
