"""The result of an operator on two kinds of operand, in each dialect.

Kinds -> a constant outcome, or the common kind at which the values are compared. The row evaluator passes the kinds
of a message. The column targets pass every kind that a text may have.
"""

from enum import Enum
from typing import NamedTuple

from jms_selector.syntax.dialects import Dialect
from jms_selector.syntax.kinds import INTEGRAL, NUMERIC, Kind

__all__ = ["Basis", "Outcome", "arithmetic", "comparison", "negation"]


class Outcome(Enum):
    TRUE = True
    FALSE = False
    UNKNOWN = None
    FAULT = "fault"

    def __invert__(self) -> "Outcome":
        return Outcome(not self.value) if isinstance(self.value, bool) else self


class Basis(NamedTuple):
    """Compare the values as ``kind``."""

    kind: Kind
    parse: str = ""
    """``left`` or ``right``: that operand is a text to parse as ``kind``; a text that does not parse is unequal."""


_WIDTH = {
    kind: place for place, kind in enumerate((Kind.BYTE, Kind.SHORT, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE))
}


def promoted(left: Kind, right: Kind) -> Kind:
    """Binary numeric promotion (JLS §5.6.2)."""
    return max(left, right, Kind.INT, key=_WIDTH.__getitem__)


# --- comparisons --------------------------------------------------------------------------------


def comparison(dialect: Dialect, operator: str, left: Kind, right: Kind, *, convert: bool = False) -> Outcome | Basis:
    if dialect.activemq:
        return _activemq_comparison(dialect, operator, left, right, convert=convert)
    if dialect.faults_decide and Kind.FAULT in {left, right}:
        return Outcome.FAULT
    if Kind.NULL in {left, right}:
        return Outcome.UNKNOWN
    if left in NUMERIC and right in NUMERIC:
        return Basis(promoted(left, right))
    if convert and (basis := _converted(left, right)):
        return basis
    if left is right and left in {Kind.STRING, Kind.BOOLEAN} and operator in {"=", "<>"}:
        return Basis(left)
    # §3.8.1.1: "If the comparison of non-like type values is attempted, the value of the operation is false."
    return Outcome.FAULT if dialect.faults_decide else Outcome.FALSE


def _activemq_comparison(dialect: Dialect, operator: str, left: Kind, right: Kind, *, convert: bool) -> Outcome | Basis:
    """``ComparisonExpression``: <> is NOT of =, and an ordering tests the left operand first."""
    if operator in {"=", "<>"}:
        verdict = _activemq_equality(dialect, left, right, convert=convert)
        return ~verdict if operator == "<>" and isinstance(verdict, Outcome) else verdict
    for kind in (left, right):
        if kind is Kind.FAULT:
            return Outcome.FAULT
        if kind is Kind.NULL:
            return Outcome.UNKNOWN
    if Kind.LIST in {left, right}:
        return Outcome.FAULT
    return _activemq_basis(dialect, left, right, convert=convert)


def _activemq_equality(dialect: Dialect, left: Kind, right: Kind, *, convert: bool) -> Outcome | Basis:
    if Kind.FAULT in {left, right}:
        return Outcome.FAULT
    if Kind.NULL in {left, right}:
        if left is not right:
            return Outcome.UNKNOWN if left is Kind.NULL or not dialect.null_on_the_right else Outcome.FALSE
        return Outcome.TRUE if dialect.null_on_the_right else Outcome.UNKNOWN
    return _activemq_basis(dialect, left, right, convert=convert)


def _activemq_basis(dialect: Dialect, left: Kind, right: Kind, *, convert: bool) -> Outcome | Basis:
    """``ComparisonExpression.compare``: the left operand's class converts the right operand."""
    if left is right:
        return Basis(left)
    if convert and (basis := _converted(left, right)):
        throws = left is Kind.BOOLEAN and dialect.boolean_throws
        return Outcome.FAULT if throws else basis
    if left in NUMERIC and right in NUMERIC:
        if dialect.double_throws and left is Kind.DOUBLE and right is Kind.FLOAT:
            return Outcome.FAULT
        if dialect.left_widens and right in {Kind.BYTE, Kind.SHORT} and _WIDTH[right] < _WIDTH[left]:
            return Outcome.FALSE
        return Basis(max(left, right, key=_WIDTH.__getitem__))
    return Outcome.FALSE


def _converted(left: Kind, right: Kind) -> Basis | None:
    """A string beside a number or a boolean is converted to the other operand's kind."""
    for text, other, side in ((left, right, "left"), (right, left, "right")):
        if text is Kind.STRING and (other in NUMERIC or other is Kind.BOOLEAN):
            return Basis(other, side)
    return None


# --- arithmetic ---------------------------------------------------------------------------------


def arithmetic(dialect: Dialect, operator: str, left: Kind, right: Kind, *, convert: bool = False) -> Kind:
    """The kind of the result. FAULT: no result. STRING: concatenation. UNDECIDED: the kind depends on the texts."""
    if dialect.activemq:
        return _activemq_arithmetic(dialect, operator, left, right, convert=convert)
    if dialect.faults_decide and {left, right} & {Kind.NULL, Kind.FAULT}:
        return Kind.FAULT
    if Kind.NULL in {left, right}:
        return Kind.NULL
    if convert and Kind.STRING in {left, right} and {left, right} <= NUMERIC | {Kind.STRING}:
        return UNDECIDED
    return promoted(left, right) if left in NUMERIC and right in NUMERIC else Kind.FAULT


UNDECIDED = Kind.LIST
"""With conversion, the text of a string operand decides between a long, a double and an exception."""

_FRACTIONAL = {Kind.FLOAT, Kind.DOUBLE}


def _activemq_arithmetic(dialect: Dialect, operator: str, left: Kind, right: Kind, *, convert: bool) -> Kind:
    for kind in (left, right):
        if kind in {Kind.FAULT, Kind.NULL}:
            return kind
    if operator == "+" and left is Kind.STRING:
        return Kind.STRING
    readable = NUMERIC | {Kind.BIG}
    texts = {left, right} & {Kind.STRING} if convert and dialect.converts_arithmetic else set()
    if not {left, right} - texts <= readable:
        return Kind.FAULT
    if texts:
        return UNDECIDED
    if operator in {"/", "%"} or {left, right} & _FRACTIONAL:
        return Kind.DOUBLE
    return Kind.LONG if Kind.LONG in {left, right} else Kind.INT


def negation(dialect: Dialect, kind: Kind) -> Kind:
    """The kind of ``-x``."""
    if kind in {Kind.NULL, Kind.FAULT}:
        return Kind.FAULT if dialect.faults_decide else kind
    if dialect.null_minus:
        if kind in {Kind.BYTE, Kind.SHORT}:
            return Kind.FAULT
        return kind if kind in NUMERIC or kind is Kind.BIG else Kind.NULL
    if kind not in NUMERIC:
        return Kind.FAULT
    return promoted(kind, kind) if kind in INTEGRAL else kind
