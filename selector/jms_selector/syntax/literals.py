"""Token text -> literal: Java's number syntax and names, and ActiveMQ's narrower ones.

A token that is not a literal of the dialect raises :class:`LiteralError`; the parser adds the text around the token.
"""

import math
import re
import unicodedata

from jms_selector.errors import shortened
from jms_selector.syntax.kinds import Kind, in_range, integer_kind, to_float
from jms_selector.syntax.tree import Literal

__all__ = ["LiteralError", "check_name", "decimal", "is_plain_name", "number", "reserved_word", "string"]


class LiteralError(ValueError):
    """A token is not a literal: ``found`` and a hint for the parser's error."""

    def __init__(self, found: str, hint: str = "") -> None:
        super().__init__(found)
        self.found = found
        self.hint = hint


# --- reserved words and names -------------------------------------------------------------------

_WORDS = {word: f"_{word}" for word in ("NOT", "AND", "OR", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "NULL")}
_WORDS |= {"TRUE": "TRUE", "FALSE": "FALSE"}
"""Reserved word -> its terminal in the grammar."""
_ACTIVEMQ_WORDS = _WORDS | {"XPATH": "PATH", "XQUERY": "PATH"}

_ASCII_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_HYPHENATED_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def reserved_word(name: str, *, activemq: bool) -> str | None:
    """The terminal of a reserved word in upper or lower case, or None for a name."""
    if not name.isascii():
        return None
    return (_ACTIVEMQ_WORDS if activemq else _WORDS).get(name.upper())


def is_plain_name(name: str, *, activemq: bool) -> bool:
    """Return whether ``name`` may be written without quotes."""
    if reserved_word(name, activemq=activemq):
        return False
    if activemq:
        return _ASCII_NAME.fullmatch(name) is not None
    return bool(name) and _find_invalid_character(name) is None


def check_name(name: str, *, activemq: bool, hyphens: bool = False) -> None:
    """Refuse a name that is not a Java identifier (JLS §3.8), or for ActiveMQ not an ASCII identifier."""
    if activemq:
        if not (_HYPHENATED_NAME if hyphens else _ASCII_NAME).fullmatch(name):
            raise LiteralError(
                f"{name!r} is not a name", "A name in ActiveMQ consists of ASCII letters, digits, _ and $."
            )
        return
    bad = _find_invalid_character(name)
    if bad is not None:
        called = unicodedata.name(bad, f"U+{ord(bad):04X}")
        raise LiteralError(f"{bad!r} ({called}) cannot stand in a name")


# Character.isJavaIdentifierStart and isJavaIdentifierPart, by general category.
_START = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
_PART = _START | {"Nd", "Mn", "Mc", "Cf"}
_IGNORABLE = frozenset(map(chr, (*range(9), *range(0x0E, 0x1C), *range(0x7F, 0xA0))))


def _find_invalid_character(name: str) -> str | None:
    if unicodedata.category(name[0]) not in _START:
        return name[0]
    for character in name[1:]:
        if unicodedata.category(character) not in _PART and character not in _IGNORABLE:
            return character
    return None


# --- strings ----------------------------------------------------------------------------------


def string(token: str) -> str:
    """``'it''s'`` -> ``it's``, and the same for a quoted name."""
    quote = token[0]
    return token[1:-1].replace(quote + quote, quote)


# --- numbers ----------------------------------------------------------------------------------

_DIGITS = r"[0-9](?:[0-9_]*[0-9])?"
_INTEGER = re.compile(
    rf"(?:0[xX](?P<hex>[0-9a-fA-F](?:[0-9a-fA-F_]*[0-9a-fA-F])?)|0[bB](?P<binary>[01](?:[01_]*[01])?)"
    rf"|0_*(?P<octal>{_DIGITS})|(?P<decimal>{_DIGITS}))(?P<long>[lL]?)"
)
_FLOATING = re.compile(
    rf"(?P<number>(?:{_DIGITS}\.(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?|{_DIGITS}[eE][+-]?{_DIGITS}"
    rf"|{_DIGITS}(?=[fFdD]))(?P<suffix>[fFdD]?)"
)
_HEX_FLOATING = re.compile(r"(?P<number>0[xX][0-9a-fA-F_.]+[pP][+-]?[0-9_]+)(?P<suffix>[fFdD]?)")
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}

