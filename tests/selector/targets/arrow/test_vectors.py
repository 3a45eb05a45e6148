import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jms_selector.meaning.calculate import calculate, compare
from jms_selector.meaning.plan import Calculation, Comparison, Constant, Matching, Membership, NullTest, Operand
from jms_selector.meaning.rules import Basis
from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.like import compile_like, matcher
from jms_selector.targets.arrow.vectors import evaluate_plan as masks

LONGS = [0, 1, -1, 2, -7, 2147483647, -2147483648, (1 << 63) - 1, -(1 << 63), 5]
INTS = [n for n in LONGS if -(1 << 31) <= n < 1 << 31]
FLOATS = [0.0, -0.0, 1.0, -1.5, float("nan"), float("inf"), 1e300, 0.1]
TEXTS = ["", "a", "b", "ab", "a\nb", "😀", "\ue000", "5", "é", None]
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


def pairs(values):
    return [a for a in values for _ in values], [b for _ in values for b in values]


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
@pytest.mark.parametrize(("kind", "values"), [(Kind.INT, INTS), (Kind.LONG, LONGS), (Kind.DOUBLE, FLOATS)])
def test_calculations_are_those_of_the_row_evaluator(operator, kind, values):
    lefts, rights = pairs(values)
    stored = Kind.DOUBLE if kind is Kind.DOUBLE else Kind.LONG
    data = {("a", stored): np.array(lefts), ("b", stored): np.array(rights)}
    result = Calculation(operator, kind, Operand("a", stored), Operand("b", stored))
    for place, (left, right) in enumerate(zip(lefts, rights, strict=True)):
        expected = calculate(operator, left, right, kind)
        plan = NullTest(result, negated=False)
        if expected is not None:
            plan = Comparison("=", Basis(stored), True, result, Constant(stored, expected))
        assert masks(plan, data, len(lefts))[0][place], (left, operator, right)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("total_order", [True, False])
def test_floats_compare_as_in_the_row_evaluator(operator, total_order):
    lefts, rights = pairs(FLOATS)
    data = {("a", Kind.DOUBLE): np.array(lefts), ("b", Kind.DOUBLE): np.array(rights)}
    plan = Comparison(operator, Basis(Kind.DOUBLE), total_order, Operand("a", Kind.DOUBLE), Operand("b", Kind.DOUBLE))
    expected = [
        compare(operator, a, b, Kind.DOUBLE, total_order=total_order) for a, b in zip(lefts, rights, strict=True)
    ]
    assert masks(plan, data, len(lefts))[0].tolist() == expected


@pytest.mark.parametrize("operator", OPERATORS)
def test_texts_compare_by_utf_16(operator):
    texts = [text for text in TEXTS if text is not None]
    lefts, rights = pairs(texts)
    data = {("a", Kind.STRING): pa.array(lefts), ("b", Kind.STRING): pa.array(rights)}
    plan = Comparison(operator, Basis(Kind.STRING), True, Operand("a", Kind.STRING), Operand("b", Kind.STRING))
    expected = [compare(operator, a, b, Kind.STRING, total_order=True) for a, b in zip(lefts, rights, strict=True)]
    assert masks(plan, data, len(lefts))[0].tolist() == expected


@given(st.text(alphabet="ab%_\n😀.", max_size=6))
def test_like_is_that_of_the_row_evaluator(pattern):
    data = {("a", Kind.STRING): pa.array(TEXTS)}
    found = masks(Matching(Operand("a", Kind.STRING), compile_like(pattern), False), data, len(TEXTS))[0]
    expected = [text is not None and bool(matcher(pattern, None, False).fullmatch(text)) for text in TEXTS]
    assert found.tolist() == expected


def test_membership_and_text_read_as_a_number():
    data = {("a", Kind.STRING): pa.array(["5", "x", " 5.5 "])}
    assert masks(Membership(Operand("a", Kind.STRING), ("5", "z"), True), data, 3)[0].tolist() == [False, True, True]
    for operator, expected in ((">", [False, False, True]), ("<>", [False, True, True])):
        plan = Comparison(
            operator, Basis(Kind.DOUBLE, "left"), True, Operand("a", Kind.STRING), Constant(Kind.DOUBLE, 5.0)
        )
        assert masks(plan, data, 3)[0].tolist() == expected
