"""AMQP 1.0 part 1: values and their bytes. Strict: every size, count and end is checked, and the depth has a limit.

Decoded integers of all widths are ``int``, float and double ``float``, char ``str``, timestamp ``int`` (milliseconds
since 1970), uuid ``uuid.UUID``, list ``list``, map ``dict``, array ``list``. To encode a value of a type that Python
does not have, wrap it in ``TypedValue``.
"""

import struct
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.sections import FOOTER, Buffer, MalformedMessageError, sections, value_end
from pyspark_jms.errors import MalformedFrameError

__all__ = [
    "Described",
    "Symbol",
    "TypedValue",
    "decode",
    "encode",
    "encode_list",
    "encode_map",
    "malformed",
    "section_values",
    "sized_bytes",
]

MAX_DEPTH = 16
"""Nesting of values in a performative. The deepest one of AMQP 1.0 is a filter in a source in an attach: 4."""


class Symbol(str):
    """A symbolic value: ASCII, from a fixed set of names (§1.6.21)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A value with a descriptor: its code, or its symbolic name (§1.3)."""

    descriptor: int | str
    value: Any


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value of a named AMQP type: ``TypedValue("uint", 5)``."""

    type: str
    value: Any


def malformed(fact: str) -> MalformedFrameError:
    return MalformedFrameError(
        f"The peer sent bytes that are not AMQP 1.0: {fact}.",
        "Check that this is the broker's AMQP port, and that no proxy changes the bytes.",
    )


def _refuse(fact: str) -> NoReturn:
    raise malformed(fact)


# --- encoding ----------------------------------------------------------------------------------------------

_NULL, _TRUE, _FALSE, _EMPTY_LIST = (
    bytes((code,)) for code in (constructors.NULL, constructors.TRUE, constructors.FALSE, constructors.LIST_0)
)
_SMALL = 0xFF
_UINT = struct.Struct(">I")


def sized_bytes(data: bytes, code: int) -> bytes:
    """A variable-width value: ``code`` for a size of one byte, ``code + 16`` for four."""
    if len(data) <= _SMALL:
        return bytes((code, len(data))) + data
    return bytes((code + constructors.WIDE,)) + _UINT.pack(len(data)) + data


def _compound(code: int, items: Sequence[bytes]) -> bytes:
    """Encode a list or map. The size counts the bytes that follow it, including the count (§1.2.3)."""
    data = b"".join(items)
    if len(data) < _SMALL and len(items) <= _SMALL:
        return bytes((code, len(data) + 1, len(items))) + data
    return bytes((code + constructors.WIDE,)) + struct.pack(">II", len(data) + 4, len(items)) + data


def encode_list(items: Sequence[bytes]) -> bytes:
    """A list of values that are encoded already."""
    return _compound(constructors.LIST8, items) if items else _EMPTY_LIST


def encode_map(items: Sequence[bytes]) -> bytes:
    """A map of keys and values in turn, which are encoded already."""
    return _compound(constructors.MAP8, items)


def _encode_unsigned(kind: str, number: int) -> bytes:
    wide, small, zero = constructors.TYPES[kind]
    if number == 0:
        return bytes((zero,))
    return bytes((small, number)) if number <= _SMALL else bytes((wide,)) + constructors.NUMBERS[wide].pack(number)


def _encode_symbols(names: Sequence[str]) -> bytes:
    """An array of symbols (§1.6.24), for capabilities."""
    data = b"".join(_UINT.pack(len(name)) + name.encode("ascii") for name in names)
    return struct.pack(">BIIB", constructors.ARRAY32, len(data) + 5, len(names), constructors.SYM32) + data


def _encode_typed(kind: str, value: Any) -> bytes:
    if kind in {"uint", "ulong"}:
        return _encode_unsigned(kind, value)
    if kind == "symbols":
        return _encode_symbols(value)
    if kind == "symbol":
        return encode(Symbol(value))
    code = constructors.TYPES[kind][0]
    return bytes((code,)) + constructors.NUMBERS[code].pack(ord(value) if kind == "char" else value)


def encode(value: Any) -> bytes:  # noqa: C901, PLR0912  # one branch for each type
    """The bytes of a value. A plain ``int`` becomes a long, a ``float`` a double, a ``str`` a string."""
    match value:
        case None:
            return _NULL
        case True:
            return _TRUE
        case False:
            return _FALSE
        case TypedValue():
            return _NULL if value.value is None else _encode_typed(value.type, value.value)
        case Symbol():
            return sized_bytes(value.encode("ascii"), constructors.SYM8)
        case str():
            return sized_bytes(value.encode(), constructors.STR8)
        case bytes() | bytearray() | memoryview():
            return sized_bytes(bytes(value), constructors.BIN8)
        case int():
            return struct.pack(">Bq", constructors.LONG, value)
        case float():
            return struct.pack(">Bd", constructors.DOUBLE, value)
        case uuid.UUID():
            return bytes((constructors.UUID,)) + value.bytes
        case Described():
            named = value.descriptor
            descriptor = TypedValue("ulong", named) if isinstance(named, int) else Symbol(named)
            return bytes((constructors.DESCRIBED,)) + encode(descriptor) + encode(value.value)
        case Mapping():
            return _compound(constructors.MAP8, [encode(each) for pair in value.items() for each in pair])
        case Sequence():
            return encode_list([encode(each) for each in value])
    raise TypeError(type(value).__name__)


# --- decoding ----------------------------------------------------------------------------------------------


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        _refuse("a string that is not UTF-8")


def _symbol(data: bytes) -> Symbol:
    try:
        return Symbol(data.decode("ascii"))
    except UnicodeDecodeError:
        _refuse("a symbol that is not ASCII")


def _char(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    return chr(number) if number <= sys.maxunicode else _refuse("a char above U+10FFFF")


_READERS: Mapping[int, Callable[[bytes], Any]] = {constructors.BOOLEAN: lambda data: data != b"\0"} | {
    code: read
    for name, read in {
        "string": _text,
        "symbol": _symbol,
        "char": _char,
        "uuid": lambda data: uuid.UUID(bytes=data),
        **dict.fromkeys(("binary", "decimal32", "decimal64", "decimal128"), bytes),
    }.items()
    for code in constructors.TYPES[name]
}
"""Constructor → what makes a value of its bytes, for those that are no numbers."""


def decode(buffer: Buffer, position: int, end: int, depth: int = 0) -> tuple[Any, int]:
    """The value at ``position``, and the position after it, which is at most ``end``."""
    if position >= end:
        _refuse("a value is missing")
    code = buffer[position]
    if code == constructors.DESCRIBED:
        if depth >= MAX_DEPTH:
            _refuse(f"values nested more than {MAX_DEPTH} deep")
        descriptor, position = decode(buffer, position + 1, end, depth + 1)
        if not isinstance(descriptor, int | str) or isinstance(descriptor, bool):
            _refuse("a descriptor that is neither a number nor a symbol")
        value, position = decode(buffer, position, end, depth + 1)
        return Described(descriptor, value), position
    return _value(code, buffer, position + 1, end, depth)


def _value(code: int, buffer: Buffer, position: int, end: int, depth: int) -> tuple[Any, int]:
    """The value after a constructor of this code."""
    try:
        stop = value_end(code, buffer, position, end)
    except MalformedMessageError as malformation:
        _refuse(str(malformation))
    if (read := _READERS.get(code)) is not None:
        return read(bytes(buffer[position + constructors.SIZE_WIDTHS.get(code, 0) : stop])), stop
    if code in {constructors.NULL, constructors.LIST_0}:
        return None if code == constructors.NULL else [], stop
    if code not in _COMPOUNDS:
        return constructors.number_of(code, buffer, position), stop
    if depth >= MAX_DEPTH:
        _refuse(f"values nested more than {MAX_DEPTH} deep")
    # An item takes a byte at least, so a count that cannot be true is refused before a loop.
    width = constructors.SIZE_WIDTHS[code]
    first = position + 2 * width
    if first > stop:
        _refuse("a list, map or array that is shorter than its count")
    count = int.from_bytes(buffer[position + width : first], "big")
    value, reached = _COMPOUNDS[code](buffer, first, stop, count, depth + 1)
    if reached != stop:
        _refuse("a list, map or array that does not end at its stated size")
    return value, stop


def _items(buffer: Buffer, position: int, stop: int, count: int, depth: int) -> tuple[list[Any], int]:
    if count > stop - position:
        _refuse("a list with more items than bytes")
    items: list[Any] = []
    for _ in range(count):
        item, position = decode(buffer, position, stop, depth)
        items.append(item)
    return items, position


def _pairs(buffer: Buffer, position: int, stop: int, count: int, depth: int) -> tuple[dict[Any, Any], int]:
    if count % 2:
        _refuse("a map with a key and no value")
    items, position = _items(buffer, position, stop, count, depth)
    try:
        return dict(zip(items[::2], items[1::2], strict=True)), position
    except TypeError:
        _refuse("a map with a list, map or array as a key")


def _elements(buffer: Buffer, position: int, stop: int, count: int, depth: int) -> tuple[list[Any], int]:
    """An array: one constructor for all elements (§1.6.24). Elements may be of no width, so their number is limited."""
    descriptor = None
    if position < stop and buffer[position] == constructors.DESCRIBED:
        descriptor, position = decode(buffer, position + 1, stop, depth)
        if not isinstance(descriptor, int | str):
            _refuse("a descriptor that is neither a number nor a symbol")
    if position >= stop:
        _refuse("an array without a constructor")
    code, position = buffer[position], position + 1
    if count > max(stop - position, MAX_DEPTH):
        _refuse("an array with more elements than bytes")
    elements: list[Any] = []
    for _ in range(count):
        element, position = _value(code, buffer, position, stop, depth)
        elements.append(element if descriptor is None else Described(descriptor, element))
    return elements, position


_COMPOUNDS: Mapping[int, Callable[[Buffer, int, int, int, int], tuple[Any, int]]] = {
    code: read
    for name, read in {"list": _items, "map": _pairs, "array": _elements}.items()
    for code in constructors.TYPES[name]
}


# --- messages ----------------------------------------------------------------------------------------------


def section_values(message: Buffer, through: int = FOOTER) -> dict[int, Any]:
    """The values of a message's sections by their codes, up to one. What follows is not read, and may be cut off.

    ``MalformedMessageError``: the bytes are no message.
    """
    found = {}
    for section in sections(message):
        found[section.code] = decode(message, section.value, section.end)[0]
        if section.code >= through:
            break
    return found
