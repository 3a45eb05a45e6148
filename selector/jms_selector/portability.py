"""A selector -> what real engines decide otherwise, and a text on which the large ones agree.

The differences were measured with the parsers and evaluators of eleven engines, in process, on one message.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

from jms_selector.meaning.plan import junction_children, to_negation_normal_form
from jms_selector.pushdown.rewrite import put_properties_left
from jms_selector.syntax.kinds import Kind, integer_kind
from jms_selector.syntax.like import choose_portable_escape, compile_like
from jms_selector.syntax.parse import parse
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
    Selector,
    fold,
    names,
    postorder,
)
from jms_selector.targets.text import render

__all__ = ["DATA", "DIFFERENCES", "ENGINES", "Difference", "Portable", "portable", "portable_text"]

DATA = Path(__file__).parent / "engines.json"
_MEASURED: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
ENGINES: dict[str, str] = _MEASURED["versions"]
"""Engine -> the version that was measured. IBM MQ JMS is the evaluator in the Java client."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A class of conditions on which engines disagree."""

    what: str
    example: str
    engines: tuple[str, ...]
    """The engines that refuse it, or select otherwise than the specification says."""


_DIFFERENCES = {
    "not": ("NOT before a condition without parentheses", "NOT i = 9 AND i = 5"),
    "not-not": ("NOT NOT", "NOT NOT b"),
    "missing": ("`<>` or NOT on a property that a message may lack", "m <> 'a'"),
    "right": ("a property right of = or <>", "i <> m"),
    "small-minus": ("a minus directly before 0.…", "t > -0.5"),
    "sign": ("a plus before a value, two minus, a minus before a point", "i = +5"),
    "division": ("a division of whole numbers", "i / 2 = 2"),
    "zero": ("a division by the number 0", "i / 0 = 1 OR i = 5"),
    "grouping": ("`-` or `/` before another operator", "10 - 5 - 2 = 3"),
    "parentheses": ("parentheses in a calculation", "(i + 1) * 2 = 12"),
    "calculation": ("a calculation with a property that is not a number", "-s < 5 OR i = 5"),
    "unlike": ("one property compared with texts and with numbers", "NOT (s = 1) OR s = 'a'"),
    "number": ("octal, hexadecimal, a suffix L, f or d", "n = 010"),
    "large": ("a number beyond an int", "l = 3000000000"),
    "exponent": ("an exponent", "i = 5E+0"),
    "empty": ("the empty text", "o = ''"),
    "like": ("LIKE, which must match the whole text", "s LIKE 'blu'"),
    "percent": ("%% in a pattern", "s LIKE '%%'"),
    "escaped": ("ESCAPE", "q LIKE '%!%%' ESCAPE '!'"),
    "escape": ("ESCAPE other than before _, % or itself", "x LIKE 'a!xb' ESCAPE '!'"),
    "whole": ("`>=` or BETWEEN of a fraction with a whole number", "t >= 0"),
    "two": ("`<` or `>` of two properties", "s < x"),
    "name": ("a name that is not ASCII, or in double quotes", "été = 5"),
    "value": ("a condition as a value, or a test of an expression", "m + 1 IS NULL"),
    "mode": ("JMSDeliveryMode other than with = or <> and its two texts", "JMSDeliveryMode LIKE 'NON%'"),
    "comment": ("a comment", "i = 5 /* c */"),
}
"""By the class of ``engines.json``: what it is, and an example."""

DIFFERENCES = {key: Difference(*texts, tuple(_MEASURED["classes"][key])) for key, texts in _DIFFERENCES.items()}
"""The classes of disagreement that :func:`portable` finds, with the engines of ``engines.json``, which
``tests/selector/engines/engine_table.py`` writes.
"""


@dataclass(frozen=True, slots=True)
class Portable:
    text: str
    """Selects the same messages by the specification's rules, without the differences that a text can avoid."""

    differences: tuple[Difference, ...]
    """What engines decide otherwise in the given text."""

    remaining: tuple[Difference, ...]
    """What they still decide otherwise in ``text``."""


