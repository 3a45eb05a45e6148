"""One encoded AMQP value → its JMS type and the text that the schema has for it. Does not know messages."""

import struct
import sys
from functools import lru_cache
from uuid import UUID

from pyspark_jms.amqp.columns.decimals import decimal_text
from pyspark_jms.amqp.wire.sections import FIXED_WIDTHS, SIZE_WIDTHS, Buffer, skip
from pyspark_jms.jms.conversions import JmsValue, ValueType, render
from pyspark_jms.jms.rules import AMQP_TYPES

__all__ = [
    "AMQP_NAMES",
    "JMS_TYPES",
    "NULL",
    "STRINGS",
    "SYMBOLS",
    "Unreadable",
    "binary",
    "content",
    "element_text",
    "number",
    "property_text",
    "string",
    "symbol",
]

NULL = 0x40
STRINGS, _BINARIES, SYMBOLS = b"\xa1\xb1", b"\xa0\xb0", b"\xa3\xb3"
_BOOLEAN_BYTE, _CHAR = 0x56, 0x73
_SURROGATES = range(0xD800, 0xE000)
_LAST_CHAR = 0xFFFF
"""A char of Java has 16 bits."""

_MAX_LONG = (1 << 63) - 1

JMS_TYPES: dict[int, ValueType] = {
    0x41: ValueType.BOOLEAN,
    0x42: ValueType.BOOLEAN,
    0x56: ValueType.BOOLEAN,
    0x51: ValueType.BYTE,
    0x61: ValueType.SHORT,
    0x71: ValueType.INT,
    0x54: ValueType.INT,
    0x81: ValueType.LONG,
    0x55: ValueType.LONG,
    0x72: ValueType.FLOAT,
    0x82: ValueType.DOUBLE,
    0x73: ValueType.CHAR,
    0xA0: ValueType.BYTES,
    0xB0: ValueType.BYTES,
    0xA1: ValueType.STRING,
    0xB1: ValueType.STRING,
    NULL: ValueType.STRING,
}
"""Constructor → JMS type. A null has no type on the wire; a row has it as a string, which JMS allows."""

AMQP_NAMES: dict[int, str] = {
    0x50: "ubyte",
    0x60: "ushort",
    0x70: "uint",
    0x52: "uint",
    0x43: "uint",
    0x80: "ulong",
    0x53: "ulong",
    0x44: "ulong",
    0x74: "decimal32",
    0x84: "decimal64",
    0x94: "decimal128",
    0x73: "char",
    0xA0: "binary",
    0xB0: "binary",
    0x83: "timestamp",
    0x98: "uuid",
    0xA3: "symbol",
    0xB3: "symbol",
    0x45: "list",
    0xC0: "list",
    0xD0: "list",
    0xC1: "map",
    0xD1: "map",
    0xE0: "array",
    0xF0: "array",
    0x00: "described type",
}
"""Constructor → its type, where JMS does not have that type for a property."""

_FORMATS = {0x51: ">b", 0x54: ">b", 0x55: ">b", 0x61: ">h", 0x71: ">i", 0x81: ">q", 0x83: ">q", 0x72: ">f", 0x82: ">d"}


_SHORT = [1 + FIXED_WIDTHS[code] if FIXED_WIDTHS.get(code, 2) < 2 else 0 for code in range(256)]  # noqa: PLR2004
"""Constructor → bytes of a value of at most two bytes, with the constructor; 0: it is longer."""


class Unreadable(ValueError):  # noqa: N818 - no user sees it: column body_error has its text
    """The reason why a value cannot be read, as a clause that follows its name. It quotes nothing of the value."""


def number(message: Buffer, at: int, codes: bytes) -> int | None:
    """A whole number or a boolean of one of the constructors ``codes``; None if it has another one."""
    code = message[at]
    if code not in codes:
        return None
    if code in _FORMATS:
        found: int = struct.unpack_from(_FORMATS[code], message, at + 1)[0]
        return found
    if code in {0x41, 0x42}:
        return int(code == 0x41)  # noqa: PLR2004 - the constructor of true
    found = int.from_bytes(message[at + 1 : at + 1 + FIXED_WIDTHS[code]], "big")
    return None if code == _BOOLEAN_BYTE and found > 1 else found


def string(message: Buffer, at: int) -> str:
    if message[at] not in STRINGS:
        raise Unreadable("is not a string")
    return _utf8(content(message, at))


def symbol(message: Buffer, at: int) -> str:
    if message[at] not in SYMBOLS:
        raise Unreadable("is not a symbol")
    return _utf8(content(message, at))


def binary(message: Buffer, at: int) -> bytes | None:
    """The bytes of a binary value; None if it is not binary."""
    return content(message, at) if message[at] in _BINARIES else None


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
    """The same for all elements of these bytes: of the most elements that a message can have, one object is kept."""
    return _element_text(element, 0)


def _element_text(message: Buffer, at: int) -> tuple[str, str | None]:
    code = message[at]
    if code in JMS_TYPES and not (code == _CHAR and not _is_java_char(message, at)):
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
            return kind, _char(int.from_bytes(message[at + 1 : at + 5], "big"))
        case "decimal32" | "decimal64" | "decimal128":
            return kind, decimal_text(message[at + 1 : at + 1 + FIXED_WIDTHS[code]])
    if code not in FIXED_WIDTHS or name == "list":
        return kind, None
    if code in _FORMATS:
        return kind, str(struct.unpack_from(_FORMATS[code], message, at + 1)[0])
    found = int.from_bytes(message[at + 1 : at + 1 + FIXED_WIDTHS[code]], "big")
    return ValueType.STRING if found > _MAX_LONG else kind, str(found)


def _value(message: Buffer, at: int, kind: ValueType) -> JmsValue:
    match kind:
        case ValueType.BYTES:
            return content(message, at)
        case ValueType.CHAR:
            return _char(int.from_bytes(message[at + 1 : at + 5], "big"))
        case ValueType.BOOLEAN:
            truth = number(message, at, b"\x41\x42\x56")
            if truth is None:
                raise Unreadable("is not a boolean")
            return bool(truth)
    found: int | float = struct.unpack_from(_FORMATS[message[at]], message, at + 1)[0]
    return found


def _is_java_char(message: Buffer, at: int) -> bool:
    return int.from_bytes(message[at + 1 : at + 5], "big") <= _LAST_CHAR


def _char(point: int) -> str:
    if point > sys.maxunicode or point in _SURROGATES:
        raise Unreadable("is not a character")
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
        raise Unreadable("is not valid UTF-8") from None
