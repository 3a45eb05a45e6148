"""Static rules, checked while the tree is built.

An :class:`Item` is a node and its position in the text. A violated rule raises :class:`RuleError` with the item, and
the parser converts it into an ``InvalidSelectorError``. The specification (and its TCK) demands the strict rules; every
broker enforces the others.
"""

from typing import NamedTuple

from jms_selector.syntax.kinds import NUMERIC, Kind, Schema
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

__all__ = ["Item", "RuleError"]

_CONDITIONS = (And, Or, Not, Compare, Between, Like, In, IsNull, Path)
_BOOLEAN_CALLS = frozenset({"REGEX", "INLIST"})


class Item(NamedTuple):
    node: Node
    start: int
    grouped: bool = False
    """The node was in parentheses."""


class RuleError(ValueError):
    def __init__(self, item: Item, found: str, expected: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(found)
        self.item = item
        self.found = found
        self.expected = expected
        self.hint = hint


# --- rules of every dialect ---------------------------------------------------------------------


def require_condition(item: Item) -> Node:
    """An operand of AND, OR or NOT, or the whole selector: a condition, or a property, which may be a boolean."""
    if is_condition(item.node) or isinstance(item.node, Property):
        return item.node
    raise RuleError(item, f"{_describe(item.node)} is not a condition", hint="Compare it with a value.")


def is_condition(node: Node) -> bool:
    if isinstance(node, Literal):
        return node.kind in {Kind.BOOLEAN, Kind.NULL}
    return isinstance(node, _CONDITIONS) or (isinstance(node, Call) and node.function in _BOOLEAN_CALLS)


def require_number(item: Item) -> None:
    """An operand of ``<``, ``<=``, ``>``, ``>=`` or BETWEEN: a number."""
    node = item.node
    if isinstance(node, Literal) and node.kind not in NUMERIC | {Kind.BIG}:
        raise RuleError(
            item,
            f"{_describe(node)} cannot be ordered",
            ("a number",),
            "Only numbers can be compared with < <= > >= and BETWEEN; strings and booleans with = and <>.",
        )
    if is_condition(node):
        raise RuleError(item, "A condition cannot be ordered", ("a number",))


def require_comparable(left: Item, right: Item) -> None:
    """The operands of ``=`` or ``<>``: no NULL, and no boolean literal with another literal."""
    for item in (left, right):
        if isinstance(item.node, Literal) and item.node.kind is Kind.NULL:
            raise RuleError(item, "NULL cannot be compared", hint="Write IS NULL or IS NOT NULL.")
    if isinstance(left.node, Literal) and isinstance(right.node, Literal):
        kinds = left.node.kind, right.node.kind
        if kinds[0] is Kind.BOOLEAN and kinds[1] is not Kind.BOOLEAN:
            raise RuleError(right, f"{_describe(right.node)} cannot be compared with a boolean")


def require_property(item: Item, what: str, *, bare: bool) -> None:
    """The left side of IN, and in strict texts that of LIKE and IS NULL. ``bare``: without parentheses."""
    if not isinstance(item.node, Property) or (bare and item.grouped):
        raise RuleError(item, f"{what} needs a property on its left", ("a property name",))


def require_one_character(item: Item, character: str | None, *, activemq: bool) -> None:
    """ESCAPE takes one character; ActiveMQ counts UTF-16 units."""
    if character is None:
        return
    length = len(character.encode("utf-16-le", "surrogatepass")) // 2 if activemq else len(character)
    if length != 1:
        raise RuleError(item, f"ESCAPE {character!r} is not one character", ("a string of one character",))


# --- strict rules -------------------------------------------------------------------------------


def require_specified_name(item: Item, name: str, schema: Schema) -> None:
    """§3.8.1.1: "Message header field references are restricted to" the nameable headers."""
    if (
        schema.nameable
        and name.startswith("JMS")
        and not name.startswith(("JMSX", "JMS_"))
        and name not in schema.nameable
    ):
        raise RuleError(
            item,
            f"{name} cannot be used in a selector",
            hint=f"A selector can use the headers {', '.join(sorted(schema.nameable))} only.",
        )


def require_value(item: Item) -> None:
    """An operand of a comparison: a value, and no condition."""
    if isinstance(item.node, _CONDITIONS):
        raise RuleError(item, "A condition cannot be used as a value", hint="Combine conditions with AND, OR and NOT.")


def require_like_types(left: Item, right: Item) -> None:
    """Two literals of unlike types can never be equal."""
    kinds = [_family(item.node) for item in (left, right)]
    if None not in kinds and kinds[0] != kinds[1]:
        raise RuleError(right, f"{_describe(right.node)} cannot be compared with {_describe(left.node)}")


def require_numeric_value(item: Item, schema: Schema) -> None:
    """An operand of arithmetic or of an ordering: no string or boolean literal, no header that is a string."""
    require_value(item)
    node = item.node
    if isinstance(node, Literal) and node.kind not in NUMERIC | {Kind.BIG}:
        raise RuleError(item, f"{_describe(node)} is not a number", ("a number",))
    if isinstance(node, Property) and schema.kinds.get(node.name) is Kind.STRING:
        raise RuleError(item, f"{node.name} is a string", ("a number",))


def _family(node: Node) -> str | None:
    if not isinstance(node, Literal):
        return None
    return "number" if node.kind in NUMERIC else str(node.kind)


def _describe(node: Node) -> str:
    match node:
        case Literal(kind=Kind.STRING):
            return "A string"
        case Literal(kind=Kind.BOOLEAN):
            return "A boolean"
        case Literal(kind=Kind.NULL):
            return "NULL"
        case Literal():
            return "A number"
        case Arithmetic() | Negative():
            return "A calculation"
        case Call():
            return f"{node.function}(…)"
        case _:
            return "This"
