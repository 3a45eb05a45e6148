import pytest

from jms_selector.pushdown.rewrite import NotPushableError
from jms_selector.pushdown.textual import textual
from jms_selector.syntax.dialects import ARTEMIS
from jms_selector.syntax.parse import parse
from jms_selector.targets.text import render

FORMS = [  # predicate on texts, condition for the broker, trust (1: weaker, 2: the same where TRUE)
    ("x = 'red'", "x = 'red'", 2),
    ("x = '5'", "x = '5' OR x = 5", 1),
    ("x = '5.0'", "x = '5.0' OR x = 5.0", 1),
    ("x = 'true'", "x = 'true' OR x = TRUE", 1),
    ("x = 'NaN'", "x = 'NaN' OR x > 1.7976931348623157E308", 1),
    ("x <> 'red'", "x <> 'red'", 2),
    ("x <> '5'", "x <> '5'", 1),
    ("NOT (x = 'red')", "x <> 'red'", 2),
    ("x IN ('5', 'red')", "x = '5' OR x = 5 OR x = 'red'", 1),
    ("x NOT IN ('a', 'b')", "x <> 'a' AND x <> 'b'", 1),
    ("NOT (x IN ('a'))", "x <> 'a'", 1),
    ("x LIKE 'com.%'", "x LIKE 'com.%'", 2),
    ("x LIKE '12%'", "x LIKE '12%' OR x >= 0 OR x < 0", 1),
    ("x LIKE 't%'", "x LIKE 't%' OR x >= 0 OR x < 0 OR x = TRUE", 1),
    ("x NOT LIKE '12%'", "x NOT LIKE '12%'", 1),
    ("x > 5", "x > 5 OR x > 5.0", 1),
    ("NOT (x > 5.5)", "x <= 5.5", 1),
    ("x BETWEEN 1 AND 2", "(x >= 1 OR x >= 1.0) AND (x <= 2 OR x <= 2.0)", 1),
    ("x IS NULL", "x IS NULL", 3),
    ("JMSPriority > 5", "JMSPriority > 5", 3),
]


@pytest.mark.parametrize(("text", "form", "trust"), FORMS)
def test_rewritten_conditions(text, form, trust):
    node, trusted = textual(parse(text).root, ARTEMIS, convert=True)
    assert (render(node), trusted) == (form, trust)


@pytest.mark.parametrize("text", ["x IS NOT NULL", "x = y", "x", "NOT (x IS NULL)"])
def test_conditions_that_cannot_be_pushed(text):
    with pytest.raises(NotPushableError):
        textual(parse(text).root, ARTEMIS, convert=True)
