"""Static rules: what may stand where, judged while the tree is built.

An :class:`Item` is a node with the place it was read at; a rule that is broken raises :class:`RuleError`
with the item it is about, and the parser turns that into an ``InvalidSelectorError`` with its caret.
Strict rules hold to the specification (and the TCK), the others are what every broker refuses.
"""

from typing import NamedTuple

from jms_selector.syntax.kinds import NUMERIC, Kind
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

SELECTOR_HEADERS = frozenset(
    {"JMSDeliveryMode", "JMSPriority", "JMSMessageID", "JMSTimestamp", "JMSCorrelationID", "JMSType"}
)
"""§3.8.1.1: "Message header field references are restricted to" these."""

_STRING_HEADERS = SELECTOR_HEADERS - {"JMSPriority", "JMSTimestamp"}


class Item(NamedTuple):
    node: Node
    start: int
    grouped: bool = False
    """It stands in parentheses."""


class RuleError(ValueError):
    def __init__(self, item: Item, found: str, expected: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(found)
        self.item = item
        self.found = found
        self.expected = expected
        self.hint = hint


# --- rules of every dialect ---------------------------------------------------------------------


def condition(item: Item) -> Node:
    """The operand of AND, OR, NOT, or the whole selector: its value is a boolean, or may be one."""
    if is_condition(item.node) or isinstance(item.node, Property):
        return item.node
    raise RuleError(item, f"{_called(item.node)} is no condition", hint="Compare it with something.")


def is_condition(node: Node) -> bool:
    if isinstance(node, Literal):
        return node.kind in {Kind.BOOLEAN, Kind.NULL}
    return isinstance(node, _CONDITIONS) or (isinstance(node, Call) and node.function in _BOOLEAN_CALLS)


def ordered(item: Item) -> None:
    """An operand of ``<``, ``>``, BETWEEN and their sisters: numbers only."""
    node = item.node
    if isinstance(node, Literal) and node.kind not in NUMERIC | {Kind.BIG}:
        raise RuleError(
            item,
            f"{_called(node)} has no order",
            ("a number",),
            "Only numbers can be compared with < <= > >= and BETWEEN; strings and booleans with = and <>.",
        )
    if is_condition(node):
        raise RuleError(item, "A condition has no order", ("a number",))


def equated(left: Item, right: Item) -> None:
    """The operands of ``=`` and ``<>``."""
    for item in (left, right):
        if isinstance(item.node, Literal) and item.node.kind is Kind.NULL:
            raise RuleError(item, "NULL equals nothing", hint="Write IS NULL or IS NOT NULL.")
    if isinstance(left.node, Literal) and isinstance(right.node, Literal):
        kinds = left.node.kind, right.node.kind
        if kinds[0] is Kind.BOOLEAN and kinds[1] is not Kind.BOOLEAN:
            raise RuleError(right, f"{_called(right.node)} cannot be compared with a boolean")


def listed(item: Item) -> None:
    if not isinstance(item.node, Property):
        raise RuleError(item, "IN wants a property on its left", ("a property name",))


def escape(item: Item, character: str | None, *, activemq: bool) -> None:
    """ESCAPE takes one character; ActiveMQ counts UTF-16 units."""
    if character is None:
        return
    length = len(character.encode("utf-16-le", "surrogatepass")) // 2 if activemq else len(character)
    if length != 1:
        raise RuleError(item, f"ESCAPE {character!r} is not one character", ("a string of one character",))


# --- strict rules -------------------------------------------------------------------------------


def strict_name(item: Item, name: str) -> None:
    """§3.8.1.1: which names beginning with JMS may be spoken of."""
    if name.startswith("JMS") and not name.startswith(("JMSX", "JMS_")) and name not in SELECTOR_HEADERS:
        raise RuleError(
            item,
            f"{name} may not be used in a selector",
            hint=f"Of the headers only {', '.join(sorted(SELECTOR_HEADERS))} can be selected by.",
        )


def strict_identifier(item: Item, what: str) -> None:
    if not isinstance(item.node, Property) or item.grouped:
        raise RuleError(item, f"{what} wants a property on its left", ("a property name",))


def strict_operand(item: Item) -> None:
    """A comparison is made of values: no condition inside, no chain."""
    if isinstance(item.node, _CONDITIONS):
        raise RuleError(item, "A condition is no value", hint="Combine conditions with AND, OR and NOT.")


def strict_types(left: Item, right: Item) -> None:
    """Two literals of unlike types can never be equal."""
    kinds = [_family(item.node) for item in (left, right)]
    if None not in kinds and kinds[0] != kinds[1]:
        raise RuleError(right, f"{_called(right.node)} cannot be compared with {_called(left.node)}")


def strict_number(item: Item) -> None:
    """An operand of arithmetic, or of an ordering: neither a string nor a boolean by its looks."""
    strict_operand(item)
    node = item.node
    if isinstance(node, Literal) and node.kind not in NUMERIC | {Kind.BIG}:
        raise RuleError(item, f"{_called(node)} is no number", ("a number",))
    if isinstance(node, Property) and node.name in _STRING_HEADERS:
        raise RuleError(item, f"{node.name} is a string", ("a number",))


def _family(node: Node) -> str | None:
    if not isinstance(node, Literal):
        return None
    return "number" if node.kind in NUMERIC else str(node.kind)


def _called(node: Node) -> str:
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
