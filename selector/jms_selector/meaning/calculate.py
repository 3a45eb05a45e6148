"""Java's arithmetic and order on values of one kind. Independent of dialects."""

import math
import operator as operators
from typing import Any

from jms_selector.syntax.kinds import BITS, INTEGRAL, Kind, to_float

__all__ = ["calculate", "compare", "to_kind", "utf16", "wrap"]


def calculate(operator: str, left: float, right: float, kind: Kind) -> float | None:
    """Calculate at ``kind`` as Java does (JLS §15.17, §15.18); None for an integer division by zero."""
    if kind in INTEGRAL:
        return _integer(operator, int(left), int(right), kind)
    result = _floating(operator, float(left), float(right))
    return to_float(result) if kind is Kind.FLOAT else result


_ARITHMETIC = {"+": operators.add, "-": operators.sub, "*": operators.mul}


def _integer(operator: str, left: int, right: int, kind: Kind) -> int | None:
    if operator in _ARITHMETIC:
        return wrap(_ARITHMETIC[operator](left, right), kind)
    if right == 0:
        return None
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return wrap(quotient if operator == "/" else left - quotient * right, kind)


def _floating(operator: str, left: float, right: float) -> float:
    if operator in _ARITHMETIC:
        return float(_ARITHMETIC[operator](left, right))
    if operator == "/":
        return _quotient(left, right)
    if math.isinf(left) or right == 0 or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def _quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def compare(operator: str, left: object, right: object, kind: Kind, *, total_order: bool) -> bool:
    """Compare two values of one kind. ``total_order`` is the order of ``compareTo``: NaN equals NaN, and -0.0 < 0.0."""
    a, b = left, right
    if kind is Kind.STRING and operator not in {"=", "<>"}:
        a, b = utf16(a), utf16(b)
    elif kind in {Kind.FLOAT, Kind.DOUBLE} and total_order:
        a, b = _total_order_key(a), _total_order_key(b)
    return bool(_COMPARE[operator](a, b))


_COMPARE: dict[str, Any] = {
    "=": operators.eq,
    "<>": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


def utf16(text: object) -> bytes:
    """The sort key of ``String.compareTo``: UTF-16 units. Characters beyond U+FFFF sort before U+E000."""
    return str(text).encode("utf-16-be", "surrogatepass")


def _total_order_key(number: object) -> tuple[int, float, float]:
    """The sort key of ``Double.compareTo``: -0.0 < 0.0, and NaN above all other numbers."""
    assert isinstance(number, float)
    if math.isnan(number):
        return (1, 0.0, 0.0)
    return (0, number, math.copysign(1, number))


# --- numbers of a kind ----------------------------------------------------------------------------


def wrap(number: int, kind: Kind) -> int:
    """Wrap a number to the range of ``kind``, as Java's integer arithmetic does (JLS §15.17, §15.18)."""
    half = 1 << (BITS[kind] - 1)
    return (number + half) % (2 * half) - half


def to_kind(number: float, kind: Kind) -> float:
    """A numeric widening conversion (JLS §5.1.2)."""
    if kind is Kind.DOUBLE:
        return float(number)
    return to_float(number) if kind is Kind.FLOAT else number
