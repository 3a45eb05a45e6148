"""Headers of JMS → sections ``header``, ``message-annotations``, ``properties`` (AMQP 1.0 §3.2.1, §3.2.3, §3.2.4)."""

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.bodies import BY_ANNOTATION
from pyspark_jms.amqp.columns.encode_values import (
    NO_VALUE,
    NO_VALUE_SCALAR,
    compound,
    fixed,
    numbers,
    only_where,
    sized,
    table,
)
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.sections import HEADER, MESSAGE_ANNOTATIONS, PROPERTIES
from pyspark_jms.amqp.wire.values import TypedValue, encode, sized_bytes
from pyspark_jms.columns.arrays import Int64s, Piece, join_rows, mask_of
from pyspark_jms.columns.rows import (
    BODY_TYPES,
    PRIORITIES,
    Codes,
    Rows,
    delivery_of,
    distinct_destinations,
    first_given,
    from_now,
    modes_and_priorities,
)
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.headers import TEXT_FIELDS, Annotation, Header, HeaderType, PropertiesField
from pyspark_jms.jms.model import DESTINATION_WORDS, DeliveryMode, Destination

__all__ = ["Identity", "addresses_of", "annotations", "delivery_times_of", "header", "properties", "reply_addresses_of"]

# --- destinations -----------------------------------------------------------------------------------

NO_KIND = -1


@dataclass(frozen=True, slots=True)
class RowAddresses:
    """The address of each row as an encoded string, and its kind."""

    pieces: list[Piece]
    kinds: Int64s
    """An index into ``DESTINATION_WORDS``; ``NO_KIND`` for a row without an address."""


def addresses_of(rows: Rows, dialect: Dialect, default: Destination | None) -> RowAddresses:
    """``to``. Each distinct destination is checked once."""
    made = distinct_destinations(rows, default, lambda destination, by_row: _checked(destination, dialect, by_row))
    addresses = [
        sized_bytes(dialect.send.address(one.word, one.name).encode(), constructors.STR8) for one in made.distinct
    ]
    kinds = np.array([DESTINATION_WORDS.index(one.word) for one in made.distinct])
    if made.indices is None:
        return RowAddresses([addresses[0]], np.repeat(kinds, rows.count))
    return RowAddresses([pa.array(addresses, pa.binary()).take(made.indices)], kinds[made.indices.to_numpy()])


def _checked(destination: Destination, dialect: Dialect, by_row: bool) -> Destination:  # noqa: FBT001
    dialect.send.check_name(destination.name, by_row=by_row)
    return destination


def reply_addresses_of(rows: Rows, dialect: Dialect) -> RowAddresses | None:
    """``reply-to``; None if no row has one. A text without ``queue://``, ``topic://`` etc. is a queue's name."""
    texts = rows.text("JMSReplyTo")
    if texts is None:
        return None
    rows.require_utf8(texts, "a JMSReplyTo")
    encoded = texts.dictionary_encode()
    parsed = [_parse(data.decode()) for data in encoded.dictionary.to_pylist()]
    indices = encoded.indices
    nameless = pa.array([code for code, (_, name) in enumerate(parsed) if not name], indices.type)
    remedy = "Use queue://NAME, topic://NAME or a queue's name, or leave it null."
    rows.refuse_any(mask_of(pc.is_in(indices, value_set=nameless)), "has a JMSReplyTo without a name", remedy)
    names = pa.array([dialect.send.address(kind, name).encode() for kind, name in parsed], pa.binary())
    kinds = np.array([*(DESTINATION_WORDS.index(kind) for kind, _ in parsed), NO_KIND])
    places = indices.fill_null(pa.scalar(len(parsed), indices.type)).to_numpy()
    return RowAddresses(sized(names.take(indices), constructors.STR8), kinds[places])


def _parse(text: str) -> tuple[str, str]:
    """The kind and the name."""
    kind, separator, name = text.partition("://")
    return (kind, name) if separator and kind in DESTINATION_WORDS else ("queue", text)


# --- delivery mode, priority, time to live ----------------------------------------------------------

_DURABLE_AND_PRIORITY = [
    bytes((constructors.TRUE if mode == DeliveryMode.PERSISTENT else constructors.FALSE, constructors.UBYTE, priority))
    for mode in range(3)
    for priority in range(PRIORITIES)
]
"""By delivery mode and priority, as ``modes_and_priorities`` numbers both."""

