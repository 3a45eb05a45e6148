"""Text -> tree. The specification's grammar by default; a broker's own where its dialect is named.

The grammar is lark's (``grammar*.lark``), what it cannot say is in :mod:`check` and :mod:`literals`.
Nothing here recurses: nesting costs memory, no stack.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NoReturn

from jms_selector.errors import InvalidSelectorError, SelectorTooLargeError
from jms_selector.syntax import check, literals
from jms_selector.syntax.check import Item, RuleError
from jms_selector.syntax.diagnose import diagnose, hint_at
from jms_selector.syntax.dialects import Dialect, dialect_of
from jms_selector.syntax.kinds import Kind
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
    Selector,
)

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

__all__ = ["MAX_LENGTH", "MAX_NESTING", "parse"]

MAX_LENGTH = 1 << 18
"""Characters of a selector. 3,000 terms of 80 characters fit; a broker refuses far shorter STOMP headers."""

MAX_NESTING = 256
"""Parentheses, NOTs, signs and calls inside each other.

The parsers of Artemis and Classic recurse: 500 levels pass there, 1,000 are a StackOverflowError in the broker
(Artemis 2.55.0, Classic 6.3.1). Calculations are evaluated by recursion here, too.
"""

CACHED = 256
"""Parsed selectors kept: a query has one, a notebook a few."""

_CONVERT = "convert_string_expressions:"
_HYPHENS = "hyphenated_props:"
_NO = "no_"
_NESTING_RULES = frozenset({"group", "not_", "positive", "negative", "call"})


def parse(text: str, *, strict: bool = False, dialect: str | Dialect = "spec") -> Selector:
    """Read a selector; ``InvalidSelectorError`` says where and why it is none.

    By default every form is read that some broker takes, with the specification's precedence.
    ``strict`` holds to the specification and to what its test suite demands. ``dialect`` artemis or
    classic reads as that broker does: NOT binds tighter than comparison, and prefixes are known.
    """
    return _parse(text, strict, dialect_of(dialect).name)


@lru_cache(CACHED)
def _parse(text: str, strict: bool, name: str) -> Selector:  # noqa: FBT001 - a cache wants positions
    dialect = dialect_of(name)
    if len(text) > MAX_LENGTH:
        raise SelectorTooLargeError(
            text,
            MAX_LENGTH,
            f"The selector has {len(text):,} characters, more than {MAX_LENGTH:,}.",
            hint="Filter by fewer conditions, or in Spark.",
        )
    body, prefixes = _cut_prefixes(text, dialect)
    if not dialect.activemq and not body.strip(" \t\f\r\n"):
        return Selector(text, None)
    if strict:
        _refuse_comments(text)
    hyphens = prefixes.get(_HYPHENS, False)
    builder = _Builder(text, len(text) - len(body), dialect, strict=strict, hyphens=hyphens)
    return Selector(text, builder.build(_grown(builder, body)), prefixes.get(_CONVERT, False))


def _cut_prefixes(text: str, dialect: Dialect) -> tuple[str, dict[str, bool]]:
    """ActiveMQ's switches, at offset 0 only, the last of a kind wins."""
    found: dict[str, bool] = {}
    many = len(dialect.prefixes) > 1
    while prefix := next((p for p in dialect.prefixes if text.startswith(p)), None):
        text = text.removeprefix(prefix)
        found[prefix.removeprefix(_NO)] = not prefix.startswith(_NO)
        if not many:
            break
    return text, found


_COMMENT = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|(?P<comment>/\*)")


def _refuse_comments(text: str) -> None:
    """§3.8.1.1 knows none; by default they are skipped, as ActiveMQ does."""
    for match in _COMMENT.finditer(text):
        if match["comment"]:
            raise InvalidSelectorError(
                text, match.start("comment"), "A comment cannot stand here", hint="A selector has no comments."
            )


# --- lark ----------------------------------------------------------------------------------------


@lru_cache
def _lark(activemq: bool, hyphens: bool) -> "Lark":  # noqa: FBT001 - a cache wants positions
    from lark import Lark

    folder = resources.files("jms_selector.syntax")
    files = ("grammar.lark", "grammar_activemq.lark" if activemq else "grammar_spec.lark")

    def terminal(token: "Token") -> "Token":
        name = literals.word(str(token), activemq=activemq)
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


