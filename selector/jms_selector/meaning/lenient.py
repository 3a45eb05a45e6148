"""The possible outcomes of a selector on a row of the schema, over every type that a property's text may have.

STOMP sends all values as text. Each condition is evaluated for every typed value with that text, and AND, OR and NOT
combine the sets of outcomes. A row is kept if TRUE is among its outcomes. The typed values include the one that the
broker evaluated, so no message that the broker selected is dropped.

:func:`outcomes` evaluates one row. Tests compare the Arrow and Spark targets with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, reduce
from itertools import product
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.meaning.conversions import readings
from jms_selector.meaning.evaluate import Evaluator, Message
from jms_selector.meaning.plan import NOT_COMPUTABLE, expand_between, plan_condition
from jms_selector.syntax.dialects import Dialect, dialect_of
from jms_selector.syntax.kinds import NULL, NUMERIC, Kind, Schema, Value
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import And, Node, Not, Or, Selector, conditions, fold, names

__all__ = [
    "MAX_NAMES",
    "NameLocation",
    "Outcomes",
    "combine",
    "conjunction",
    "locate",
    "may_match",
    "outcomes",
    "read_leniently",
]

MAX_NAMES = 2
"""Maximum number of properties in one condition whose types are combined. With more, every outcome is possible."""


Possible = TypeVar("Possible")


class Outcomes(NamedTuple, Generic[Possible]):
    """The truth values that are possible: a ``bool`` each for one row, or a mask each for the rows of a batch."""

    true: Possible
    false: Possible
    unknown: Possible


Combined = TypeVar("Combined", bound=Outcomes[Any])

ALL = Outcomes(true=True, false=True, unknown=True)


@dataclass(frozen=True, slots=True)
class NameLocation:
    """The column or ``properties`` entry of a name of a selector, and the meaning of an absent value."""

    name: str
    kind: Kind | None
    """The kind of a header, which has its own column; None for an entry of ``properties``."""

    words: Mapping[int, str] | None
    """For JMSDeliveryMode: the column's number -> the word that a selector compares with."""

    visible: bool
    """False: the broker may have a value, but no delivered message contains the value."""

    absent: tuple[Value, ...] | None
    """The values that the broker may have if the row has none, or None for any value."""

    may_be_null: bool
    """The name can be NULL in the broker's evaluation although the row has a value."""

    respelled: str = ""
    """A prefix of values that the broker's evaluation may spell otherwise; empty: there are none."""


TRUSTED_TYPES = frozenset(str(kind) for kind in (Kind.STRING, Kind.BOOLEAN, *NUMERIC))
"""The types of JMS that ``property_types`` may state.

Another word is a type that only AMQP has. A broker of typed messages may convert such a value in a way of its own, so
every outcome is possible. Under the other dialects, such a word is ignored.
"""

_ZERO = Value(Kind.LONG, 0)
_MODES = {1: "NON_PERSISTENT", 2: "PERSISTENT"}


@lru_cache(4096)
def locate(dialect: Dialect, name: str, schema: Schema) -> NameLocation:
    visible = dialect.shows(name)
    own = dialect.aliases.get(name, name)
    kind = schema.kinds.get(own)
    absent: tuple[Value, ...] | None = (NULL,)
    if own in dialect.unknown_when_absent:
        absent = None
    elif own in schema.times:
        # The schema has null for 0 (never, no delay, not set); ActiveMQ's selectors compare with 0.
        absent = (_ZERO, NULL) if dialect.activemq else (NULL,) if own == "JMSTimestamp" else (_ZERO,)
    words = None
    if own == "JMSDeliveryMode":
        own_words = dialect.words.get(name, {})
        words = MappingProxyType({mode: own_words.get(word, word) for mode, word in _MODES.items()})
    respelled = dialect.respelled_ids if own in schema.ids else ""
    may_be_null = own in dialect.never_seen or name in dialect.never_seen
    return NameLocation(own, kind, words, visible, absent, may_be_null, respelled)


@lru_cache(256)
def _expanded(selector: Selector) -> Node | None:
    return None if selector.root is None else expand_between(selector.root)


def read_leniently(
    selector: Selector | str, dialect: str | Dialect, *, convert: bool | None = None
) -> tuple[Node | None, Dialect, bool]:
    """Return the tree, with two comparisons for each BETWEEN, the rules, and whether texts are compared as numbers."""
    rules = dialect_of(dialect)
    if rules.faults_decide:
        raise UnsupportedSelectorError(
            f"The {rules.name} dialect evaluates a selector as a whole, so it cannot evaluate texts of unknown types."
        )
    selector = parse(selector) if isinstance(selector, str) else selector
    return _expanded(selector), rules, selector.convert if convert is None else convert