def portable(selector: Selector | str) -> Portable:
    """Find what engines decide otherwise, and write the selector so that as few as possible do."""
    given = parse(selector) if isinstance(selector, str) else selector
    if given.root is None:
        return Portable("", (), ())
    root = _portable(given.root)
    text = _spell(root)
    return Portable(text, tuple(_found(given.text or render(given), given.root)), tuple(_found(text, root)))


def portable_text(root: Node) -> str:
    """The text of a condition that as few engines as possible decide otherwise."""
    return _spell(_portable(root))


# --- the portable text -------------------------------------------------------------------------------


def _portable(root: Node) -> Node:
    return _guarded(fold(put_properties_left(root), _in_portable_form))


def _in_portable_form(node: Node, children: list[Node]) -> Node:
    match node:
        case Compare() | Between():
            return node.with_children(list(map(_without_suffix, children)))
        case Like(_, pattern, escape, negated):
            return Like(children[0], *choose_portable_escape(compile_like(pattern, escape), escape), negated)
        case Arithmetic(operators) if _needs_grouping(operators):
            pairs = zip(operators, children[1:], strict=True)
            return reduce(lambda left, pair: Arithmetic((pair[0],), (left, pair[1])), pairs, children[0])
    return node.with_children(children)


def _needs_grouping(operators: tuple[str, ...]) -> bool:
    return bool(set(operators[:-1]) & {"-", "/"})


def _without_suffix(node: Node) -> Node:
    """A literal that is compared: its value alone matters, and not whether it is a long or a float."""
    match node:
        case Literal(value, Kind.LONG) if isinstance(value, int):
            return Literal(value, integer_kind(value))
        case Literal(value, Kind.FLOAT):
            return Literal(value, Kind.DOUBLE)
    return node


_NEVER_NULL = {"JMSPriority", "JMSTimestamp", "JMSDeliveryMode"}


def _guarded(root: Node) -> Node:
    """Add ``x IS NOT NULL`` where an engine takes a condition on a missing property for true. NOT stands at conditions,
    so each condition has to be true in the same cases only.
    """

    def visit(node: Node, operands: list[Node]) -> Node:
        match node:
            case And():
                flat = [part for each in operands for part in (each.operands if isinstance(each, And) else (each,))]
                once = dict.fromkeys(part for part in flat if isinstance(part, IsNull))
                return And(tuple(part for part in flat if not isinstance(part, IsNull) or once.pop(part, 1) is None))
            case Or():
                return Or(tuple(operands))
        if not _may_select_missing(node):
            return node
        guards = [IsNull(Property(name), negated=True) for name in names(node) if name not in _NEVER_NULL]
        return And((*guards, node)) if guards else node

    return fold(to_negation_normal_form(root), visit, junction_children)


def _may_select_missing(node: Node) -> bool:
    match node:
        case Not(operand):
            return not isinstance(operand, IsNull | Property)
        case Compare(operator, _, right):
            return operator == "<>" or bool(names(right))
        case Between(_, low, high, negated):
            return negated or bool(names(low)) or bool(names(high))
        case In() | Like():
            return node.negated
    return False


_LITERALS = re.compile(r"('(?:[^']|'')*'|\"[^\"]*\")")


def _spell(root: Node) -> str:
    """The text, with ``- 0.5``, because IBM's grammar has no ``-0``, and with digits instead of exponents."""
    parts = _LITERALS.split(render(root))
    return "".join(part if place % 2 else _spell_numbers(part) for place, part in enumerate(parts))


def _spell_numbers(part: str) -> str:
    return re.sub(r"-(?=0?\.)", "- ", re.sub(r"(?<![\w.$])\d+\.\d+E-?[12]?\d(?!\d)", _digits, part))


def _digits(found: re.Match[str]) -> str:
    text = format(Decimal(found[0]), "f")
    return text if "." in text else f"{text}.0"


# --- differences -------------------------------------------------------------------------------------