def _grown(builder: "_Builder", body: str) -> "Tree[Token] | Token":
    from lark.exceptions import UnexpectedInput

    try:
        return _lark(builder.dialect.activemq, builder.hyphens).parse(body)
    except UnexpectedInput as error:
        found = diagnose(body, error, strict=builder.strict)
        hint = found.hint or hint_at(body, found.position)
        raise InvalidSelectorError(
            builder.text, found.position + builder.offset, found.found, found.expected, hint
        ) from None


class _Builder:
    """lark's tree -> ours, from the leaves up; a method for each rule and alias of the grammar."""

    def __init__(self, text: str, offset: int, dialect: Dialect, *, strict: bool, hyphens: bool) -> None:
        self.text = text
        self.offset = offset
        self.dialect = dialect
        self.strict = strict
        self.hyphens = hyphens
        self.activemq = dialect.activemq
        self._oversized: set[int] = set()
        """Places of 9223372036854775808, a literal only under a minus."""

    def build(self, tree: "Tree[Token] | Token") -> Node:
        try:
            root = check.condition(self._walk(tree))
        except RuleError as error:
            self._refuse(error.item.start, error.found, error.expected, error.hint)
        if self._oversized:
            self._refuse(min(self._oversized), "9223372036854775808 is beyond the range of a long")
        return root

    def _walk(self, tree: "Tree[Token] | Token") -> Item:
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
                rule: Callable[..., Item] = getattr(self, f"_{node.data}")
                results.append(rule(*arguments))
        item: Item = results[0]
        return item

    def _refuse_nesting(self, node: Any) -> NoReturn:
        while getattr(node, "children", None):
            node = node.children[0]
        position = (getattr(node, "start_pos", None) or 0) + self.offset
        raise SelectorTooLargeError(
            self.text,
            position,
            f"The selector nests parentheses, NOT and signs more than {MAX_NESTING} deep"
            f" (at character {position + 1:,}).",
            hint="Write it with fewer parentheses, or filter in Spark.",
        )

    def _refuse(self, start: int, found: str, expected: tuple[str, ...] = (), hint: str = "") -> NoReturn:
        raise InvalidSelectorError(self.text, start + self.offset, found, expected, hint) from None

    # --- atoms -----------------------------------------------------------------------------------

    def _property(self, token: "Token") -> Item:
        start = token.start_pos or 0
        try:
            literals.check_name(str(token), activemq=self.activemq, hyphens=self.hyphens)
        except literals.LiteralError as error:
            self._refuse(start, error.found, hint=error.hint or hint_at(self.text, start + self.offset))
        return self._named(str(token), start)

    def _quoted_property(self, token: "Token") -> Item:
        start = token.start_pos or 0
        empty = str(token) == '""' and not self.activemq
        if self.strict or not self.dialect.quoted_names or self.hyphens or empty:
            self._refuse(start, f"{token} cannot stand here", hint="Strings stand in single quotes: 'like this'.")
        return self._named(literals.string(token), start)

    def _named(self, name: str, start: int) -> Item:
        item = Item(Property(name), start)
        if self.strict:
            check.strict_name(item, name)
        return item

    def _string(self, token: "Token") -> Item:
        return Item(Literal(literals.string(token), Kind.STRING), token.start_pos or 0)

    def _number(self, token: "Token") -> Item:
        start = token.start_pos or 0
        try:
            literal = literals.number(str(token), activemq=self.activemq)
        except literals.LiteralError as error:
            self._refuse(start, error.found, hint=error.hint)
        if literal.kind is Kind.BIG and not self.activemq:
            self._oversized.add(start)
        return Item(literal, start)

    def _true(self, token: "Token") -> Item:
        return Item(Literal(value=True, kind=Kind.BOOLEAN), token.start_pos or 0)

    def _false(self, token: "Token") -> Item:
        return Item(Literal(value=False, kind=Kind.BOOLEAN), token.start_pos or 0)

    def _null(self) -> Item:
        return Item(Literal(None, Kind.NULL), 0)

    def _group(self, opening: "Token", inner: Item, _closing: "Token") -> Item:
        return Item(inner.node, opening.start_pos or 0, grouped=True)

    def _path(self, language: "Token", expression: "Token") -> Item:
        return Item(Path(str(language).upper(), literals.string(expression)), language.start_pos or 0)

    def _call(self, name: "Token", _opening: "Token", *arguments: Any) -> Item:
        start, function = name.start_pos or 0, str(name)
        given = tuple(item.node for item in arguments if isinstance(item, Item))
        known = self.dialect.functions.get(function)
        if known is None:
            self._refuse(start, f"There is no function {function} here")
        if not known[0] <= len(given) <= known[1]:
            self._refuse(start, f"{function} does not take {len(given)} arguments")
        return Item(Call(function, given), start)

    # --- calculations ----------------------------------------------------------------------------

    def _sum(self, *parts: Any) -> Item:
        operands, operators = parts[::2], parts[1::2]
        if self.strict:
            for operand in operands:
                check.strict_number(operand)
            if bad := next((o for o in operators if o == "%"), None):
                self._refuse(bad.start_pos, "% cannot stand here", ("+ - * or /",))
        node = Arithmetic(tuple(map(str, operators)), tuple(item.node for item in operands))
        return Item(node, operands[0].start)

    _product = _sum

    def _positive(self, sign: "Token", operand: Item) -> Item:
        if self.strict:
            check.strict_number(operand)
        return Item(operand.node, sign.start_pos or 0, grouped=True)

    def _negative(self, sign: "Token", operand: Item) -> Item:
        start, node = sign.start_pos or 0, operand.node
        if self.strict:
            check.strict_number(operand)
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
        """A minus right before a number belongs to it (-2^63 is a long, 2^63 is none); ActiveMQ negates."""
        if self.activemq or operand.grouped or not isinstance(operand.node, Literal):
            return False
        return operand.node.kind in {Kind.INT, Kind.LONG, Kind.BIG, Kind.FLOAT, Kind.DOUBLE}

    def _suffixed(self, operand: Item) -> bool:
        token = re.compile(r"\w+").match(self.text, operand.start + self.offset)
        return token is not None and token[0][-1] in "lL"

    # --- comparisons -----------------------------------------------------------------------------

    def _compare(self, left: Item, operator: "Token", right: Item) -> Item:
        for item in (left, right) if self.strict else ():
            check.strict_operand(item)
        if operator in {"=", "<>"}:
            check.equated(left, right)
            if self.strict:
                check.strict_types(left, right)
        else:
            self._ordered(left, right)
        return Item(Compare(str(operator), left.node, right.node), left.start)

    def _ordered(self, *items: Item) -> None:
        for item in items:
            check.ordered(item)
            if self.strict:
                check.strict_number(item)

    def _between(self, operand: Item, low: Item, high: Item, *, negated: bool = False) -> Item:
        self._ordered(operand, low, high)
        return Item(Between(operand.node, low.node, high.node, negated), operand.start)

    def _not_between(self, operand: Item, low: Item, high: Item) -> Item:
        return self._between(operand, low, high, negated=True)

    def _like(self, operand: Item, pattern: "Token", escape: "Token | None", *, negated: bool = False) -> Item:
        if self.strict:
            check.strict_identifier(operand, "LIKE")
        character = None if escape is None else literals.string(escape)
        check.escape(Item(operand.node, (escape or pattern).start_pos or 0), character, activemq=self.activemq)
        node = Like(operand.node, literals.string(pattern), character, negated)
        try:
            compile_like(node.pattern, character, activemq=self.activemq)
        except ValueError as error:
            self._refuse(pattern.start_pos or 0, str(error))
        return Item(node, operand.start)

    def _not_like(self, operand: Item, pattern: "Token", escape: "Token | None") -> Item:
        return self._like(operand, pattern, escape, negated=True)

    def _in_(self, operand: Item, *values: "Token", negated: bool = False) -> Item:
        check.listed(operand)
        if self.strict:
            check.strict_identifier(operand, "IN")
        return Item(In(operand.node, tuple(map(literals.string, values)), negated), operand.start)

    def _not_in(self, operand: Item, *values: "Token") -> Item:
        return self._in_(operand, *values, negated=True)

    def _is_null(self, operand: Item, *, negated: bool = False) -> Item:
        if self.strict:
            check.strict_identifier(operand, "IS NULL")
        return Item(IsNull(operand.node, negated), operand.start)

    def _is_not_null(self, operand: Item) -> Item:
        return self._is_null(operand, negated=True)

    # --- logic -----------------------------------------------------------------------------------

    def _not_(self, operand: Item) -> Item:
        return Item(Not(check.condition(operand)), operand.start)

    def _conjunction(self, *operands: Item) -> Item:
        return Item(And(tuple(map(check.condition, operands))), operands[0].start)

    def _disjunction(self, *operands: Item) -> Item:
        return Item(Or(tuple(map(check.condition, operands))), operands[0].start)
