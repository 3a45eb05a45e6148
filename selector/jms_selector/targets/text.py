"""Tree -> text of a dialect, which every broker parses into the same tree.

The operand of NOT has parentheses (in ActiveMQ NOT binds tighter than comparisons), integers are decimal, floats have a
point, headers have the broker's names, and names that are not plain identifiers are quoted.
"""

import math
from collections.abc import Iterator, Mapping

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.meaning.conversions import java_text
from jms_selector.syntax.dialects import CONVERT_PREFIX, Dialect, dialect_of
from jms_selector.syntax.kinds import Kind, Value, integer_kind
from jms_selector.syntax.like import choose_portable_escape, compile_like
from jms_selector.syntax.literals import is_plain_name
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

__all__ = ["render", "translate"]

Part = str | Node | tuple[Node, int]
"""A text, a node, or a node and the precedence below which it needs parentheses."""

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _ATOM = range(8)


def render(selector: Selector | Node, dialect: str | Dialect = "spec") -> str:
    """The text of the selector in a dialect; ``UnsupportedSelectorError`` if the dialect cannot express it."""
    rules = dialect_of(dialect)
    root = selector.root if isinstance(selector, Selector) else selector
    if root is None:
        return ""
    prefix = CONVERT_PREFIX if isinstance(selector, Selector) and selector.convert and rules.prefixes else ""
    return prefix + "".join(_spell(translate(root, rules), rules))


def _spell(root: Node, dialect: Dialect) -> Iterator[str]:
    stack: list[Part] = [root]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, tuple):
            node, wanted = part
            stack += [node] if _precedence(node) >= wanted else [")", node, "("]
        else:
            stack.extend(reversed(list(_parts(part, dialect))))


def _precedence(node: Node) -> int:
    match node:
        case Or():
            return _OR
        case And():
            return _AND
        case Not():
            return _NOT
        case Arithmetic(operators):
            return _SUM if operators[0] in {"+", "-"} else _PRODUCT
        case Negative():
            return _UNARY
        case Literal(value) if isinstance(value, int | float) and not isinstance(value, bool):
            return _UNARY if math.copysign(1, value) < 0 else _ATOM
        case Literal() | Property() | Call() | Path():
            return _ATOM
    return _COMPARISON


def _parts(node: Node, dialect: Dialect) -> Iterator[Part]:
    match node:
        case And(operands):
            yield from _join(" AND ", operands, _NOT)
        case Or(operands):
            yield from _join(" OR ", operands, _AND)
        case Not(operand):
            yield "NOT "
            yield operand, _ATOM
        case Compare(operator, left, right):
            yield left, _SUM
            yield f" {operator} "
            yield right, _SUM
        case Between(operand, low, high, negated):
            yield operand, _SUM
            yield f" {'NOT ' if negated else ''}BETWEEN "
            yield low, _SUM
            yield " AND "
            yield high, _SUM
        case IsNull(operand, negated):
            yield operand, _SUM
            yield f" IS {'NOT ' if negated else ''}NULL"
        case Arithmetic(operators, operands):
            yield operands[0], _precedence(node) + 1
            for operator, operand in zip(operators, operands[1:], strict=True):
                yield f" {operator} "
                yield operand, _precedence(node) + 1
        case Negative(operand):
            # A minus right before a number would become part of the number.
            yield "-"
            yield operand, _ATOM + isinstance(operand, Literal)
        case Call(function, arguments):
            yield f"{function}("
            yield from _join(", ", arguments, _OR)
            yield ")"
        case _:
            yield from _leaf_parts(node, dialect)


def _leaf_parts(node: Node, dialect: Dialect) -> Iterator[Part]:
    match node:
        case Property(name):
            yield _name(name, dialect)
        case Literal():
            yield _literal(node, dialect)
        case Path(language, expression):
            yield f"{language} {_quoted(expression)}"
        case In(operand, values, negated):
            yield operand, _SUM
            yield f" {'NOT ' if negated else ''}IN ({', '.join(map(_quoted, values))})"
        case Like(operand, pattern, escape, negated):
            yield operand, _SUM
            yield f" {'NOT ' if negated else ''}LIKE {_quoted(pattern)}"
            if escape is not None:
                yield f" ESCAPE {_quoted(escape)}"


def _join(separator: str, nodes: tuple[Node, ...], wanted: int) -> Iterator[Part]:
    for place, node in enumerate(nodes):
        if place:
            yield separator
        yield node, wanted


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str, dialect: Dialect) -> str:
    if is_plain_name(name, activemq=dialect.activemq):
        return name
    if not dialect.quoted_names:
        raise UnsupportedSelectorError(f"{dialect.name} cannot express the name {name!r}.")
    return '"' + name.replace('"', '""') + '"'


def _literal(node: Literal, dialect: Dialect) -> str:
    value, kind = node.value, node.kind
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return _quoted(value)
        case int():
            is_short_long = kind is Kind.LONG and integer_kind(value) is Kind.INT
            return f"{value}L" if is_short_long and not dialect.activemq else str(value)
    if math.isinf(value):
        return "1E999" if value > 0 else "-1E999"
    if kind is Kind.FLOAT and not dialect.activemq:
        return java_text(Value(kind, value)) + "f"
    return java_text(Value(Kind.DOUBLE, value))


# --- the broker's names -----------------------------------------------------------------------------


def translate(root: Node, dialect: Dialect) -> Node:
    """Replace names and values of headers by those of the broker, and escapes of patterns by portable escapes."""
    names = {jms: own for own, jms in dialect.aliases.items()}

    def words_of(node: Node) -> Mapping[str, str] | None:
        return dialect.words.get(names.get(node.name, "")) if isinstance(node, Property) else None

    def visit(node: Node, children: list[Node]) -> Node:
        match node:
            case Property(name):
                if name in dialect.never_seen:
                    raise UnsupportedSelectorError(f"{name} is always NULL in {dialect.name}'s selectors.")
                return Property(names.get(name, name))
            case Like(operand, pattern, escape, negated):
                if words_of(operand) is not None:
                    raise _other_words(dialect)
                portable = (pattern, escape)
                if dialect.activemq:
                    portable = choose_portable_escape(compile_like(pattern, escape), escape)
                return Like(children[0], *portable, negated)
            case In(operand, values, negated):
                words = words_of(operand)
                if words is not None:
                    values = tuple(_translate_word(words, value, dialect) for value in values)
                return In(children[0], values, negated)
            case Compare(operator):
                left, right = children
                left = _translate_side(left, words_of(node.right), dialect)
                return Compare(operator, left, _translate_side(right, words_of(node.left), dialect))
        return node.with_children(children)

    return fold(root, visit)


def _other_words(dialect: Dialect) -> UnsupportedSelectorError:
    return UnsupportedSelectorError(f"{dialect.name} has other words for delivery modes.")


def _translate_word(words: Mapping[str, str], value: object, dialect: Dialect) -> str:
    """The broker's word for ``value``. Any other value is refused, because it may be a word of the broker."""
    if value not in words:
        raise UnsupportedSelectorError(f"{value!r} is not a delivery mode, so {dialect.name} cannot select by it.")
    return words[str(value)]


def _translate_side(side: Node, words: Mapping[str, str] | None, dialect: Dialect) -> Node:
    """A side of a comparison, translated if the other side is a header that has ``words`` at the broker."""
    if words is None:
        return side
    if not isinstance(side, Literal):
        raise _other_words(dialect)
    return Literal(_translate_word(words, side.value, dialect), Kind.STRING) if side.kind is Kind.STRING else side
