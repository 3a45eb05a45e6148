"""A condition of SQL on columns of a read → the JMS selector that passes the same messages, or the part that is none.

The condition keeps a row if it is true. NOT is moved inwards first: De Morgan's laws hold for three values. Then a part
of the selector only has to be true in the same cases as that of the condition: no NOT tells false from unknown.

The values of a property must have the column's type, or a narrower one that JMS converts to it.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from jms_selector.portability import portable_text
from jms_selector.syntax.kinds import Kind, integer_kind, to_float
from jms_selector.syntax.tree import And, Compare, In, IsNull, Like, Literal, Node, Not, Or, Property
from pyspark_jms.columns.schema import BY_LOWER_NAME, SINK_ONLY
from pyspark_jms.columns.sql_conditions import Constant, column_name, constant, parse_condition, refuse
from pyspark_jms.errors import SchemaError, UnsupportedConditionError
from pyspark_jms.jms.added_names import ANY_BROKER
from pyspark_jms.jms.headers import HEADERS, SELECTOR_SCHEMA
from pyspark_jms.jms.model import DeliveryMode
from pyspark_jms.jms.rules import property_name_problem

__all__ = ["declared_types", "selector_text"]

MAX_DEPTH = 100
"""Levels of parentheses and NOT."""

_INTEGRAL = {"tinyint", "smallint", "int", "bigint"}
_FLOATING = {"float", "double"}
_NUMBERS = {*_INTEGRAL, *_FLOATING}
_KNOWN = {*_NUMBERS, "string", "boolean"}
_ALIASES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float"}
_HEADERS = {header.name: header.type.ddl.removesuffix("_ltz") for header in HEADERS if header.in_selector} | {
    "JMSDeliveryMode": "delivery mode"
}
_DOUBLE_WHOLES = 1 << 53
"""Doubles hold all whole numbers below this one."""

_MAX_SCALE = 18
"""With more digits after the point, Spark rounds a decimal before it compares it with a bigint."""

_INVERSE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_DECLARE = 'Declare its type: selector_for(condition, schema="orderId INT").'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ARTEMIS_PREFIX = "_AMQ_"
_COLLATE, _BINARY = "collate", "utf8_binary"

_Column: TypeAlias = tuple[str, str | None]
"""The name of a header or property, and its type, or None if nothing shows the type."""


def selector_text(condition: str, types: Mapping[str, str] | None = None) -> str:
    """Return the selector. ``types`` are the columns of the read by name; without them, literals show the types of
    properties.
    """
    tree: Any = parse_condition(condition)
    translation = _Translation(condition, types)
    found = translation.translate(tree, negated=False)
    # A later literal may have shown that a property is a fraction: then its first comparisons are other ones.
    return portable_text(translation.translate(tree, negated=False) if translation.columns.widened else found)


# --- the columns --------------------------------------------------------------------------------

_DECLARATION = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s*(?::|\s)\s*(?P<type>\w+(?:\s+COLLATE\s+[\w.`]+)?)(?:\W.*)?",
    re.DOTALL | re.IGNORECASE,
)


def declared_types(schema: str) -> dict[str, str]:
    """The columns of a schema in Spark's DDL, ``orderId INT, region STRING``, without a session of Spark."""
    found: dict[str, str] = {}
    for part in _split(schema):
        match = _DECLARATION.fullmatch(part)
        if not match:
            raise SchemaError(f"The schema has a part that is not NAME TYPE: {part.strip()[:60]!r}.", "Correct it.")
        found[match["plain"] or match["quoted"].replace("``", "`")] = match["type"]
    return found


def _split(schema: str) -> Iterator[str]:
    """The parts between the commas that are in no brackets and no quotes."""
    depth = start = 0
    for match in re.finditer(r"'(?:[^'\\]|\\.)*'|`[^`]*`|[(<]|[)>]|,", schema):
        if match[0] in {"(", "<"}:
            depth += 1
        elif match[0] in {")", ">"}:
            depth -= 1
        elif match[0] == "," and depth == 0:
            yield schema[start : match.start()]
            start = match.end()
    yield schema[start:]


