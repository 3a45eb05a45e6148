"""What JMS lets a producer set: names of properties and of map items, and the text of a typed value.

One name or value in, None or what is wrong with it out: a clause to go after ``its name`` or ``its value``. The
answers hold no value, which may be a secret. :data:`TEXTS` is the same rule as data, for whole columns.
Knows no broker: what a dialect reserves for itself is refused there.
"""

import re
from dataclasses import dataclass

from jms_selector.meaning.conversions import JAVA_DOUBLE
from jms_selector.syntax.kinds import BITS, Kind
from jms_selector.syntax.literals import is_plain_name, reserved_word
from pyspark_jms.jms.conversions import BASE64, ValueType
from pyspark_jms.jms.model import DEAD_LETTER_PROPERTIES

__all__ = [
    "MARKER_PREFIX",
    "PROPERTY_TYPES",
    "SET_BY_PROVIDER",
    "TEXTS",
    "TextRule",
    "element_name_problem",
    "element_value_problem",
    "property_name_problem",
    "property_value_problem",
]

MARKER_PREFIX = "spark_jms_"
"""``BODY_MARKER`` and ``TYPES_MARKER`` begin so: a property of a row must not pose as one of them."""

_ELEMENTS_ONLY = frozenset({ValueType.CHAR, ValueType.BYTES})

PROPERTY_TYPES: frozenset[ValueType] = frozenset(ValueType) - _ELEMENTS_ONLY
"""JMS 3.1 §3.5.4."""

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
"""JMS 3.1 §3.5.9. No error, so that a row can be written as it was read: the sink leaves them out, as it does
with the headers that a provider sets."""


def property_name_problem(name: str | None) -> str | None:
    """Why a client may not set a property of this name; None when it may, or when it is ``SET_BY_PROVIDER``.

    ``JMS_…`` is allowed: JMS leaves those names to the provider, and a client sets them to speak to it.
    """
    if not name:
        return "is empty: JMS 3.1 §3.5.1"
    if reserved_word(name, activemq=False):
        return "is a reserved word of selectors: JMS 3.1 §3.8.1.1"
    if not is_plain_name(name, activemq=False):
        return "is no Java identifier, as JMS 3.1 §3.8.1.1 has it: letters, digits, _ and $, no digit first"
    if name.startswith(MARKER_PREFIX) and name not in DEAD_LETTER_PROPERTIES:
        return f"begins with {MARKER_PREFIX}, which this connector keeps for itself"
    if name.startswith("JMSX"):
        known = name in _SET_BY_CLIENT or name in SET_BY_PROVIDER
        return None if known else "begins with JMSX, which JMS 3.1 §3.5.9 keeps for itself; it has no such property"
    if name.startswith("JMS") and not name.startswith("JMS_"):
        return "begins with JMS, which is kept for headers: JMS 3.1 §3.8.1.1"
    return None


def element_name_problem(name: str | None) -> str | None:
    """Why a MapMessage cannot hold an item of this name. JMS 3.1 §3.11.3: neither null nor empty."""
    return None if name else "is empty: JMS 3.1 §3.11.3"


# --- values -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextRule:
    """The texts that a sink takes for a type: what Java's ``valueOf`` reads, in ASCII.

    ``pattern`` has to match the whole text and means the same to Python, RE2 and Java; the number it reads must be
    in ``numbers``. A matching long has 19 digits at most after its zeros, so that 64 bits without a sign hold it.
    What is beyond a float or a double is an infinity, as in Java.
    """

    pattern: str
    words: str
    numbers: range | None = None


def _integer(kind: Kind) -> TextRule:
    high = 1 << (BITS[kind] - 1)
    words = f"a {kind}: {-high} to {high - 1}, in decimal digits"
    return TextRule(rf"[+-]?0*[0-9]{{1,{len(str(high))}}}", words, range(-high, high))


TEXTS: dict[ValueType, TextRule] = {
    ValueType.BOOLEAN: TextRule("[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]", "true or false"),
    ValueType.BYTE: _integer(Kind.BYTE),
    ValueType.SHORT: _integer(Kind.SHORT),
    ValueType.INT: _integer(Kind.INT),
    ValueType.LONG: _integer(Kind.LONG),
    ValueType.FLOAT: TextRule(JAVA_DOUBLE, "a float as Java writes one"),
    ValueType.DOUBLE: TextRule(JAVA_DOUBLE, "a double as Java writes one"),
    ValueType.STRING: TextRule("(?s:.*)", "a text"),
    ValueType.CHAR: TextRule("[^\U00010000-\U0010ffff]", "one character of 16 bits"),
    ValueType.BYTES: TextRule(BASE64, "base64, padded and without blanks"),
}
"""Stricter than reading, in what no rendering of a value holds: a boolean is not everything that is not ``true``,
digits are ASCII, and no blanks stand around a float or a double."""

_PATTERNS = {type_: re.compile(rule.pattern) for type_, rule in TEXTS.items()}


def property_value_problem(type_: str | None, text: str | None) -> str | None:
    """Why a property cannot hold this; without a type it is a string, and null has no type to break."""
    if text is not None and type_ in _ELEMENTS_ONLY:
        return f"has the type {type_}, which elements of maps and streams may have and properties not: JMS 3.1 §3.5.4"
    return element_value_problem(type_, text)


def element_value_problem(type_: str | None, text: str | None) -> str | None:
    """Why an item of a map or an element of a stream cannot hold this."""
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
