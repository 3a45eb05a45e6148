"""Conditions as an ActiveMQ broker must be asked for them, and for each rule why it changes nothing.

A rewriter takes a condition, or NOT of one, and returns a tree and its :class:`Trust`. It raises :class:`NotPushable`,
with the reason, where there is no such tree.
"""

from enum import IntEnum

from jms_selector.errors import EvaluationError
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.lenient import HEADERS
from jms_selector.meaning.message import Message
from jms_selector.syntax.dialects import Dialect, intended
from jms_selector.syntax.kinds import INTEGRAL, NUMERIC, Kind
from jms_selector.syntax.like import matcher, respell
from jms_selector.syntax.tree import (
    And,
    Arithmetic,
    Between,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Or,
    Property,
    conditions,
    fold,
    names,
    postorder,
)

__all__ = ["FALSE", "TRUE", "NotPushable", "Trust", "calculates", "compares_numbers", "oriented", "typed", "unthrowing"]

TRUE = Literal(value=True, kind=Kind.BOOLEAN)
FALSE = Literal(value=False, kind=Kind.BOOLEAN)

MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "="}


_HEADER_KINDS = {
    **HEADERS,
    "JMSXDeliveryCount": Kind.INT,
    "JMSXGroupSeq": Kind.INT,
    "JMSXGroupID": Kind.STRING,
    "JMSXUserID": Kind.STRING,
}
"""Names that have one type in every message."""


class Trust(IntEnum):
    """How far the broker's result is the selector's. :mod:`jms_selector.pushdown.push` explains the members."""

    NOTHING = 0
    WEAKER = 1
    TWO = 2
    THREE = 3


class NotPushable(Exception):  # noqa: N818 - a verdict, not a failure
    """Why a condition must stay with the reader."""


# --- the property on the left ---------------------------------------------------------------------


def oriented(root: Node) -> Node:
    """``5 = x`` as ``x = 5``: brokers widen a byte or short only on the left, and take a NULL for one only there."""

    def visit(node: Node, operands: list[Node]) -> Node:
        match node:
            case And():
                return And(tuple(operands))
            case Or():
                return Or(tuple(operands))
            case Not():
                return Not(operands[0])
            case Compare():
                return _oriented_comparison(node)
            case Between(operand, low, high, negated) if not names(operand) and names(node):
                # BETWEEN's own definition (§3.8.1.1), each half with its property on the left.
                first, second = ("<", ">") if negated else (">=", "<=")
                pair = tuple(
                    _oriented_comparison(Compare(op, operand, bound)) for op, bound in ((first, low), (second, high))
                )
                return Or(pair) if negated else And(pair)
        return node

    return fold(root, visit, conditions)


def _oriented_comparison(node: Compare) -> Compare:
    rank = [2 if isinstance(side, Property) else 1 if names(side) else 0 for side in (node.left, node.right)]
    if rank[1] > rank[0]:
        return Compare(MIRRORED[node.operator], node.right, node.left)
    return node


# --- conditions on typed values -------------------------------------------------------------------


def typed(node: Node, dialect: Dialect, *, convert: bool) -> tuple[Node, Trust]:
    """A condition of the user's selector, to be decided by the broker on the types the producer set."""
    if isinstance(node, Not):
        return _negated(node.operand, dialect, convert=convert)
    _refuse_unwritable(node)
    if not names(node):
        return _constant(node, dialect)
    match node:
        case Property():
            return node, Trust.THREE
        case IsNull(Property()) | In(Property()):
            return node, Trust.THREE
        case Like(Property() as operand):
            return (_delivery_mode(node) if operand.name == "JMSDeliveryMode" and dialect.words else node), Trust.THREE
        case Compare():
            return _comparison(node, dialect, convert=convert)
        case Between():
            return _between(node, dialect, convert=convert)
    raise NotPushable("its left side is more than a property.")


def _negated(node: Node, dialect: Dialect, *, convert: bool) -> tuple[Node, Trust]:
    """Only what :func:`typed` answers with less than THREE comes here: equality of two, and constants."""
    if not names(node):
        return _constant(Not(node), dialect)
    if isinstance(node, Compare) and node.operator in _OPPOSITE:
        # Between two that are not NULL, = and <> are each other's negation in every dialect.
        return typed(Compare(_OPPOSITE[node.operator], node.left, node.right), dialect, convert=convert)
    raise NotPushable("its negation cannot be written.")