class _Columns:
    """The columns that the condition names, resolved as Spark does: in upper or lower case."""

    def __init__(self, text: str, types: Mapping[str, str] | None) -> None:
        self._text = text
        self._declared = types is not None
        self._by_name = {name.lower(): (name, _short_type(kind)) for name, kind in (types or {}).items()}
        if len(self._by_name) < len(types or {}):
            raise SchemaError("The schema has two columns whose names differ only in case.", "Remove one.")
        self._spelled: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self.widened = False
        """A literal showed ``double`` for a property after another one showed ``bigint``."""

    def resolve(self, part: Any) -> _Column:
        start, end = part.meta.start_pos, part.meta.end_pos
        name = column_name(str(part.children[0]))
        if fixed := BY_LOWER_NAME.get(name.lower()):
            if fixed in _HEADERS:
                return fixed, self._collated(name) or _HEADERS[fixed]
            raise refuse(self._text, start, end, f"is column {fixed}, which selectors do not see")
        if name.lower() in SINK_ONLY:
            raise refuse(self._text, start, end, "is a column of the sink, which messages that are read do not have")
        if self._declared and name.lower() not in self._by_name:
            raise refuse(self._text, start, end, "is not a column of the schema", "Add it to the schema with its type.")
        name, kind = self._by_name.get(name.lower(), (name, None))
        problem = property_name_problem(name)
        if problem is None and (name in ANY_BROKER or name.startswith(_ARTEMIS_PREFIX)):
            problem = "is a property of the broker, which rows do not show"
        if problem is not None:
            raise refuse(self._text, start, end, f"cannot be a property in a selector: {name} {problem}")
        spelled = self._spelled.setdefault(name.lower(), name)
        if spelled != name:
            reason = f"is also written {spelled}, and they are one column in Spark"
            raise refuse(self._text, start, end, reason, _DECLARE)
        return name, kind or self._shown.get(name)

    def _collated(self, name: str) -> str | None:
        """The declared type of a header, if the type has a collation."""
        _, kind = self._by_name.get(name.lower(), (name, ""))
        return kind if _COLLATE in kind else None

    def show(self, part: Any, column: _Column, kind: str) -> _Column:
        """The column with the type that a literal shows, if it has no type yet."""
        name, known = column
        if known is not None and (name not in self._shown or (known, kind) == ("double", "bigint")):
            return column
        if known not in {None, kind} and (known, kind) != ("bigint", "double"):
            start, end = part.meta.start_pos, part.meta.end_pos
            raise refuse(self._text, start, end, f"is compared as {kind} here and as {known} before", _DECLARE)
        self.widened = self.widened or known not in {None, kind}
        self._shown[name] = kind
        return name, kind


def _short_type(kind: str) -> str:
    """``DECIMAL(9,2)`` → ``decimal``. A collation stays: it decides which texts are equal."""
    words = kind.lower().split()
    if words[1:2] == [_COLLATE] and words[2:3] != [_BINARY]:
        return " ".join(words[:3])
    plain = re.match(r"\w*", words[0] if words else "")
    name = plain[0] if plain else ""
    return _ALIASES.get(name, name)


# --- the condition ------------------------------------------------------------------------------


