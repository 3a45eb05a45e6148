from functools import reduce

import pytest
import selector_strategies
from hypothesis import given
from hypothesis import strategies as st

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.syntax.dialects import DIALECTS
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import Literal, Negative, Node, Not, fold
from jms_selector.targets.text import render, translate

SPELLED = [  # selector, spec, artemis, classic; None: no form there
    ("not a=1", "NOT (a = 1)", "NOT (a = 1)", "NOT (a = 1)"),
    ("NOT b", "NOT b", "NOT b", "NOT b"),
    ("(a = 1 OR b) AND c", "(a = 1 OR b) AND c", "(a = 1 OR b) AND c", "(a = 1 OR b) AND c"),
    ("a = 0x10 OR a = 010L", "a = 16 OR a = 8L", "a = 16 OR a = 8", "a = 16 OR a = 8"),
    ("a = 5f", "a = 5.0f", "a = 5.0", "a = 5.0"),
    ("a = 1e10", "a = 1.0E10", "a = 1.0E10", "a = 1.0E10"),
    ("a = 'it''s'", "a = 'it''s'", "a = 'it''s'", "a = 'it''s'"),
    ("a - (b - c) < -(-1)", "a - (b - c) < -(-1)", "a - (b - c) < -(-1)", "a - (b - c) < -(-1)"),
    ("JMSPriority > 4", "JMSPriority > 4", "AMQPriority > 4", "JMSPriority > 4"),
    ("-JMSPriority LIKE 'x'", "-JMSPriority LIKE 'x'", "-AMQPriority LIKE 'x'", "-JMSPriority LIKE 'x'"),
    ("JMSXGroupID = 'g'", "JMSXGroupID = 'g'", "AMQGroupID = 'g'", "JMSXGroupID = 'g'"),
    ("JMSDeliveryMode IN ('PERSISTENT')",) * 2 + ("AMQDurable IN ('DURABLE')", "JMSDeliveryMode IN ('PERSISTENT')"),
    ("x = 'PERSISTENT'", "x = 'PERSISTENT'", "x = 'PERSISTENT'", "x = 'PERSISTENT'"),
    ("JMSDeliveryMode = 'DURABLE'", "JMSDeliveryMode = 'DURABLE'", None, "JMSDeliveryMode = 'DURABLE'"),
    ("JMSRedelivered = TRUE", "JMSRedelivered = TRUE", None, "JMSRedelivered = TRUE"),
    ("été = 1", "été = 1", '"été" = 1', None),
    ('"a-b" = 1 AND "and"', '"a-b" = 1 AND "and"', '"a-b" = 1 AND "and"', None),
    ("xpath = 1", "xpath = 1", '"xpath" = 1', None),
    ("s LIKE 'a!b_' ESCAPE '!'", "s LIKE 'a!b_' ESCAPE '!'", "s LIKE 'a!b_'", "s LIKE 'a!b_'"),
    ("s LIKE 'a€_' ESCAPE '€'", "s LIKE 'a€_' ESCAPE '€'", "s LIKE 'a\\_' ESCAPE '\\'", "s LIKE 'a\\_' ESCAPE '\\'"),
]


@pytest.mark.parametrize(("text", "spec", "artemis", "classic"), SPELLED)
def test_texts(text, spec, artemis, classic):
    for dialect, expected in (("spec", spec), ("artemis", artemis), ("classic", classic)):
        if expected is None:
            with pytest.raises(UnsupportedSelectorError):
                render(parse(text), dialect)
        else:
            assert render(parse(text), dialect) == expected


@given(selector_strategies.selectors())
def test_the_specification_reads_the_same_tree_back(text):
    root = parse(text).root
    assert parse(render(root)).root == root


@given(selector_strategies.selectors(), st.sampled_from(["artemis", "classic"]))
def test_a_broker_reads_the_tree_that_was_written_for_it(text, dialect):
    root = parse(text).root
    try:
        spelled = render(root, dialect)
    except UnsupportedSelectorError:
        return
    read = parse(spelled, dialect=dialect).root
    assert _folded(read) == _folded(translate(root, DIALECTS[dialect]))


def _folded(root):
    """ActiveMQ negates a literal where Java has a negative one, and knows no suffixes."""

    def visit(node: Node, children: list[Node]) -> Node:
        if isinstance(node, Literal) and isinstance(node.value, int | float):
            return Literal(node.value, "float" if isinstance(node.value, float) else "int")
        if isinstance(node, Negative) and isinstance(children[0], Literal):
            return Literal(-children[0].value, children[0].kind)
        return _with(node, children)

    return fold(root, visit)


def _with(node, children):
    from jms_selector.syntax.tree import Compare, In, Like

    match node:
        case Compare(operator):
            return Compare(operator, *children)
        case In(values=values, negated=negated):
            return In(children[0], values, negated)
        case Like(pattern=pattern, escape=escape, negated=negated):
            return Like(children[0], pattern, escape, negated)
    return node.with_children(children)


def test_the_prefix_of_a_converting_selector():
    selector = parse("convert_string_expressions:a = 1", dialect="artemis")
    assert render(selector, "artemis") == "convert_string_expressions:a = 1"
    assert render(selector) == "a = 1"
    assert render(parse(" ")) == ""


@pytest.mark.parametrize("text", ["NOT (" * 128 + "a = 1" + ")" * 128, " OR ".join(f"a{n} = 1" for n in range(3000))])
def test_long_and_deep(text):
    assert parse(render(parse(text))).root == parse(text).root


def test_a_tree_of_any_depth_is_rendered():
    """``parse`` has a limit, trees built by a program have none."""
    root = reduce(lambda node, _: Not(node), range(5000), parse("a = 1").root)
    assert render(root) == "NOT (" * 5000 + "a = 1" + ")" * 5000
