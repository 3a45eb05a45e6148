"""Evaluates a selector on one message, in three-valued logic. Tests compare every other target with this evaluator.

The evaluation is one post-order pass over a stack of typed values. A condition is TRUE, FALSE, NULL (unknown) or a
FAULT (the broker throws an exception). AND and OR evaluate their operands from left to right and stop where the broker
stops.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from jms_selector.errors import EvaluationError
from jms_selector.meaning import functions
from jms_selector.meaning.calculate import calculate, compare, to_kind, wrap
from jms_selector.meaning.conversions import java_double, java_integer, java_text, parse_java
from jms_selector.meaning.rules import UNDECIDED, Basis, Outcome, arithmetic, comparison, negation
from jms_selector.syntax.dialects import Dialect, dialect_of
from jms_selector.syntax.kinds import NO_HEADERS, NULL, NUMERIC, Kind, Schema, Value, in_range, integer_kind
from jms_selector.syntax.like import matcher
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Or,
    Path,
    Property,
    Selector,
    fold,
)

__all__ = ["Evaluator", "Message", "evaluate", "typed"]

TRUE, FALSE = Value(Kind.BOOLEAN, value=True), Value(Kind.BOOLEAN, value=False)
_NOT_A_NUMBER = "not a number"
_ZERO_ID = re.compile(r"ID:0{48}")
_ID_HEADERS = frozenset({"JMSMessageID", "JMSCorrelationID"})


@dataclass(frozen=True, slots=True)
class Message:
    """The parts of a message that a selector can test: header fields by their JMS names, and typed properties."""

    headers: Mapping[str, Value] = field(default_factory=dict)
    properties: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, headers: Mapping[str, Any] | None = None, schema: Schema = NO_HEADERS, /, **properties: Any) -> Self:
        """Create a message from plain Python values: ``Message.of({"JMSPriority": 7}, color="red", weight=3000)``.

        A whole number for a header has the kind that the header has in ``schema``.
        """
        return cls(
            {name: _header(value, schema.kinds.get(name)) for name, value in (headers or {}).items()},
            {name: typed(value) for name, value in properties.items()},
        )


def _header(value: Any, kind: Kind | None) -> Value:
    return Value(kind, value) if kind is Kind.LONG and isinstance(value, int) else typed(value)


def typed(value: Any) -> Value:
    """A Python value as the JMS type that a Java client would most likely set."""
    match value:
        case Value():
            return value
        case None:
            return NULL
        case bool():
            return Value(Kind.BOOLEAN, value)
        case int():
            return Value(integer_kind(value), value)
        case float():
            return Value(Kind.DOUBLE, value)
        case str():
            return Value(Kind.STRING, value)
        case _:
            raise TypeError(f"A JMS property cannot be of type {type(value).__name__}.")


def evaluate(
    selector: Selector | Node | str,
    message: Message,
    dialect: str | Dialect = "spec",
    *,
    convert: bool | None = None,
) -> bool | None:
    """Return whether ``message`` is selected: True, False, or None for unknown, which selects nothing.

    ``convert`` is ActiveMQ's ``convert_string_expressions``; by default the selector's prefix decides.
    Raises :class:`EvaluationError` where the broker would throw an exception.
    """
    rules = dialect_of(dialect)
    if isinstance(selector, str):
        selector = parse(selector)
    if isinstance(selector, Selector):
        convert = selector.convert if convert is None else convert
        if selector.root is None:
            return True
        selector = selector.root
    result = Evaluator(message, rules, convert=bool(convert)).truth(selector)
    if result.kind is not Kind.FAULT:
        return None if result is NULL else bool(result.value)
    if rules.faults_decide:
        return False
    raise EvaluationError(f"{rules.name} throws an exception on this message: {result.value}.")


class Evaluator:
    """Evaluates nodes of a tree on one message under one dialect."""

    def __init__(self, message: Message, dialect: Dialect, *, convert: bool = False) -> None:
        self.message = message
        self.dialect = dialect
        self.convert = convert

    def truth(self, root: Node) -> Value:
        """TRUE, FALSE, NULL or a FAULT."""
        return as_truth(fold(root, self.visit))

    def visit(self, node: Node, operands: list[Value]) -> Value:
        match node:
            case Literal():
                return self.literal(node)
            case Property():
                return self.lookup(node.name)
            case Compare():
                return self.compare(node, operands[0], operands[1])
            case And():
                return self.combine(operands, decisive=False)
            case Or():
                return self.combine(operands, decisive=True)
            case Not():
                return negated(as_truth(operands[0]))
            case In():
                return self.membership(node, operands[0])
            case Like():
                return self.like(node, operands[0])
            case IsNull():
                return self.null_test(node, operands[0])
            case Between():
                return self.between(node, operands)
            case _:
                return self.value(node, operands)

    def value(self, node: Node, operands: list[Value]) -> Value:
        match node:
            case Arithmetic():
                return self.arithmetic(node, operands)
            case Negative():
                return self.negative(operands[0])
            case Call():
                return functions.call(node.function, operands)
            case Path():
                return FALSE  # the result for a body that is not an XML document
        raise AssertionError(node)

    # --- operands --------------------------------------------------------------------------------

    def literal(self, node: Literal) -> Value:
        kind = node.kind
        if kind is Kind.NULL:
            return NULL
        if self.dialect.narrow_literals:
            kind = narrowed(node)
        return Value(kind, node.value)

    def lookup(self, name: str) -> Value:
        if name in self.dialect.never_seen:
            return NULL
        alias = self.dialect.aliases.get(name)
        if alias is not None:
            found = self.lookup(alias)
            words = self.dialect.words.get(name)
            return found if words is None else Value(found.kind, words.get(found.value, found.value))
        header = self.message.headers.get(name)
        return (
            header if header is not None else self.message.properties.get(name, self.dialect.defaults.get(name, NULL))
        )

    # --- calculations ----------------------------------------------------------------------------

    def arithmetic(self, node: Arithmetic, operands: list[Value]) -> Value:
        result = operands[0]
        for operator, operand in zip(node.operators, operands[1:], strict=True):
            result = self.operation(operator, result, operand)
        return result

    def operation(self, operator: str, left: Value, right: Value) -> Value:
        kind = arithmetic(self.dialect, operator, left.kind, right.kind, convert=self.convert)
        if kind is UNDECIDED:
            left, right = as_number(left), as_number(right)
            kind = arithmetic(self.dialect, operator, left.kind, right.kind)
        if kind is Kind.NULL:
            return NULL
        if kind is Kind.FAULT:
            faulty = next((v for v in (left, right) if v.kind is Kind.FAULT), None)
            return faulty or Value(Kind.FAULT, f"{left.kind} {operator} {right.kind} cannot be calculated")
        if kind is Kind.STRING:
            return Value(kind, left.value + java_text(right))
        number = calculate(operator, operand_to_kind(left, kind), operand_to_kind(right, kind), kind)
        return NULL if number is None else Value(kind, number)

    def negative(self, operand: Value) -> Value:
        kind = negation(self.dialect, operand.kind)
        if kind is Kind.NULL:
            return NULL
        if kind is Kind.FAULT:
            return operand if operand.kind is kind else Value(kind, f"a {operand.kind} cannot be negated")
        if kind is Kind.BIG:
            number = -operand.value
            return Value(Kind.LONG if in_range(number, Kind.LONG) else Kind.BIG, number)
        return Value(kind, -operand.value if kind in {Kind.FLOAT, Kind.DOUBLE} else wrap(-operand.value, kind))

    # --- comparisons -----------------------------------------------------------------------------

    def compare(self, node: Compare, left: Value, right: Value) -> Value:
        if self.dialect.zero_ids_match and _is_zero_id_comparison(node):
            return TRUE
        return self.compared(node.operator, left, right)

    def compared(self, operator: str, left: Value, right: Value) -> Value:
        verdict = comparison(self.dialect, operator, left.kind, right.kind, convert=self.convert)
        if isinstance(verdict, Outcome):
            return _outcome_value(verdict, left, right)
        a, b = _to_basis(verdict, left, right)
        if a is None or b is None:  # after a NumberFormatException only <> is TRUE
            return _boolean(operator == "<>")
        order = self.dialect.total_order
        return _boolean(compare(operator, a, b, verdict.kind, total_order=order))

    def between(self, node: Between, operands: list[Value]) -> Value:
        """§3.8.1.1 defines BETWEEN as two comparisons."""
        value, low, high = operands
        if self.dialect.null_decides_between and Kind.NULL in {v.kind for v in operands}:
            return _boolean(node.negated)
        first, second = ("<", ">") if node.negated else (">=", "<=")
        halves = [self.compared(first, value, low), self.compared(second, value, high)]
        return self.combine(halves, decisive=node.negated)

    def like(self, node: Like, operand: Value) -> Value:
        if operand.kind is not Kind.STRING:
            return self.unlike_types(operand, _boolean(node.negated and self.dialect.like_is_two_valued))
        pattern = matcher(node.pattern, node.escape, self.dialect.activemq)
        return _boolean((pattern.fullmatch(operand.value) is not None) != node.negated)

    def membership(self, node: In, operand: Value) -> Value:
        if operand.kind is not Kind.STRING:
            return self.unlike_types(operand, NULL if self.dialect.in_is_unknown else FALSE)
        return _boolean((operand.value in node.values) != node.negated)

    def null_test(self, node: IsNull, operand: Value) -> Value:
        if operand.kind is Kind.FAULT and (self.dialect.faults_escape or self.dialect.faults_decide):
            return operand
        return _boolean((operand.kind is Kind.NULL) != node.negated)

    def unlike_types(self, operand: Value, verdict: Value) -> Value:
        """The result of LIKE and IN on a value that is not a string. NULL is unknown; after a fault the broker throws
        an exception, and the specification says FALSE.
        """
        if operand.kind is Kind.NULL:
            return operand
        if operand.kind is Kind.FAULT:
            return operand if self.dialect.faults_escape or self.dialect.faults_decide else FALSE
        return Value(Kind.FAULT, "unlike types") if self.dialect.faults_decide and verdict is not NULL else verdict

    # --- logic -----------------------------------------------------------------------------------

    def combine(self, operands: Sequence[Value], *, decisive: bool) -> Value:
        """Kleene's AND (decided by FALSE) or OR (by TRUE), from left to right up to the deciding operand."""
        result = _boolean(not decisive)
        for operand in map(as_truth, operands):
            if operand.kind is Kind.FAULT:
                return operand
            if operand is NULL:
                result = NULL
            elif operand.value is decisive:
                result = operand
                if not self.dialect.faults_decide:
                    return result
        decided = _boolean(decisive)
        return decided if decided in map(as_truth, operands) else result


