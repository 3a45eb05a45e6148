"""Spark's arithmetic, order and LIKE against the row evaluator's, value by value."""

import math

import pytest
from pyspark.sql import functions as F

from jms_selector.meaning.calculate import calculate, compare
from jms_selector.meaning.conversions import parse_java
from jms_selector.meaning.plan import Calculation, Comparison, Matching, NullTest, Operand
from jms_selector.meaning.rules import Basis
from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.like import compile_like, matcher
from jms_selector.targets.column.expressions import Expressions

pytestmark = pytest.mark.spark

LONGS = [0, 1, -1, 2, -7, 65537, 2147483647, -2147483648, (1 << 63) - 1, -(1 << 63), 6148914691236517205]
INTS = [n for n in LONGS if -(1 << 31) <= n < 1 << 31]
FLOATS = [0.0, -0.0, 1.0, -1.5, math.nan, math.inf, -math.inf, 1e300, 0.1]
TEXTS = ["", "a", "ab", "a\nb", "a\\b", "😀", "\ue000", "é", "a.b"]
NUMBERS = ["5", " 5 ", "5.5", "5d", "+5", "NaN", "-Infinity", "0x1p3", "x", "", "1e400", "99999999999999999999", "128"]
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


def read(name, _kind):
    return F.col(name)


def pairs(spark, values, kind):
    lefts = [a for a in values for _ in values]
    rights = [b for _ in values for b in values]
    return (
        lefts,
        rights,
        spark.createDataFrame(list(zip(lefts, rights, strict=True)), f"a {kind}, b {kind}").coalesce(1),
    )


def values_of(frame, columns):
    return [row.asDict() for row in frame.select(*(c.alias(n) for n, c in columns.items())).collect()]


@pytest.mark.parametrize(
    ("kind", "stored", "ddl", "values"),
    [
        (Kind.INT, Kind.LONG, "bigint", INTS),
        (Kind.LONG, Kind.LONG, "bigint", LONGS),
        (Kind.DOUBLE, Kind.DOUBLE, "double", FLOATS),
        (Kind.FLOAT, Kind.FLOAT, "float", [0.0, -0.0, 1.5, math.nan, math.inf, 3.0]),
    ],
)
def test_calculations(spark, kind, stored, ddl, values):
    lefts, rights, frame = pairs(spark, values, ddl)
    expressions = Expressions()
    columns = {
        operator: expressions.value(Calculation(operator, kind, Operand("a", stored), Operand("b", stored)), read)
        for operator in "+-*/%"
    }
    for left, right, found in zip(lefts, rights, values_of(frame, columns), strict=True):
        for operator, value in found.items():
            expected = calculate(operator, left, right, kind)
            assert _same(value, expected), (left, operator, right, value, expected)


def _same(found, expected):
    if expected is None or found is None:
        return found is expected
    if math.isnan(expected):
        return math.isnan(found)
    return found == expected and math.copysign(1, found) == math.copysign(1, expected)


@pytest.mark.parametrize("total_order", [True, False])
def test_orders_of_floats(spark, total_order):
    lefts, rights, frame = pairs(spark, FLOATS, "double")
    _check_orders(lefts, rights, frame, Kind.DOUBLE, total_order)


def test_orders_of_texts(spark):
    lefts, rights, frame = pairs(spark, TEXTS, "string")
    _check_orders(lefts, rights, frame, Kind.STRING, True)


def _check_orders(lefts, rights, frame, kind, total_order):
    operands = (Operand("a", kind), Operand("b", kind))
    plans = {operator: Comparison(operator, Basis(kind), total_order, *operands) for operator in OPERATORS}
    columns = {operator: Expressions().test(plan, read, "true") for operator, plan in plans.items()}
    for left, right, found in zip(lefts, rights, values_of(frame, columns), strict=True):
        for operator, value in found.items():
            assert value == compare(operator, left, right, kind, total_order=total_order), (left, operator, right)


def test_like(spark):
    patterns = ["", "a", "a%", "%b", "%", "_", "a_b", "%.%", "a\\%", "__", "%a%"]
    frame = spark.createDataFrame([(text,) for text in TEXTS], "a string").coalesce(1)
    columns = {
        pattern or "empty": Expressions().test(
            Matching(Operand("a", Kind.STRING), compile_like(pattern), False), read, "true"
        )
        for pattern in patterns
    }
    for text, found in zip(TEXTS, values_of(frame, columns), strict=True):
        expected = [matcher(pattern, None, False).fullmatch(text) is not None for pattern in patterns]
        assert list(found.values()) == expected, text


@pytest.mark.parametrize("kind", [Kind.BYTE, Kind.INT, Kind.LONG, Kind.DOUBLE])
def test_texts_read_as_numbers(spark, kind):
    """With conversion: unequal to everything where Java throws."""
    frame = spark.createDataFrame([(text,) for text in NUMBERS], "a string").coalesce(1)
    constant = 5.0 if kind is Kind.DOUBLE else 5
    operand = Operand("b", Kind.DOUBLE if kind is Kind.DOUBLE else Kind.LONG)
    frame = frame.withColumn("b", F.lit(constant))
    columns = {
        operator: Expressions().test(
            Comparison(operator, Basis(kind, "left"), True, Operand("a", Kind.STRING), operand), read, "true"
        )
        for operator in OPERATORS
    }
    for text, found in zip(NUMBERS, values_of(frame, columns), strict=True):
        number = parse_java(text, kind)
        for operator, value in found.items():
            expected = (
                operator == "<>" if number is None else compare(operator, number, constant, kind, total_order=True)
            )
            assert value == expected, (text, operator)


def test_a_division_by_zero_is_null(spark):
    frame = spark.createDataFrame([(5, 0), (5, 2)], "a bigint, b bigint").coalesce(1)
    division = Calculation("/", Kind.LONG, Operand("a", Kind.LONG), Operand("b", Kind.LONG))
    columns = {"null": Expressions().test(NullTest(division, False), read, "true")}
    assert [found["null"] for found in values_of(frame, columns)] == [True, False]
