"""Evaluates a plan on arrays: Java's arithmetic, comparisons and LIKE. Numbers are numpy arrays, strings Arrow arrays.

A result is three masks: true, false and unknown. A fault is in none of the masks.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jms_selector.meaning.calculate import utf16
from jms_selector.meaning.conversions import parse_java
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
from jms_selector.syntax.kinds import NUMERIC, Kind
from jms_selector.syntax.like import ANY, to_regex

__all__ = ["data", "evaluate_plan", "take"]

Mask = NDArray[np.bool_]
Masks = tuple[Mask, Mask, Mask]
Vector = tuple[Any, Mask | None]
"""Data, and the mask of its nulls (after an integer division by zero), or None if there are no nulls."""

_NUMPY = {
    Kind.BYTE: np.int64,
    Kind.SHORT: np.int64,
    Kind.INT: np.int32,
    Kind.LONG: np.int64,
    Kind.FLOAT: np.float32,
    Kind.DOUBLE: np.float64,
}
"""Calculations with int wrap at 32 bits; byte and short are only compared."""


_STORED = {Kind.BOOLEAN: np.bool_, Kind.FLOAT: np.float32, Kind.DOUBLE: np.float64}


def data(distinct: pa.Array, kind: Kind, size: int) -> Any:
    """Distinct values as an array of this module, padded to ``size``."""
    if kind is Kind.STRING:
        return pa.concat_arrays([distinct.cast(pa.string()), pa.nulls(size - len(distinct), pa.string())])
    wanted: Any = _STORED.get(kind, np.int64)
    padded: Any = np.zeros(size, wanted)
    padded[: len(distinct)] = np.asarray(distinct).astype(wanted) if len(distinct) else 0
    return padded


def take(column: Any, codes: NDArray[np.intp]) -> Any:
    if column is None:
        return None
    return column.take(pa.array(codes)) if isinstance(column, pa.Array) else column[codes]


def evaluate_plan(plan: Plan, operands: Mapping[tuple[str, Kind], Any], size: int) -> Masks:
    """Masks of one condition, over arrays of ``size`` values."""
    calculator = _Calculator(operands)
    with np.errstate(all="ignore"):
        match plan:
            case ConstantOutcome(outcome):
                return tuple(  # type: ignore[return-value]
                    np.full(size, outcome is one) for one in (Outcome.TRUE, Outcome.FALSE, Outcome.UNKNOWN)
                )
            case Comparison():
                return _masks(*calculator.comparison(plan), size)
            case Matching(operand, tokens, negated):
                texts, _ = calculator.value(operand)
                return _masks(_match_pattern(texts, tokens) != negated, None, size)
            case Membership(operand, values, negated):
                texts, _ = calculator.value(operand)
                return _masks(_mask(_texts(texts), pc.is_in, pa.array(values, pa.string())) != negated, None, size)
            case NullTest(operand, negated):
                _, null = calculator.value(operand)
                found = np.zeros(size, bool) if null is None else null
                return _masks(found != negated, None, size)
            case Truth(operand):
                return _masks(*calculator.value(operand), size)
    raise AssertionError(plan)


def _masks(truth: Any, null: Mask | None, size: int) -> Masks:
    true: Mask = np.broadcast_to(np.asarray(truth, bool), (size,))
    if null is None:
        return true, ~true, np.zeros(size, bool)
    return true & ~null, ~true & ~null, np.broadcast_to(null, (size,))


class _Calculator:
    def __init__(self, operands: Mapping[tuple[str, Kind], Any]) -> None:
        self.operands = operands

    # A plan of a value is as deep as the parentheses of its arithmetic, which MAX_NESTING limits.
    def value(self, plan: ValuePlan) -> Vector:
        match plan:
            case Constant(kind, value):
                return (value if kind in {Kind.STRING, Kind.BOOLEAN} else _NUMPY[kind](value)), None
            case Operand(name, kind):
                return self.operands[name, kind], None
            case Minus(kind, operand):
                found, null = self.value(operand)
                return _widen_int(-_cast(found, kind), kind), null
            case Calculation(operator, kind, left, right):
                a, left_null = self.value(left)
                b, right_null = self.value(right)
                result, null = _calculate(operator, _cast(a, kind), _cast(b, kind), kind)
                return result, _union(_union(left_null, right_null), null)

    def comparison(self, plan: Comparison) -> tuple[Any, Mask | None]:
        (a, left_null), (b, right_null) = self.value(plan.left), self.value(plan.right)
        basis, operator = plan.basis, plan.operator
        unreadable: Mask | None = None
        if basis.parse == "left":
            a, unreadable = _parse_texts(a, basis.kind)
        elif basis.parse == "right":
            b, unreadable = _parse_texts(b, basis.kind)
        found = _compare(operator, a, b, basis.kind, total_order=plan.total_order)
        if unreadable is not None:
            found = np.where(unreadable, operator == "<>", found)
        return found, _union(left_null, right_null)


def _union(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left | right


# --- numbers --------------------------------------------------------------------------------------


def _cast(values: Any, kind: Kind) -> Any:
    """Cast to the kind of the operation; int is 32 bits, so calculations wrap."""
    return np.asarray(values).astype(_NUMPY[kind])


def _widen_int(values: Any, kind: Kind) -> Any:
    return values.astype(np.int64) if kind is Kind.INT else values


def _calculate(operator: str, a: Any, b: Any, kind: Kind) -> Vector:
    if kind in {Kind.FLOAT, Kind.DOUBLE}:
        return _FLOATING[operator](a, b), None
    if operator in {"/", "%"}:
        zero = b == 0
        b = np.where(zero, 1, b).astype(_NUMPY[kind])
        # numpy floors and Java truncates; Java's remainder has the sign of the dividend.
        remainder = np.where(b == -1, 0, np.fmod(a, b)).astype(_NUMPY[kind])
        result = remainder if operator == "%" else np.where(b == -1, -a, (a - remainder) // b)
        return _widen_int(result.astype(_NUMPY[kind]), kind), zero
    return _widen_int(_FLOATING[operator](a, b), kind), None


_FLOATING = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}


def _compare(operator: str, a: Any, b: Any, kind: Kind, *, total_order: bool) -> Any:
    if kind is Kind.STRING:
        return _compare_texts(operator, a, b)
    if kind in NUMERIC:
        a, b = np.asarray(a).astype(_NUMPY[kind]), np.asarray(b).astype(_NUMPY[kind])
    if total_order and kind in {Kind.FLOAT, Kind.DOUBLE}:
        return _compare_in_total_order(operator, a, b)
    return _COMPARE[operator](a, b)


_COMPARE: Mapping[str, Any] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _compare_in_total_order(operator: str, a: Any, b: Any) -> Any:
    """``Double.compareTo``: -0.0 < 0.0, and NaN equals NaN and is above all numbers."""
    same = (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))
    if operator in {"=", "<>"}:
        return same == (operator == "=")
    below = (a < b) | (~np.isnan(a) & np.isnan(b)) | ((a == b) & np.signbit(a) & ~np.signbit(b))
    return {"<": below & ~same, "<=": below | same, ">": ~below & ~same, ">=": ~below}[operator]


# --- texts ----------------------------------------------------------------------------------------


def _texts(texts: Any) -> pa.Array:
    return pa.array([texts], pa.string()) if isinstance(texts, str) else texts


def _mask(texts: pa.Array, function: Any, *arguments: Any) -> Mask:
    found: Mask = np.asarray(function(texts, *arguments).fill_null(False))  # noqa: FBT003
    return found


def _match_pattern(texts: Any, tokens: tuple[Any, ...]) -> Mask:
    """LIKE: equality without wildcards; prefix, suffix or substring if ``%`` is only at the ends; else an RE2 regex."""
    column = _texts(texts)
    match tokens:
        case ():
            return _mask(column, pc.equal, "")
        case (str(text),):
            return _mask(column, pc.equal, text)
        case (str(text), last) if last is ANY:
            return _mask(column, pc.starts_with, text)
        case (first, str(text)) if first is ANY:
            return _mask(column, pc.ends_with, text)
        case (first, str(text), last) if first is ANY and last is ANY:
            return _mask(column, pc.match_substring, text)
    return _mask(column, pc.match_substring_regex, rf"(?s)\A(?:{to_regex(tokens)})\z")


_ASTRAL = r"[\x{E000}-\x{10FFFF}]"


def _compare_texts(operator: str, a: Any, b: Any) -> Mask:
    left, right = (x if isinstance(x, str) else _texts(x) for x in (a, b))
    functions = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal}
    functions |= {">": pc.greater, ">=": pc.greater_equal}
    if isinstance(left, str) and isinstance(right, str):
        left = pa.array([left])
    if operator not in {"=", "<>"} and (_has_astral(left) or _has_astral(right)):
        # Java orders by UTF-16 units and Arrow by UTF-8 bytes. The orders differ from U+E000.
        left, right = _utf16(left), _utf16(right)
    return np.asarray(functions[operator](left, right).fill_null(False))  # noqa: FBT003


def _has_astral(texts: Any) -> bool:
    column = _texts(texts)
    return bool(pc.any(pc.match_substring_regex(column, _ASTRAL)).as_py())


def _utf16(texts: Any) -> Any:
    if isinstance(texts, str):
        return pa.scalar(utf16(texts), pa.binary())
    return pa.array([None if t is None else utf16(t) for t in texts.to_pylist()], pa.binary())


def _parse_texts(texts: Any, kind: Kind) -> tuple[Any, Mask]:
    """``valueOf`` of each text, and the mask of the texts on which it throws. Only distinct texts are parsed."""
    found = [None if t is None else parse_java(t, kind) for t in _texts(texts).to_pylist()]
    wanted: Any = _STORED.get(kind, np.int64)
    return np.array([0 if v is None else v for v in found], wanted), np.array([v is None for v in found])