def as_truth(value: Value) -> Value:
    """The value as a condition: a boolean or a fault does not change, NULL is unknown, and any other type is FALSE."""
    if value.kind is Kind.BOOLEAN:
        return TRUE if value.value else FALSE
    return value if value.kind in {Kind.NULL, Kind.FAULT} else FALSE


def negated(truth: Value) -> Value:
    if truth.kind is Kind.BOOLEAN:
        return FALSE if truth.value else TRUE
    return truth


def narrowed(node: Literal) -> Kind:
    """ActiveMQ's ``ConstantExpression``: it ignores the suffix, and -2147483648 is a negated long."""
    if node.kind in {Kind.INT, Kind.LONG}:
        assert isinstance(node.value, int)
        return Kind.INT if -(1 << 31) < node.value < 1 << 31 else Kind.LONG
    return Kind.DOUBLE if node.kind is Kind.FLOAT else node.kind


def as_number(value: Value) -> Value:
    """``ArithmeticExpression.asNumber`` with conversion: a text with a point is a double, any other text is a long."""
    if value.kind is not Kind.STRING:
        return value
    if "." in value.value:
        number: float | None = java_double(value.value)
        kind = Kind.DOUBLE
    else:
        number, kind = java_integer(value.value, Kind.LONG), Kind.LONG
    return Value(Kind.FAULT, _NOT_A_NUMBER) if number is None else Value(kind, number)


