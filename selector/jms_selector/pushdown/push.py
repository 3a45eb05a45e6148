"""Splits a selector into a text for the broker (the pushdown) and a residual for Spark. The split is always sound.

Every condition becomes a :class:`_Part`: a tree for the broker, and a :class:`Trust` in the broker's result.

* ``EXACT``: the broker's three-valued result equals the selector's result. The tree may stand anywhere, also under
  NOT.
* ``TRUE_ONLY``: the broker's result is TRUE exactly where the selector is TRUE. The tree may stand under AND and OR.
* ``WEAKER``: the broker's result is TRUE wherever the selector is TRUE, and perhaps elsewhere. The tree may stand under
  AND and OR, and the condition is also part of the residual.

AND pushes every operand that can be pushed. OR is pushed if all its operands can be pushed. NOT moves to the conditions
by De Morgan's laws, which hold in three-valued logic, so no weakened condition stands under a NOT.

The reference result is the broker's rules applied to the tree of the specification's grammar, with properties on the
left (:func:`rewrite.put_properties_left`) and NULL unknown on both sides (:func:`dialects.with_null_on_both_sides`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jms_selector.errors import InvalidSelectorError, UnsupportedSelectorError
from jms_selector.pushdown import rewrite
from jms_selector.pushdown.rewrite import TRUE, NotPushableError, Target, Trust
from jms_selector.syntax.dialects import Dialect, dialect_of
from jms_selector.syntax.kinds import NO_HEADERS, Schema
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import (
    And,
    Compare,
    IsNull,
    Node,
    Not,
    Or,
    Property,
    Selector,
    conditions,
    fold,
    postorder,
)
from jms_selector.targets.text import render, translate

__all__ = ["Pushdown", "push"]


@dataclass(frozen=True, slots=True)
class Pushdown:
    text: str | None
    """The text of the ``selector`` header of SUBSCRIBE, or None for no selector."""

    residual: Selector | None
    """The conditions that the reader must evaluate, in the specification's dialect, or None for no residual."""

    warnings: tuple[str, ...]
    """The reasons why conditions are not pushed, and unexpected behaviour of the broker."""

    pushed: Selector | None
    """The tree of ``text``, for the reader's re-evaluation in the broker's dialect."""


@dataclass(frozen=True, slots=True)
class _Part:
    node: Node | None
    """The tree for the broker, or None if nothing can be pushed."""

    trust: Trust
    residual: Node | None
    """The conditions that the reader must evaluate."""

    in_or: Node | None
    """The tree for the broker under OR, where an exception would hide the other operands: it throws nowhere but where
    the selector throws."""

    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pair:
    """The parts of a node and of its negation."""

    plain: _Part
    negated: _Part


def push(
    selector: Selector | str, dialect: str | Dialect, *, convert: bool = False, schema: Schema = NO_HEADERS
) -> Pushdown:
    """Split a selector between a broker and its reader.

    ``convert``: compare strings that hold numbers as numbers, because STOMP producers send every value as a string.
    ``schema``: headers, whose kinds are known. Conditions on names of unknown kinds become longer texts.
    """
    rules = dialect_of(dialect)
    if not rules.activemq and not rules.unknown_broker:
        raise UnsupportedSelectorError(
            f"Nothing can be pushed in the {rules.name} dialect: no supported broker uses it."
        )
    given = parse(selector) if isinstance(selector, str) else selector
    root = given.root
    if root is None:
        return Pushdown(None, None, (), None)
    given = replace(given, convert=given.convert or convert)
    _refuse_quoted_strings(given)
    if rules.unknown_broker:
        return Pushdown(None, given, (f"{rules.name}: nothing is known of how this broker evaluates selectors",), None)
    if given.convert and not (rules.sends_prefix or rules.always_converts):
        raise UnsupportedSelectorError(f"A broker of the dialect {rules.name} cannot compare strings as numbers.")

    target = Target(rules, schema, given.convert)

    def visit(node: Node, pairs: list[_Pair]) -> _Pair:
        match node:
            case And():
                return _conjunction(node, pairs)
            case Or():
                return _disjunction(node, pairs)
            case Not():
                return _Pair(pairs[0].negated, pairs[0].plain)
        return _condition(node, target)

    return _make_pushdown(given, fold(rewrite.put_properties_left(root), visit, conditions).plain, rules)


def _make_pushdown(given: Selector, part: _Part, dialect: Dialect) -> Pushdown:
    residual = None if part.residual is None else given.with_root(part.residual)
    warnings = (*part.reasons, *_warnings(part.node, dialect))
    if part.node is None or part.node == TRUE:
        return Pushdown(None, residual, warnings, None)
    # Classic adds the prefix to STOMP selectors itself. A second prefix corrupts a broker-wide cache.
    text = render(Selector("", part.node, given.convert and dialect.sends_prefix), dialect)
    converts = dialect.always_converts or given.convert
    return Pushdown(text, residual, warnings, Selector(text, translate(part.node, dialect), converts))


# --- logic ------------------------------------------------------------------------------------------


