"""The possible outcomes of a selector on a row of the schema, over every type that a property's text may have had.

STOMP sends all values as text. Each condition is evaluated for every typed value with that text, the outcomes are
collected, and AND, OR and NOT combine sets. A row is kept if TRUE is among the outcomes. So no message that the broker
selected is dropped: the value that the broker evaluated is among those tried.

:func:`outcomes` evaluates one row. It is the oracle for the Arrow and Spark targets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.meaning.conversions import readings
from jms_selector.meaning.evaluate import Evaluator
from jms_selector.meaning.message import Message
from jms_selector.meaning.plan import ANYTHING, comparisons, specialise
from jms_selector.syntax.dialects import Dialect, dialect_of
from jms_selector.syntax.kinds import NULL, NUMERIC, Kind, Value
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import And, Node, Not, Or, Selector, conditions, fold, names

__all__ = ["MAX_NAMES", "Outcomes", "Source", "may_match", "outcomes", "prepared", "source"]

MAX_NAMES = 2
"""Properties in one condition whose types are tried together; with more, every outcome is allowed."""


class Outcomes(NamedTuple):
    """Which truth values are possible."""

    true: bool
    false: bool
    unknown: bool


ALL = Outcomes(true=True, false=True, unknown=True)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a name of a selector stands in a row of the schema, and what its absence means."""

    name: str
    kind: Kind | None
    """Of a header, which has a column of its own; None for an entry of ``properties``."""

    words: Mapping[int, str] | None
    """JMSDeliveryMode: the column's number -> the word a selector compares with."""

    shown: bool
    """False: the broker may know it, but no frame has it."""

    absent: tuple[Value, ...] | None
    """Possible values where the row has none; None: any."""

    or_null: bool
    """NULL to the broker, whatever the row says."""


HEADERS: Mapping[str, Kind] = MappingProxyType(
    {
        "JMSMessageID": Kind.STRING,
        "JMSDestination": Kind.STRING,
        "JMSTimestamp": Kind.LONG,
        "JMSCorrelationID": Kind.STRING,
        "JMSType": Kind.STRING,
        "JMSReplyTo": Kind.STRING,
        "JMSDeliveryMode": Kind.STRING,
        "JMSPriority": Kind.INT,
        "JMSExpiration": Kind.LONG,
        "JMSDeliveryTime": Kind.LONG,
        "JMSRedelivered": Kind.BOOLEAN,
    }
)
"""Columns of the schema that are headers, and the kind a selector sees. Times are milliseconds."""

STATED = frozenset(str(kind) for kind in (Kind.STRING, Kind.BOOLEAN, *NUMERIC))
"""The types that ``property_types`` may state. The target trusts them and ignores every other word."""

_ZERO = Value(Kind.LONG, 0)
_MODES = {1: "NON_PERSISTENT", 2: "PERSISTENT"}
_TIMES = frozenset({"JMSTimestamp", "JMSExpiration", "JMSDeliveryTime"})


@lru_cache(4096)
def source(dialect: Dialect, name: str) -> Source:
    shown = dialect.shows(name)
    own = dialect.aliases.get(name, name)
    kind = HEADERS.get(own)
    absent: tuple[Value, ...] | None = (NULL,)
    if own in dialect.unknown_when_absent:
        absent = None
    elif own in _TIMES:
        # The schema shows 0 (never, no delay, not set) as null; ActiveMQ's selectors see the 0.
        absent = (_ZERO, NULL) if dialect.activemq else (NULL,) if own == "JMSTimestamp" else (_ZERO,)
    words = None
    if own == "JMSDeliveryMode":
        own_words = dialect.words.get(name, {})
        words = MappingProxyType({mode: own_words.get(word, word) for mode, word in _MODES.items()})
    return Source(own, kind, words, shown, absent, own in dialect.never_seen or name in dialect.never_seen)


@lru_cache(256)
def prepared(selector: Selector) -> Node | None:
    """The tree with BETWEEN taken apart."""
    return None if selector.root is None else comparisons(selector.root)


def lenient_dialect(dialect: str | Dialect) -> Dialect:
    rules = dialect_of(dialect)
    if rules.faults_decide:
        raise UnsupportedSelectorError(
            f"The {rules.name} dialect judges a selector as a whole, so it has no evaluation over texts."
        )
    return rules


