"""Plan -> Spark expressions: Java's arithmetic, order and LIKE, made of functions that never throw.

Spark's own operators coerce strings, throw on overflow and on division by zero, and treat NaN as equal to itself. The
expressions avoid these cases (measured on Spark 4.3 with ANSI mode on).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from jms_selector.meaning.conversions import JAVA_DOUBLE
from jms_selector.meaning.plan import (
    Calculation,
    Comparison,
    Constant,
    ConstantOutcome,
    Matching,
    Membership,
    Minus,
    NullTest,
    Operand,
    Plan,
    Truth,
    ValuePlan,
)
from jms_selector.meaning.rules import Outcome
from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.like import ANY, Token, to_regex

__all__ = ["Expressions"]

_TYPES = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "bigint",
    Kind.LONG: "bigint",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.STRING: "string",
}
_FLOATING = {Kind.FLOAT, Kind.DOUBLE}
_MINIMUM = -(1 << 63)

Read = Callable[[str, Kind], Any]


class Expressions:
    """Plans -> columns. Callers pass ``read``: name and kind -> column of the value."""

    def read(self, text: Any, kind: Kind) -> Any:
        """The value of a text that is known to have the form of ``kind``."""
        if kind is Kind.STRING:
            return text
        if kind is Kind.BOOLEAN:
            return text == "true"
        return text.try_cast(_TYPES.get(kind, "bigint"))

    def test(self, plan: Plan, read: Read, outcome: str) -> Any:
        """The rows in which the condition has the outcome; None if there are no such rows."""
        if isinstance(plan, ConstantOutcome):
            wanted = Outcome.TRUE if outcome == "true" else Outcome.FALSE
            return F.lit(True) if plan.outcome is wanted else None  # noqa: FBT003
        truth = self._truth(plan, read)
        return F.coalesce(truth if outcome == "true" else ~truth, F.lit(False))  # noqa: FBT003

    def _truth(self, plan: Plan, read: Read) -> Any:
        match plan:
            case Comparison():
                return self._comparison(plan, read)
            case Matching(operand, tokens, negated):
                found = _match_pattern(self.value(operand, read), tokens)
                return ~found if negated else found
            case Membership(operand, values, negated):
                found = self.value(operand, read).isin(list(values))
                return ~found if negated else found
            case NullTest(operand, negated):
                value = self.value(operand, read)
                return value.isNotNull() if negated else value.isNull()
            case Truth(operand):
                return self.value(operand, read)
        raise AssertionError(plan)

    def value(self, plan: ValuePlan, read: Read) -> Any:
        match plan:
            case Constant(kind, value):
                return F.lit(value).cast(_TYPES[kind])
            case Operand(name, kind):
                return read(name, kind)
            case Minus(kind, operand):
                return _negate(_cast(self.value(operand, read), kind), kind)
            case Calculation(operator, kind, left, right):
                a, b = (_cast(self.value(side, read), kind) for side in (left, right))
                return _floating(operator, a, b) if kind in _FLOATING else _integral(operator, a, b, kind)

    def _comparison(self, plan: Comparison, read: Read) -> Any:
        basis, operator = plan.basis, plan.operator
        left, right = self.value(plan.left, read), self.value(plan.right, read)
        if not basis.parse:
            return _compare(operator, left, right, plan)
        text = left if basis.parse == "left" else right
        number = _parse_text(text, basis.kind)
        pair = (number, right) if basis.parse == "left" else (left, number)
        unequal = F.lit(operator == "<>")
        return F.when(number.isNull(), unequal).otherwise(_compare(operator, *pair, plan))


# --- comparisons ------------------------------------------------------------------------------------

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _compare(operator: str, left: Any, right: Any, plan: Comparison) -> Any:
    kind = plan.basis.kind
    if kind is Kind.STRING and operator not in {"=", "<>"}:
        # Java orders by UTF-16 units, and so do the bytes of UTF-16BE.
        left, right = F.encode(left, "UTF-16BE"), F.encode(right, "UTF-16BE")
    if kind in _FLOATING:
        left, right = left.cast(_TYPES[kind]), right.cast(_TYPES[kind])
        return (
            _compare_in_total_order(operator, left, right, plan)
            if plan.total_order
            else _compare_as_ieee(operator, left, right, plan)
        )
    return _OPERATORS[operator](left, right)


def _compare_as_ieee(operator: str, left: Any, right: Any, plan: Comparison) -> Any:
    """Compare as IEEE 754, where NaN equals nothing. In Spark NaN equals NaN and is above all numbers."""
    found = _OPERATORS[operator](left, right)
    nan = _any_of(*(F.isnan(side) for side, given in ((left, plan.left), (right, plan.right)) if _may_be_nan(given)))
    if nan is None:
        return found
    return (found | nan) if operator == "<>" else (found & ~nan)


def _compare_in_total_order(operator: str, left: Any, right: Any, plan: Comparison) -> Any:
    """Compare as ``compareTo``, which is Spark's order except that -0.0 < 0.0."""
    found = _OPERATORS[operator](left, right)
    zero = [_literal_of(side) for side in (plan.left, plan.right)]
    if any(value is not None and value != 0 for value in zero):
        return found
    left_sign, right_sign = (F.when(side.cast("string") == "-0.0", 0).otherwise(1) for side in (left, right))
    return F.when((left == 0) & (right == 0), _OPERATORS[operator](left_sign, right_sign)).otherwise(found)


