"""Typed values as a Java broker holds them, and Java's conversions between them and text.

A :class:`Value` is a kind and a Python value; a ``FLOAT`` is held as the double it widens to, an integer
is within its kind's range. Knows no syntax and no dialect.
"""

import ctypes
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple, Self

__all__ = ["NULL", "Kind", "Message", "Value"]


class Kind(StrEnum):
    """JMS 3.1 §3.5.4: the eight types of a property, and what else an evaluation can meet."""

    NULL = "null"
    BOOLEAN = "boolean"
    BYTE = "byte"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BIG = "big"
    """A literal beyond long: ActiveMQ's BigDecimal, equal only to another of its kind."""
    LIST = "list"
    """What Classic's SPLIT and MAKELIST return."""
    FAULT = "fault"
    """No value: arithmetic on what is no number, or an exception at the broker. The value says why."""


class Value(NamedTuple):
    kind: Kind
    value: Any


NULL = Value(Kind.NULL, None)
INTEGRAL = frozenset({Kind.BYTE, Kind.SHORT, Kind.INT, Kind.LONG})
NUMERIC = INTEGRAL | {Kind.FLOAT, Kind.DOUBLE}
BITS = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


def in_range(number: int, kind: Kind) -> bool:
    half = 1 << (BITS[kind] - 1)
    return -half <= number < half


def wrap(number: int, kind: Kind) -> int:
    """Java integer arithmetic wraps (JLS §15.17, §15.18)."""
    half = 1 << (BITS[kind] - 1)
    return (number + half) % (2 * half) - half


def integer_kind(number: int) -> Kind:
    """Int where it fits, long where that fits, BIG beyond."""
    if in_range(number, Kind.INT):
        return Kind.INT
    return Kind.LONG if in_range(number, Kind.LONG) else Kind.BIG


_MANTISSA = 53
"""Bits of a double's mantissa."""


def to_float(number: float) -> float:
    """Round to Java's ``float``, half to even, overflow to infinity (JLS §5.1.2)."""
    if isinstance(number, int) and number.bit_length() > _MANTISSA:
        # Rounding to double first may round twice: fold what double cannot hold into one sticky bit.
        shift = number.bit_length() - _MANTISSA + 3
        rest = number & ((1 << shift) - 1)
        number = float((number >> shift | bool(rest)) << shift)
    return ctypes.c_float(number).value


def to_kind(number: float, kind: Kind) -> float:
    """A numeric widening conversion (JLS §5.1.2)."""
    if kind is Kind.DOUBLE:
        return float(number)
    return to_float(number) if kind is Kind.FLOAT else number


# --- Java text ---------------------------------------------------------------------------------

# No two ways to read one run of digits: a long text that is no number must not take time by the square.
_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_HEX_FLOAT = r"0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
JAVA_DOUBLE = rf"[+-]?(?:NaN|Infinity|(?:{_DECIMAL}|{_HEX_FLOAT})[fFdD]?)"
"""``Double.valueOf``'s grammar, after trimming."""

INTEGER_TEXT = r"0|-?[1-9][0-9]{0,18}"
"""What ``Long.toString`` can render; the range is checked apart."""

FLOATING_TEXT = r"NaN|-?Infinity|-?(?:0|[1-9][0-9]{0,6})\.[0-9]+|-?[1-9]\.[0-9]+E-?[1-9][0-9]*"
"""What ``Float.toString`` and ``Double.toString`` can render."""

_JAVA_DOUBLE = re.compile(JAVA_DOUBLE)
_JAVA_INTEGER = re.compile(r"[+-]?\d+")
_HEX_PARTS = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)[pP]([+-]?[0-9]+)[fFdD]?")
_INTEGER_TEXT = re.compile(INTEGER_TEXT)
_FLOATING_TEXT = re.compile(FLOATING_TEXT)
_LAST_CHAR = "\uffff"
"""``Character.digit`` knows every decimal digit, but ``parseInt`` asks it of 16 bits at a time."""

_LONGEST_INTEGER = 19
"""Digits of the largest long. Zeros before them may be any number."""

_TRIMMED = "".join(map(chr, range(33)))


def java_double(text: str) -> float | None:
    """``Double.valueOf(text)``; None for a NumberFormatException."""
    text = text.strip(_TRIMMED)
    if not _JAVA_DOUBLE.fullmatch(text):
        return None
    if "x" in text or "X" in text:
        try:
            return float.fromhex(text.rstrip("fFdD") if re.search("[pP][+-]?[0-9]+[fFdD]$", text) else text)
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    return float(text if text.endswith(("NaN", "Infinity")) else text.rstrip("fFdD"))


def java_float(text: str) -> float | None:
    """``Float.valueOf(text)``: rounded once, from the text, not from the double that is nearest to it."""
    double = java_double(text)
    if double is None or math.isnan(double):
        return double
    if to_float(math.nextafter(double, -math.inf)) == to_float(math.nextafter(double, math.inf)):
        return to_float(double)
    # The double lies half-way between two floats: the text decides, unless it says exactly that.
    exact = _exact(text.strip(_TRIMMED))
    half_way = type(exact)(double)
    towards = double if exact == half_way else math.copysign(math.inf, 1 if exact > half_way else -1)
    return to_float(math.nextafter(double, towards))


def _exact(text: str) -> Decimal | Fraction:
    if parts := _HEX_PARTS.fullmatch(text):
        sign, whole, fraction, exponent = parts.groups()
        return Fraction(int(f"{sign}{whole}{fraction}", 16)) * Fraction(2) ** (int(exponent) - 4 * len(fraction))
    return Decimal(text.rstrip("fFdD"))