class _Translation:
    """The tree of a condition → the tree of a selector."""

    def __init__(self, text: str, types: Mapping[str, str] | None) -> None:
        self._text = text
        self.columns = _Columns(text, types)
        self._visitors: dict[str, Callable[..., Node]] = {
            "comparison": self._comparison,
            "between": self._between,
            "membership": self._membership,
            "like": self._like,
            "null_test": self._null_test,
            "column": self._truth,
        }

    def translate(self, part: Any, *, negated: bool, depth: int = 0) -> Node:
        """The selector that is true if the condition is true; with ``negated``, if it is false."""
        if depth > MAX_DEPTH:
            raise UnsupportedConditionError(f"The condition has more than {MAX_DEPTH} levels of parentheses and NOT.")
        if part.data == "negation":
            return self.translate(part.children[-1], negated=not negated, depth=depth + 1)
        if part.data in {"conjunction", "disjunction"}:
            parts = tuple(self.translate(child, negated=negated, depth=depth + 1) for child in part.children)
            return _joined(And if (part.data == "conjunction") is not negated else Or, parts)
        visitor = self._visitors.get(part.data)
        if visitor is None:
            raise self._refused(part, "is not a condition on a header or property")
        return visitor(part, negated=negated)

    def _refused(self, part: Any, reason: str, remedy: str | None = None) -> UnsupportedConditionError:
        return refuse(self._text, part.meta.start_pos, part.meta.end_pos, reason, remedy)

    def _comparison(self, part: Any, *, negated: bool) -> Node:
        left, operator, right = part.children
        operator = {"==": "=", "!=": "<>"}.get(str(operator), str(operator))
        return self._compare(part, left, _INVERSE[operator] if negated else operator, right)

    def _between(self, part: Any, *, negated: bool) -> Node:
        operand, inside, low, high = part.children
        if (inside is not None) is not negated:
            return Or((self._compare(part, operand, "<", low), self._compare(part, operand, ">", high)))
        return And((self._compare(part, operand, ">=", low), self._compare(part, operand, "<=", high)))

    def _membership(self, part: Any, *, negated: bool) -> Node:
        operand, outside, *values = part.children
        negated = (outside is not None) is not negated
        self._check_list(part, values)
        compared = tuple(self._compare(part, operand, "<>" if negated else "=", value) for value in values)
        if all(value.data == "string" for value in values) and operand.data == "column":
            texts = tuple(str(constant(self._text, value)) for value in values)
            return In(Property(self.columns.resolve(operand)[0]), texts, negated)
        if len(compared) == 1:
            return compared[0]
        return _joined(And if negated else Or, compared)

    def _check_list(self, part: Any, values: list[Any]) -> None:
        """Spark compares all values of a list as their common type: with a double among them, as doubles."""
        if any(value.data == "column" for value in values):
            raise self._refused(part, "has a column in its list, which must consist of literals")
        found = [constant(self._text, value) for value in values if value.data == "number"]
        if float in map(type, found) and any(isinstance(n, int) and abs(n) >= _DOUBLE_WHOLES for n in found):
            raise self._refused(part, "has a number that Spark and a selector round otherwise")

    def _like(self, part: Any, *, negated: bool) -> Node:
        operand, outside, pattern, escape = part.children
        column, kind = self._typed(operand, "string")
        value = constant(self._text, pattern) if pattern.data == "string" else None
        if kind != "string" or not isinstance(value, str):
            raise self._refused(part, "is LIKE on other than a text column and a text literal")
        self._check_id(pattern, column, value)
        character = None if escape is None else str(escape)[1:-1].replace("''", "'")
        if character is not None:
            rest = value.replace(character * 2, "").replace(f"{character}%", "").replace(f"{character}_", "")
            if len(character) != 1 or character in "%_\\" or character in rest:
                raise self._refused(part, "has an escape that Spark refuses")
        return Like(Property(column), value, character, (outside is not None) is not negated)

    def _null_test(self, part: Any, *, negated: bool) -> Node:
        operand, outside, _ = part.children
        absent = (outside is None) is not negated
        if operand.data != "column":
            raise self._refused(part, "is a test for null of other than a column")
        name, _ = self.columns.resolve(operand)
        if name != "JMSTimestamp":
            return IsNull(Property(name), negated=not absent)
        # A JMSTimestamp of 0 means that the producer set none: the column is null.
        return Or((IsNull(Property(name)), _compared(name, "=", 0))) if absent else _compared(name, "<>", 0)

    def _truth(self, part: Any, *, negated: bool) -> Node:
        name, kind = self._typed(part, "boolean")
        if kind != "boolean":
            raise self._refused(part, f"is not a condition: its type is {kind}")
        return Compare("=", Property(name), Literal(not negated, Kind.BOOLEAN))

    def _typed(self, part: Any, kind: str) -> _Column:
        """The column that ``part`` is, used as a value of this type."""
        if part.data != "column":
            raise self._refused(part, "is not a column")
        return self.columns.show(part, self.columns.resolve(part), kind)

    # --- comparisons ------------------------------------------------------------------------

    def _compare(self, part: Any, left: Any, operator: str, right: Any) -> Node:
        for side in (left, right):
            if side.data in {*self._visitors, "negation", "conjunction", "disjunction"} - {"column"}:
                raise self._refused(side, "is a condition that is compared with a value")
        if left.data == "column" and right.data == "column":
            return self._two_columns(part, self.columns.resolve(left), operator, self.columns.resolve(right))
        if left.data != "column":
            left, operator, right = right, _MIRRORED[operator], left
        if left.data != "column":
            raise self._refused(part, "compares no header or property")
        value = constant(self._text, right)
        name, kind = self._typed(left, _shown_type(value))
        match kind:
            case "string" | "boolean" if _shown_type(value) == kind and operator in {"=", "<>"}:
                return self._equality(right, name, operator, value)
            case "string" | "boolean" if _shown_type(value) == kind:
                raise self._refused(part, f"orders values of type {kind}, and selectors order only numbers")
            case "timestamp" if isinstance(value, datetime) and name == "JMSTimestamp":
                return self._time(right, name, operator, value)
            case "delivery mode" if isinstance(value, int) and not isinstance(value, bool):
                return self._delivery_mode(part, operator, value)
        number = _exact_number(kind, value)
        if number is None:
            raise self._refused(part, *_mismatch(name, kind, value))
        return _floating(name, operator, number) if kind in _FLOATING else _compared(name, operator, number)

    def _equality(self, part: Any, name: str, operator: str, value: Constant) -> Node:
        if isinstance(value, bool):
            return Compare("=", Property(name), Literal(value is (operator == "="), Kind.BOOLEAN))
        self._check_id(part, name, str(value))
        return Compare(operator, Property(name), Literal(str(value), Kind.STRING))

    def _check_id(self, part: Any, name: str, value: str) -> None:
        if name in SELECTOR_SCHEMA.ids and value.startswith("ID:AMQP_"):
            raise self._refused(part, "is the column's spelling of an id that is not a string; brokers have another")

    def _time(self, part: Any, name: str, operator: str, value: datetime) -> Node:
        millis, rest = divmod(value - _EPOCH, timedelta(milliseconds=1))
        if rest or millis <= 0:
            raise self._refused(part, "is not a whole number of milliseconds after 1970, as every JMSTimestamp is")
        found = _compared(name, operator, millis)
        # A JMSTimestamp of 0 is a null in the column.
        return found if operator in {"=", ">", ">="} else And((_compared(name, "<>", 0), found))

    def _delivery_mode(self, part: Any, operator: str, value: int) -> Node:
        holds = {
            "=": int.__eq__, "<>": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__
        }[operator]  # fmt: skip
        modes = tuple(mode.name for mode in DeliveryMode if holds(mode.value, value))
        if not modes:
            raise self._refused(part, "is never true: JMSDeliveryMode is 1 or 2")
        if len(modes) > 1:
            return In(Property("JMSDeliveryMode"), modes)
        return Compare("=", Property("JMSDeliveryMode"), Literal(modes[0], Kind.STRING))

    def _two_columns(self, part: Any, left: _Column, operator: str, right: _Column) -> Node:
        (name, kind), (other, other_kind) = left, right
        if None in {kind, other_kind}:
            raise self._refused(part, "compares columns whose types are not known", _DECLARE)
        whole = kind in _INTEGRAL and other_kind in _INTEGRAL
        if not whole and not (kind == other_kind in {"string", "boolean"} and operator in {"=", "<>"}):
            raise self._refused(part, f"compares {kind} with {other_kind}, otherwise in Spark than in a selector")
        if not whole or kind == other_kind == "tinyint":
            return Compare(operator, Property(name), Property(other))
        # Artemis and Classic find a byte or short on the right unequal to a wider number on the left.
        one, mirrored = (
            Compare(op, *map(Property, names))
            for op, names in ((operator, (name, other)), (_MIRRORED[operator], (other, name)))
        )
        return And((one, mirrored)) if operator == "<>" else Or((one, mirrored))