def may_match(
    selector: Selector | str,
    row: Mapping[str, Any],
    dialect: str | Dialect = "spec",
    *,
    convert: bool | None = None,
) -> bool:
    """Whether some typing of the row's texts matches. False is certain."""
    return outcomes(selector, row, dialect, convert=convert).true


def outcomes(
    selector: Selector | str,
    row: Mapping[str, Any],
    dialect: str | Dialect = "spec",
    *,
    convert: bool | None = None,
) -> Outcomes:
    """The possible outcomes for one row of the schema (columns by name; ``properties`` a mapping)."""
    rules = lenient_dialect(dialect)
    selector = parse(selector) if isinstance(selector, str) else selector
    root = prepared(selector)
    if root is None:
        return Outcomes(true=True, false=False, unknown=False)
    converting = selector.convert if convert is None else convert

    def visit(node: Node, operands: list[Outcomes]) -> Outcomes:
        match node:
            case And():
                return conjunction(operands)
            case Or():
                return inverted(conjunction(map(inverted, operands)))
            case Not():
                return inverted(operands[0])
        return _condition(node, row, rules, convert=converting)

    return fold(root, visit, conditions)


def inverted(one: Outcomes) -> Outcomes:
    return Outcomes(one.false, one.true, one.unknown)


def conjunction(operands: Iterable[Outcomes]) -> Outcomes:
    """Kleene's AND on sets: TRUE needs all, FALSE one, unknown one and no FALSE."""
    result = Outcomes(true=True, false=False, unknown=False)
    for one in operands:
        unknown = (result.unknown and (one.true or one.unknown)) or (one.unknown and result.true)
        result = Outcomes(result.true and one.true, result.false or one.false, unknown)
    return result


def _condition(node: Node, row: Mapping[str, Any], dialect: Dialect, *, convert: bool) -> Outcomes:
    used = names(node)
    choices = [candidates(row, name, dialect) for name in used]
    if len(used) > MAX_NAMES or any(choice is None for choice in choices):
        return ALL
    found = set()
    for values in product(*(choice or () for choice in choices)):
        given = dict(zip(used, values, strict=True))
        kinds = {name: value.kind for name, value in given.items()}
        if specialise(node, kinds, dialect, convert=convert) is ANYTHING:
            return ALL
        truth = _Assigned(given, dialect, convert=convert).truth(node)
        found.add("fault" if truth.kind is Kind.FAULT else truth.value)
    return Outcomes(True in found, False in found, None in found)


class _Assigned(Evaluator):
    """An evaluator whose names are given, whatever a dialect would make of them."""

    def __init__(self, given: Mapping[str, Value], dialect: Dialect, *, convert: bool) -> None:
        super().__init__(Message(), dialect, convert=convert)
        self.given = given

    def lookup(self, name: str) -> Value:
        return self.given[name]


def candidates(row: Mapping[str, Any], name: str, dialect: Dialect) -> tuple[Value, ...] | None:
    """Every value that the broker may have had under ``name``; None: any."""
    where = source(dialect, name)
    if not where.shown:
        return None
    found = _header(row, where) if where.kind else _property(row, where, dialect)
    if found is None:
        return None
    return (*found, NULL) if where.or_null and NULL not in found else found


def _header(row: Mapping[str, Any], where: Source) -> tuple[Value, ...] | None:
    value = row.get(where.name)
    if value is None:
        return where.absent
    if where.words is not None:
        return (Value(Kind.STRING, where.words.get(value, str(value))),)
    if isinstance(value, datetime):
        value = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert where.kind is not None
    return (Value(where.kind, value),)


def _property(row: Mapping[str, Any], where: Source, dialect: Dialect) -> tuple[Value, ...] | None:
    text = (row.get("properties") or {}).get(where.name)
    if text is None:
        return where.absent
    found = readings(text)
    stated = (row.get("property_types") or {}).get(where.name)
    if stated in STATED:
        return tuple(value for value in found if value.kind == stated)
    return (*found, NULL) if text in dialect.null_texts else tuple(found)