def _may_be_nan(plan: ValuePlan) -> bool:
    return not isinstance(plan, Constant) and getattr(plan, "kind", None) in _FLOATING


def _literal_of(plan: ValuePlan) -> Any:
    return plan.value if isinstance(plan, Constant) else None


def _any_of(*columns: Column) -> Any:
    if not columns:
        return None
    return columns[0] if len(columns) == 1 else columns[0] | columns[1]


def _parse_text(text: Any, kind: Kind) -> Any:
    """``valueOf`` of the Java class of ``kind``; null where it throws."""
    if kind is Kind.BOOLEAN:
        return F.lower(text) == "true"
    if kind in _FLOATING:
        trimmed = F.regexp_replace(text, r"\A[\x00-\x20]+|[\x00-\x20]+\z", "")
        return F.when(trimmed.rlike(rf"\A(?:{JAVA_DOUBLE})\z"), trimmed.try_cast(_TYPES[kind]))
    number = F.when(text.rlike(r"\A[+-]?[0-9]+\z"), text.try_cast("bigint"))
    bits = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INT: 32}.get(kind)
    if bits is None:
        return number
    return F.when(number.between(-(1 << (bits - 1)), (1 << (bits - 1)) - 1), number)


# --- arithmetic -------------------------------------------------------------------------------------


def _cast(value: Any, kind: Kind) -> Any:
    return value.cast(_TYPES[kind])


def _negate(value: Any, kind: Kind) -> Any:
    return F.lit(-1.0).cast(_TYPES[kind]) * value if kind in _FLOATING else _integral("-", F.lit(0), value, kind)


def _integral(operator: str, a: Any, b: Any, kind: Kind) -> Any:
    a, b = a.cast("bigint"), b.cast("bigint")
    match operator:
        case "+":
            result = _wrapped_sum(a, b)
        case "-":
            result = _wrapped_difference(a, b)
        case "*":
            result = _wrapped_product(a, b)
        case "/":
            result = F.when(b == -1, _wrapped_difference(F.lit(0).cast("bigint"), a)).when(b != 0, _quotient(a, b))
        case _:
            result = F.when(b == -1, F.lit(0).cast("bigint")).when(b != 0, a - _quotient(a, b) * b)
    return F.shiftright(F.shiftleft(result, 32), 32) if kind is Kind.INT else result


def _quotient(a: Any, b: Any) -> Any:
    return F.call_function("div", a, b)


def _flip_sign_bit(value: Any) -> Any:
    """The value with the other sign bit, which adds or subtracts 2^63."""
    return value.bitwiseXOR(F.lit(_MINIMUM).cast("bigint"))


def _wrapped_sum(a: Any, b: Any) -> Any:
    """The sum, wrapped: if it overflows, the sum of both operands moved by 2^63 is the wrapped sum."""
    return F.coalesce(F.try_add(a, b), F.try_add(_flip_sign_bit(a), _flip_sign_bit(b)))


def _wrapped_difference(a: Any, b: Any) -> Any:
    return F.coalesce(F.try_subtract(a, b), F.try_subtract(_flip_sign_bit(a), _flip_sign_bit(b)))


def _wrapped_product(a: Any, b: Any) -> Any:
    """The product, wrapped: a sum over the 16-bit digits of ``b``. The shifts drop the bits that overflow."""
    low = F.lit(0xFFFF).cast("bigint")
    parts = []
    for shift in (0, 16, 32, 48):
        digit = F.shiftright(b, shift).bitwiseAND(low)
        # The product of a 64-bit a and a 16-bit digit may overflow too, so multiply the halves of a.
        small = a.bitwiseAND(F.lit(0xFFFFFFFF).cast("bigint")) * digit
        large = F.shiftleft(F.shiftright(a, 32) * digit, 32)
        parts.append(F.shiftleft(_wrapped_sum(small, large), shift))
    exact = _wrapped_sum(_wrapped_sum(parts[0], parts[1]), _wrapped_sum(parts[2], parts[3]))
    return F.coalesce(F.try_multiply(a, b), exact)


def _floating(operator: str, a: Any, b: Any) -> Any:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
    nan = F.lit(math.nan)
    if operator == "%":
        return F.when(b != 0, a % b).otherwise(nan)
    infinite = F.lit(math.inf) * F.signum(a) * F.when(b.cast("string") == "-0.0", -1.0).otherwise(1.0)
    by_zero = F.when((a == 0) | F.isnan(a), nan).otherwise(infinite)
    return F.when((b != 0) | F.isnan(b), a / F.when(b != 0, b)).when(b == 0, by_zero)


# --- texts ------------------------------------------------------------------------------------------


def _match_pattern(text: Any, tokens: tuple[Token, ...]) -> Any:
    """LIKE by equality, prefix or suffix where the pattern allows, else by a Java regular expression."""
    match tokens:
        case ():
            return text == ""
        case (str(whole),):
            return text == whole
        case (str(start), last) if last is ANY:
            return F.startswith(text, F.lit(start))
        case (first, str(end)) if first is ANY:
            return F.endswith(text, F.lit(end))
    return text.rlike(rf"(?s)\A(?:{to_regex(tokens)})\z")
