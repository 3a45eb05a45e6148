"""Text -> lark's tree, with the grammar of the dialect (``grammar*.lark``), -> our tree. Imports lark.

Our tree is built from the leaves up, without recursion: deep nesting cannot overflow the stack.
"""

import re
from functools import lru_cache, partialmethod
from importlib import resources
from typing import Any, NoReturn

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from jms_selector.errors import InvalidSelectorError, SelectorTooLargeError
from jms_selector.syntax import check, literals
from jms_selector.syntax.check import Item, RuleError
from jms_selector.syntax.diagnose import diagnose, hint_at
from jms_selector.syntax.dialects import Dialect
from jms_selector.syntax.kinds import Kind, Schema
from jms_selector.syntax.like import compile_like
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
)

__all__ = ["MAX_NESTING", "Builder"]

MAX_NESTING = 256
"""Maximum depth of nested parentheses, NOTs, signs and calls.

The parsers of Artemis and Classic recurse: 500 levels work, 1,000 cause a StackOverflowError in the broker
(Artemis 2.55.0, Classic 6.3.1). This package also evaluates calculations by recursion.
"""

_NESTING_RULES = frozenset({"group", "not_", "positive", "negative", "call"})


@lru_cache
def _lark(activemq: bool, hyphens: bool) -> Lark:  # noqa: FBT001 - positional, so that equal calls share a cache entry
    folder = resources.files("jms_selector.syntax")
    files = ("grammar.lark", "grammar_activemq.lark" if activemq else "grammar_spec.lark")

    def terminal(token: Token) -> Token:
        name = literals.reserved_word(str(token), activemq=activemq)
        return type(token).new_borrow_pos(name, token.value, token) if name else token

    def hyphenated(definition: Any) -> None:
        if definition.name == "NAME":
            definition.pattern.value = r"[A-Za-z_$][A-Za-z0-9_$-]*"

    return Lark(
        "\n".join((folder / file).read_text("utf-8") for file in files),
        parser="lalr",
        lexer="basic",
        maybe_placeholders=True,
        lexer_callbacks={"NAME": terminal},
        edit_terminals=hyphenated if hyphens else None,
    )


