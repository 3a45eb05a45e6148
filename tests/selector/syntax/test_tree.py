import pickle
from functools import reduce

import pytest

from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import And, Compare, Literal, Not, Or, Property, flatten, fold, names, postorder, rebuild

ONE = Literal(1, Kind.INT)


def test_equal_trees_are_equal_values():
    texts = ["a = 1 AND NOT (b LIKE 'x%' OR c IN ('p', 'q'))", "a + 1 - b > -c", "a BETWEEN 1 AND 2"]
    for text in texts:
        root, same = parse(text).root, parse(text + " ").root
        assert root == same
        assert hash(root) == hash(same)
        assert root is not same
    assert len({parse(text).root for text in texts}) == len(texts)


@pytest.mark.parametrize(
    ("left", "right"),
    [("a = 1", "a = 1L"), ("a = 1", "a = 1.0"), ("a = 1", "b = 1"), ("NOT a", "a"), ("a IN ('x')", "a NOT IN ('x')")],
)
def test_different_trees_are_unequal(left, right):
    assert parse(left).root != parse(right).root


def test_the_representation_is_python():
    assert repr(Compare("=", Property("a"), ONE)) == "Compare('=', Property('a'), Literal(1, <Kind.INT: 'int'>))"


def test_a_tree_survives_pickling_and_flattening():
    selector = parse("a = 1 AND (b > 2.5 OR NOT c) AND d LIKE 'x!%' ESCAPE '!' AND e IN ('1', '2')")
    assert pickle.loads(pickle.dumps(selector)) == selector
    assert rebuild(flatten(selector.root)) == selector.root


def test_children_come_first():
    tree = And((Compare("=", Property("a"), ONE), Not(Property("b"))))
    assert [type(node).__name__ for node in postorder(tree)] == [
        "Property", "Literal", "Compare", "Property", "Not", "And"
    ]  # fmt: skip
    assert fold(tree, lambda node, results: 1 + sum(results)) == 6
    assert names(tree) == ("a", "b")


def nots():
    return reduce(lambda node, _: Not(node), range(5000), Property("a"))


def ands_and_ors():
    one, two = parse("a = 1").root, parse("b = 2").root
    return reduce(lambda node, _: And((one, Or((two, node)))), range(3000), Property("c"))


@pytest.mark.parametrize("build", [nots, ands_and_ors])
def test_deep_trees_do_not_overflow_the_stack(build):
    root = build()
    assert root == build()
    assert hash(root) == hash(build())
    assert repr(root).endswith(")" * 100)
    assert pickle.loads(pickle.dumps(root)) == root
