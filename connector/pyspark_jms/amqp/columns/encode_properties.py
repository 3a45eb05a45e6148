"""Headers of JMS → section ``properties`` (AMQP 1.0 §3.2.4)."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.encode_destinations import Addresses
from pyspark_jms.amqp.columns.encode_ids import correlation_ids
from pyspark_jms.amqp.columns.encode_pieces import LIST32, NULL, STR8, compound, fixed, numbers, sized, sized_bytes
from pyspark_jms.amqp.wire.sections import PROPERTIES
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.strings import Int64s, Piece, first_not_utf8

__all__ = ["Identity", "properties"]

_TIMESTAMP = 0x83
_DIGITS = 12
_FOUR_DIGITS = np.frombuffer("".join(f"{number:04}" for number in range(10_000)).encode(), "V4")
_NO_VALUE = pa.scalar(NULL, pa.binary())


@dataclass(frozen=True, slots=True)
class Identity:
    """What the sink itself gives to messages."""

    message_id_prefix: str | None
    """None: all messages get the same id."""
    now_ms: int


def properties(
    rows: Rows,
    identity: Identity,
    *,
    to: Addresses,
    reply_to: Addresses | None,
    content_types: list[Piece],
    expirations: Int64s,
    groups: list[list[Piece]],
) -> list[Piece]:
    """``groups``: ``group-id`` and ``group-sequence``, or nothing if no row of these has one."""
    fields: list[list[Piece]] = [
        _message_ids(rows, identity.message_id_prefix),
        [NULL],  # user-id
        to.pieces,
        _text(rows, "JMSType"),
        [NULL] if reply_to is None else reply_to.pieces,
        _text(rows, "JMSCorrelationID", correlation_ids),
        content_types,
        [NULL],  # content-encoding
        [_expiry(expirations)],
        [bytes((_TIMESTAMP,)) + struct.pack(">q", identity.now_ms)],
        *groups,
    ]
    return compound(PROPERTIES, LIST32, [piece for field in fields for piece in field], len(fields))


def _message_ids(rows: Rows, prefix: str | None) -> list[Piece]:
    """The prefix and the row's number in the task. All have one width: then they are no piece of their own."""
    numbers_of_rows = np.arange(rows.first, rows.first + rows.count) if rows.numbers is None else rows.numbers
    if prefix is None:
        prefix, numbers_of_rows = "", np.zeros(rows.count, np.int64)
    return [sized_bytes(prefix.encode() + bytes(_DIGITS), STR8)[:-_DIGITS], _digits(numbers_of_rows)]


def _digits(values: Int64s) -> pa.Array:
    found = np.empty((len(values), _DIGITS // 4), _FOUR_DIGITS.dtype)
    for column in reversed(range(_DIGITS // 4)):
        rest = values // 10_000
        found[:, column] = _FOUR_DIGITS[values - 10_000 * rest]
        values = rest
    return fixed(found)


def _strings(_: Rows, texts: pa.Array) -> list[Piece]:
    return sized(texts, STR8)


def _text(rows: Rows, column: str, encode: Callable[[Rows, pa.Array], list[Piece]] = _strings) -> list[Piece]:
    texts = rows.text(column)
    if texts is None:
        return [NULL]
    wrong = first_not_utf8(texts)
    if wrong is not None:
        rows.refuse(wrong, f"has a {column} that is not UTF-8", "Encode it, in base64 for example.")
    return encode(rows, texts)


def _expiry(expirations: Int64s) -> Piece:
    given = expirations > 0
    if not given.any():
        return NULL
    if (expirations == expirations[0]).all():
        return bytes((_TIMESTAMP,)) + struct.pack(">q", int(expirations[0]))
    return pc.if_else(pa.array(given), numbers(expirations, _TIMESTAMP, ">i8"), _NO_VALUE)