def _joined(kind: type[And | Or], parts: tuple[Node, ...]) -> Node:
    """AND or OR of all parts; parts of the same kind are merged into it."""
    return kind(tuple(inner for part in parts for inner in (part.operands if isinstance(part, kind) else (part,))))


def _compared(name: str, operator: str, number: float) -> Node:
    kind = integer_kind(number) if isinstance(number, int) else Kind.DOUBLE
    return Compare(operator, Property(name), Literal(number, kind))


def _floating(name: str, operator: str, number: float) -> Node:
    """The comparison of a float or double: in Spark NaN is above all numbers, and -0.0 equals 0.0.

    In JMS, no comparison but <> is true of NaN. Artemis and Classic have -0.0 below 0.0.
    """
    if operator in {">", ">="}:
        return Not(_floating(name, _INVERSE[operator], number))
    if number != 0:
        return _compared(name, operator, number)
    negative, positive = _compared(name, operator, -0.0), _compared(name, operator, 0.0)
    match operator:
        case "=":
            return Or((positive, negative))
        case "<>":
            return And((positive, negative))
    return negative if operator == "<" else positive


def _shown_type(value: Constant) -> str:
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "bigint"
        case datetime():
            return "timestamp"
    return "double"


def _exact_number(kind: str | None, value: Constant) -> float | None:
    """The number with which a selector compares as Spark does; None if there is none."""
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        return None
    if kind in _INTEGRAL:
        return _whole(value)
    if kind not in _FLOATING or math.isinf(number := float(value)):
        return None
    if kind == "float" and isinstance(value, int) and int(to_float(number)) != value:
        return None  # a setting of Spark decides whether both become floats or doubles
    return number


