"""What may go to the broker, and what stays: sound by construction.

Every condition becomes a :class:`_Part`: a form for the broker and how far it can be trusted.

* ``THREE``  the broker's three-valued result is the selector's: may stand anywhere, also under NOT.
* ``TWO``    TRUE exactly where the selector is: may stand under AND and OR, whose TRUE needs only TRUEs.
* ``WEAKER`` TRUE wherever the selector is, and perhaps more: the same places, but the condition stays.

AND pushes what it can and leaves the rest; OR pushes if every side can be; NOT is pushed through by De
Morgan's laws, which hold for three values, so nothing weakened ever stands under a NOT. The meaning aimed
at is the broker's own rules on the specification's tree, with the property on the left
(:func:`rewrite.oriented`) and NULL a NULL on either side (:func:`dialects.intended`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jms_selector.errors import InvalidSelectorError, UnsupportedSelectorError
from jms_selector.pushdown import rewrite
from jms_selector.pushdown.rewrite import TRUE, NotPushable, Trust
from jms_selector.syntax.dialects import Dialect, dialect_of
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

Rewriter = Callable[..., tuple[Node, Trust]]
"""A condition, or NOT of one -> the broker's form and its trust."""


@dataclass(frozen=True, slots=True)
class Pushdown:
    text: str | None
    """For the ``selector`` header of SUBSCRIBE; None: no selector."""

    residual: Selector | None
    """What the reader must still evaluate, in the specification's dialect; None: nothing."""

    warnings: tuple[str, ...]
    """Why something stays, and what the broker will do that one might not expect."""

    pushed: Selector | None
    """The tree of ``text``: what a reader may re-evaluate leniently, in the broker's dialect."""


@dataclass(frozen=True, slots=True)
class _Part:
    node: Node | None
    """For the broker; None: nothing can be pushed."""

    trust: Trust
    rest: Node | None
    """What stays for the reader."""

    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pair:
    """A node as it stands, and its negation."""

    plain: _Part
    negated: _Part


def push(
    selector: Selector | str,
    dialect: str | Dialect,
    *,
    convert: bool = False,
    text_values: bool = False,
) -> Pushdown:
    """Split a selector between a broker and its reader.

    ``convert``: producers send numbers as strings (STOMP does), and they are meant as numbers.
    ``text_values``: the selector is a predicate on the texts that a reader sees (``properties['x']``), and the
    broker's part only has to let every wanted message through.
    """
    rules = dialect_of(dialect)
    if not rules.activemq:
        raise UnsupportedSelectorError(f"Nothing is pushed in the {rules.name} dialect: it is no broker's.")
    given = parse(selector) if isinstance(selector, str) else selector
    if given.root is None:
        return Pushdown(None, None, (), None)
    _refuse_quoted_strings(given)
    convert = convert or text_values
    rewriter: Rewriter = rewrite.typed
    if text_values:
        from jms_selector.pushdown.textual import textual  # loaded for the few callers that ask for it

        rewriter = textual

    def visit(node: Node, pairs: list[_Pair]) -> _Pair:
        match node:
            case And():
                return _conjunction(node, pairs)
            case Or():
                return _disjunction(node, pairs)
            case Not():
                return _Pair(pairs[0].negated, pairs[0].plain)
        return _condition(node, rules, rewriter, convert=convert)

    part = fold(rewrite.oriented(given.root), visit, conditions).plain
    return _result(given, part, rules, convert=convert and rewrite.compares_numbers(given.root))


def _result(given: Selector, part: _Part, dialect: Dialect, *, convert: bool) -> Pushdown:
    rest = None if part.rest is None else given.with_root(part.rest)
    warnings = (*part.reasons, *_warnings(part.node, dialect))
    if part.node is None or part.node == TRUE:
        return Pushdown(None, rest, warnings, None)
    # Classic's STOMP adds the prefix itself; sent twice it spoils a cache of the whole broker.
    text = render(Selector("", part.node, convert and dialect.sends_prefix), dialect)
    return Pushdown(
        text, rest, warnings, Selector(text, translate(part.node, dialect), dialect.always_converts or convert)
    )


