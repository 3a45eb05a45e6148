"""The rules of JMS for names of properties and map items, and for the texts of typed values.

A name or value -> None, or the problem as a clause that continues ``its name`` or ``its value``. A clause never has the
value, which may be a secret. :data:`TEXTS` has the same rules as data, for whole columns. The names that a broker
reserves are rules of its dialect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from jms_selector.meaning.conversions import JAVA_DOUBLE
from jms_selector.syntax.kinds import BITS, Kind
from jms_selector.syntax.literals import is_plain_name, reserved_word
from pyspark_jms.jms.added_names import ANY_BROKER
from pyspark_jms.jms.conversions import BASE64, ValueType
from pyspark_jms.jms.model import DEAD_LETTER_PROPERTIES, MOVED_PROPERTY
from pyspark_jms.sentences import with_article

__all__ = [
    "AMQP_TYPES",
    "JMSX_PROPERTIES",
    "PROPERTY_TYPES",
    "SET_BY_PROVIDER",
    "TEXTS",
    "VALUELESS_TYPES",
    "TextRule",
    "element_value_problem",
    "is_left_out",
    "property_name_problem",
    "property_value_problem",
    "sent_name_problem",
    "shown_name",
]

_MAX_NAME_SHOWN = 60
MARKER_PREFIX = "spark_jms_"
"""The prefix of ``BODY_MARKER`` and ``TYPES_MARKER``, which properties of a row cannot have."""

_ELEMENTS_ONLY = frozenset({ValueType.CHAR, ValueType.BYTES})

PROPERTY_TYPES: frozenset[ValueType] = frozenset(ValueType) - _ELEMENTS_ONLY
"""JMS 3.1 §3.5.4."""

VALUELESS_TYPES = frozenset({"list", "map", "array", "described type"})
"""Types of AMQP 1.0 whose values no text holds: a row has null in their place."""

AMQP_TYPES: Mapping[str, ValueType] = MappingProxyType(
    {
        "ubyte": ValueType.SHORT,
        "ushort": ValueType.INT,
        "uint": ValueType.LONG,
        "ulong": ValueType.LONG,
        "timestamp": ValueType.LONG,
    }
    | dict.fromkeys(
        (
            *("uuid", "symbol", "binary", "decimal32", "decimal64", "decimal128"),
            *(*sorted(VALUELESS_TYPES), "char"),
        ),
        ValueType.STRING,
    )
)
"""A type of AMQP 1.0 that JMS does not have -> the JMS type of its values. Rows state it in ``property_types``."""

_MARKERS_OF_ROWS = DEAD_LETTER_PROPERTIES | {MOVED_PROPERTY}
"""Properties with ``MARKER_PREFIX`` that a row may have, so that it can be written as it was read."""

_SET_BY_CLIENT = frozenset({"JMSXGroupID", "JMSXGroupSeq"})

SET_BY_PROVIDER = frozenset(
    {
        "JMSXAppID",
        "JMSXConsumerTXID",
        "JMSXDeliveryCount",
        "JMSXProducerTXID",
        "JMSXRcvTimestamp",
        "JMSXState",
        "JMSXUserID",
    }
)
"""JMS 3.1 §3.5.9. The sink omits these properties without an error, like the headers that a provider sets, so that a
row can be written as it was read.
"""

JMSX_PROPERTIES: frozenset[str] = _SET_BY_CLIENT | SET_BY_PROVIDER
"""JMS 3.1 §3.5.9: the only properties whose names begin with JMSX."""


def is_left_out(name: str, set_by_broker: frozenset[str]) -> bool:
    """Return whether the sink does not send a property that it finds in a row, so that a row can be written as it was
    read.
    """
    return name in SET_BY_PROVIDER or name in set_by_broker or name in ANY_BROKER


def property_name_problem(name: str | None) -> str | None:
    """Return why a JMS client cannot set a property of this name; None if it can, or if the property is
    ``SET_BY_PROVIDER``.

    ``JMS_…`` is allowed: JMS reserves these names for provider-specific properties, which clients set.
    """
    if name and reserved_word(name, activemq=False):
        return "is a reserved word of selectors: JMS 3.1 §3.8.1.1"
    if name and not is_plain_name(name, activemq=False):
        return "is not a Java identifier (letters, digits, _ and $, no digit first): JMS 3.1 §3.8.1.1"
    return sent_name_problem(name)


def sent_name_problem(name: str | None) -> str | None:
    """Return why the sink cannot send a property of this name; None if it can.

    Clients without JMS, and brokers that convert, make names that are not Java identifiers (``x-trace``,
    ``mqtt.response.topic``). Every broker keeps them, so a row can be written as it was read.
    """
    if not name:
        return "is empty: JMS 3.1 §3.5.1"
    if name.startswith(MARKER_PREFIX) and name not in _MARKERS_OF_ROWS:
        return f"begins with {MARKER_PREFIX}, which this connector reserves"
    if name in JMSX_PROPERTIES:
        return None
    if name.startswith("JMSX"):
        return "begins with JMSX and is not a property that JMS defines: JMS 3.1 §3.5.9"
    if name.startswith("JMS") and not name.startswith("JMS_"):
        return "begins with JMS, which is reserved for headers: JMS 3.1 §3.8.1.1"
    return None


def shown_name(name: str, number: int) -> str:
    """Return how a fault of a message names a property or header: other texts than usual names may be content or a
    secret.

    ``number`` counts from 1. STOMP's own headers have hyphens.
    """
    plain = name.replace("-", "_")
    is_usual = len(name) <= _MAX_NAME_SHOWN and name.isprintable() and is_plain_name(plain, activemq=False)
    return repr(name) if is_usual else f"number {number}"


# --- values -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextRule:
    """The texts that a sink accepts for a type: those of Java's ``valueOf``, in ASCII.

    ``pattern`` must match the whole text; Python, RE2 and Java read it alike. The number of the text must be in
    ``numbers``. A matching long has at most 19 digits after its zeros, so it fits into an unsigned 64-bit integer.
    A number beyond the range of a float or a double is an infinity, as in Java.
    """

    pattern: str
    words: str
    numbers: range | None = None


def _integer(kind: Kind) -> TextRule:
    high = 1 << (BITS[kind] - 1)
    words = f"{with_article(kind)}: {-high} to {high - 1}, in decimal digits"
    return TextRule(rf"[+-]?0*[0-9]{{1,{len(str(high))}}}", words, range(-high, high))


TEXTS: dict[ValueType, TextRule] = {
    ValueType.BOOLEAN: TextRule("[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]", "true or false"),
    **{ValueType(kind.value): _integer(kind) for kind in BITS},
    ValueType.FLOAT: TextRule(JAVA_DOUBLE, "a float in Java's notation"),
    ValueType.DOUBLE: TextRule(JAVA_DOUBLE, "a double in Java's notation"),
    ValueType.STRING: TextRule("(?s:.*)", "a text"),
    ValueType.CHAR: TextRule("[^\U00010000-\U0010ffff]", "one character of 16 bits"),
    ValueType.BYTES: TextRule(BASE64, "base64, padded and without blanks"),
}
"""Writing is stricter than reading: a boolean is ``true`` or ``false`` and nothing else, digits are ASCII, and a float
or a double has no blanks around it.
"""

_PATTERNS = {type_: re.compile(rule.pattern) for type_, rule in TEXTS.items()}


def property_value_problem(type_: str | None, text: str | None) -> str | None:
    """Return why a property cannot have this value; None if it can. Without a type, it is a string; null fits all
    types.
    """
    if text is not None and type_ in _ELEMENTS_ONLY:
        return f"has the type {type_}, which only elements of maps and streams can have: JMS 3.1 §3.5.4"
    return element_value_problem(type_, text)


def element_value_problem(type_: str | None, text: str | None) -> str | None:
    """Return why an element of a map or a stream cannot have this value; None if it can."""
    if text is None or type_ is None:
        return None
    if type_ not in TEXTS:
        return "has a type that JMS does not have"
    rule = TEXTS[ValueType(type_)]
    fits = _PATTERNS[ValueType(type_)].fullmatch(text) and (rule.numbers is None or _integer_of(text) in rule.numbers)
    return None if fits else f"is not {rule.words}"


def _integer_of(text: str) -> int:
    digits = int(text.lstrip("+-0") or "0")
    return -digits if text.startswith("-") else digits