def _constant(node: Node, dialect: Dialect) -> tuple[Node, Trust]:
    """Without a property it is TRUE or not, for every message alike."""
    _refuse_division(node)
    try:
        selects = evaluate(node, Message(), intended(dialect)) is True
    except EvaluationError as error:
        raise NotPushable(str(error)) from None
    return (TRUE if selects else FALSE), Trust.TWO


def _comparison(node: Compare, dialect: Dialect, *, convert: bool) -> tuple[Node, Trust]:
    _refuse_operands(node, dialect, node.left, node.right)
    if not names(node.right):
        mode = _is(node.left, "JMSDeliveryMode") and dialect.words and not _word(node.right)
        return (_delivery_mode(node) if mode else _widened(node, convert=convert)), Trust.THREE
    if node.operator in _OPPOSITE:
        # "x = missing" is FALSE and "missing = missing" TRUE to the broker; behind the guards neither occurs.
        # Where a guard is FALSE the selector is unknown, so TRUE is the only value they share.
        # (The guard is on the operand: -x is NULL not only where x is.)
        return And((*(IsNull(side, negated=True) for side in node.children), node)), Trust.TWO
    if not dialect.converts_arithmetic:
        raise NotPushable("Classic throws if one of the two is a boolean and the other a string.")
    return node, Trust.THREE


def _between(node: Between, dialect: Dialect, *, convert: bool) -> tuple[Node, Trust]:
    _refuse_operands(node, dialect, node.operand, node.low, node.high)
    if names(node.low) or names(node.high):
        if not dialect.converts_arithmetic:
            raise NotPushable("Classic throws if one property is a boolean and the other a string.")
        return node, Trust.THREE
    if convert and isinstance(node.operand, Property) and node.operand.name not in HEADERS:
        first, second = ("<", ">") if node.negated else (">=", "<=")
        halves = tuple(
            _widened(Compare(op, node.operand, bound), convert=convert)
            for op, bound in ((first, node.low), (second, node.high))
        )
        return (Or(halves) if node.negated else And(halves)), Trust.THREE
    return node, Trust.THREE


def _widened(node: Compare, *, convert: bool) -> Node:
    """With conversion '5.5' is no integer, so an integer literal is asked for as a double as well."""
    literal = node.right
    plain = isinstance(node.left, Property) and node.left.name not in HEADERS
    if not (convert and plain and isinstance(literal, Literal) and literal.kind in INTEGRAL):
        return node
    assert isinstance(literal.value, int)
    as_double = Compare(node.operator, node.left, Literal(float(literal.value), Kind.DOUBLE))
    return And((node, as_double)) if node.operator == "<>" else Or((node, as_double))


# --- two types at which Classic throws ---------------------------------------------------------------


def unthrowing(root: Node) -> Node:
    """Comparisons at which Classic would throw a ClassCastException, written so that it does not.

    Its STOMP reads a string beside a boolean as a boolean, and throws if the boolean is on the left. It also throws
    if a double is on the left of a float. So a string is matched by LIKE, which is FALSE for every other type, and
    two properties are compared only where neither is the case; two floating-point numbers as doubles.
    """

    def visit(node: Node, operands: list[Node]) -> Node:
        match node:
            case And():
                return And(tuple(operands))
            case Or():
                return Or(tuple(operands))
            case Not():
                return Not(operands[0])
            case Compare("=" | "<>" as operator, Property() as left, right):
                same = _same(left, right)
                return node if same is None else Not(same) if operator == "<>" else same
        return node

    return fold(root, visit, conditions)


def _same(left: Property, right: Node) -> Node | None:
    """Equality of two that are not NULL; None: ``left = right`` never throws."""
    boolean = _HEADER_KINDS.get(left.name, Kind.BOOLEAN) is Kind.BOOLEAN
    if isinstance(right, Literal) and right.kind is Kind.STRING and boolean:
        return Like(left, *respell((str(right.value),)))
    if not isinstance(right, Property) or not boolean:
        return None
    both_true = And((left, right))
    both_false = And((Not(_no_boolean(left)), Not(_no_boolean(right)), Not(left), Not(right)))
    equal = Compare("=", left, right)
    if {left.name, right.name} & _HEADER_KINDS.keys():  # none is a double or a float
        return Or((And((_no_boolean(left), equal)), both_true, both_false))
    both_floating = And((_floating(left), _floating(right)))
    as_doubles = And((*both_floating.operands, Compare("=", _double(left), _double(right))))
    return Or((And((_no_boolean(left), Not(both_floating), equal)), as_doubles, both_true, both_false))