_MAX_TTL = (1 << 32) - 1
_ANNOTATION_OF = np.array([BY_ANNOTATION.index(kind) for kind in BODY_TYPES])


def _symbol(name: Annotation) -> bytes:
    return sized_bytes(name.encode(), constructors.SYM8)


# --- header --------------------------------------------------------------------------------------------


def header(rows: Rows, expirations: Int64s, now_ms: int) -> list[Piece]:
    """``durable``, ``priority`` and, if a row of these expires, ``ttl``."""
    codes = modes_and_priorities(rows)
    first = table(_DURABLE_AND_PRIORITY, codes)
    if not expirations.any():
        return compound(HEADER, constructors.LIST32, [first], 2)
    return compound(HEADER, constructors.LIST32, [first, _times_to_live(expirations, now_ms)], 3)


def _times_to_live(expirations: Int64s, now_ms: int) -> Piece:
    """The rest of each life. Null where 32 bits cannot hold it."""
    rest = np.where(expirations > 0, expirations - now_ms, 0)
    given = (rest > 0) & (rest <= _MAX_TTL)
    if (rest == rest[0]).all():
        return bytes((constructors.UINT,)) + struct.pack(">I", int(rest[0])) if given[0] else NO_VALUE
    found = numbers(np.where(given, rest, 0), constructors.UINT, ">u4")
    return pc.if_else(pa.array(given), found, NO_VALUE_SCALAR)


# --- message-annotations -------------------------------------------------------------------------------


def annotations(
    rows: Rows, bodies: Codes, to: RowAddresses, reply_to: RowAddresses | None, delivery_times: Int64s
) -> list[Piece]:
    """Return what the AMQP-JMS binding keeps there: kinds of destinations, type of the message, delivery time."""
    pieces = [
        table([_kind(Annotation.DESTINATION, code) for code in range(len(DESTINATION_WORDS))], to.kinds),
        table([_kind(Annotation.MESSAGE_TYPE, code) for code in range(len(BY_ANNOTATION))], _ANNOTATION_OF[bodies]),
    ]
    counts: int | Int64s = 4
    if reply_to is not None:
        choices = [*(_kind(Annotation.REPLY_TO, code) for code in range(len(DESTINATION_WORDS))), b""]
        pieces.append(table(choices, reply_to.kinds % len(choices)))  # NO_KIND is the last choice
        counts = counts + 2 * (reply_to.kinds != NO_KIND)
    if delivery_times.any():
        given = np.broadcast_to(delivery_times > 0, rows.count)
        times = numbers(np.broadcast_to(delivery_times, rows.count), constructors.LONG, ">i8")
        pieces.append(only_where(given, join_rows([_symbol(Annotation.DELIVERY_TIME), times])))
        counts = counts + 2 * given
    return compound(MESSAGE_ANNOTATIONS, constructors.MAP32, pieces, counts)


def _kind(name: Annotation, code: int) -> bytes:
    return _symbol(name) + bytes((constructors.BYTE, code))


def delivery_times_of(rows: Rows, dialect: Dialect, now_ms: int) -> Int64s:
    """The instant before which no consumer gets the message; 0 for none. For each row, or one for all."""
    delays, times = delivery_of(rows)
    instants = first_given(times, from_now(now_ms, delays))
    if dialect.send.delays_delivery:
        return instants
    later = instants > now_ms
    if later.any():
        raise UnsupportedError(
            f"{rows.label(int(later.argmax()))} has a delivery delay, and {dialect.name} would deliver it at once.",
            "Leave delivery_delay and JMSDeliveryTime null, or send through another broker.",
        )
    return np.zeros(1, np.int64)


# --- JMSCorrelationID -------------------------------------------------------------------------------

# It is sent with the type that its spelling names (AMQP-JMS binding §3.2.1.2).