# --- logic ------------------------------------------------------------------------------------------


def _conjunction(node: Node, pairs: list[_Pair]) -> _Pair:
    plain = _all_of([pair.plain for pair in pairs])
    return _Pair(plain, _exact_negation(plain) or _any_of(Not(node), [pair.negated for pair in pairs]))


def _disjunction(node: Node, pairs: list[_Pair]) -> _Pair:
    plain = _any_of(node, [pair.plain for pair in pairs])
    return _Pair(plain, _exact_negation(plain) or _all_of([pair.negated for pair in pairs]))


def _exact_negation(part: _Part) -> _Part | None:
    """What is exact in all three values is so under NOT; of anything less the negation is built apart."""
    if part.trust is not Trust.THREE or part.node is None:
        return None
    # IS NULL has no third value: its negation is the other word.
    inner = part.node
    negated = IsNull(inner.operand, not inner.negated) if isinstance(inner, IsNull) else Not(inner)
    return _Part(negated, Trust.THREE, None)


def _all_of(parts: list[_Part]) -> _Part:
    """AND: what can be pushed is, the rest stays. Fewer conditions let more messages through."""
    kept = [part.node for part in parts if part.node is not None]
    rest = [part.rest for part in parts if part.rest is not None]
    node = None if not kept else _and(kept)
    trust = min(part.trust for part in parts)
    return _Part(node, trust if trust or node is None else Trust.WEAKER, _and(rest) if rest else None, _reasons(parts))


def _any_of(source: Node, parts: list[_Part]) -> _Part:
    """OR: one side that is not pushed could be the one a message matches."""
    nodes = [part.node for part in parts if part.node is not None]
    trust = min(part.trust for part in parts)
    if trust is Trust.NOTHING:
        return _Part(None, trust, source, _reasons(parts))
    return _Part(Or(tuple(nodes)), trust, source if trust is Trust.WEAKER else None, _reasons(parts))


def _and(nodes: list[Node]) -> Node:
    nodes = [node for node in nodes if node != TRUE] or [TRUE]
    return nodes[0] if len(nodes) == 1 else And(tuple(nodes))


def _reasons(parts: Iterable[_Part]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for part in parts for reason in part.reasons))


# --- conditions -------------------------------------------------------------------------------------


def _condition(node: Node, dialect: Dialect, rewriter: Rewriter, *, convert: bool) -> _Pair:
    plain = _tried(node, dialect, rewriter, convert=convert)
    negated = _exact_negation(plain) or _tried(Not(node), dialect, rewriter, convert=convert)
    return _Pair(plain, negated)


def _tried(node: Node, dialect: Dialect, rewriter: Rewriter, *, convert: bool) -> _Part:
    try:
        pushed, trust = rewriter(node, dialect, convert=convert)
        if dialect.boolean_throws:
            pushed = rewrite.unthrowing(pushed)
        render(pushed, dialect)
    except (NotPushable, UnsupportedSelectorError) as reason:
        why = reason.args[0] if reason.args else ""
        return _Part(None, Trust.NOTHING, node, (f"{render(node)} stays in Spark: {why}",))
    return _Part(pushed, trust, node if trust is Trust.WEAKER else None)


# --- warnings ----------------------------------------------------------------------------------------


def _warnings(node: Node | None, dialect: Dialect) -> Iterable[str]:
    if node is None:
        return
    for part in postorder(node):
        if isinstance(part, Property) and part.name == "JMSMessageID" and part.name in dialect.aliases.values():
            yield "JMSMessageID is NULL to Artemis for messages that no JMS client sent."
    if dialect.converts_arithmetic and rewrite.calculates(node):
        yield "Artemis logs a warning for each message whose property is no number in this calculation."


def _refuse_quoted_strings(selector: Selector) -> None:
    """``color = "red"`` compares two properties, and never means to."""
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
                    hint=f"Strings stand in single quotes: '{node.right.name}'.",
                )
