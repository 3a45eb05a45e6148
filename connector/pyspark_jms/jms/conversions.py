"""JMS 3.1's conversions: a value written as one type, read as another. One table, and Java's texts of values.

In: the text that the schema has for a value (:func:`render`), the type it was written as, the type to read. Out: a
Python value, or the error that a Java client would get. Texts are Java's: what ``valueOf`` of the type reads and
``toString`` writes. An error never shows a value.
"""

import base64
import re
from enum import StrEnum
from typing import TypeAlias

from jms_selector.meaning.conversions import java_text, parse_java
from jms_selector.syntax.kinds import Kind, Value, to_float
from pyspark_jms.errors import MessageFormatError, NullValueError, NumberFormatError

__all__ = [
    "BASE64",
    "READABLE_AS",
    "JmsValue",
    "ValueType",
    "convert",
    "null_as",
    "parse",
    "render",
    "value_type",
]

JmsValue: TypeAlias = bool | int | float | str | bytes


class ValueType(StrEnum):
    """JMS 3.1 §3.5.4 and §3.11.3: the types of a property (the first eight) and of an element of a map or a stream."""

    BOOLEAN = "boolean"
    BYTE = "byte"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    CHAR = "char"
    BYTES = "bytes"


_T = ValueType

READABLE_AS: dict[ValueType, frozenset[ValueType]] = {
    _T.BOOLEAN: frozenset({_T.BOOLEAN, _T.STRING}),
    _T.BYTE: frozenset({_T.BYTE, _T.SHORT, _T.INT, _T.LONG, _T.STRING}),
    _T.SHORT: frozenset({_T.SHORT, _T.INT, _T.LONG, _T.STRING}),
    _T.INT: frozenset({_T.INT, _T.LONG, _T.STRING}),
    _T.LONG: frozenset({_T.LONG, _T.STRING}),
    _T.FLOAT: frozenset({_T.FLOAT, _T.DOUBLE, _T.STRING}),
    _T.DOUBLE: frozenset({_T.DOUBLE, _T.STRING}),
    _T.STRING: frozenset(_T) - {_T.CHAR, _T.BYTES},
    _T.CHAR: frozenset({_T.CHAR, _T.STRING}),
    _T.BYTES: frozenset({_T.BYTES}),
}
"""Written as the key, readable as any of these. JMS 3.1 §3.5.4 (properties: without char and bytes) and §3.11.3."""

_INTEGERS = frozenset({_T.BYTE, _T.SHORT, _T.INT, _T.LONG})
_LAST_CHAR = "\uffff"

BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
"""RFC 4648 §4, padded, without line breaks. A pattern that Python, RE2 and Java read alike; Python's own strict
decoder lets ``AAAA====`` pass."""

_BASE64 = re.compile(BASE64)


def convert(text: str | None, written: str | None, read: str) -> JmsValue | None:
    """The value as ``getInt``, ``getString`` and their like give it. Without a type it was written as a string.

    ``text`` None is a null, or a property or an item that is not there: JMS makes no difference.

    >>> convert("7", "byte", "long")
    7
    >>> convert("1E10", "double", "string")
    '1.0E10'
    """
    target = value_type(read)
    if text is None:
        return null_as(target)
    source = _T.STRING if written is None else value_type(written)
    if target not in READABLE_AS[source]:
        raise MessageFormatError(f"A value written as {source} cannot be read as {target}.", _remedy(source))
    if source in _INTEGERS and not text.isascii():
        raise NumberFormatError(_UNREADABLE.format(source))  # valueOf reads every script's digits, toString writes ours
    value = parse(text, target if source is _T.STRING else source)
    return render(value, source) if target is _T.STRING else value


def value_type(name: str) -> ValueType:
    """The type of that name; a ``MessageFormatError`` when JMS has none."""
    try:
        return ValueType(name)
    except ValueError:
        raise MessageFormatError("JMS has no such type of a value.", f"The types are {', '.join(_T)}.") from None


def _remedy(source: ValueType) -> str:
    return f"It can be read as {', '.join(t for t in _T if t in READABLE_AS[source])}."


def null_as(read: ValueType) -> bool | None:
    """A null read as ``read``: null for an object; for a primitive what ``valueOf(null)`` does, JMS 3.1 §3.5.4."""
    if read is _T.BOOLEAN:
        return False
    if read in _INTEGERS:
        raise NumberFormatError(f"A null, or an absent value, cannot be read as {read}.", _NULL_REMEDY)
    if read in {_T.FLOAT, _T.DOUBLE, _T.CHAR}:
        raise NullValueError(f"A null, or an absent value, cannot be read as {read}.", _NULL_REMEDY)
    return None


_UNREADABLE = "The text is no {} as Java reads one, or out of range."
_NULL_REMEDY = "Read it as string, which may be null, or ask first whether it is there."


def parse(text: str, as_type: ValueType) -> JmsValue:
    """The value of a text: ``valueOf`` of Java's class, which for a boolean takes every text; of char and bytes, which
    have none, what :func:`render` makes of them. A float is the double that it widens to.
    """
    match as_type:
        case _T.STRING:
            return text
        case _T.CHAR if len(text) == 1 and text <= _LAST_CHAR:
            return text
        case _T.CHAR:
            raise MessageFormatError("The text of a char is not one character of 16 bits.")
        case _T.BYTES:
            return _bytes(text)
    value = parse_java(text, Kind(as_type))
    if value is None:
        raise NumberFormatError(_UNREADABLE.format(as_type))
    return value


def _bytes(text: str) -> bytes:
    if not _BASE64.fullmatch(text):
        raise MessageFormatError("The text of a bytes value is not base64.")
    return base64.b64decode(text)


def render(value: JmsValue, written: ValueType) -> str:
    """The text of a value: ``toString`` of Java's class, base64 of bytes.

    Numbers as Java 19 and later print them. Earlier ones print a digit too many for some doubles and floats
    (JDK-4511638); both texts are read as the same number.
    """
    match written, value:
        case _T.BYTES, bytes():
            return base64.b64encode(value).decode("ascii")
        case ((_T.STRING | _T.CHAR), str()):
            return value
        case _T.FLOAT, float() | int():
            value = to_float(value)
        case _T.DOUBLE, int():
            value = float(value)
    return java_text(Value(Kind(written), value))
