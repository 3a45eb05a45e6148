"""Decimal numbers of AMQP → text (AMQP 1.0 §1.6.13): IEEE 754-2008 with a binary integer as coefficient."""

from decimal import Decimal

__all__ = ["decimal_text"]

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
