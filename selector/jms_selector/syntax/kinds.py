"""The types of JMS values and literals, and the ranges of Java's numbers.

A :class:`Value` is a kind and a Python value. A ``FLOAT`` is stored as the double with the same
value; an integer is within the range of its kind.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

__all__ = [
    "BITS",
    "INTEGRAL",
    "NO_HEADERS",
    "NULL",
    "NUMERIC",
    "Kind",
    "Schema",
    "Value",
    "in_range",
    "integer_kind",
    "to_float",
]


class Kind(StrEnum):
    """JMS 3.1 §3.5.4: the eight types of a property, and further types of an evaluation."""

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
    """A literal beyond the range of a long: ActiveMQ's BigDecimal, which equals only another BigDecimal."""
    LIST = "list"
    """The result of Classic's SPLIT and MAKELIST."""
    FAULT = "fault"
    """No value: arithmetic on a value that is not a number, or an exception at the broker. The value is the reason."""


class Value(NamedTuple):
    kind: Kind
    value: Any


NULL = Value(Kind.NULL, None)


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The headers of messages: the names that are no properties. Each is a column of rows."""

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """By header, the kind of its values. A time is a number of milliseconds."""

    nameable: frozenset[str] = frozenset()
    """The headers that a selector may name (JMS 3.1 §3.8.1.1)."""

    ids: frozenset[str] = frozenset()
    """Headers that are ids, which a broker may spell otherwise than a row does."""

    times: frozenset[str] = frozenset()
    """Headers for whose 0 (never, no delay, not set) a row has null."""


NO_HEADERS = Schema()

INTEGRAL = frozenset({Kind.BYTE, Kind.SHORT, Kind.INT, Kind.LONG})
NUMERIC = INTEGRAL | {Kind.FLOAT, Kind.DOUBLE}
BITS = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


def in_range(number: int, kind: Kind) -> bool:
    half = 1 << (BITS[kind] - 1)
    return -half <= number < half


def integer_kind(number: int) -> Kind:
    """INT, LONG or BIG: the smallest kind that holds the number."""
    if in_range(number, Kind.INT):
        return Kind.INT
    return Kind.LONG if in_range(number, Kind.LONG) else Kind.BIG


_MANTISSA = 53
"""Bits of a double's mantissa."""


def to_float(number: float) -> float:
    """Round to Java's ``float``, half to even, overflow to infinity (JLS §5.1.2)."""
    if isinstance(number, int) and number.bit_length() > _MANTISSA:
        # Rounding to double first may round twice: combine the bits that a double cannot hold into one sticky bit.
        shift = number.bit_length() - _MANTISSA + 3
        rest = number & ((1 << shift) - 1)
        number = float((number >> shift | bool(rest)) << shift)
    return ctypes.c_float(number).value
