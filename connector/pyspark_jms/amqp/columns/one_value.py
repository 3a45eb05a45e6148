"""One encoded AMQP value → its JMS type and the text that the schema has for it. Does not know messages."""

import sys
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.constructors import DESCRIBED, FIXED_WIDTHS, NULL, TYPES, codes_of, scalar
from pyspark_jms.amqp.wire.sections import Buffer, content
from pyspark_jms.columns.envelope import UnreadableValueError
from pyspark_jms.jms.conversions import ValueType, render
from pyspark_jms.jms.rules import AMQP_TYPES

__all__ = [
    "AMQP_NAMES",
    "BINARIES",
    "BOOLEANS",
    "JMS_TYPES",
    "STRINGS",
    "SYMBOLS",
    "element_text",
    "number",
    "property_text",
    "required",
    "string",
    "utf8",
]

# --- decimal numbers --------------------------------------------------------------------------------

# AMQP 1.0 §1.6.13: IEEE 754-2008 with a binary integer as coefficient.

_LARGE = 3
"""The first two bits after the sign of a number whose coefficient begins with the bits 100, and of no number."""

_INFINITY, _NAN = 0b11110, 0b11111


def decimal_text(data: bytes | bytearray | memoryview) -> str:
    """The number as ``Decimal`` writes it; Infinity, -Infinity or NaN.

    >>> decimal_text(bytes.fromhex("3200007b"))
    '12.3'
    """
    bits = 8 * len(data)
    digits = (bits // 32) * 9 - 2
    exponent_bits = bits // 16 + 6
    value = int.from_bytes(data, "big")
    negative, rest = value >> (bits - 1), value & ((1 << (bits - 1)) - 1)
    special = rest >> (bits - 6)
    if special == _NAN:
        return "NaN"
    if special == _INFINITY:
        return "-Infinity" if negative else "Infinity"
    width = bits - 1 - exponent_bits
    if rest >> (bits - 3) == _LARGE:
        width -= 2
        coefficient = (rest & ((1 << width) - 1)) | 1 << (width + 2)
        exponent = rest >> width & ((1 << exponent_bits) - 1)
    else:
        coefficient, exponent = rest & ((1 << width) - 1), rest >> width
    if coefficient >= 10**digits:
        coefficient = 0  # §3.5.2 of IEEE 754: not a canonical number
    bias = 3 * (1 << (exponent_bits - 3)) + digits - 2
    sign = int(negative)
    return str(Decimal((sign, tuple(map(int, str(coefficient))), exponent - bias)))


# --- values -----------------------------------------------------------------------------------------

STRINGS, BINARIES, SYMBOLS, BOOLEANS = map(codes_of, ("string", "binary", "symbol", "boolean"))
_SURROGATES = range(0xD800, 0xE000)
_LAST_CHAR = 0xFFFF
"""A char of Java has 16 bits."""

_MAX_LONG = (1 << 63) - 1

JMS_TYPES: dict[int, ValueType] = {NULL: ValueType.STRING} | {
    code: kind for kind in ValueType for code in codes_of("binary" if kind is ValueType.BYTES else kind)
}
"""Constructor → JMS type. A null has no type on the wire; a row has it as a string, which JMS allows."""

_NAMES = {DESCRIBED: "described type"} | {code: name for name, codes in TYPES.items() for code in codes}
AMQP_NAMES: dict[int, str] = {code: name for code, name in _NAMES.items() if name in AMQP_TYPES}
"""Constructor → its type, where JMS does not have that type for a property."""

_SHORT = [1 + FIXED_WIDTHS[code] if FIXED_WIDTHS.get(code, 2) < 2 else 0 for code in range(256)]  # noqa: PLR2004
"""Constructor → bytes of a value of at most two bytes, with the constructor; 0: it is longer."""


def number(message: Buffer, at: int | None, codes: bytes) -> int | None:
    """A whole number or a boolean of one of the constructors ``codes``; None if it has another one, or is not there."""
    if at is None or (code := message[at]) not in codes:
        return None
    found = int(scalar(message, at))
    return None if code == constructors.BOOLEAN and found > 1 else found


def required(message: Buffer, at: int, kind: str) -> int:
    """A whole number or a boolean of a type of AMQP; ``UnreadableValueError`` for any other value."""
    found = number(message, at, codes_of(kind))
    if found is None:
        raise UnreadableValueError(f"is not a {kind}")
    return found


def string(message: Buffer, at: int, kind: str = "string") -> str:
    """The text of a string, or of the bytes of a symbol or binary; ``UnreadableValueError`` for any other value."""
    if message[at] not in codes_of(kind):
        raise UnreadableValueError(f"is not a {kind}")
    return utf8(content(message, at))


def property_text(message: Buffer, at: int) -> tuple[str, str | None]:
    """The type of a property and its text: the name of the AMQP type if JMS has no such property.

    A list, map, array or described value has no text, and a ulong that no long holds is a string.
    """
    code, text = message[at], _text(message, at)
    return "string" if _is_beyond_long(message, at) else AMQP_NAMES.get(code) or JMS_TYPES[code].value, text


def element_text(message: Buffer, at: int) -> tuple[str, str | None]:
    """The JMS type of an element of a map or stream, and its text.

    One that JMS does not have is widened. A list, map, array or described value is a null of the AMQP type.
    """
    width = _SHORT[message[at]]
    return _short_text(bytes(message[at : at + width])) if width else _element_text(message, at)


@lru_cache(maxsize=2048)
def _short_text(element: bytes) -> tuple[str, str | None]:
    """Return one object for all elements of these bytes: of the most elements that a message can have, one object is
    kept.
    """
    return _element_text(element, 0)


def _element_text(message: Buffer, at: int) -> tuple[str, str | None]:
    code, text = message[at], _text(message, at)
    if text is None and code != NULL:
        return AMQP_NAMES[code], None
    kind = JMS_TYPES.get(code) or AMQP_TYPES[AMQP_NAMES[code]]
    is_large = scalar(message, at) > _LAST_CHAR if code == constructors.CHAR else _is_beyond_long(message, at)
    return (ValueType.STRING if is_large else kind).value, text


def _is_beyond_long(message: Buffer, at: int) -> bool:
    return message[at] == constructors.ULONG and scalar(message, at) > _MAX_LONG


def _text(message: Buffer, at: int) -> str | None:
    """The text of a value of any type; None for a null, and for what has none."""
    code = message[at]
    match _NAMES[code]:
        case "null" | "list" | "map" | "array" | "described type":
            return None
        case "string" | "symbol":
            return utf8(content(message, at))
        case "binary":
            return render(content(message, at), ValueType.BYTES)
        case "uuid":
            return str(UUID(bytes=content(message, at)))
        case "char":
            return _char(int(scalar(message, at)))
        case "decimal32" | "decimal64" | "decimal128":
            return decimal_text(content(message, at))
        case "boolean":
            return "true" if required(message, at, "boolean") else "false"
        case "float" | "double":
            return render(scalar(message, at), JMS_TYPES[code])
    return str(scalar(message, at))


def _char(point: int) -> str:
    if point > sys.maxunicode or point in _SURROGATES:
        raise UnreadableValueError("is not a character")
    return chr(point)


def utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnreadableValueError("is not valid UTF-8") from None
