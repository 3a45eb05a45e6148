"""JMSCorrelationID → correlation-id of the type that its spelling names (AMQP-JMS binding §3.2.1.2)."""

import re
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.encode_pieces import BIN8, STR8, sized, sized_bytes
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.strings import Piece, mask_of

__all__ = ["correlation_ids"]

_UUID, _ULONG, _SMALL_ULONG, _ULONG_0 = 0x98, 0x80, 0x53, 0x44
_MAX_ULONG, _MAX_BYTE = (1 << 64) - 1, 0xFF
_PREFIX = b"ID:AMQP_"
_ENCODED = re.compile(rb"ID:AMQP_(UUID|ULONG|BINARY|STRING|NO_PREFIX):(.*)", re.DOTALL)
_FALSE = pa.scalar(value=False, type=pa.bool_())


def correlation_ids(rows: Rows, texts: pa.Array) -> list[Piece]:
    """``texts``: the column, as UTF-8 that has been checked."""
    pieces = sized(texts, STR8)
    begins = pc.starts_with(texts, _PREFIX)
    if not pc.any(begins).as_py():
        return pieces
    at = np.flatnonzero(mask_of(begins.fill_null(_FALSE)))
    named = texts.take(pa.array(at)).to_pylist()
    values = [_value(rows, row, text) for row, text in zip(at.tolist(), named, strict=True)]
    encoded = [value for value in values if value is not None]
    mask = np.zeros(len(texts), np.bool_)
    mask[at] = [value is not None for value in values]
    heads, contents = pieces
    # The whole value takes the place of its constructor and size.
    return [
        pc.replace_with_mask(heads, pa.array(mask), pa.array(encoded, pa.binary())),
        pc.replace_with_mask(contents, pa.array(mask), pa.array([b""] * len(encoded), pa.binary())),
    ]


def _value(rows: Rows, at: int, text: bytes) -> bytes | None:
    """The encoded value; None for an id that is sent as it is."""
    found = _ENCODED.fullmatch(text)
    if found is None:
        return None
    kind, value = found.groups()
    encoded = _ENCODERS[kind](value)
    if encoded is None:
        wanted, name = _WANTED[kind], f"ID:AMQP_{kind.decode()}:"
        rows.refuse(
            at,
            f"has a JMSCorrelationID that begins with {name} and does not continue with {wanted}",
            f"Write {wanted} there. ID:AMQP_STRING: before the whole text sends it as a string.",
        )
    return encoded


def _uuid(value: bytes) -> bytes | None:
    if not re.fullmatch(rb"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        return None
    return bytes((_UUID,)) + UUID(value.decode()).bytes


def _ulong(value: bytes) -> bytes | None:
    if not re.fullmatch(rb"0*[0-9]{1,20}", value) or int(value) > _MAX_ULONG:
        return None
    number = int(value)
    if number > _MAX_BYTE:
        return bytes((_ULONG,)) + struct.pack(">Q", number)
    return bytes((_SMALL_ULONG, number)) if number else bytes((_ULONG_0,))


def _binary(value: bytes) -> bytes | None:
    if not re.fullmatch(rb"([0-9a-fA-F]{2})*", value):
        return None
    return sized_bytes(bytes.fromhex(value.decode()), BIN8)


def _string(value: bytes) -> bytes:
    return sized_bytes(value, STR8)


_ENCODERS: Mapping[bytes, Callable[[bytes], bytes | None]] = MappingProxyType(
    {b"UUID": _uuid, b"ULONG": _ulong, b"BINARY": _binary, b"STRING": _string, b"NO_PREFIX": _string}
)
_WANTED = {
    b"UUID": "a UUID with its hyphens",
    b"ULONG": f"a whole number from 0 to {_MAX_ULONG}",
    b"BINARY": "pairs of hexadecimal digits",
}
