"""Java's conversions between values and text: ``valueOf`` and ``toString``. Independent of syntax and dialects."""

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from jms_selector.syntax.kinds import BITS, INTEGRAL, Kind, Value, in_range, to_float

__all__ = [
    "FLOATING_TEXT",
    "INTEGER_TEXT",
    "JAVA_DOUBLE",
    "java_double",
    "java_float",
    "java_integer",
    "java_text",
    "parse_java",
    "readings",
]

# The pattern matches a run of digits in one way only, so a long text that is not a number takes linear time.
_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_HEX_FLOAT = r"0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
JAVA_DOUBLE = rf"[+-]?(?:NaN|Infinity|(?:{_DECIMAL}|{_HEX_FLOAT})[fFdD]?)"
"""The grammar of ``Double.valueOf``, after trimming."""

INTEGER_TEXT = r"0|-?[1-9][0-9]{0,18}"
"""The texts of ``Long.toString``; the range is checked separately."""

FLOATING_TEXT = r"NaN|-?Infinity|-?(?:0|[1-9][0-9]{0,6})\.[0-9]+|-?[1-9]\.[0-9]+E-?[1-9][0-9]*"
"""The texts of ``Float.toString`` and ``Double.toString``."""

_JAVA_DOUBLE = re.compile(JAVA_DOUBLE)
_JAVA_INTEGER = re.compile(r"[+-]?\d+")
_HEX_PARTS = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)[pP]([+-]?[0-9]+)[fFdD]?")
_INTEGER_TEXT = re.compile(INTEGER_TEXT)
_FLOATING_TEXT = re.compile(FLOATING_TEXT)
_LAST_CHAR = "\uffff"
"""``parseInt`` calls ``Character.digit`` on UTF-16 units, so digits beyond U+FFFF are refused."""

_LONGEST_INTEGER = 19
"""Digits of the largest long, without leading zeros."""

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
    """``Float.valueOf(text)``: rounds once, from the text and not from the nearest double."""
    double = java_double(text)
    if double is None or math.isnan(double):
        return double
    if to_float(math.nextafter(double, -math.inf)) == to_float(math.nextafter(double, math.inf)):
        return to_float(double)
    # The double lies half-way between two floats: the exact value of the text decides the direction.
    exact = _parse_exactly(text.strip(_TRIMMED))
    half_way = type(exact)(double)
    towards = double if exact == half_way else math.copysign(math.inf, 1 if exact > half_way else -1)
    return to_float(math.nextafter(double, towards))


def _parse_exactly(text: str) -> Decimal | Fraction:
    if parts := _HEX_PARTS.fullmatch(text):
        sign, whole, fraction, exponent = parts.groups()
        return Fraction(int(f"{sign}{whole}{fraction}", 16)) * Fraction(2) ** (int(exponent) - 4 * len(fraction))
    return Decimal(text.rstrip("fFdD"))


def java_integer(text: str, kind: Kind) -> int | None:
    """``valueOf(text)`` of Java's integer classes; None for a NumberFormatException."""
    if not _JAVA_INTEGER.fullmatch(text) or max(text) > _LAST_CHAR:
        return None
    digits = "".join(str(int(digit)) for digit in text.lstrip("+-")) if not text.isascii() else text.lstrip("+-")
    digits = digits.lstrip("0") or "0"
    if len(digits) > _LONGEST_INTEGER:
        return None
    number = -int(digits) if text.startswith("-") else int(digits)
    return number if in_range(number, kind) else None


def parse_java(text: str, kind: Kind) -> bool | float | None:
    """``valueOf`` of the Java class of ``kind``; None where it throws."""
    if kind is Kind.BOOLEAN:
        return text.lower() == "true"
    if kind in INTEGRAL:
        return java_integer(text, kind)
    return java_double(text) if kind is Kind.DOUBLE else java_float(text)


_MAX_FLOAT_DIGITS = 9
"""Decimal digits that distinguish every float from the next."""


def _shortest_digits(number: float, kind: Kind) -> str:
    """The shortest decimal of two or more digits that parses to ``number``, as Java 19 and later print it.

    Earlier versions print a digit too many for some numbers (JDK-4511638).
    """
    if kind is Kind.DOUBLE:
        text = repr(number)
        return text if len(text.partition("e")[0]) > 1 else f"{number:.1e}"
    exact = Decimal(number)
    nearest = (_nearest_decimal(exact, number, digits) for digits in range(2, _MAX_FLOAT_DIGITS + 1))
    return next(text for text in nearest if text)


def _nearest_decimal(exact: Decimal, number: float, digits: int) -> str | None:
    """The decimal of ``digits`` digits that is nearest to ``exact`` and parses to ``number``; None if there is none."""
    around = {Context(digits, rounding).plus(exact) for rounding in (ROUND_FLOOR, ROUND_CEILING)}
    read = [text for decimal in around if java_float(text := f"{decimal:.{digits - 1}e}") == number]
    return min(read, key=lambda text: (abs(Decimal(text) - exact), int(text.partition("e")[0][-1]) % 2), default=None)


_SMALLEST_PLAIN, _LARGEST_PLAIN = -3, 7


def _scientific(number: float, kind: Kind) -> str:
    """``Double.toString``: plain from 1e-3 up to 1e7, else one digit, a point, and ``E``."""
    if math.isnan(number) or math.isinf(number):
        return "NaN" if math.isnan(number) else ("-" if number < 0 else "") + "Infinity"
    sign = "-" if math.copysign(1, number) < 0 else ""
    mantissa, _, exponent = _shortest_digits(abs(number), kind).partition("e")
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
    """``String.valueOf`` of the value: the text that a broker writes into a STOMP message."""
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
    """Every typed value whose Java text is ``text``: the string, and the numbers or the boolean with that text."""
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
