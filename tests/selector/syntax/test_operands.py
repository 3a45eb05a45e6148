import pytest
from selector_schema import integer, parse, require_strict_refusal

from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.tree import Arithmetic, Compare, Negative, Property

A, B = Property("a"), Property("b")


TREES = [
    ("a - 1 + b > 2", Compare(">", Arithmetic(("-", "+"), (A, integer(1), B)), integer(2))),
    ("a + b * 2 < 1", Compare("<", Arithmetic(("+",), (A, Arithmetic(("*",), (B, integer(2))))), integer(1))),
    ("a = -5", Compare("=", A, integer(-5))),
    ("a = - -5", Compare("=", A, Negative(integer(-5)))),
    ("a = -(5)", Compare("=", A, Negative(integer(5)))),
    ("a = -9223372036854775808", Compare("=", A, integer(-(1 << 63), Kind.LONG))),
    ("a = -2147483648", Compare("=", A, integer(-(1 << 31)))),
    ("a = -2147483648L", Compare("=", A, integer(-(1 << 31), Kind.LONG))),
]


@pytest.mark.parametrize(("text", "tree"), TREES)
def test_trees(text, tree):
    assert parse(text).root == tree
    assert parse(text, strict=True).root == tree


STRICT = [
    ("JMSDestination = 'x'", 1, "JMSDestination"),
    ("JMSReplyTo IS NULL", 1, "JMSReplyTo"),
    ('color = "red"', 9, '"red"'),
    ("a % 2 = 1", 3, "%"),
    ("a + 'x' = 'y'", 5, "string"),
]


@pytest.mark.parametrize(("text", "position", "fact"), STRICT)
def test_strict_refuses_what_the_specification_does_not_allow(text, position, fact):
    require_strict_refusal(text, position, fact)