_IN_TEXT = {
    "not": r"\bNOT\s+(?!NOT\b|\(|IN\b|LIKE\b|BETWEEN\b|NULL\b)[\w$.]+\s*"
    r"(?:[=<>*/+-]|(?:NOT\s+)?(?:IN|LIKE|BETWEEN|IS)\b)",
    "not-not": r"\bNOT\s+NOT\b",
    "small-minus": r"-0\.",
    "sign": r"(?:[=<>(,*/+-]|\b(?:BETWEEN|AND|OR|NOT))\s*\+|-\s*-|-\s*\.",
    "number": r"(?<![\w.$])(?:0\d+(?![\d.eE])|0[xX][\da-fA-F]+|\d[\d.]*[lLfFdD](?!\w))",
    "exponent": r"(?<![\w$])(?!0[xX])(?:\d+\.?\d*|\.\d+)[eE]",
    "comment": r"/\*",
    "name": r"[^\x00-\x7f]|\"",
}


def _found(text: str, root: Node) -> Iterator[Difference]:
    bare = re.sub(r"'(?:[^']|'')*'", "''", text)
    keys = {key for key, pattern in _IN_TEXT.items() if re.search(pattern, bare, re.IGNORECASE)}
    keys |= {key for node in postorder(root) for key in _of_node(node)}
    if _guarded(root) != to_negation_normal_form(root) or any(map(_has_two_negations, postorder(root))):
        keys.add("missing")
    kinds: dict[str, set[bool]] = {}
    for node in postorder(root):
        if isinstance(node, Compare) and isinstance(node.left, Property) and isinstance(node.right, Literal):
            kinds.setdefault(node.left.name, set()).add(isinstance(node.right.value, str))
        elif isinstance(node, Like | In) and isinstance(node.operand, Property):
            kinds.setdefault(node.operand.name, set()).add(True)  # noqa: FBT003 - a text
    if any(len(of_name) > 1 for of_name in kinds.values()):
        keys.add("unlike")
    return (difference for key, difference in DIFFERENCES.items() if key in keys)


def _has_two_negations(node: Node) -> bool:
    return isinstance(node, Not) and any(isinstance(inner, Not) for inner in postorder(node.operand))


def _of_node(node: Node) -> Iterator[str]:
    match node:
        case Arithmetic(operators, operands):
            yield from ["division"] if "/" in operators else []
            divisors = [each for operator, each in zip(operators, operands[1:], strict=True) if operator == "/"]
            yield from ["zero"] if any(isinstance(each, Literal) and each.value == 0 for each in divisors) else []
            inner = [each.operators[0] for each in operands if isinstance(each, Arithmetic)]
            yield from ["parentheses"] if inner and ({"*", "/"} & set(operators) or {"+", "-"} & set(inner)) else []
            yield from ["grouping"] if _needs_grouping(operators) else []
            yield from ["calculation"] if names(node) else []
        case Negative() if names(node):
            yield "calculation"
        case Literal(value) if isinstance(value, int) and integer_kind(value) is Kind.LONG:
            yield "large"
        case Compare(operator, left, right):
            yield from ["mode"] if _MODE in (left, right) and names(left) and names(right) else []
            yield from ["right"] if names(right) and operator in {"=", "<>"} else []
            yield from ["two"] if names(left) and names(right) and operator not in {"=", "<>"} else []
            yield from ["whole"] if operator in {">=", "<="} and _is_whole(right) else []
            yield from ["empty"] if isinstance(right, Literal) and right.value == "" else []
            conditions = (Compare, Between, In, Like, IsNull, And, Or, Not)
            yield from ["value"] if isinstance(left, conditions) or isinstance(right, conditions) else []
        case Between(_, low, _, _) if _is_whole(low):
            yield "whole"
        case In(_, values) if "" in values:
            yield "empty"
        case Like(operand, pattern, escape):
            yield from ["mode"] if operand == _MODE else []
            yield from ["like"] if escape is None else ["like", "escaped"]
            yield from ["empty"] if not pattern else []
            yield from ["percent"] if "%%" in _without_escapes(pattern, escape) else []
            if escape is not None and re.search(f"{re.escape(escape)}(?![_%{re.escape(escape)}])", pattern):
                yield "escape"
        case IsNull(operand) if not isinstance(operand, Property):
            yield "value"


_MODE = Property("JMSDeliveryMode")


def _without_escapes(pattern: str, escape: str | None) -> str:
    return re.sub(f"{re.escape(escape)}[_%{re.escape(escape)}]", "_", pattern) if escape else pattern


def _is_whole(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, int) and not isinstance(node.value, bool)
