"""The constructors of AMQP 1.0's types (§1.6): the byte before each value, which names its type and its length.

They stand here once, because the wire, the decoder of columns, the reader of one message and the encoder need the same.
"""

import struct
from collections.abc import Mapping
from typing import Final

DESCRIBED: Final = 0x00
NULL: Final = 0x40

TRUE, FALSE, BOOLEAN = 0x41, 0x42, 0x56
"""A boolean is a constructor alone, or a byte of 0 or 1."""

UINT_0, ULONG_0, LIST_0 = 0x43, 0x44, 0x45
"""A number of 0 and an empty list have no bytes after the constructor."""

UBYTE, BYTE, SMALL_UINT, SMALL_ULONG, SMALL_INT, SMALL_LONG = 0x50, 0x51, 0x52, 0x53, 0x54, 0x55
USHORT, SHORT = 0x60, 0x61
UINT, INT, FLOAT, CHAR, DECIMAL32 = 0x70, 0x71, 0x72, 0x73, 0x74
ULONG, LONG, DOUBLE, TIMESTAMP, DECIMAL64 = 0x80, 0x81, 0x82, 0x83, 0x84
DECIMAL128, UUID = 0x94, 0x98

BIN8, STR8, SYM8, BIN32, STR32, SYM32 = 0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3
LIST8, MAP8, LIST32, MAP32 = 0xC0, 0xC1, 0xD0, 0xD1
ARRAY8, ARRAY32 = 0xE0, 0xF0
"""The size that follows has one byte (8) or four (32)."""

WIDE: Final = 0x10
"""What a constructor with a size of four bytes has more than the one with a size of one byte."""


TYPES: Final[Mapping[str, tuple[int, ...]]] = {
    "null": (NULL,),
    "boolean": (TRUE, FALSE, BOOLEAN),
    "ubyte": (UBYTE,),
    "ushort": (USHORT,),
    "uint": (UINT, SMALL_UINT, UINT_0),
    "ulong": (ULONG, SMALL_ULONG, ULONG_0),
    "byte": (BYTE,),
    "short": (SHORT,),
    "int": (INT, SMALL_INT),
    "long": (LONG, SMALL_LONG),
    "float": (FLOAT,),
    "double": (DOUBLE,),
    "decimal32": (DECIMAL32,),
    "decimal64": (DECIMAL64,),
    "decimal128": (DECIMAL128,),
    "char": (CHAR,),
    "timestamp": (TIMESTAMP,),
    "uuid": (UUID,),
    "binary": (BIN8, BIN32),
    "string": (STR8, STR32),
    "symbol": (SYM8, SYM32),
    "list": (LIST8, LIST32, LIST_0),
    "map": (MAP8, MAP32),
    "array": (ARRAY8, ARRAY32),
}
"""The constructors of each type. Every other table of types and constructors is made from this one."""


def codes_of(*types: str) -> bytes:
    """Return the constructors of some types."""
    return bytes(code for name in types for code in TYPES[name])


_FIXED, _SIZED = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}, {0xA: 1, 0xB: 4, 0xC: 1, 0xD: 4, 0xE: 1, 0xF: 4}
FIXED_WIDTHS: Final = {code: _FIXED[code >> 4] for code in codes_of(*TYPES) if code >> 4 in _FIXED}
"""Constructor → bytes of its value. The first half of the byte tells it (§1.2)."""

SIZE_WIDTHS: Final = {code: _SIZED[code >> 4] for code in codes_of(*TYPES) if code >> 4 in _SIZED}
"""Constructor → bytes of the size that precedes its value."""

CONSTANTS: Final[Mapping[int, int]] = {TRUE: True, FALSE: False, UINT_0: 0, ULONG_0: 0}
"""Constructor → its value, if it has only one."""

NUMBERS: Final = {
    code: struct.Struct(layout)
    for layout, codes in {
        ">B": (UBYTE, SMALL_UINT, SMALL_ULONG, BOOLEAN),
        ">b": (BYTE, SMALL_INT, SMALL_LONG),
        ">H": (USHORT,),
        ">h": (SHORT,),
        ">I": (UINT, CHAR),
        ">i": (INT,),
        ">Q": (ULONG,),
        ">q": (LONG, TIMESTAMP),
        ">f": (FLOAT,),
        ">d": (DOUBLE,),
    }.items()
    for code in codes
}
"""Constructor → the layout of its number. That of a boolean may be neither 0 nor 1."""


def scalar(buffer: bytes | bytearray | memoryview, at: int) -> int | float:
    """Return the value at a position, which has a constructor of ``CONSTANTS`` or ``NUMBERS``."""
    return number_of(buffer[at], buffer, at + 1)


def number_of(code: int, buffer: bytes | bytearray | memoryview, begin: int) -> int | float:
    """Return the value of such a constructor, whose bytes begin at a position."""
    if code in CONSTANTS:
        return CONSTANTS[code]
    found: int | float = NUMBERS[code].unpack_from(buffer, begin)[0]
    return found
