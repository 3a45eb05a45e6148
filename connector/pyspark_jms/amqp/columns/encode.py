"""A RecordBatch of the sink's rows in, bare AMQP 1.0 messages out, in a few blocks (AMQP 1.0 §3.2; AMQP-JMS binding).

A Java consumer reads them as the messages of a Java producer. The bodies and their content types are encoded here
(§3.2.6, §3.2.8), the sections before them by the neighbours. Does not know connections, transactions and the broker's
answers.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.bodies import NO_BODY_TYPE, OBJECT_TYPE, TEXT_TYPE
from pyspark_jms.amqp.columns.encode_application_properties import application_properties
from pyspark_jms.amqp.columns.encode_headers import (
    Identity,
    addresses_of,
    annotations,
    delivery_times_of,
    header,
    properties,
    reply_addresses_of,
)
from pyspark_jms.amqp.columns.encode_values import (
    NO_VALUE,
    VALUE_TYPES,
    compound,
    encoded_values,
    in_groups,
    merged,
    sized,
    table,
)
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.wire.constructors import BIN8, DESCRIBED, LIST32, MAP32, SMALL_ULONG, STR8, SYM8
from pyspark_jms.amqp.wire.sections import DATA, VALUE
from pyspark_jms.amqp.wire.values import sized_bytes
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.arrays import Int64s, Piece, join_rows, mask_of, slices_of
from pyspark_jms.columns.elements import check_names, check_values, elements_of
from pyspark_jms.columns.row_parts import blocks_of
from pyspark_jms.columns.rows import BODY_TYPES, Codes, Rows, body_types, expiration_of
from pyspark_jms.jms.model import OCTET_STREAM, BodyType, Destination

__all__ = ["encode"]


def encode(
    rows: pa.RecordBatch,
    *,
    dialect: Dialect,
    destination: Destination | None,
    property_columns: Sequence[str],
    now_ms: int,
    message_id_prefix: str | None,
    first_row: int = 0,
    numbers: Int64s | None = None,
    max_message_bytes: int,
) -> list[MessageBlock]:
    """One message a row, in order; the blocks have no heads and no ids.

    A row that cannot be sent raises before anything is returned. ``first_row`` is the number of the first row in the
    task, or ``numbers`` has each row's, when they do not follow each other: errors name it, and it ends the message-id,
    if the broker takes one. Without a prefix, all messages have the same message-id. ``now_ms`` is the creation time,
    and what a time to live counts from; ``destination`` is that of rows without one; ``property_columns`` are sent as
    properties of the columns' types.
    """
    identity = Identity(message_id_prefix, now_ms, dialect.send.takes_message_ids)
    return blocks_of(
        rows,
        lambda part: _messages(part, dialect, destination, identity),
        max_message_bytes,
        property_columns=property_columns,
        first_row=first_row,
        numbers=numbers,
    )


def _messages(rows: Rows, dialect: Dialect, destination: Destination | None, identity: Identity) -> pa.Array:
    now_ms = identity.now_ms
    to, reply_to = addresses_of(rows, dialect, destination), reply_addresses_of(rows, dialect)
    bodies, expirations = body_types(rows), expiration_of(rows, now_ms)
    application = application_properties(rows, dialect)
    pieces = [
        *header(rows, expirations, now_ms),
        *annotations(rows, bodies, to, reply_to, delivery_times_of(rows, dialect, now_ms)),
        *properties(
            rows,
            identity,
            to=to,
            reply_to=reply_to,
            content_types=content_types(rows, bodies, states_bytes=dialect.send.states_bytes),
            expirations=expirations,
            groups=application.groups,
        ),
        *application.section,
        *body(rows, bodies, needs_section=dialect.send.needs_body_section),
    ]
    return _joined(merged(pieces), rows.count)


# --- body sections ----------------------------------------------------------------------------------

_VALUE, _DATA = (bytes((DESCRIBED, SMALL_ULONG, each)) for each in (VALUE, DATA))
_NULL_OBJECT = bytes.fromhex("aced000570")
"""The Java serialization of null."""

_TYPE_NAMES = pa.array(VALUE_TYPES, pa.string())
_TEXT, _BYTES = BODY_TYPES.index(BodyType.TEXT), BODY_TYPES.index(BodyType.BYTES)
_BY_TYPE = {BodyType.BYTES: OCTET_STREAM, BodyType.OBJECT: OBJECT_TYPE, BodyType.MESSAGE: NO_BODY_TYPE}
_CONTENT_TYPES = [_BY_TYPE.get(kind) for kind in BODY_TYPES]
_WITHOUT_BYTES = [None if kind is BodyType.BYTES else _BY_TYPE.get(kind) for kind in BODY_TYPES]


def body(rows: Rows, codes: Codes, *, needs_section: bool = False) -> list[Piece]:
    """The body section of each row. ``codes``: the body type of each row, an index into ``BODY_TYPES``.

    ``needs_section``: a message without a body has the value null, and not no section at all.
    """
    present = np.flatnonzero(np.bincount(codes))
    if len(present) == 1:
        return _bodies(rows, BODY_TYPES[present[0]], needs_section=needs_section)

    def encoded(code: int, at: Int64s) -> pa.Array:
        return _joined(_bodies(rows.only(codes == code), BODY_TYPES[code], needs_section=needs_section), len(at))

    return [in_groups(codes, encoded)]


def _joined(pieces: list[Piece], rows: int) -> pa.Array:
    if all(isinstance(piece, bytes) for piece in pieces):
        return pa.repeat(pa.scalar(b"".join(pieces), pa.binary()), rows)
    return join_rows(pieces)


def _bodies(rows: Rows, kind: BodyType, *, needs_section: bool) -> list[Piece]:
    match kind:
        case BodyType.TEXT:
            return _texts(rows)
        case BodyType.BYTES:
            return _data(rows, b"")
        case BodyType.OBJECT:
            return _data(rows, _NULL_OBJECT)
        case BodyType.MAP:
            return _elements(rows, "map", MAP32)
        case BodyType.STREAM:
            return _elements(rows, "stream", LIST32)
        case BodyType.MESSAGE:
            return [_VALUE + NO_VALUE] if needs_section else []


def _texts(rows: Rows) -> list[Piece]:
    texts = rows.text("text")
    if texts is None:
        return [_VALUE + NO_VALUE]
    rows.require_utf8(texts, "a text", "Send it as bytes.")
    return [_VALUE, *sized(texts, STR8)]


def _data(rows: Rows, absent: bytes) -> list[Piece]:
    data = rows.text("bytes")
    if data is None:
        return [_DATA + sized_bytes(absent, BIN8)]
    return [_DATA, *sized(data.fill_null(pa.scalar(absent, pa.binary())), BIN8)]


def _elements(rows: Rows, column: Literal["map", "stream"], code: int) -> list[Piece]:
    elements = elements_of(rows, column)
    if elements is None:
        return compound(VALUE, code, [], 0)
    entries = elements.entries
    if entries.names is not None:
        check_names(entries, entries.names)
    check_values(elements)
    kinds = pc.index_in(elements.types, value_set=_TYPE_NAMES).to_numpy(zero_copy_only=False)
    values = encoded_values(kinds, elements.values)
    flat = join_rows(merged(values if entries.names is None else [*sized(entries.names, STR8), *values]))
    counts = np.diff(entries.bounds).astype(np.int64) * (1 if entries.names is None else 2)
    return compound(VALUE, code, [slices_of(flat, entries.bounds)], counts)


# --- content types -----------------------------------------------------------------------------------


def content_types(rows: Rows, codes: Codes, *, states_bytes: bool = True) -> list[Piece]:
    """Column ``content_type`` where the body allows it: of texts, and of bytes that consumers still take for bytes.

    A JMS client takes bytes with a textual type for a text, and with the type of an object for an object. So such bytes
    are sent as ``application/octet-stream``, as are those without a content type if ``states_bytes``.
    """
    texts = rows.text("content_type")
    if texts is None:
        named = _CONTENT_TYPES if states_bytes else _WITHOUT_BYTES
        own = [NO_VALUE if kind is None else sized_bytes(kind.encode(), SYM8) for kind in named]
        return [table(own, codes)]
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    _check_ascii(rows, encoded, distinct)
    names = (data.decode("ascii", "replace") for data in distinct)
    plain = pa.array([text != OBJECT_TYPE and TEXT_TYPE.fullmatch(text) is None for text in names], pa.bool_())
    keeps = mask_of(plain.take(encoded.indices).fill_null(pa.scalar(value=not states_bytes)))
    allowed = (codes == _TEXT) | ((codes == _BYTES) & keeps)
    fallback = pa.array([kind and kind.encode() for kind in _CONTENT_TYPES], pa.binary()).take(pa.array(codes))
    return sized(pc.if_else(pa.array(allowed), texts, fallback), SYM8)


def _check_ascii(rows: Rows, encoded: pa.Array, distinct: list[bytes]) -> None:
    odd = pa.array([code for code, data in enumerate(distinct) if not data.isascii()], encoded.indices.type)
    wrong = mask_of(pc.is_in(encoded.indices, value_set=odd))
    rows.refuse_any(wrong, "has a content_type that is not ASCII", "Use a media type, as text/plain.")