_MAX_ULONG = (1 << 64) - 1
_PREFIX = b"ID:AMQP_"
_ENCODED = re.compile(rb"ID:AMQP_(UUID|ULONG|BINARY|STRING|NO_PREFIX):(.*)", re.DOTALL)
_TYPES: Mapping[bytes, tuple[bytes, str, Callable[[str], Any]]] = {
    b"UUID": (rb"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "a UUID with its hyphens", UUID),
    b"ULONG": (
        rb"0*[0-9]{1,20}",
        f"a whole number from 0 to {_MAX_ULONG}",
        lambda text: TypedValue("ulong", int(text)),
    ),
    b"BINARY": (rb"([0-9a-fA-F]{2})*", "pairs of hexadecimal digits", bytes.fromhex),
}
"""By the word in an id, other than a string: the pattern of what follows, its description, and the value."""
_FALSE = pa.scalar(value=False, type=pa.bool_())


def correlation_ids(rows: Rows, texts: pa.Array) -> list[Piece]:
    """``texts``: the column, as UTF-8 that has been checked."""
    pieces = sized(texts, constructors.STR8)
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
    kind, text = found.groups()
    if kind not in _TYPES:
        return sized_bytes(text, constructors.STR8)
    pattern, wanted, value_of = _TYPES[kind]
    if re.fullmatch(pattern, text) is None or (kind == b"ULONG" and int(text) > _MAX_ULONG):
        name = f"ID:AMQP_{kind.decode()}:"
        rows.refuse(
            at,
            f"has a JMSCorrelationID that begins with {name} and does not continue with {wanted}",
            f"Write {wanted} there. ID:AMQP_STRING: before the whole text sends it as a string.",
        )
    return encode(value_of(text.decode()))


# --- section properties -----------------------------------------------------------------------------

_DIGITS = 12
_FOUR_DIGITS = np.frombuffer("".join(f"{number:04}" for number in range(10_000)).encode(), "V4")


@dataclass(frozen=True, slots=True)
class Identity:
    """The headers that the sink itself gives to messages."""

    message_id_prefix: str | None
    """The ids, or None if all messages get the same one."""
    now_ms: int
    gives_message_ids: bool = True


def properties(
    rows: Rows,
    identity: Identity,
    *,
    to: RowAddresses,
    reply_to: RowAddresses | None,
    content_types: list[Piece],
    expirations: Int64s,
    groups: Mapping[PropertiesField, list[Piece]],
) -> list[Piece]:
    """``groups``: ``group-id`` and ``group-sequence``, where a row of these has one."""
    made = {
        field: _encoded(rows, header, texts)
        for field, header in TEXT_FIELDS.items()
        if header.sent and header.type is not HeaderType.SYMBOL and (texts := rows.text(header.name)) is not None
    } | {
        PropertiesField.TO: to.pieces,
        PropertiesField.CONTENT_TYPE: content_types,
        PropertiesField.ABSOLUTE_EXPIRY_TIME: [_expiry(expirations)],
        PropertiesField.CREATION_TIME: [encode(TypedValue("timestamp", identity.now_ms))],
        **groups,
    }
    if identity.gives_message_ids:
        made[PropertiesField.MESSAGE_ID] = _message_ids(rows, identity.message_id_prefix)
    if reply_to is not None:
        made[PropertiesField.REPLY_TO] = reply_to.pieces
    fields = [made.get(field, [NO_VALUE]) for field in PropertiesField if field <= max(made)]
    return compound(PROPERTIES, constructors.LIST32, [piece for field in fields for piece in field], len(fields))


def _message_ids(rows: Rows, prefix: str | None) -> list[Piece]:
    """The prefix and the row's number in the task. All have one width: then they are no piece of their own."""
    numbers_of_rows = np.arange(rows.first, rows.first + rows.count) if rows.numbers is None else rows.numbers
    if prefix is None:
        prefix, numbers_of_rows = "", np.zeros(rows.count, np.int64)
    return [sized_bytes(prefix.encode() + bytes(_DIGITS), constructors.STR8)[:-_DIGITS], _digits(numbers_of_rows)]


def _digits(values: Int64s) -> pa.Array:
    found = np.empty((len(values), _DIGITS // 4), _FOUR_DIGITS.dtype)
    for column in reversed(range(_DIGITS // 4)):
        rest = values // 10_000
        found[:, column] = _FOUR_DIGITS[values - 10_000 * rest]
        values = rest
    return fixed(found)


def _encoded(rows: Rows, header: Header, texts: pa.Array) -> list[Piece]:
    rows.require_utf8(texts, f"a {header.name}")
    return correlation_ids(rows, texts) if header.type is HeaderType.ID else sized(texts, constructors.STR8)


def _expiry(expirations: Int64s) -> Piece:
    given = expirations > 0
    if not given.any():
        return NO_VALUE
    if (expirations == expirations[0]).all():
        return encode(TypedValue("timestamp", int(expirations[0])))
    return pc.if_else(pa.array(given), numbers(expirations, constructors.TIMESTAMP, ">i8"), NO_VALUE_SCALAR)
