"""Builds conditions: comparisons, LIKE, IN, IS NULL, and logic. Each public method has the name of a grammar rule."""

from lark import Token

from jms_selector.syntax import check, literals
from jms_selector.syntax.check import Item
from jms_selector.syntax.like import compile_like
from jms_selector.syntax.reading import Reading
from jms_selector.syntax.tree import And, Between, Compare, In, IsNull, Like, Not, Or

__all__ = ["Conditions"]


class Conditions:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._activemq = reading.dialect.activemq
        self._strict = reading.strict

    # --- comparisons -----------------------------------------------------------------------------

    def compare(self, left: Item, operator: Token, right: Item) -> Item:
        for item in (left, right) if self._strict else ():
            check.require_value(item)
        if operator in {"=", "<>"}:
            check.require_comparable(left, right)
            if self._strict:
                check.require_like_types(left, right)
        else:
            self._ordered(left, right)
        return Item(Compare(str(operator), left.node, right.node), left.start)

    def _ordered(self, *items: Item) -> None:
        for item in items:
            check.require_number(item)
            if self._strict:
                check.require_numeric_value(item, self._reading.schema)

    def between(self, operand: Item, low: Item, high: Item, *, negated: bool = False) -> Item:
        self._ordered(operand, low, high)
        return Item(Between(operand.node, low.node, high.node, negated), operand.start)

    def not_between(self, operand: Item, low: Item, high: Item) -> Item:
        return self.between(operand, low, high, negated=True)

    def like(self, operand: Item, pattern: Token, escape: Token | None, *, negated: bool = False) -> Item:
        if self._strict:
            check.require_bare_property(operand, "LIKE")
        character = None if escape is None else literals.string(escape)
        check.require_one_character(
            Item(operand.node, (escape or pattern).start_pos or 0), character, activemq=self._activemq
        )
        node = Like(operand.node, literals.string(pattern), character, negated)
        try:
            compile_like(node.pattern, character, activemq=self._activemq)
        except ValueError as error:
            self._reading.refuse(pattern.start_pos or 0, str(error))
        return Item(node, operand.start)

    def not_like(self, operand: Item, pattern: Token, escape: Token | None) -> Item:
        return self.like(operand, pattern, escape, negated=True)

    def in_(self, operand: Item, *values: Token, negated: bool = False) -> Item:
        check.require_property(operand)
        if self._strict:
            check.require_bare_property(operand, "IN")
        return Item(In(operand.node, tuple(map(literals.string, values)), negated), operand.start)

    def not_in(self, operand: Item, *values: Token) -> Item:
        return self.in_(operand, *values, negated=True)

    def is_null(self, operand: Item, *, negated: bool = False) -> Item:
        if self._strict:
            check.require_bare_property(operand, "IS NULL")
        return Item(IsNull(operand.node, negated), operand.start)

    def is_not_null(self, operand: Item) -> Item:
        return self.is_null(operand, negated=True)

    # --- logic -----------------------------------------------------------------------------------

    def not_(self, operand: Item) -> Item:
        return Item(Not(check.require_condition(operand)), operand.start)

    def conjunction(self, *operands: Item) -> Item:
        return Item(And(tuple(map(check.require_condition, operands))), operands[0].start)

    def disjunction(self, *operands: Item) -> Item:
        return Item(Or(tuple(map(check.require_condition, operands))), operands[0].start)
