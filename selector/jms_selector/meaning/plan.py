"""A condition and the kinds of its properties -> the plan that a column engine computes.

The kinds determine the comparison and its common kind, or a constant outcome. The engine needs only the values. The
Arrow target turns a plan into masks, the Spark target turns it into an expression. After the rules are applied, byte,
short and int behave alike, so most of the kinds that a text may have share one plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jms_selector.meaning.evaluate import narrowed
from jms_selector.meaning.rules import UNDECIDED, Basis, Outcome, arithmetic, comparison, negation
from jms_selector.syntax.dialects import Dialect
from jms_selector.syntax.kinds import INTEGRAL, Kind
from jms_selector.syntax.like import Token, compile_like
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
)

__all__ = ["NOT_COMPUTABLE", "Plan", "expand_between", "junction_children", "plan_condition", "to_negation_normal_form"]


# --- plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    kind: Kind
    value: Any


@dataclass(frozen=True, slots=True)
class Operand:
    """The property's value; ``kind`` is LONG for every integral kind."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Calculation:
    operator: str
    kind: Kind
    left: "ValuePlan"
    right: "ValuePlan"


@dataclass(frozen=True, slots=True)
class Minus:
    kind: Kind
    operand: "ValuePlan"


ValuePlan = Constant | Operand | Calculation | Minus


@dataclass(frozen=True, slots=True)
class ConstantOutcome:
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison, unknown where an operand is null. Only an integer division by zero is null."""

    operator: str
    basis: Basis
    total_order: bool
    left: ValuePlan
    right: ValuePlan


@dataclass(frozen=True, slots=True)
class Matching:
    operand: ValuePlan
    tokens: tuple[Token, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Membership:
    operand: ValuePlan
    values: tuple[str, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class NullTest:
    operand: ValuePlan
    negated: bool


@dataclass(frozen=True, slots=True)
class Truth:
    operand: ValuePlan


@dataclass(frozen=True, slots=True)
class NotComputable:
    """No column engine can compute the condition, so every outcome is possible."""


Plan = ConstantOutcome | Comparison | Matching | Membership | NullTest | Truth | NotComputable
NOT_COMPUTABLE = NotComputable()
_TRUE, _FALSE, _UNKNOWN, _FAULT = map(ConstantOutcome, Outcome)


class _NoPlanError(Exception):
    pass


# --- shape ----------------------------------------------------------------------------------------


def expand_between(root: Node) -> Node:
    """Replace BETWEEN by the two comparisons that define it (§3.8.1.1). A comparison may have fewer properties."""

    def visit(node: Node, operands: list[Node]) -> Node:
        return node.expanded() if isinstance(node, Between) else node.with_children(operands)

    return fold(root, visit, conditions)


def to_negation_normal_form(root: Node) -> Node:
    """Move every NOT directly above a condition. De Morgan's laws hold in three-valued logic."""

    def visit(node: Node, operands: list[tuple[Node, Node]]) -> tuple[Node, Node]:
        plain = tuple(pair[0] for pair in operands)
        negated = tuple(pair[1] for pair in operands)
        match node:
            case And():
                return And(plain), Or(negated)
            case Or():
                return Or(plain), And(negated)
            case Not():
                return operands[0][1], operands[0][0]
        return node, Not(node)

    return fold(root, visit, conditions)[0]


def junction_children(node: Node) -> tuple[Node, ...]:
    """The children of AND and OR in negation normal form; a condition, or NOT of one, has none."""
    return node.children if isinstance(node, And | Or) else ()


# --- from kinds to a plan ----------------------------------------------------------------------


def plan_condition(condition: Node, kinds: Mapping[str, Kind], dialect: Dialect, *, convert: bool) -> Plan:
    """The plan of one condition for one assignment of kinds to the properties in it."""
    planner = _Planner(kinds, dialect, convert=convert)
    try:
        return planner.condition(condition)
    except _NoPlanError:
        return NOT_COMPUTABLE