def may_match(
    selector: Selector | str,
    row: Mapping[str, Any],
    dialect: str | Dialect = "spec",
    *,
    schema: Schema,
    convert: bool | None = None,
) -> bool:
    """Return whether the selector matches for some types of the row's texts. False: it matches for none."""
    return outcomes(selector, row, dialect, schema=schema, convert=convert).true


def outcomes(
    selector: Selector | str,
    row: Mapping[str, Any],
    dialect: str | Dialect = "spec",
    *,
    schema: Schema,
    convert: bool | None = None,
) -> Outcomes[bool]:
    """The possible outcomes for one row of the schema (columns by name; ``properties`` is a mapping)."""
    root, rules, converting = read_leniently(selector, dialect, convert=convert)
    if root is None:
        return Outcomes(true=True, false=False, unknown=False)
    return combine(root, lambda node: _condition(node, row, rules, schema, convert=converting), conjunction)


def combine(
    root: Node, outcomes_of: Callable[[Node], Combined], both: Callable[[Combined, Combined], Combined]
) -> Combined:
    """Combine the outcomes of conditions by AND, OR and NOT."""

    def visit(node: Node, operands: list[Combined]) -> Combined:
        match node:
            case And():
                return reduce(both, operands)
            case Or():
                return _negated(reduce(both, map(_negated, operands)))
            case Not():
                return _negated(operands[0])
        return outcomes_of(node)

    return fold(root, visit, conditions)


def _negated(one: Combined) -> Combined:
    return type(one)(one.false, one.true, one.unknown)


def conjunction(left: Combined, right: Combined) -> Combined:
    """Kleene's AND on sets of outcomes.

    TRUE is possible if both operands may be TRUE. FALSE is possible if one operand may be FALSE. Unknown is possible if
    one operand may be unknown while the other one is TRUE or unknown.
    """
    unknown = (left.unknown & (right.true | right.unknown)) | (right.unknown & left.true)
    return type(left)(left.true & right.true, left.false | right.false, unknown)


def _condition(
    node: Node, row: Mapping[str, Any], dialect: Dialect, schema: Schema, *, convert: bool
) -> Outcomes[bool]:
    used = names(node)
    choices = [candidates(row, name, dialect, schema) for name in used]
    if len(used) > MAX_NAMES or any(choice is None for choice in choices):
        return ALL
    found = set()
    for values in product(*(choice or () for choice in choices)):
        given = dict(zip(used, values, strict=True))
        kinds = {name: value.kind for name, value in given.items()}
        if plan_condition(node, kinds, dialect, convert=convert) is NOT_COMPUTABLE:
            return ALL
        truth = _AssignedEvaluator(given, dialect, convert=convert).truth(node)
        found.add("fault" if truth.kind is Kind.FAULT else truth.value)
    return Outcomes(True in found, False in found, None in found)


class _AssignedEvaluator(Evaluator):
    """An evaluator with given values: it applies no alias or default of the dialect."""

    def __init__(self, given: Mapping[str, Value], dialect: Dialect, *, convert: bool) -> None:
        super().__init__(Message(), dialect, convert=convert)
        self.given = given

    def lookup(self, name: str) -> Value:
        return self.given[name]


def candidates(row: Mapping[str, Any], name: str, dialect: Dialect, schema: Schema) -> tuple[Value, ...] | None:
    """Return every value that the broker may have for ``name``, or None for any value."""
    location = locate(dialect, name, schema)
    if not location.visible:
        return None
    found = _header(row, location) if location.kind else _property(row, location, dialect)
    if found is None:
        return None
    return (*found, NULL) if location.may_be_null and NULL not in found else found


def _header(row: Mapping[str, Any], location: NameLocation) -> tuple[Value, ...] | None:
    value = row.get(location.name)
    if value is None:
        return location.absent
    if location.words is not None:
        return (Value(Kind.STRING, location.words.get(value, str(value))),)
    if isinstance(value, datetime):
        value = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert location.kind is not None
    if location.respelled and str(value).startswith(location.respelled):
        return None
    return (Value(location.kind, value),)


def _property(row: Mapping[str, Any], location: NameLocation, dialect: Dialect) -> tuple[Value, ...] | None:
    text = (row.get("properties") or {}).get(location.name)
    stated = (row.get("property_types") or {}).get(location.name)
    if dialect.typed_messages and stated is not None and stated not in TRUSTED_TYPES:
        return None
    if text is None:
        return location.absent
    found = readings(text)
    if stated in TRUSTED_TYPES:
        return tuple(value for value in found if value.kind == stated)
    return (*found, NULL) if text in dialect.null_texts else tuple(found)
