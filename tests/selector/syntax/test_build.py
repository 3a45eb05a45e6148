import pytest
import selector_strategies
from selector_schema import integer, parse

from jms_selector.errors import InvalidSelectorError, SelectorTooLargeError
from jms_selector.meaning.evaluate import Message, evaluate
from jms_selector.syntax.build import MAX_NESTING
from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.tree import And, Arithmetic, Compare, Like, Literal, Negative, Not, Or, Property


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(f"a{n} = {n}" for n in range(3000)),
        " + ".join(f"a{n}" for n in range(3000)) + " > 0",
        "a = 1" + " = TRUE" * 3000,
    ],
    ids=["or", "sum", "chain"],
)
def test_long_selectors(text):
    selector = parse(text)
    assert evaluate(selector, Message.of(a0=1, a=1)) in {True, False, None}
    assert selector.root == parse(text + " ").root


def _nestings():
    """Every shape in the dialect of the specification, and parentheses in each dialect; the others are deep."""
    for dialect in ("spec", "artemis", "classic"):
        for shape in selector_strategies.NESTED:
            ordinary = dialect == "spec" or shape == "parentheses"
            yield pytest.param(dialect, shape, marks=() if ordinary else pytest.mark.deep)


@pytest.mark.parametrize(("dialect", "shape"), [*_nestings()])
def test_nesting_is_limited(dialect, shape):
    nested = selector_strategies.NESTED[shape]
    selector = parse(nested(MAX_NESTING), dialect=dialect)
    assert evaluate(selector, Message.of(a=1), dialect) in {True, False, None}
    for depth in (MAX_NESTING + 1, 3000):
        refused(nested(depth), dialect)


@pytest.mark.deep
@pytest.mark.parametrize("shape", selector_strategies.NESTED)
def test_far_more_nesting_does_not_end_the_process(shape):
    refused(selector_strategies.NESTED[shape](20_000), "spec")


def refused(text, dialect):
    with pytest.raises(SelectorTooLargeError, match=rf"\[JMS_SELECTOR_TOO_LARGE\].* {MAX_NESTING} ") as caught:
        parse(text, dialect=dialect)
    assert 0 < caught.value.position <= len(text)


A, B = Property("a"), Property("b")

TREES = [
    ("a = 1", Compare("=", A, integer(1))),
    ("NOT a = 1", Not(Compare("=", A, integer(1)))),
    ("a AND b OR NOT a", Or((And((A, B)), Not(A)))),
    ("a AND b AND a", And((A, B, A))),
    ("a NoT lIkE 'x' eScApE '!'", Like(A, "x", "!", negated=True)),
    ("(((a)))", A),
    ("i=0xAOR TRUE", Or((Compare("=", Property("i"), integer(10)), Literal(True, Kind.BOOLEAN)))),
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
    ("(a) IS NULL", 1, "IS NULL"),
    ("1 IS NULL", 1, "IS NULL"),
    ("a = 5 = TRUE", 1, "condition"),
    ("1 = 'x'", 5, "string"),
    ("1.0 <> FALSE", 8, "boolean"),
    ("JMSMessageID BETWEEN 1 AND 10", 1, "JMSMessageID"),
    ("JMSDestination = 'x'", 1, "JMSDestination"),
    ("JMSReplyTo IS NULL", 1, "JMSReplyTo"),
    ('color = "red"', 9, '"red"'),
    ("a % 2 = 1", 3, "%"),
    ("a + 'x' = 'y'", 5, "string"),
]


@pytest.mark.parametrize(("text", "position", "fact"), STRICT)
def test_strict_refuses_what_the_specification_does_not_allow(text, position, fact):
    parse(text)
    with pytest.raises(InvalidSelectorError, match=rf"\[JMS_INVALID_SELECTOR\].*{fact}") as caught:
        parse(text, strict=True)
    assert caught.value.position + 1 == position


# --- the grammars ---


def test_not_binds_tighter_in_activemq():
    assert parse("NOT a = 1", dialect="artemis").root == Compare("=", Not(Property("a")), Literal(1, Kind.INT))
    with pytest.raises(InvalidSelectorError):
        parse("NOT a > 1", dialect="classic")


def test_names_have_hyphens_only_after_the_prefix():
    assert parse("hyphenated_props:a-5 = 0", dialect="artemis").root == Compare(
        "=", Property("a-5"), Literal(0, Kind.INT)
    )
    assert isinstance(parse("a-5 = 0", dialect="artemis").root.left, Arithmetic)


def test_two_minuses_are_a_comment_only_in_activemq():
    text = "a = 8 --3\n"
    assert evaluate(parse(text), Message.of(a=11)) is True
    assert evaluate(parse(text, dialect="artemis"), Message.of(a=8), "artemis") is True


def test_a_position_after_a_prefix_is_one_in_the_text():
    with pytest.raises(InvalidSelectorError) as caught:
        parse("hyphenated_props:a-b = =", dialect="artemis")
    assert caught.value.position == len("hyphenated_props:a-b = ")