class _Planner:
    def __init__(self, kinds: Mapping[str, Kind], dialect: Dialect, *, convert: bool) -> None:
        self.kinds = kinds
        self.dialect = dialect
        self.convert = convert

    def condition(self, node: Node) -> Plan:
        match node:
            case Compare(operator, left, right):
                return self.comparison(operator, *self.value(left), *self.value(right))
            case Like(operand, pattern, escape, negated):
                tokens = compile_like(pattern, escape, activemq=self.dialect.activemq)
                plan, kind = self.value(operand)
                if kind is Kind.STRING:
                    return Matching(plan, tokens, negated)
                return self.unlike_types(plan, kind, _TRUE if negated and self.dialect.like_is_two_valued else _FALSE)
            case In(operand, values, negated):
                plan, kind = self.value(operand)
                if kind is Kind.STRING:
                    return Membership(plan, tuple(dict.fromkeys(values)), negated)
                return self.unlike_types(plan, kind, _UNKNOWN if self.dialect.in_is_unknown else _FALSE)
            case IsNull(operand, negated):
                plan, kind = self.value(operand)
                if kind is Kind.FAULT and self.dialect.faults_escape:
                    return _FAULT
                if kind in {Kind.NULL, Kind.FAULT}:
                    return _TRUE if (kind is Kind.NULL) != negated else _FALSE
                return NullTest(plan, negated)
            case _:
                return self.truth(*self.value(node))

    def comparison(self, operator: str, left: ValuePlan, left_kind: Kind, right: ValuePlan, right_kind: Kind) -> Plan:
        verdict = comparison(self.dialect, operator, left_kind, right_kind, convert=self.convert)
        if isinstance(verdict, Outcome):
            _refuse_nullable(left, right)
            return ConstantOutcome(verdict)
        if verdict.kind is Kind.BIG:
            raise _NoPlanError
        basis = Basis(_family(verdict.kind), "") if not verdict.parse else verdict
        return Comparison(operator, basis, self.dialect.total_order, left, right)

    def unlike_types(self, plan: ValuePlan, kind: Kind, verdict: Plan) -> Plan:
        """LIKE and IN on a value that is not a string."""
        _refuse_nullable(plan)
        if kind is Kind.NULL:
            return _UNKNOWN
        if kind is Kind.FAULT:
            return _FAULT if self.dialect.faults_escape else _FALSE
        return verdict

    def truth(self, plan: ValuePlan, kind: Kind) -> Plan:
        if kind is Kind.BOOLEAN:
            return Truth(plan)
        return _UNKNOWN if kind is Kind.NULL else _FAULT if kind is Kind.FAULT else _FALSE

    def value(self, node: Node) -> tuple[ValuePlan, Kind]:
        return fold(node, self.visit)

    def visit(self, node: Node, operands: list[tuple[ValuePlan, Kind]]) -> tuple[ValuePlan, Kind]:
        match node:
            case Literal(value, kind):
                kind = narrowed(node) if self.dialect.narrow_literals else kind
                return Constant(_family(kind), value), kind
            case Property(name):
                kind = self.kinds[name]
                return Operand(name, _family(kind)), kind
            case Negative():
                plan, kind = operands[0]
                kind = negation(self.dialect, kind)
                if kind is Kind.BIG:
                    raise _NoPlanError
                return Minus(kind, plan), kind
            case Arithmetic(operators):
                result = operands[0]
                for operator, operand in zip(operators, operands[1:], strict=True):
                    result = self.operation(operator, *result, *operand)
                return result
        raise _NoPlanError  # a condition used as a value, or a function

    def operation(
        self, operator: str, left: ValuePlan, left_kind: Kind, right: ValuePlan, right_kind: Kind
    ) -> tuple[ValuePlan, Kind]:
        if Kind.BIG in {left_kind, right_kind}:
            raise _NoPlanError
        kind = arithmetic(self.dialect, operator, left_kind, right_kind, convert=self.convert)
        if kind in {UNDECIDED, Kind.STRING}:
            raise _NoPlanError
        if kind is Kind.FAULT:
            _refuse_nullable(left, right)
        return Calculation(operator, kind, left, right), kind


def _refuse_nullable(*operands: ValuePlan) -> None:
    """Refuse operands that may be null: NULL takes precedence over types and faults, so kinds determine no outcome."""
    if any(_nullable(operand) for operand in operands):
        raise _NoPlanError


def _nullable(plan: ValuePlan) -> bool:
    match plan:
        case Calculation(operator, kind, left, right):
            divides = operator in {"/", "%"} and kind in INTEGRAL
            return divides or _nullable(left) or _nullable(right)
        case Minus(_, operand):
            return _nullable(operand)
    return False


def _family(kind: Kind) -> Kind:
    return Kind.LONG if kind in INTEGRAL else kind