def _whole(value: float | Decimal) -> float | None:
    """Compared with a whole number: Spark compares decimals exactly, and a selector compares doubles."""
    if isinstance(value, int | float):
        return value + 0  # -0.0 + 0 is 0.0
    if value == value.to_integral_value() and abs(value) < _DOUBLE_WHOLES:
        return int(value)
    number, exponent = float(value), value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -_MAX_SCALE or abs(value) >= _DOUBLE_WHOLES:
        return None
    return number if not number.is_integer() and math.floor(number) == math.floor(value) else None


def _mismatch(name: str, kind: str | None, value: Constant) -> tuple[str, str | None]:
    """Return why the value cannot be compared with a column of this type, and a remedy."""
    shown = _shown_type(value)
    if name == "JMSTimestamp":
        return f"compares {name} with a {shown}", "Write TIMESTAMP '2026-11-26 08:30:00Z', with a time zone."
    if shown == "timestamp":
        return "compares a time with another column than JMSTimestamp", "Declare the property as BIGINT: milliseconds."
    if kind not in _KNOWN and kind != "delivery mode":
        return f"compares {name}, whose type is {kind}, and no property in a selector has it", None
    if kind in _NUMBERS and shown in _NUMBERS:
        return "has a number that Spark and a selector round otherwise", None
    return f"compares {name} ({kind}) with a {shown}: Spark casts one of them, and a selector does not", None
