"""Rewrites conditions for an ActiveMQ broker; comments prove that the rewritten condition is equivalent.

A rewriter takes a condition, or NOT of one, and returns a tree and its :class:`Trust`. It raises
:class:`NotPushableError` with the reason if there is no such tree.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from jms_selector.errors import EvaluationError
from jms_selector.meaning.evaluate import Message, evaluate
from jms_selector.syntax.dialects import Dialect, with_null_on_both_sides
from jms_selector.syntax.kinds import INTEGRAL, Kind, Schema, Value
from jms_selector.syntax.like import choose_portable_escape
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

__all__ = [
    "FALSE",
    "TRUE",
    "NotPushableError",
    "Target",
    "Trust",
    "avoid_exceptions",
    "has_calculation",
    "put_properties_left",
    "rewrite_typed",
]

TRUE = Literal(value=True, kind=Kind.BOOLEAN)
FALSE = Literal(value=False, kind=Kind.BOOLEAN)

MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "="}


_JMSX_KINDS = {
    "JMSXDeliveryCount": Kind.INT,
    "JMSXGroupSeq": Kind.INT,
    "JMSXGroupID": Kind.STRING,
    "JMSXUserID": Kind.STRING,
}
"""Properties whose type is the same in every message."""


_EXACT_FLOAT, _EXACT_DOUBLE = 1 << 24, 1 << 53
"""A float holds every integer up to the first, a double every one below the second and its neighbours."""


class Target(NamedTuple):
    """What a condition is rewritten for."""

    dialect: Dialect
    schema: Schema
    convert: bool
    """Strings that hold numbers are compared as numbers."""


class Trust(IntEnum):
    """How far the broker's result equals the selector's. :mod:`jms_selector.pushdown.push` explains the members."""

    NONE = 0
    WEAKER = 1
    TRUE_ONLY = 2
    EXACT = 3


class NotPushableError(Exception):
    """A condition cannot be pushed; the argument is the reason."""


# --- the property on the left ---------------------------------------------------------------------


def put_properties_left(root: Node) -> Node:
    """Rewrite ``5 = x`` as ``x = 5``: brokers widen byte and short, and treat NULL as unknown, only on the left."""

    def visit(node: Node, operands: list[Node]) -> Node:
        if isinstance(node, Compare):
            return _put_property_left(node)
        if isinstance(node, Between) and not names(node.operand) and names(node):
            return put_properties_left(node.expanded())
        return node.with_children(operands)

    return fold(root, visit, conditions)


def _put_property_left(node: Compare) -> Compare:
    rank = [2 if isinstance(side, Property) else 1 if names(side) else 0 for side in (node.left, node.right)]
    if rank[1] > rank[0]:
        return Compare(MIRRORED[node.operator], node.right, node.left)
    return node


# --- conditions on typed values -------------------------------------------------------------------


def rewrite_typed(node: Node, target: Target) -> tuple[Node, Trust]:
    """Rewrite a condition that the broker evaluates on the types that the producer set."""
    if isinstance(node, Not):
        return _negation(node.operand, target)
    _refuse_unwritable(node)
    if not names(node):
        return _constant(node, target)
    match node:
        case Property():
            return node, Trust.EXACT
        case IsNull(Property()) | In(Property()):
            return node, Trust.EXACT
        case Like(Property() as operand):
            mode = operand == _MODE and target.dialect.words
            return (_delivery_mode(node, target) if mode else node), Trust.EXACT
        case Compare():
            return _comparison(node, target)
        case Between():
            return _between(node, target)
    raise NotPushableError("its left side is not a property.")


def _negation(node: Node, target: Target) -> tuple[Node, Trust]:
    """Rewrite NOT of a condition whose trust is below EXACT: equality of two properties, or a constant."""
    if not names(node):
        return _constant(Not(node), target)
    if isinstance(node, Compare) and node.operator in _OPPOSITE:
        # For operands that are not NULL, = and <> are each other's negation in every dialect.
        return rewrite_typed(Compare(_OPPOSITE[node.operator], node.left, node.right), target)
    raise NotPushableError("its negation cannot be written.")


def _constant(node: Node, target: Target) -> tuple[Node, Trust]:
    """A condition without properties has the same result for every message."""
    _refuse_division(node)
    try:
        return (TRUE if _is_true(node, Message(), target) else FALSE), Trust.TRUE_ONLY
    except EvaluationError as error:
        raise NotPushableError(str(error)) from None


def _is_true(node: Node, message: Message, target: Target) -> bool:
    converting = target.convert or target.dialect.always_converts
    return evaluate(node, message, with_null_on_both_sides(target.dialect), convert=converting) is True


def _comparison(node: Compare, target: Target) -> tuple[Node, Trust]:
    _refuse_operands(node, target.dialect, node.left, node.right)
    if not names(node.right):
        if node.left == _MODE and target.dialect.words and not _is_delivery_mode_word(node.right):
            return _delivery_mode(node, target), Trust.EXACT
        return _widen_literal(node, target), Trust.EXACT
    if node.operator in _OPPOSITE:
        # To the broker "x = missing" is FALSE and "missing = missing" is TRUE. The IS NOT NULL guards exclude both.
        # Where a guard is FALSE the selector is unknown, so the two results agree on TRUE only.
        # The guard tests the operand and not its property, because -x may be NULL although x is not.
        return And((*(IsNull(side, negated=True) for side in node.children), node)), Trust.TRUE_ONLY
    _refuse_two_properties(target.dialect)
    return node, Trust.EXACT


def _between(node: Between, target: Target) -> tuple[Node, Trust]:
    def widened(part: Node, operands: list[Node]) -> Node:
        return _widen_literal(part, target) if isinstance(part, Compare) else part.with_children(operands)

    _refuse_operands(node, target.dialect, node.operand, node.low, node.high)
    if names(node.low) or names(node.high):
        _refuse_two_properties(target.dialect)
        return node, Trust.EXACT
    if target.convert and isinstance(node.operand, Property) and node.operand.name not in target.schema.kinds:
        return fold(node.expanded(), widened, conditions), Trust.EXACT
    return node, Trust.EXACT


def _widen_literal(node: Compare, target: Target) -> Node:
    """Compare with an integer literal and with its double: with conversion, '5.5' does not parse as an integer.

    The broker compares a float with an integer as floats, and a long as a long. Where a double differs from these, only
    a text is compared with the double.
    """
    literal = node.right
    plain = isinstance(node.left, Property) and node.left.name not in target.schema.kinds
    if not (target.convert and plain and isinstance(literal, Literal) and literal.kind in INTEGRAL):
        return node
    assert isinstance(literal.value, int)
    if abs(literal.value) >= _EXACT_DOUBLE:
        return node
    as_double: Node = Compare(node.operator, node.left, Literal(float(literal.value), Kind.DOUBLE))
    unequal = node.operator == "<>"
    if abs(literal.value) > _EXACT_FLOAT:
        is_text = Like(node.left, "%")
        as_double = Or((Not(is_text), as_double)) if unequal else And((is_text, as_double))
    return And((node, as_double)) if unequal else Or((node, as_double))


# --- comparisons on which Classic throws -------------------------------------------------------------


def avoid_exceptions(root: Node, schema: Schema) -> Node:
    """Rewrite comparisons on which Classic would throw a ClassCastException.

    For STOMP, Classic converts a string that is compared with a boolean to a boolean, and throws if the boolean is on
    the left. Classic also throws if a double is on the left and a float is on the right. The rewritten selector matches
    a string by LIKE, which is FALSE for every other type. The rewritten selector compares two properties only if
    neither is a boolean, and compares floating-point numbers as doubles.
    """

    def visit(node: Node, operands: list[Node]) -> Node:
        match node:
            case Compare("=" | "<>" as operator, Property() as left, right):
                same = _equality_without_exception(left, right, {**schema.kinds, **_JMSX_KINDS})
                return node if same is None else Not(same) if operator == "<>" else same
        return node.with_children(operands)

    return fold(root, visit, conditions)


def _equality_without_exception(left: Property, right: Node, kinds: Mapping[str, Kind]) -> Node | None:
    """Equality of two operands that are not NULL; None if ``left = right`` never throws. ``kinds``: of some names."""
    boolean = kinds.get(left.name, Kind.BOOLEAN) is Kind.BOOLEAN
    if isinstance(right, Literal) and right.kind is Kind.STRING and boolean:
        return Like(left, *choose_portable_escape((str(right.value),)))
    if not isinstance(right, Property) or not boolean:
        return None
    both_true = And((left, right))
    both_false = And((Not(_is_not_boolean(left)), Not(_is_not_boolean(right)), Not(left), Not(right)))
    equal = Compare("=", left, right)
    if {left.name, right.name} & kinds.keys():  # then no operand is a double or a float
        return Or((And((_is_not_boolean(left), equal)), both_true, both_false))
    both_floating = And((_is_floating(left), _is_floating(right)))
    as_doubles = And((*both_floating.operands, Compare("=", _to_double(left), _to_double(right))))
    return Or((And((_is_not_boolean(left), Not(both_floating), equal)), as_doubles, both_true, both_false))


def _is_not_boolean(operand: Property) -> Node:
    """Return whether an operand that is not NULL is a string or a number (NaN is above zero)."""
    zero = Literal(0, Kind.INT)
    return Or((Like(operand, "%"), Compare(">=", operand, zero), Compare("<", operand, zero)))


def _is_floating(operand: Property) -> Node:
    """Return whether an operand that is not NULL is a float or a double: no string, with a text like 1.5, NaN or
    Infinity.
    """
    text = Arithmetic(("+",), (Literal("", Kind.STRING), operand))
    return And((Not(Like(operand, "%")), Or(tuple(Like(text, f"%{mark}%") for mark in ".NI"))))


def _to_double(operand: Property) -> Node:
    """The operand as a double: a product with a double is a double."""
    return Arithmetic(("*",), (operand, Literal(1.0, Kind.DOUBLE)))


# --- JMSDeliveryMode, whose values some brokers name differently -------------------------------------


_MODE = Property("JMSDeliveryMode")


def _is_delivery_mode_word(node: Node) -> bool:
    return isinstance(node, Literal) and node.value in {"PERSISTENT", "NON_PERSISTENT"}


def _delivery_mode(node: Node, target: Target) -> Node:
    """The header has two values and is never NULL, so a condition on it allows one of them, both or none."""
    allowed = []
    for mode in ("PERSISTENT", "NON_PERSISTENT"):
        message = Message({"JMSDeliveryMode": Value(Kind.STRING, mode)})
        if _is_true(node, message, target):
            allowed.append(mode)
    if len(allowed) == 1:
        return Compare("=", _MODE, Literal(allowed[0], Kind.STRING))
    return TRUE if allowed else FALSE


# --- conditions that must not be pushed -----------------------------------------------------------


def _refuse_operands(node: Node, dialect: Dialect, *operands: Node) -> None:
    _refuse_division(node)
    for operand in operands:
        for part in postorder(operand):
            if not isinstance(part, Literal | Property | Arithmetic | Negative):
                raise NotPushableError("it uses a condition as a value.")
        calculated = isinstance(operand, Arithmetic | Negative) and names(operand)
        if calculated and not dialect.converts_arithmetic:
            raise NotPushableError(
                f"{dialect.name} stops the delivery of the queue to all consumers if the property is not a number."
            )
    if isinstance(operands[0], Literal):
        raise NotPushableError("its left side is not a property.")


def _refuse_two_properties(dialect: Dialect) -> None:
    if dialect.boolean_throws:
        raise NotPushableError(
            f"{dialect.name} throws an exception if one property is a boolean and the other a string."
        )


def _refuse_division(node: Node) -> None:
    for part in postorder(node):
        if isinstance(part, Arithmetic) and set(part.operators) & {"/", "%"}:
            raise NotPushableError("ActiveMQ divides integers as doubles (7/2 = 3.5), Java as integers (7/2 = 3).")


def _refuse_unwritable(node: Node) -> None:
    for part in postorder(node):
        texts = [part.name] if isinstance(part, Property) else [f for f in part.facts if isinstance(f, str)]
        if isinstance(part, In):
            texts += part.values
        if any(_is_unwritable(text) for text in texts):
            raise NotPushableError("a STOMP header cannot carry this text.")


def _is_unwritable(text: str) -> bool:
    """NUL ends a STOMP frame, and a lone surrogate cannot be encoded in UTF-8."""
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)


# --- predicates -----------------------------------------------------------------------------------


def has_calculation(node: Node) -> bool:
    return any(isinstance(part, Arithmetic | Negative) and names(part) for part in postorder(node))
