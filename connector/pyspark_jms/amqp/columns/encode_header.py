"""Delivery mode, priority, time to live → sections ``header`` and ``message-annotations`` (AMQP 1.0 §3.2.1, §3.2.3)."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.encode_destinations import NO_KIND, Addresses
from pyspark_jms.amqp.columns.encode_pieces import (
    LIST32,
    MAP32,
    NULL,
    SYM8,
    compound,
    numbers,
    only_where,
    sized_bytes,
    table,
)
from pyspark_jms.amqp.columns.one_body import BY_ANNOTATION
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.wire.sections import HEADER, MESSAGE_ANNOTATIONS
from pyspark_jms.columns.row_fields import (
    BODY_TYPES,
    PRIORITIES,
    Codes,
    delivery_of,
    first_given,
    from_now,
    modes_and_priorities,
)
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_schema import SendDefaults
from pyspark_jms.columns.strings import Int64s, Piece, join_rows
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import DeliveryMode

__all__ = ["annotations", "delivery_times_of", "header"]

_UINT, _BYTE, _LONG = 0x70, 0x51, 0x81
_DURABLE_AND_PRIORITY = [
    bytes((0x41 if mode == DeliveryMode.PERSISTENT else 0x42, 0x50, priority))
    for mode in range(3)
    for priority in range(PRIORITIES)
]
"""By delivery mode and priority, as ``modes_and_priorities`` numbers both."""

_MAX_TTL = (1 << 32) - 1
_ANNOTATION_OF = np.array([BY_ANNOTATION.index(kind) for kind in BODY_TYPES])


def _symbol(name: bytes) -> bytes:
    return sized_bytes(name, SYM8)


# --- header --------------------------------------------------------------------------------------------


def header(rows: Rows, defaults: SendDefaults, expirations: Int64s, now_ms: int) -> list[Piece]:
    """``durable``, ``priority`` and, if a row of these expires, ``ttl``."""
    codes = modes_and_priorities(rows, defaults)
    first = table(_DURABLE_AND_PRIORITY, codes)
    if not expirations.any():
        return compound(HEADER, LIST32, [first], 2)
    return compound(HEADER, LIST32, [first, _times_to_live(expirations, now_ms)], 3)


def _times_to_live(expirations: Int64s, now_ms: int) -> Piece:
    """The rest of each life, at least 1 ms: 0 would expire at once or never. Null where 32 bits cannot hold it."""
    rest = np.where(expirations > 0, np.maximum(expirations - now_ms, 1), 0)
    given = (rest > 0) & (rest <= _MAX_TTL)
    if (rest == rest[0]).all():
        return bytes((_UINT,)) + struct.pack(">I", int(rest[0])) if given[0] else NULL
    found = numbers(np.where(given, rest, 0), _UINT, ">u4")
    return pc.if_else(pa.array(given), found, pa.scalar(NULL, pa.binary()))


# --- message-annotations -------------------------------------------------------------------------------


def annotations(
    rows: Rows, bodies: Codes, to: Addresses, reply_to: Addresses | None, delivery_times: Int64s
) -> list[Piece]:
    """What the AMQP-JMS binding keeps there: kinds of destinations, the type of the message, the delivery time."""
    pieces = [
        table([_kind(b"x-opt-jms-dest", code) for code in range(2)], to.kinds),
        table([_kind(b"x-opt-jms-msg-type", code) for code in range(len(BY_ANNOTATION))], _ANNOTATION_OF[bodies]),
    ]
    counts: int | Int64s = 4
    if reply_to is not None:
        choices = [*(_kind(b"x-opt-jms-reply-to", code) for code in range(4)), b""]
        pieces.append(table(choices, reply_to.kinds % len(choices)))  # NO_KIND is the last choice
        counts = counts + 2 * (reply_to.kinds != NO_KIND)
    if delivery_times.any():
        given = np.broadcast_to(delivery_times > 0, rows.count)
        times = numbers(np.broadcast_to(delivery_times, rows.count), _LONG, ">i8")
        pieces.append(only_where(given, join_rows([_symbol(b"x-opt-delivery-time"), times])))
        counts = counts + 2 * given
    return compound(MESSAGE_ANNOTATIONS, MAP32, pieces, counts)


def _kind(name: bytes, code: int) -> bytes:
    return _symbol(name) + bytes((_BYTE, code))


def delivery_times_of(rows: Rows, dialect: Dialect, defaults: SendDefaults, now_ms: int) -> Int64s:
    """The instant before which no consumer gets the message; 0 for none. For each row, or one for all."""
    delays, times = delivery_of(rows, defaults)
    instants = first_given(times, from_now(now_ms, delays))
    if dialect.send.delays_delivery:
        return instants
    later = instants > now_ms
    if later.any():
        raise UnsupportedError(
            f"{rows.label(int(later.argmax()))} has a delivery delay, and {dialect.name} would deliver it at once.",
            "Leave delivery_delay and JMSDeliveryTime null and option deliveryDelay unset, or send through another"
            " broker.",
        )
    return np.zeros(1, np.int64)
