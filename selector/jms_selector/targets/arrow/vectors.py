"""A plan on arrays: Java's arithmetic, comparisons and LIKE, vectorised. Numbers are numpy's, strings Arrow's.

Every test answers three masks, (true, false, unknown); a fault is in none.
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
    Matching,
    Membership,
    Minus,
    NullTest,
    Operand,
    Plan,
    Truth,
    ValuePlan,
    Verdict,
)
from jms_selector.meaning.rules import Outcome
from jms_selector.syntax.kinds import NUMERIC, Kind
from jms_selector.syntax.like import ANY, to_regex

__all__ = ["data", "take", "test"]

Mask = NDArray[np.bool_]
Masks = tuple[Mask, Mask, Mask]
Vector = tuple[Any, Mask | None]
"""Data, and where it is null (an integer division by zero), if anywhere."""

_NUMPY = {
    Kind.BYTE: np.int64,
    Kind.SHORT: np.int64,
    Kind.INT: np.int32,
    Kind.LONG: np.int64,
    Kind.FLOAT: np.float32,
    Kind.DOUBLE: np.float64,
}
"""Calculations at int wrap at 32 bits; at byte and short there are only comparisons."""


_STORED = {Kind.BOOLEAN: np.bool_, Kind.FLOAT: np.float32, Kind.DOUBLE: np.float64}


def data(distinct: pa.Array, kind: Kind, size: int) -> Any:
    """Distinct values as this module computes with them, padded to ``size``."""
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


def test(plan: Plan, operands: Mapping[tuple[str, Kind], Any], size: int) -> Masks:
    """Masks of one condition, over arrays of ``size`` values."""
    machine = _Machine(operands)
    with np.errstate(all="ignore"):
        match plan:
            case Verdict(outcome):
                return tuple(  # type: ignore[return-value]
                    np.full(size, outcome is one) for one in (Outcome.TRUE, Outcome.FALSE, Outcome.UNKNOWN)
                )
            case Comparison():
                return _masks(*machine.comparison(plan), size)
            case Matching(operand, tokens, negated):
                texts, _ = machine.value(operand)
                return _masks(_matched(texts, tokens) != negated, None, size)
            case Membership(operand, values, negated):
                texts, _ = machine.value(operand)
                return _masks(_mask(_texts(texts), pc.is_in, pa.array(values, pa.string())) != negated, None, size)
            case NullTest(operand, negated):
                _, null = machine.value(operand)
                found = np.zeros(size, bool) if null is None else null
                return _masks(found != negated, None, size)
            case Truth(operand):
                return _masks(*machine.value(operand), size)
    raise AssertionError(plan)


def _masks(truth: Any, null: Mask | None, size: int) -> Masks:
    true: Mask = np.broadcast_to(np.asarray(truth, bool), (size,))
    if null is None:
        return true, ~true, np.zeros(size, bool)
    return true & ~null, ~true & ~null, np.broadcast_to(null, (size,))


class _Machine:
    def __init__(self, operands: Mapping[tuple[str, Kind], Any]) -> None:
        self.operands = operands

    # Plans of values are as deep as parentheses in arithmetic; a thousand of those is the engine's limit too.
    def value(self, plan: ValuePlan) -> Vector:
        match plan:
            case Constant(kind, value):
                return (value if kind in {Kind.STRING, Kind.BOOLEAN} else _NUMPY[kind](value)), None
            case Operand(name, kind):
                return self.operands[name, kind], None
            case Minus(kind, operand):
                found, null = self.value(operand)
                return _integral(-_as(found, kind), kind), null
            case Calculation(operator, kind, left, right):
                a, left_null = self.value(left)
                b, right_null = self.value(right)
                result, null = _calculated(operator, _as(a, kind), _as(b, kind), kind)
                return result, _either(_either(left_null, right_null), null)

    def comparison(self, plan: Comparison) -> tuple[Any, Mask | None]:
        (a, left_null), (b, right_null) = self.value(plan.left), self.value(plan.right)
        basis, operator = plan.basis, plan.operator
        unreadable: Mask | None = None
        if basis.parse == "left":
            a, unreadable = _read(a, basis.kind)
        elif basis.parse == "right":
            b, unreadable = _read(b, basis.kind)
        found = _compared(operator, a, b, basis.kind, total_order=plan.total_order)
        if unreadable is not None:
            found = np.where(unreadable, operator == "<>", found)
        return found, _either(left_null, right_null)


def _either(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left | right


# --- numbers --------------------------------------------------------------------------------------


def _as(values: Any, kind: Kind) -> Any:
    """At the kind of the operation; an int is calculated in 32 bits, which wrap."""
    return np.asarray(values).astype(_NUMPY[kind])


def _integral(values: Any, kind: Kind) -> Any:
    return values.astype(np.int64) if kind is Kind.INT else values


def _calculated(operator: str, a: Any, b: Any, kind: Kind) -> Vector:
    if kind in {Kind.FLOAT, Kind.DOUBLE}:
        return _FLOATING[operator](a, b), None
    if operator in {"/", "%"}:
        zero = b == 0
        b = np.where(zero, 1, b).astype(_NUMPY[kind])
        # numpy floors, Java truncates; the remainder has the dividend's sign.
        remainder = np.where(b == -1, 0, np.fmod(a, b)).astype(_NUMPY[kind])
        result = remainder if operator == "%" else np.where(b == -1, -a, (a - remainder) // b)
        return _integral(result.astype(_NUMPY[kind]), kind), zero
    return _integral(_FLOATING[operator](a, b), kind), None


_FLOATING = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}


def _compared(operator: str, a: Any, b: Any, kind: Kind, *, total_order: bool) -> Any:
    if kind is Kind.STRING:
        return _compared_texts(operator, a, b)
    if kind in NUMERIC:
        a, b = np.asarray(a).astype(_NUMPY[kind]), np.asarray(b).astype(_NUMPY[kind])
    if total_order and kind in {Kind.FLOAT, Kind.DOUBLE}:
        return _ranked(operator, a, b)
    return _COMPARE[operator](a, b)


_COMPARE: Mapping[str, Any] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _ranked(operator: str, a: Any, b: Any) -> Any:
    """``Double.compareTo``: -0.0 < 0.0, and NaN above all, equal to itself."""
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


def _matched(texts: Any, tokens: tuple[Any, ...]) -> Mask:
    """LIKE: without a wildcard equality, with one at an end a prefix or suffix, else RE2."""
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


def _compared_texts(operator: str, a: Any, b: Any) -> Mask:
    left, right = (x if isinstance(x, str) else _texts(x) for x in (a, b))
    functions = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal}
    functions |= {">": pc.greater, ">=": pc.greater_equal}
    if isinstance(left, str) and isinstance(right, str):
        left = pa.array([left])
    if operator not in {"=", "<>"} and (_has_astral(left) or _has_astral(right)):
        # Java orders UTF-16 units, Arrow bytes of UTF-8: they differ above U+E000.
        left, right = _utf16(left), _utf16(right)
    return np.asarray(functions[operator](left, right).fill_null(False))  # noqa: FBT003


def _has_astral(texts: Any) -> bool:
    column = _texts(texts)
    return bool(pc.any(pc.match_substring_regex(column, _ASTRAL)).as_py())


def _utf16(texts: Any) -> Any:
    if isinstance(texts, str):
        return pa.scalar(utf16(texts), pa.binary())
    return pa.array([None if t is None else utf16(t) for t in texts.to_pylist()], pa.binary())


def _read(texts: Any, kind: Kind) -> tuple[Any, Mask]:
    """``valueOf`` of each text, and where it throws. Distinct texts are few: Java's grammar, in Python."""
    found = [None if t is None else parse_java(t, kind) for t in _texts(texts).to_pylist()]
    wanted: Any = _STORED.get(kind, np.int64)
    return np.array([0 if v is None else v for v in found], wanted), np.array([v is None for v in found])