def _conjunction(node: Node, pairs: list[_Pair]) -> _Pair:
    plain = _all_of([pair.plain for pair in pairs])
    return _Pair(plain, _negate_exact(plain) or _any_of(Not(node), [pair.negated for pair in pairs]))


def _disjunction(node: Node, pairs: list[_Pair]) -> _Pair:
    plain = _any_of(node, [pair.plain for pair in pairs])
    return _Pair(plain, _negate_exact(plain) or _all_of([pair.negated for pair in pairs]))


def _negate_exact(part: _Part) -> _Part | None:
    """NOT of an exact part, which is exact too; None if the negation must be rewritten separately."""
    if part.trust is not Trust.EXACT or part.node is None:
        return None
    # IS NULL is never unknown: its negation is IS NOT NULL.
    inner = part.node
    negated = IsNull(inner.operand, not inner.negated) if isinstance(inner, IsNull) else Not(inner)
    return _Part(negated, Trust.EXACT, None, negated)


def _all_of(parts: list[_Part]) -> _Part:
    """AND: push the operands that can be pushed. Without the other operands the broker delivers more messages."""
    pushed = [part.node for part in parts if part.node is not None]
    unpushed = [part.residual for part in parts if part.residual is not None]
    node = _join_with_and(pushed) if pushed else None
    residual = _join_with_and(unpushed) if unpushed else None
    trust = min(part.trust for part in parts)
    trust = trust if trust or node is None else Trust.WEAKER
    return _Part(node, trust, residual, _shielded(parts), _collect_reasons(parts))


def _shielded(parts: list[_Part]) -> Node | None:
    """AND of the operands that throw nowhere but where the selector throws.

    A broker does not evaluate an operand after one that is FALSE. An operand that stays in Spark, or that is weakened,
    no longer prevents the exception of a later one.
    """
    nodes = []
    shielding = True
    for part in parts:
        if part.in_or is not None and (shielding or not rewrite.has_calculation(part.in_or)):
            nodes.append(part.in_or)
        shielding = shielding and part.trust >= Trust.TRUE_ONLY
    return _join_with_and(nodes) if nodes else None


def _any_of(source: Node, parts: list[_Part]) -> _Part:
    """OR: push all operands or none, because a message may match only the operand that is not pushed."""
    nodes = [part.in_or for part in parts if part.in_or is not None]
    if len(nodes) < len(parts):
        return _Part(None, Trust.NONE, source, None, _collect_reasons(parts))
    trust = min(part.trust for part in parts)
    node = Or(tuple(nodes))
    return _Part(node, trust, source if trust is Trust.WEAKER else None, node, _collect_reasons(parts))


def _join_with_and(nodes: list[Node]) -> Node:
    nodes = [node for node in nodes if node != TRUE] or [TRUE]
    return nodes[0] if len(nodes) == 1 else And(tuple(nodes))


def _collect_reasons(parts: Iterable[_Part]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for part in parts for reason in part.reasons))


# --- conditions -------------------------------------------------------------------------------------


def _condition(node: Node, target: Target) -> _Pair:
    plain = _rewrite_condition(node, target)
    return _Pair(plain, _negate_exact(plain) or _rewrite_condition(Not(node), target))


def _rewrite_condition(node: Node, target: Target) -> _Part:
    try:
        pushed, trust = rewrite.rewrite_typed(node, target)
        if target.dialect.boolean_throws:
            pushed = rewrite.avoid_exceptions(pushed, target.schema)
        _refuse_replaced(render(pushed, target.dialect), target.dialect)
    except (NotPushableError, UnsupportedSelectorError) as reason:
        why = reason.args[0] if reason.args else ""
        return _Part(None, Trust.NONE, node, None, (f"{render(node)} stays in Spark: {why}",))
    return _Part(pushed, trust, node if trust is Trust.WEAKER else None, pushed)


def _refuse_replaced(text: str, dialect: Dialect) -> None:
    for word, other in dialect.replaced_texts.items():
        if f"'{word}'" in text:
            raise NotPushableError(f"the broker replaces the text '{word}' by '{other}' in a selector over AMQP")


# --- warnings ----------------------------------------------------------------------------------------


def _warnings(node: Node | None, dialect: Dialect) -> Iterable[str]:
    if node is None:
        return
    for part in postorder(node):
        if isinstance(part, Property) and part.name in dialect.null_without_jms_client:
            yield f"{part.name} is NULL in {dialect.name}'s selectors for messages that no JMS client sent."
    if dialect.converts_arithmetic and rewrite.has_calculation(node):
        yield f"{dialect.name} logs a warning for each message whose property is not a number in this calculation."


def _refuse_quoted_strings(selector: Selector) -> None:
    """Refuse ``color = "red"``: it compares two properties, which is hardly intended."""
    if selector.root is None or '"' not in selector.text:
        return
    for node in postorder(selector.root):
        if isinstance(node, Compare) and isinstance(node.left, Property) and isinstance(node.right, Property):
            quoted = f'"{node.right.name}"'
            if (place := selector.text.find(quoted)) > 0:
                raise InvalidSelectorError(
                    selector.text,
                    place,
                    f"{quoted} is a property name here",
                    hint=f"Write strings in single quotes: '{node.right.name}'.",
                )
