"""Rewrites a reader's conditions on texts into conditions that match at least the same messages at the broker.

The reader compares ``properties['x']`` with texts, or casts it to a number. The producer may have set any type with
that text, so the broker's condition matches every such type, and the reader evaluates its own condition again.
"""

import math
import re
import sys

from jms_selector.meaning.conversions import readings
from jms_selector.meaning.lenient import HEADERS
from jms_selector.pushdown.rewrite import FALSE, TRUE, NotPushableError, Trust, rewrite_typed
from jms_selector.syntax.dialects import Dialect
from jms_selector.syntax.kinds import INTEGRAL, NUMERIC, Kind, Value, integer_kind
from jms_selector.syntax.like import compile_like, matcher
from jms_selector.syntax.tree import And, Between, Compare, In, IsNull, Like, Literal, Node, Not, Or, Property

__all__ = ["textual"]

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_NUMBER_CHARACTERS = re.compile(r"[0-9.EINafinty-]*")
"""The characters of ``toString`` of a number: digits, NaN, Infinity, 1.0E10."""


def textual(node: Node, dialect: Dialect, *, convert: bool) -> tuple[Node, Trust]:
    """Rewrite one condition or its negation for the broker. A header has a known type, so it is rewritten as typed."""
    negated = isinstance(node, Not)
    inner = node.operand if isinstance(node, Not) else node
    operand = inner.children[0] if inner.children else inner
    if not isinstance(operand, Property) or operand.name in HEADERS:
        return rewrite_typed(node, dialect, convert=convert)
    match inner:
        case Compare(operator, _, Literal() as right):
            return _comparison(_OPPOSITE[operator] if negated else operator, operand, right)
        case Between(_, Literal() as low, Literal() as high, not_between):
            return _range(operand, low, high, outside=not_between != negated)
        case In(_, values, not_in):
            return _membership(operand, values, excluded=not_in != negated)
        case Like(_, pattern, escape, not_like):
            return _pattern(operand, pattern, escape, negated=not_like != negated)
        case IsNull(_, not_null):
            if not_null != negated:
                raise NotPushableError("a property with the value null has a text.")
            return IsNull(operand), Trust.EXACT if not negated else Trust.TRUE_ONLY
    raise NotPushableError("it does not compare a property with a literal.")


def _comparison(operator: str, operand: Property, right: Literal) -> tuple[Node, Trust]:
    if right.kind in NUMERIC:
        return _number_comparison(operator, operand, right), Trust.WEAKER
    if right.kind is Kind.BOOLEAN:
        return _text_comparison(operator, operand, "true" if right.value else "false")
    if operator not in {"=", "<>"}:
        raise NotPushableError("brokers order texts differently.")
    return _text_comparison(operator, operand, str(right.value))


def _text_comparison(operator: str, operand: Property, text: str) -> tuple[Node, Trust]:
    """Compare with every typed value of the text. <> on a string is TRUE for every other type, so one <> is enough."""
    values = {_family(value.kind): value for value in readings(text)}
    if operator == "<>" or len(values) == 1:
        return Compare(operator, operand, Literal(text, Kind.STRING)), Trust.TRUE_ONLY if len(
            values
        ) == 1 else Trust.WEAKER
    return Or(tuple(_equality(operand, value) for value in values.values())), Trust.WEAKER


def _family(kind: Kind) -> Kind:
    """One literal is enough for all kinds of integers, and one for both kinds of floats."""
    return Kind.LONG if kind in INTEGRAL else Kind.DOUBLE if kind in NUMERIC else kind


def _equality(operand: Property, value: Value) -> Node:
    if value.kind is Kind.DOUBLE and math.isnan(value.value):
        # NaN has no literal. In ``compareTo`` only NaN and infinity are above all finite numbers.
        return Compare(">", operand, Literal(sys.float_info.max, Kind.DOUBLE))
    kind = integer_kind(value.value) if value.kind in INTEGRAL else value.kind
    return Compare("=", operand, Literal(value.value, kind))


def _number_comparison(operator: str, operand: Property, right: Literal) -> Node:
    """``cast(x as double) > 5``: conversion parses '5' as the literal's type, so both types are compared."""
    plain = Compare(operator, operand, right)
    if operator == "<>" or right.kind not in INTEGRAL:
        return plain
    assert isinstance(right.value, int)
    return Or((plain, Compare(operator, operand, Literal(float(right.value), Kind.DOUBLE))))


def _range(operand: Property, low: Literal, high: Literal, *, outside: bool) -> tuple[Node, Trust]:
    first, second = ("<", ">") if outside else (">=", "<=")
    halves = (_number_comparison(first, operand, low), _number_comparison(second, operand, high))
    return (Or(halves) if outside else And(halves)), Trust.WEAKER


def _membership(operand: Property, values: tuple[str, ...], *, excluded: bool) -> tuple[Node, Trust]:
    """Rewrite IN as equalities: IN is unknown for a value that is not a string, equality is not."""
    forms = [_text_comparison("<>" if excluded else "=", operand, value)[0] for value in values]
    flat = [part for form in forms for part in (form.operands if isinstance(form, Or) else (form,))]
    if len(flat) == 1:
        return flat[0], Trust.WEAKER
    return (And(tuple(flat)) if excluded else Or(tuple(flat))), Trust.WEAKER


def _pattern(operand: Property, pattern: str, escape: str | None, *, negated: bool) -> tuple[Node, Trust]:
    """LIKE is FALSE for a value that is not a string, so other types are compared too; NOT LIKE is TRUE for them."""
    like = Like(operand, pattern, escape, negated)
    if negated:
        return like, Trust.WEAKER
    zero = Literal(0, Kind.INT)
    others: list[Node] = []
    tokens = compile_like(pattern, escape)
    if all(_NUMBER_CHARACTERS.fullmatch(token) for token in tokens if isinstance(token, str)):
        others += [Compare(">=", operand, zero), Compare("<", operand, zero)]
    for truth in (TRUE, FALSE):
        if matcher(pattern, escape, False).fullmatch(str(truth.value).lower()):  # noqa: FBT003
            others.append(Compare("=", operand, truth))
    return (Or((like, *others)), Trust.WEAKER) if others else (like, Trust.TRUE_ONLY)
