"""JMS 3.1's conversions: reads a value that was written as one type as another type.

The text of a value in the schema (:func:`render`), the type that it was written as and the type to read -> a Python
value, or the error that a Java client would get. The texts are those that Java's ``valueOf`` reads and ``toString``
writes. An error never shows a value.
"""

import base64
import re
from enum import StrEnum
from typing import TypeAlias

from jms_selector.meaning.conversions import java_text, parse_java
from jms_selector.syntax.kinds import Kind, Value, to_float
from pyspark_jms.errors import MessageFormatError, NullValueError, NumberFormatError
from pyspark_jms.sentences import with_article

__all__ = ["BASE64", "READABLE_AS", "JmsValue", "ValueType", "convert", "null_as", "render", "value_type"]

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
"""Type of the written value -> types that it can be read as. JMS 3.1 §3.5.4 (properties, without char and bytes)
and §3.11.3 (elements).
"""

_INTEGERS = frozenset({_T.BYTE, _T.SHORT, _T.INT, _T.LONG})
_LAST_CHAR = "\uffff"

BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
"""RFC 4648 §4, padded, without line breaks. Python, RE2 and Java read the pattern alike. Python's strict decoder cannot
replace the pattern, because it accepts ``AAAA====``.
"""

_BASE64 = re.compile(BASE64)


def convert(text: str | None, written: str | None, read: str) -> JmsValue | None:
    """Return the value that ``getInt``, ``getString`` and so on return in Java.

    ``text`` is the value as text; None is a null, or an absent property or element. ``written`` is the type with which
    the value was written; a value without a type is a string. ``read`` is the type to read.

    Examples:
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
        raise NumberFormatError(
            _UNREADABLE.format(with_article(source))
        )  # valueOf reads the digits of every script, toString writes ASCII
    value = parse(text, target if source is _T.STRING else source)
    return render(value, source) if target is _T.STRING else value


def value_type(name: str) -> ValueType:
    """The type of that name; a ``MessageFormatError`` if JMS has no such type."""
    try:
        return ValueType(name)
    except ValueError:
        raise MessageFormatError("JMS does not have this type.", f"The types are {', '.join(_T)}.") from None


def _remedy(source: ValueType) -> str:
    return f"It can be read as {', '.join(t for t in _T if t in READABLE_AS[source])}."


def null_as(read: ValueType) -> bool | None:
    """A null read as ``read``: None for an object, the result of ``valueOf(null)`` for a primitive (JMS 3.1 §3.5.4)."""
    if read is _T.BOOLEAN:
        return False
    if read in _INTEGERS:
        raise NumberFormatError(f"A null, or an absent value, cannot be read as {read}.", _NULL_REMEDY)
    if read in {_T.FLOAT, _T.DOUBLE, _T.CHAR}:
        raise NullValueError(f"A null, or an absent value, cannot be read as {read}.", _NULL_REMEDY)
    return None


_UNREADABLE = "The text is not {} that Java can read, or it is out of range."
_NULL_REMEDY = "Read it as a string, which may be null, or test for null first."


def parse(text: str, as_type: ValueType) -> JmsValue:
    """The value of a text: ``valueOf`` of Java's class, which for a boolean accepts every text. Char and bytes have no
    ``valueOf``; their texts are those of :func:`render`. A float is returned as the double that it widens to.
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
        raise NumberFormatError(_UNREADABLE.format(with_article(as_type)))
    return value


def _bytes(text: str) -> bytes:
    if not _BASE64.fullmatch(text):
        raise MessageFormatError("The text of a bytes value is not base64.")
    return base64.b64decode(text)


def render(value: JmsValue, written: ValueType) -> str:
    """The text of a value: ``toString`` of Java's class, or base64 for bytes.

    Numbers are printed as in Java 19 and later. Earlier versions print a digit too many for some doubles and floats
    (JDK-4511638); both texts parse to the same number.
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
