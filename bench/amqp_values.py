"""AMQP 1.0 values and sections for messages that the benchmark builds itself (AMQP 1.0 §1.6, §3.2)."""

import struct

__all__ = ["FALSE", "NULL", "STRING", "SYMBOL", "TRUE", "binary", "list32", "map32", "section", "string", "timestamp"]

NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"
STRING, SYMBOL, BINARY = 0xA1, 0xA3, 0xA0
_WIDE = 0x10
_SMALL = 0xFF


def string(text: str, constructor: int = STRING) -> bytes:
    """``constructor``: the one with a size of one byte."""
    return _sized(text.encode(), constructor)


def binary(data: bytes) -> bytes:
    return _sized(data, BINARY)


def _sized(data: bytes, constructor: int) -> bytes:
    if len(data) <= _SMALL:
        return bytes((constructor, len(data))) + data
    return bytes((constructor + _WIDE,)) + struct.pack(">I", len(data)) + data


def timestamp(milliseconds: int) -> bytes:
    return b"\x83" + struct.pack(">q", milliseconds)


def list32(*values: bytes) -> bytes:
    return _compound(0xD0, values)


def map32(*keys_and_values: bytes) -> bytes:
    return _compound(0xD1, keys_and_values)


def _compound(constructor: int, values: tuple[bytes, ...]) -> bytes:
    data = b"".join(values)
    return bytes((constructor,)) + struct.pack(">II", len(data) + 4, len(values)) + data


def section(code: int, value: bytes) -> bytes:
    return b"\x00\x53" + bytes((code,)) + value