_ACTIVEMQ_INTEGER = re.compile(r"(?P<decimal>[1-9][0-9]*)[lL]?|0[xX](?P<hex>[0-9a-fA-F]+)|(?P<octal>0[0-7]*)")
_ACTIVEMQ_FLOATING = re.compile(
    r"[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
)

_MAX_DIGITS = 70
"""A long has 64 binary digits; longer numbers are refused before they are parsed."""

LONG_RANGE = 1 << 63
"""One more than the largest long: valid only after a minus."""


def number(token: str, *, activemq: bool) -> Literal:
    return _activemq_number(token) if activemq else _java_number(token)


def _java_number(token: str) -> Literal:
    """JLS §3.10.1 and §3.10.2, within the range of a long (§3.8.1.1). 2^63 is ``BIG`` until its minus is read."""
    if match := _INTEGER.fullmatch(token):
        base = next(name for name in _BASES if match[name] is not None)
        digits = match[base].replace("_", "")
        if base == "octal" and not set(digits) <= set("01234567"):
            raise LiteralError(f"{token} is not an octal number", "A number that begins with 0 is octal.")
        if len(digits) > _MAX_DIGITS or (value := int(digits, _BASES[base])) > LONG_RANGE:
            raise LiteralError(f"{shortened(token)} is beyond the range of a long")
        return Literal(value, Kind.LONG if match["long"] and value < LONG_RANGE else integer_kind(value))
    if match := _HEX_FLOATING.fullmatch(token) or _FLOATING.fullmatch(token):
        return _java_floating(token, match["number"].replace("_", ""), match["suffix"])
    raise LiteralError(f"{shortened(token)} is not a number")


def _java_floating(token: str, digits: str, suffix: str) -> Literal:
    try:
        value = float.fromhex(digits) if digits[:2] in {"0x", "0X"} else float(digits)
    except (OverflowError, ValueError):
        value = math.inf
    kind = Kind.FLOAT if suffix in {"f", "F"} and suffix else Kind.DOUBLE
    value = to_float(value) if kind is Kind.FLOAT else value
    if math.isinf(value):
        raise LiteralError(f"{shortened(token)} is beyond the range of a {kind}")
    return Literal(value, kind)


def _activemq_number(token: str) -> Literal:
    """``ConstantExpression``: decimals of any length, whose suffix is ignored; hex and octal numbers up to long."""
    if match := _ACTIVEMQ_INTEGER.fullmatch(token):
        base = next(name for name in ("decimal", "hex", "octal") if match[name] is not None)
        value = decimal(match[base]) if base == "decimal" else int(match[base], _BASES[base])
        if base != "decimal" and not in_range(value, Kind.LONG):
            raise LiteralError(f"{shortened(token)} is beyond the range of a long")
        # A decimal beyond the range of a long is a BigDecimal, unless its low 64 bits are an int.
        low = (value + LONG_RANGE) % (2 * LONG_RANGE) - LONG_RANGE
        value = low if integer_kind(low) is Kind.INT else value
        return Literal(value, integer_kind(value))
    if _ACTIVEMQ_FLOATING.fullmatch(token):
        return Literal(float(token), Kind.DOUBLE)
    raise LiteralError(f"{shortened(token)} is not a number")


def decimal(digits: str) -> int:
    """``int(digits)`` without Python's limit on digits: the parser limits the length."""
    value = 0
    for start in range(0, len(digits), 4000):
        part = digits[start : start + 4000]
        value = value * 10 ** len(part) + int(part)
    return value