def operand_to_kind(value: Value, kind: Kind) -> float:
    number: float = value.value
    if value.kind is Kind.BIG and kind in {Kind.INT, Kind.LONG}:
        return wrap(int(number), kind)
    return to_kind(number, kind)


def _to_basis(basis: Basis, left: Value, right: Value) -> tuple[object, object]:
    a = parse_java(left.value, basis.kind) if basis.parse == "left" else left.value
    b = parse_java(right.value, basis.kind) if basis.parse == "right" else right.value
    if basis.kind in NUMERIC:
        return (None if a is None else to_kind(a, basis.kind)), (None if b is None else to_kind(b, basis.kind))
    return a, b


def _is_zero_id_comparison(node: Compare) -> bool:
    """Return whether an id is compared with an id of zeros, which matches any message under ``zero_ids_match``."""
    if node.operator != "=":
        return False
    for name, literal in ((node.left, node.right), (node.right, node.left)):
        if isinstance(name, Property) and name.name in _ID_HEADERS and isinstance(literal, Literal):
            return literal.kind is Kind.STRING and bool(_ZERO_ID.fullmatch(str(literal.value)))
    return False


def _outcome_value(outcome: Outcome, left: Value, right: Value) -> Value:
    if outcome is Outcome.FAULT:
        faulty = next((v for v in (left, right) if v.kind is Kind.FAULT), None)
        return faulty or Value(Kind.FAULT, f"{left.kind} and {right.kind} cannot be compared")
    return NULL if outcome is Outcome.UNKNOWN else _boolean(outcome is Outcome.TRUE)


def _boolean(truth: bool) -> Value:  # noqa: FBT001 - a truth value is the argument
    return TRUE if truth else FALSE