def java_integer(text: str, kind: Kind) -> int | None:
    """``Integer.valueOf(text)`` and its sisters; None for a NumberFormatException."""
    if not _JAVA_INTEGER.fullmatch(text) or max(text) > _LAST_CHAR:
        return None
    digits = "".join(str(int(digit)) for digit in text.lstrip("+-")) if not text.isascii() else text.lstrip("+-")
    digits = digits.lstrip("0") or "0"
    if len(digits) > _LONGEST_INTEGER:
        return None
    number = -int(digits) if text.startswith("-") else int(digits)
    return number if in_range(number, kind) else None


def parse_java(text: str, kind: Kind) -> bool | float | None:
    """``valueOf`` of the Java class behind ``kind``; None where it throws."""
    if kind is Kind.BOOLEAN:
        return text.lower() == "true"
    if kind in INTEGRAL:
        return java_integer(text, kind)
    return java_double(text) if kind is Kind.DOUBLE else java_float(text)


_MOST_DIGITS = 9
"""Decimal digits that tell every float from the next."""


def _shortest(number: float, kind: Kind) -> str:
    """The fewest digits that are read as this number, two at least, and of those the nearest: Java 19 and later.

    Earlier ones print a digit too many for some numbers (JDK-4511638).
    """
    if kind is Kind.DOUBLE:
        text = repr(number)
        return text if len(text.partition("e")[0]) > 1 else f"{number:.1e}"
    exact = Decimal(number)
    return next(found for digits in range(2, _MOST_DIGITS + 1) if (found := _nearest(exact, number, digits)))


def _nearest(exact: Decimal, number: float, digits: int) -> str | None:
    """Of the two decimals of so many digits around ``exact``, the nearer one that is read as ``number``."""
    around = {Context(digits, rounding).plus(exact) for rounding in (ROUND_FLOOR, ROUND_CEILING)}
    read = [text for decimal in around if java_float(text := f"{decimal:.{digits - 1}e}") == number]
    return min(read, key=lambda text: (abs(Decimal(text) - exact), int(text.partition("e")[0][-1]) % 2), default=None)


_SMALLEST_PLAIN, _LARGEST_PLAIN = -3, 7


def _scientific(number: float, kind: Kind) -> str:
    """``Double.toString``: plain from 1e-3 up to 1e7, else one digit, a point, and ``E``."""
    if math.isnan(number) or math.isinf(number):
        return "NaN" if math.isnan(number) else ("-" if number < 0 else "") + "Infinity"
    sign = "-" if math.copysign(1, number) < 0 else ""
    mantissa, _, exponent = _shortest(abs(number), kind).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits, point = whole + fraction, len(whole) + int(exponent or 0)
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0") or "0"
    if number == 0:
        return f"{sign}0.0"
    if _SMALLEST_PLAIN < point <= _LARGEST_PLAIN:
        digits = "0" * (1 - point) + digits if point < 1 else digits.ljust(point, "0")
        point = max(point, 1)
        return f"{sign}{digits[:point]}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def java_text(value: Value) -> str:
    """``String.valueOf`` of the value: what a broker writes into a frame."""
    match value.kind:
        case Kind.FLOAT | Kind.DOUBLE:
            return _scientific(value.value, value.kind)
        case Kind.BOOLEAN:
            return "true" if value.value else "false"
        case Kind.LIST:
            return "[" + ", ".join(map(java_text, value.value)) + "]"
        case _:
            return str(value.value)


def readings(text: str) -> list[Value]:
    """Every typed value whose Java text is ``text``: the string, and the numbers or the boolean it may be."""
    found = [Value(Kind.STRING, text)]
    if text in {"true", "false"}:
        found.append(Value(Kind.BOOLEAN, text == "true"))
    elif _INTEGER_TEXT.fullmatch(text):
        number = int(text)
        found += [Value(kind, number) for kind in BITS if in_range(number, kind)]
    elif _FLOATING_TEXT.fullmatch(text):
        double = float(text)
        found += [Value(Kind.FLOAT, to_float(double)), Value(Kind.DOUBLE, double)]
    return found


# --- messages ----------------------------------------------------------------------------------


def typed(value: Any) -> Value:
    """A Python value as the JMS type a Java client would most likely have set."""
    match value:
        case Value():
            return value
        case None:
            return NULL
        case bool():
            return Value(Kind.BOOLEAN, value)
        case int():
            return Value(integer_kind(value), value)
        case float():
            return Value(Kind.DOUBLE, value)
        case str():
            return Value(Kind.STRING, value)
        case _:
            raise TypeError(f"a JMS property is no {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class Message:
    """What a selector sees of a message: header fields by their JMS names, and typed properties."""

    headers: Mapping[str, Value] = field(default_factory=dict)
    properties: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, headers: Mapping[str, Any] | None = None, **properties: Any) -> Self:
        """From plain Python values: ``Message.of({"JMSPriority": 7}, color="red", weight=3000)``."""
        return cls(
            {name: _header(name, value) for name, value in (headers or {}).items()},
            {name: typed(value) for name, value in properties.items()},
        )


def _header(name: str, value: Any) -> Value:
    if name in {"JMSTimestamp", "JMSExpiration", "JMSDeliveryTime"} and isinstance(value, int):
        return Value(Kind.LONG, value)
    return typed(value)
