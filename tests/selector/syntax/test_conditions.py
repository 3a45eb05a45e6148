import pytest
from selector_schema import integer, parse, require_strict_refusal

from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.tree import And, Compare, Like, Literal, Not, Or, Property

A, B = Property("a"), Property("b")


TREES = [
    ("a = 1", Compare("=", A, integer(1))),
    ("NOT a = 1", Not(Compare("=", A, integer(1)))),
    ("a AND b OR NOT a", Or((And((A, B)), Not(A)))),
    ("a AND b AND a", And((A, B, A))),
    ("a NoT lIkE 'x' eScApE '!'", Like(A, "x", "!", negated=True)),
    ("(((a)))", A),
    ("i=0xAOR TRUE", Or((Compare("=", Property("i"), integer(10)), Literal(True, Kind.BOOLEAN)))),
]


@pytest.mark.parametrize(("text", "tree"), TREES)
def test_trees(text, tree):
    assert parse(text).root == tree
    assert parse(text, strict=True).root == tree


STRICT = [
    ("(a) IS NULL", 1, "IS NULL"),
    ("1 IS NULL", 1, "IS NULL"),
    ("a = 5 = TRUE", 1, "condition"),
    ("1 = 'x'", 5, "string"),
    ("1.0 <> FALSE", 8, "boolean"),
    ("JMSMessageID BETWEEN 1 AND 10", 1, "JMSMessageID"),
]


@pytest.mark.parametrize(("text", "position", "fact"), STRICT)
def test_strict_refuses_what_the_specification_does_not_allow(text, position, fact):
    require_strict_refusal(text, position, fact)
