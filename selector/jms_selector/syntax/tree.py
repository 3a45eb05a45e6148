"""The abstract syntax tree of a selector: frozen nodes, and walks without recursion.

AND, OR and chains of arithmetic are n-ary, so a list of 3,000 terms is one level deep. Equality, hashing, ``repr`` and
pickling use the post-order sequence, so deep nesting cannot overflow the stack.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Self, TypeVar

from jms_selector.syntax.kinds import Kind

__all__ = [
    "And",
    "Arithmetic",
    "Between",
    "Call",
    "Compare",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Negative",
    "Node",
    "Not",
    "Or",
    "Path",
    "Property",
    "Selector",
    "conditions",
    "fold",
    "names",
    "postorder",
]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    @property
    def children(self) -> tuple["Node", ...]:
        cls: Any = type(self)
        found = tuple([getattr(self, name) for name in _child_names(cls)])
        return found[0] if isinstance(self, Arithmetic | Call | And | Or) else found

    @property
    def facts(self) -> tuple[Any, ...]:
        """The fields of this node without its children."""
        cls: Any = type(self)
        return tuple([getattr(self, name) for name in _fact_names(cls)])

    def with_children(self, children: Sequence["Node"]) -> "Node":
        """The node with other children; a walk that ends at the node gives none, and the node stays as it is."""
        return _construct(type(self), self.facts, children) if children else self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return self is other or flatten(self) == flatten(other)

    def __hash__(self) -> int:
        return hash(flatten(self))

    def __repr__(self) -> str:
        return fold(self, _spell)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (flatten(self),)


_CHILD_FIELDS = frozenset({"operand", "operands", "arguments", "left", "right", "low", "high"})


@cache
def _fact_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls) if field.name not in _CHILD_FIELDS)


@cache
def _child_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls) if field.name in _CHILD_FIELDS)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literal(Node):
    """A constant. ``kind`` is its Java type; NULL occurs only in a broker's grammar."""

    value: bool | int | float | str | None
    kind: Kind


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Property(Node):
    """A property or a header, by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Negative(Node):
    operand: Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arithmetic(Node):
    """``a + b - c`` or ``a * b / c``: operators of one precedence, from left to right."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Node):
    """A function of ActiveMQ Classic."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Between(Node):
    operand: Node
    low: Node
    high: Node
    negated: bool = False

    def expanded(self) -> "And | Or":
        """The two comparisons that define it (§3.8.1.1)."""
        first, second = ("<", ">") if self.negated else (">=", "<=")
        pair = (Compare(first, self.operand, self.low), Compare(second, self.operand, self.high))
        return Or(pair) if self.negated else And(pair)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Like(Node):
    operand: Node
    pattern: str
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class In(Node):
    operand: Node
    values: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNull(Node):
    operand: Node
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Path(Node):
    """``XPATH '…'`` or ``XQUERY '…'`` over the body: only in ActiveMQ's grammar."""

    language: str
    expression: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(Node):
    operand: Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(Node):
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(Node):
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed selector. ``root`` is None for a blank text, which selects every message."""

    text: str
    root: Node | None
    convert: bool = False
    """The text begins with ``convert_string_expressions:``."""

    def __str__(self) -> str:
        return self.text

    def with_root(self, root: Node | None) -> Self:
        return type(self)(self.text, root, self.convert)


# --- walks -------------------------------------------------------------------------------------


def all_children(node: Node) -> tuple[Node, ...]:
    return node.children


def conditions(node: Node) -> tuple[Node, ...]:
    """The operands of AND, OR and NOT: a walk over these ends at conditions."""
    return node.children if isinstance(node, And | Or | Not) else ()


def postorder(root: Node, below: Callable[[Node], tuple[Node, ...]] = all_children) -> Iterator[Node]:
    """Every node after its children, without recursion."""
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        children = () if done else below(node)
        if not children:
            yield node
            continue
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(children))


def fold(
    root: Node,
    visit: Callable[[Node, list[Result]], Result],
    below: Callable[[Node], tuple[Node, ...]] = all_children,
) -> Result:
    """Visit bottom-up: ``visit`` takes a node and the results of the node's children."""
    results: list[Result] = []
    for node in postorder(root, below):
        start = len(results) - len(below(node))
        arguments = results[start:]
        del results[start:]
        results.append(visit(node, arguments))
    return results[0]


def names(root: Node) -> tuple[str, ...]:
    """The properties and headers of a tree, in order of appearance."""
    return tuple(dict.fromkeys(node.name for node in postorder(root) if isinstance(node, Property)))


Flat = tuple[tuple[type[Node], tuple[Any, ...], int], ...]


def flatten(root: Node) -> Flat:
    """The tree as a flat value: (class, own facts, number of children), children first."""
    return tuple((type(node), node.facts, len(node.children)) for node in postorder(root))


def rebuild(flat: Flat) -> Node:
    """The tree of a :func:`flatten` result."""
    results: list[Node] = []
    for cls, facts, count in flat:
        start = len(results) - count
        children = results[start:]
        del results[start:]
        results.append(_construct(cls, facts, children))
    return results[0]


def _construct(cls: Any, facts: Sequence[Any], children: Sequence[Node]) -> Node:
    below = (tuple(children),) if issubclass(cls, Arithmetic | Call | And | Or) else children
    names_of_all = (*_fact_names(cls), *_child_names(cls))
    node: Node = cls(**dict(zip(names_of_all, (*facts, *below), strict=True)))
    return node


def _spell(node: Node, children: list[str]) -> str:
    return f"{type(node).__name__}({', '.join([*map(repr, node.facts), *children])})"
