"""Builds values: names, literals, calls and calculations. Each public method has the name of a grammar rule."""

import re
from typing import Any

from lark import Token

from jms_selector.syntax import check, literals
from jms_selector.syntax.check import Item
from jms_selector.syntax.diagnose import hint_at
from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.reading import Reading
from jms_selector.syntax.tree import Arithmetic, Call, Literal, Negative, Path, Property

__all__ = ["Operands"]


class Operands:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._dialect = reading.dialect
        self._strict = reading.strict
        self._oversized: set[int] = set()
        """Positions of 9223372036854775808, which is valid only after a minus."""

    def refuse_oversized_numbers(self) -> None:
        """Refuse 2^63 without a minus. Call this after the whole tree is built."""
        if self._oversized:
            self._reading.refuse(min(self._oversized), "9223372036854775808 is beyond the range of a long")

    # --- atoms -----------------------------------------------------------------------------------

    def property(self, token: Token) -> Item:
        start = token.start_pos or 0
        try:
            literals.check_name(str(token), activemq=self._dialect.activemq, hyphens=self._reading.hyphens)
        except literals.LiteralError as error:
            self._reading.refuse(start, error.found, hint=error.hint or hint_at(self._reading.body, start))
        return self._named(str(token), start)

    def quoted_property(self, token: Token) -> Item:
        start = token.start_pos or 0
        empty = str(token) == '""' and not self._dialect.activemq
        allowed = self._dialect.quoted_names and not (self._strict or self._reading.hyphens)
        if empty or not allowed:
            self._reading.refuse(
                start, f"{token} cannot stand here", hint="Write strings in single quotes: 'like this'."
            )
        return self._named(literals.string(token), start)

    def _named(self, name: str, start: int) -> Item:
        item = Item(Property(name), start)
        if self._strict:
            check.require_specified_name(item, name, self._reading.schema)
        return item

    def string(self, token: Token) -> Item:
        return Item(Literal(literals.string(token), Kind.STRING), token.start_pos or 0)

    def number(self, token: Token) -> Item:
        start = token.start_pos or 0
        try:
            literal = literals.number(str(token), activemq=self._dialect.activemq)
        except literals.LiteralError as error:
            self._reading.refuse(start, error.found, hint=error.hint)
        if literal.kind is Kind.BIG and not self._dialect.activemq:
            self._oversized.add(start)
        return Item(literal, start)

    def true(self, token: Token) -> Item:
        return Item(Literal(value=True, kind=Kind.BOOLEAN), token.start_pos or 0)

    def false(self, token: Token) -> Item:
        return Item(Literal(value=False, kind=Kind.BOOLEAN), token.start_pos or 0)

    def null(self) -> Item:
        return Item(Literal(None, Kind.NULL), 0)

    def group(self, opening: Token, inner: Item, _closing: Token) -> Item:
        return Item(inner.node, opening.start_pos or 0, grouped=True)

    def path(self, language: Token, expression: Token) -> Item:
        return Item(Path(str(language).upper(), literals.string(expression)), language.start_pos or 0)

    def call(self, name: Token, _opening: Token, *arguments: Any) -> Item:
        start, function = name.start_pos or 0, str(name)
        given = tuple(item.node for item in arguments if isinstance(item, Item))
        known = self._dialect.functions.get(function)
        if known is None:
            self._reading.refuse(start, f"Unknown function {function}")
        if not known[0] <= len(given) <= known[1]:
            self._reading.refuse(start, f"{function} does not take {len(given)} arguments")
        return Item(Call(function, given), start)

    # --- calculations ----------------------------------------------------------------------------

    def sum(self, *parts: Any) -> Item:
        return self._calculation(parts)

    def product(self, *parts: Any) -> Item:
        return self._calculation(parts)

    def _calculation(self, parts: tuple[Any, ...]) -> Item:
        operands, operators = parts[::2], parts[1::2]
        if self._strict:
            for operand in operands:
                check.require_numeric_value(operand, self._reading.schema)
            if bad := next((o for o in operators if o == "%"), None):
                self._reading.refuse(bad.start_pos, "% cannot stand here", ("+ - * or /",))
        node = Arithmetic(tuple(map(str, operators)), tuple(item.node for item in operands))
        return Item(node, operands[0].start)

    def positive(self, sign: Token, operand: Item) -> Item:
        if self._strict:
            check.require_numeric_value(operand, self._reading.schema)
        return Item(operand.node, sign.start_pos or 0, grouped=True)

    def negative(self, sign: Token, operand: Item) -> Item:
        start, node = sign.start_pos or 0, operand.node
        if self._strict:
            check.require_numeric_value(operand, self._reading.schema)
        if self._folds(operand):
            assert isinstance(node, Literal)
            self._oversized.discard(operand.start)
            number: Any = node.value
            kind = node.kind
            if kind is Kind.BIG or (kind is Kind.LONG and number == 1 << 31 and not self._suffixed(operand)):
                kind = Kind.LONG if kind is Kind.BIG else Kind.INT
            return Item(Literal(-number, kind), start, grouped=True)
        return Item(Negative(node), start, grouped=True)

    def _folds(self, operand: Item) -> bool:
        """Return whether a minus becomes part of the literal (-2^63 is a long, 2^63 is not); ActiveMQ negates the
        literal.
        """
        if self._dialect.activemq or operand.grouped or not isinstance(operand.node, Literal):
            return False
        return operand.node.kind in {Kind.INT, Kind.LONG, Kind.BIG, Kind.FLOAT, Kind.DOUBLE}

    def _suffixed(self, operand: Item) -> bool:
        token = re.compile(r"\w+").match(self._reading.body, operand.start)
        return token is not None and token[0][-1] in "lL"