def _no_boolean(operand: Property) -> Node:
    """Of what is not NULL: a string, or a number (NaN is above zero here)."""
    zero = Literal(0, Kind.INT)
    return Or((Like(operand, "%"), Compare(">=", operand, zero), Compare("<", operand, zero)))


def _floating(operand: Property) -> Node:
    """Of what is not NULL: a float or a double, which is no string and whose text is 1.5, NaN or Infinity."""
    text = Arithmetic(("+",), (Literal("", Kind.STRING), operand))
    return And((Not(Like(operand, "%")), Or(tuple(Like(text, f"%{mark}%") for mark in ".NI"))))


def _double(operand: Property) -> Node:
    """Any product with a double is one."""
    return Arithmetic(("*",), (operand, Literal(1.0, Kind.DOUBLE)))


# --- JMSDeliveryMode, which Artemis knows by other words ---------------------------------------------


def _is(node: Node, name: str) -> bool:
    return isinstance(node, Property) and node.name == name


def _word(node: Node) -> bool:
    return isinstance(node, Literal) and node.value in {"PERSISTENT", "NON_PERSISTENT"}


def _delivery_mode(node: Node) -> Node:
    """The header has two values and is never NULL: a condition on it is one of four."""
    allowed = [mode for mode in ("PERSISTENT", "NON_PERSISTENT") if _selects(node, mode)]
    if len(allowed) == 1:
        return Compare("=", Property("JMSDeliveryMode"), Literal(allowed[0], Kind.STRING))
    return TRUE if allowed else FALSE


def _selects(node: Node, mode: str) -> bool:
    if isinstance(node, Like):
        return (matcher(node.pattern, node.escape, False).fullmatch(mode) is not None) != node.negated  # noqa: FBT003
    assert isinstance(node, Compare)
    # Neither word equals any other text, nor anything of another type.
    return node.operator == "<>"


# --- what must not be asked -----------------------------------------------------------------------


def _refuse_operands(node: Node, dialect: Dialect, *operands: Node) -> None:
    _refuse_division(node)
    for operand in operands:
        for part in postorder(operand):
            if not isinstance(part, Literal | Property | Arithmetic | Negative):
                raise NotPushable("a condition stands where a value does.")
        calculated = isinstance(operand, Arithmetic | Negative) and names(operand)
        if calculated and not dialect.converts_arithmetic:
            raise NotPushable("Classic stops delivering a queue to everybody if the property is no number.")
    if isinstance(operands[0], Literal):
        raise NotPushable("its left side is no property.")


def _refuse_division(node: Node) -> None:
    for part in postorder(node):
        if isinstance(part, Arithmetic) and set(part.operators) & {"/", "%"}:
            raise NotPushable("ActiveMQ divides integers as doubles: 7/2 is 3.5 there, and 3 in Java.")


def _refuse_unwritable(node: Node) -> None:
    for part in postorder(node):
        texts = [part.name] if isinstance(part, Property) else [f for f in part.facts if isinstance(f, str)]
        if isinstance(part, In):
            texts += part.values
        if any(_unwritable(text) for text in texts):
            raise NotPushable("a STOMP header cannot carry this text.")


def _unwritable(text: str) -> bool:
    """NUL ends a STOMP frame, and a lone surrogate has no UTF-8."""
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)


# --- questions ------------------------------------------------------------------------------------


def calculates(node: Node) -> bool:
    return any(isinstance(part, Arithmetic | Negative) and names(part) for part in postorder(node))


def compares_numbers(node: Node) -> bool:
    """Whether conversion could change what the broker answers."""
    return any(
        isinstance(part, Literal) and (part.kind in NUMERIC or part.kind is Kind.BOOLEAN) for part in postorder(node)
    )
