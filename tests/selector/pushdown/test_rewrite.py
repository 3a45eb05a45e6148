import pytest

from jms_selector.pushdown.rewrite import (
    NotPushableError,
    Target,
    has_calculation,
    put_properties_left,
    rewrite_typed,
)
from jms_selector.syntax.dialects import ARTEMIS, CLASSIC
from jms_selector.syntax.kinds import NO_HEADERS
from jms_selector.syntax.parse import parse
from jms_selector.targets.text import render


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("5 = x", "x = 5"),
        ("5 < x", "x > 5"),
        ("5 >= x AND NOT ('a' <> y)", "x <= 5 AND NOT (y <> 'a')"),
        ("x + 1 > y", "y < x + 1"),
        ("x > y", "x > y"),
        ("5 > 4", "5 > 4"),
        ("5 NOT BETWEEN x AND 9", "x > 5 OR 5 > 9"),
        ("x BETWEEN 1 AND 2", "x BETWEEN 1 AND 2"),
    ],
)
def test_properties_move_to_the_left(text, rewritten):
    assert render(put_properties_left(parse(text).root)) == rewritten


@pytest.mark.parametrize(
    ("text", "trust"), [("a = 1", 3), ("a IS NULL", 3), ("a", 3), ("a = b", 2), ("NOT (a = b)", 2), ("1 = 1", 2)]
)
def test_trust(text, trust):
    assert rewrite_typed(parse(text).root, Target(ARTEMIS, NO_HEADERS, convert=False))[1] == trust


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("a / 2 = 1", ARTEMIS),
        ("a % 2 = 1", ARTEMIS),
        ("a + 1 = 1", CLASSIC),
        ("a BETWEEN b AND 5", CLASSIC),
        ("(a = 1) = TRUE", ARTEMIS),
        ("a + 1 IS NULL", ARTEMIS),
        ("1 = 7 / 2", ARTEMIS),
        ("a = 'x\0'", ARTEMIS),
    ],
)
def test_a_condition_that_cannot_be_pushed_has_a_reason(text, dialect):
    with pytest.raises(NotPushableError) as caught:
        rewrite_typed(parse(text).root, Target(dialect, NO_HEADERS, convert=False))
    assert caught.value.args[0].endswith(".")


def test_predicates_on_trees():
    assert has_calculation(parse("a + 1 = 2").root)
    assert not has_calculation(parse("a = 1 + 2").root)
