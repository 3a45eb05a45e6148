"""One encoded AMQP value → its JMS type and the text that the schema has for it. Does not know messages."""

import sys
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.constructors import FIXED_WIDTHS, NULL, SIZE_WIDTHS, scalar
from pyspark_jms.amqp.wire.sections import Buffer, skip
from pyspark_jms.columns.envelope import UnreadableValueError
from pyspark_jms.jms.conversions import JmsValue, ValueType, render
from pyspark_jms.jms.rules import AMQP_TYPES

__all__ = [
    "AMQP_NAMES",
    "BINARIES",
    "BOOLEANS",
    "JMS_TYPES",
    "STRINGS",
    "SYMBOLS",
    "binary",
    "content",
    "decimal_text",
    "element_text",
    "number",
    "property_text",
    "string",
    "symbol",
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

STRINGS = bytes((constructors.STR8, constructors.STR32))
BINARIES = bytes((constructors.BIN8, constructors.BIN32))
SYMBOLS = bytes((constructors.SYM8, constructors.SYM32))
BOOLEANS = bytes((constructors.TRUE, constructors.FALSE, constructors.BOOLEAN))
_SURROGATES = range(0xD800, 0xE000)
_LAST_CHAR = 0xFFFF
"""A char of Java has 16 bits."""

_MAX_LONG = (1 << 63) - 1

JMS_TYPES: dict[int, ValueType] = {
    constructors.TRUE: ValueType.BOOLEAN,
    constructors.FALSE: ValueType.BOOLEAN,
    constructors.BOOLEAN: ValueType.BOOLEAN,
    constructors.BYTE: ValueType.BYTE,
    constructors.SHORT: ValueType.SHORT,
    constructors.INT: ValueType.INT,
    constructors.SMALL_INT: ValueType.INT,
    constructors.LONG: ValueType.LONG,
    constructors.SMALL_LONG: ValueType.LONG,
    constructors.FLOAT: ValueType.FLOAT,
    constructors.DOUBLE: ValueType.DOUBLE,
    constructors.CHAR: ValueType.CHAR,
    constructors.BIN8: ValueType.BYTES,
    constructors.BIN32: ValueType.BYTES,
    constructors.STR8: ValueType.STRING,
    constructors.STR32: ValueType.STRING,
    NULL: ValueType.STRING,
}
"""Constructor → JMS type. A null has no type on the wire; a row has it as a string, which JMS allows."""

AMQP_NAMES: dict[int, str] = {
    constructors.UBYTE: "ubyte",
    constructors.USHORT: "ushort",
    constructors.UINT: "uint",
    constructors.SMALL_UINT: "uint",
    constructors.UINT_0: "uint",
    constructors.ULONG: "ulong",
    constructors.SMALL_ULONG: "ulong",
    constructors.ULONG_0: "ulong",
    constructors.DECIMAL32: "decimal32",
    constructors.DECIMAL64: "decimal64",
    constructors.DECIMAL128: "decimal128",
    constructors.CHAR: "char",
    constructors.BIN8: "binary",
    constructors.BIN32: "binary",
    constructors.TIMESTAMP: "timestamp",
    constructors.UUID: "uuid",
    constructors.SYM8: "symbol",
    constructors.SYM32: "symbol",
    constructors.LIST_0: "list",
    constructors.LIST8: "list",
    constructors.LIST32: "list",
    constructors.MAP8: "map",
    constructors.MAP32: "map",
    constructors.ARRAY8: "array",
    constructors.ARRAY32: "array",
    constructors.DESCRIBED: "described type",
}
"""Constructor → its type, where JMS does not have that type for a property."""

_SHORT = [1 + FIXED_WIDTHS[code] if FIXED_WIDTHS.get(code, 2) < 2 else 0 for code in range(256)]  # noqa: PLR2004
"""Constructor → bytes of a value of at most two bytes, with the constructor; 0: it is longer."""


def number(message: Buffer, at: int, codes: bytes) -> int | None:
    """A whole number or a boolean of one of the constructors ``codes``; None if it has another one."""
    code = message[at]
    if code not in codes:
        return None
    found = int(scalar(message, at))
    return None if code == constructors.BOOLEAN and found > 1 else found


def string(message: Buffer, at: int) -> str:
    if message[at] not in STRINGS:
        raise UnreadableValueError("is not a string")
    return _utf8(content(message, at))


def symbol(message: Buffer, at: int) -> str:
    if message[at] not in SYMBOLS:
        raise UnreadableValueError("is not a symbol")
    return _utf8(content(message, at))


def binary(message: Buffer, at: int) -> bytes | None:
    """The bytes of a binary value; None if it is not binary."""
    return content(message, at) if message[at] in BINARIES else None


def property_text(message: Buffer, at: int) -> tuple[str, str | None]:
    """The type of a property and its text: the name of the AMQP type if JMS has no such property.

    A list, map, array or described value has no text, and a ulong that no long holds is a string.
    """
    code = message[at]
    if code not in AMQP_NAMES:
        kind, text = _jms_text(message, at)
        return kind.value, text
    kind, text = _widened(message, at)
    beyond = AMQP_NAMES[code] == "ulong" and kind is ValueType.STRING
    return kind.value if beyond else AMQP_NAMES[code], text


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
    code = message[at]
    if code in JMS_TYPES and not (code == constructors.CHAR and not _is_java_char(message, at)):
        kind, text = _jms_text(message, at)
        return kind.value, text
    kind, text = _widened(message, at)
    return AMQP_NAMES[code] if text is None else kind.value, text


def _jms_text(message: Buffer, at: int) -> tuple[ValueType, str | None]:
    code = message[at]
    kind = JMS_TYPES[code]
    if kind is ValueType.STRING:
        return kind, None if code == NULL else string(message, at)
    return kind, render(_value(message, at, kind), kind)


def _widened(message: Buffer, at: int) -> tuple[ValueType, str | None]:
    """The JMS type that holds a value of a type of AMQP, and the text of the value; None if none does."""
    code = message[at]
    name = AMQP_NAMES[code]
    kind = AMQP_TYPES[name]
    match name:
        case "uuid":
            return kind, str(UUID(bytes=bytes(message[at + 1 : at + 17])))
        case "symbol":
            return kind, symbol(message, at)
        case "binary":
            return kind, render(content(message, at), ValueType.BYTES)
        case "char":
            return kind, _char(int(scalar(message, at)))
        case "decimal32" | "decimal64" | "decimal128":
            return kind, decimal_text(message[at + 1 : at + 1 + FIXED_WIDTHS[code]])
    if code not in FIXED_WIDTHS or name == "list":
        return kind, None
    found = scalar(message, at)
    return ValueType.STRING if found > _MAX_LONG else kind, str(found)


def _value(message: Buffer, at: int, kind: ValueType) -> JmsValue:
    match kind:
        case ValueType.BYTES:
            return content(message, at)
        case ValueType.CHAR:
            return _char(int(scalar(message, at)))
        case ValueType.BOOLEAN:
            truth = number(message, at, BOOLEANS)
            if truth is None:
                raise UnreadableValueError("is not a boolean")
            return bool(truth)
    return scalar(message, at)


def _is_java_char(message: Buffer, at: int) -> bool:
    return scalar(message, at) <= _LAST_CHAR


def _char(point: int) -> str:
    if point > sys.maxunicode or point in _SURROGATES:
        raise UnreadableValueError("is not a character")
    return chr(point)


def content(message: Buffer, at: int) -> bytes:
    """The bytes of a string, symbol or binary."""
    if SIZE_WIDTHS[message[at]] == 1:
        return bytes(message[at + 2 : at + 2 + message[at + 1]])
    return bytes(message[at + 5 : skip(message, at, len(message))])


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnreadableValueError("is not valid UTF-8") from None