class Builder:
    """Has, for each rule and alias of the grammar, a public method of that name, which makes a part of our tree."""

    def __init__(
        self, text: str, offset: int, dialect: Dialect, *, strict: bool, hyphens: bool, schema: Schema
    ) -> None:
        """``offset``: the length of the text's prefixes, from whose end lark counts positions. ``strict``: accept only
        what the specification allows, and the headers of ``schema``. ``hyphens``: names may contain hyphens.
        """
        self._text, self._offset, self._body = text, offset, text[offset:]
        self._dialect = dialect
        self._strict, self._hyphens, self._schema = strict, hyphens, schema
        self._oversized: set[int] = set()
        """Positions of 9223372036854775808, which is valid only after a minus."""

    def build(self) -> Node:
        try:
            root = check.require_condition(self._walk(self._lark_tree()))
        except RuleError as error:
            self._refuse(error.item.start, error.found, error.expected, error.hint)
        if self._oversized:
            self._refuse(min(self._oversized), "9223372036854775808 is beyond the range of a long")
        return root

    def _refuse(self, start: int, found: str, expected: tuple[str, ...] = (), hint: str = "") -> NoReturn:
        raise InvalidSelectorError(self._text, start + self._offset, found, expected, hint) from None

    def _lark_tree(self) -> Tree[Token] | Token:
        try:
            return _lark(self._dialect.activemq, self._hyphens).parse(self._body)
        except UnexpectedInput as error:
            found = diagnose(self._body, error, strict=self._strict)
            self._refuse(found.position, found.found, found.expected, found.hint)

    def _walk(self, tree: Tree[Token] | Token) -> Item:
        results: list[Any] = []
        stack: list[tuple[Any, int, bool]] = [(tree, 0, False)]
        while stack:
            node, depth, done = stack.pop()
            if not hasattr(node, "children"):
                results.append(node)
            elif not done:
                depth += node.data in _NESTING_RULES
                if depth > MAX_NESTING:
                    self._refuse_nesting(node)
                stack.append((node, depth, True))
                stack.extend((child, depth, False) for child in reversed(node.children))
            else:
                start = len(results) - len(node.children)
                arguments = results[start:]
                del results[start:]
                results.append(getattr(self, str(node.data))(*arguments))
        item: Item = results[0]
        return item

    def _refuse_nesting(self, node: Any) -> NoReturn:
        while getattr(node, "children", None):
            node = node.children[0]
        position = (getattr(node, "start_pos", None) or 0) + self._offset
        raise SelectorTooLargeError(
            self._text,
            position,
            f"The selector nests parentheses, NOT and signs more than {MAX_NESTING} deep"
            f" (at character {position + 1:,}).",
            hint="Use fewer parentheses, or filter in Spark.",
        )

    # --- atoms -----------------------------------------------------------------------------------

    def property(self, token: Token) -> Item:
        start = token.start_pos or 0
        try:
            literals.check_name(str(token), activemq=self._dialect.activemq, hyphens=self._hyphens)
        except literals.LiteralError as error:
            self._refuse(start, error.found, hint=error.hint or hint_at(self._body, start))
        return self._named(str(token), start)

    def quoted_property(self, token: Token) -> Item:
        start = token.start_pos or 0
        empty = str(token) == '""' and not self._dialect.activemq
        allowed = self._dialect.quoted_names and not (self._strict or self._hyphens)
        if empty or not allowed:
            self._refuse(start, f"{token} cannot stand here", hint="Write strings in single quotes: 'like this'.")
        return self._named(literals.string(token), start)

    def _named(self, name: str, start: int) -> Item:
        item = Item(Property(name), start)
        if self._strict:
            check.require_specified_name(item, name, self._schema)
        return item

    def string(self, token: Token) -> Item:
        return Item(Literal(literals.string(token), Kind.STRING), token.start_pos or 0)

    def number(self, token: Token) -> Item:
        start = token.start_pos or 0
        try:
            literal = literals.number(str(token), activemq=self._dialect.activemq)
        except literals.LiteralError as error:
            self._refuse(start, error.found, hint=error.hint)
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
            self._refuse(start, f"Unknown function {function}")
        if not known[0] <= len(given) <= known[1]:
            self._refuse(start, f"{function} does not take {len(given)} arguments")
        return Item(Call(function, given), start)

    # --- calculations ----------------------------------------------------------------------------

    def product(self, *parts: Any) -> Item:
        operands, operators = parts[::2], parts[1::2]
        if self._strict:
            for operand in operands:
                check.require_numeric_value(operand, self._schema)
            if bad := next((o for o in operators if o == "%"), None):
                self._refuse(bad.start_pos, "% cannot stand here", ("+ - * or /",))
        node = Arithmetic(tuple(map(str, operators)), tuple(item.node for item in operands))
        return Item(node, operands[0].start)

    sum = product

    def positive(self, sign: Token, operand: Item) -> Item:
        if self._strict:
            check.require_numeric_value(operand, self._schema)
        return Item(operand.node, sign.start_pos or 0, grouped=True)

    def negative(self, sign: Token, operand: Item) -> Item:
        start, node = sign.start_pos or 0, operand.node
        if self._strict:
            check.require_numeric_value(operand, self._schema)
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
        token = re.compile(r"\w+").match(self._body, operand.start)
        return token is not None and token[0][-1] in "lL"

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
                check.require_numeric_value(item, self._schema)

    def between(self, operand: Item, low: Item, high: Item, *, negated: bool = False) -> Item:
        self._ordered(operand, low, high)
        return Item(Between(operand.node, low.node, high.node, negated), operand.start)

    not_between = partialmethod(between, negated=True)

    def like(self, operand: Item, pattern: Token, escape: Token | None, *, negated: bool = False) -> Item:
        if self._strict:
            check.require_property(operand, "LIKE", bare=True)
        character = None if escape is None else literals.string(escape)
        check.require_one_character(
            Item(operand.node, (escape or pattern).start_pos or 0), character, activemq=self._dialect.activemq
        )
        node = Like(operand.node, literals.string(pattern), character, negated)
        try:
            compile_like(node.pattern, character, activemq=self._dialect.activemq)
        except ValueError as error:
            self._refuse(pattern.start_pos or 0, str(error))
        return Item(node, operand.start)

    not_like = partialmethod(like, negated=True)

    def in_(self, operand: Item, *values: Token, negated: bool = False) -> Item:
        check.require_property(operand, "IN", bare=self._strict)
        return Item(In(operand.node, tuple(map(literals.string, values)), negated), operand.start)

    not_in = partialmethod(in_, negated=True)

    def is_null(self, operand: Item, *, negated: bool = False) -> Item:
        if self._strict:
            check.require_property(operand, "IS NULL", bare=True)
        return Item(IsNull(operand.node, negated), operand.start)

    is_not_null = partialmethod(is_null, negated=True)

    # --- logic -----------------------------------------------------------------------------------

    def not_(self, operand: Item) -> Item:
        return Item(Not(check.require_condition(operand)), operand.start)

    def conjunction(self, *operands: Item) -> Item:
        return Item(And(tuple(map(check.require_condition, operands))), operands[0].start)

    def disjunction(self, *operands: Item) -> Item:
        return Item(Or(tuple(map(check.require_condition, operands))), operands[0].start)
