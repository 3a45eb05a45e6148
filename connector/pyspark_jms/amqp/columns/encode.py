"""A RecordBatch of the sink's rows in, bare AMQP 1.0 messages out, in a few blocks (AMQP 1.0 §3.2; AMQP-JMS binding).

A Java consumer reads them as the messages of a Java producer. Does not know connections, transactions and the
broker's answers.
"""

from collections.abc import Sequence

import pyarrow as pa

from pyspark_jms.amqp.columns.encode_application_properties import application_properties
from pyspark_jms.amqp.columns.encode_body import body, content_types
from pyspark_jms.amqp.columns.encode_properties import (
    Identity,
    addresses_of,
    annotations,
    delivery_times_of,
    header,
    properties,
    reply_addresses_of,
)
from pyspark_jms.amqp.columns.encode_values import merged
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.row_fields import body_types, expiration_of
from pyspark_jms.columns.row_parts import block_of, parts_of
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.strings import Int64s, join_rows
from pyspark_jms.jms.model import Destination

__all__ = ["BUFFER_BYTES", "encode"]

BUFFER_BYTES = 16 << 20
"""The size to which a block is filled; a larger row gets a block of its own."""

MAX_ROW_BYTES = (1 << 30) - (1 << 20)
"""The largest row, whatever the caller allows: Arrow's binary arrays have 31-bit offsets."""


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
    task, or ``numbers`` has each row's, when they do not follow each other: errors name it, and it ends the message-id.
    Without a prefix, all messages have the same message-id. ``now_ms`` is the creation time, and what a time to live
    counts from; ``destination`` is that of rows without one; ``property_columns`` are sent as properties of the
    columns' types.
    """
    identity = Identity(message_id_prefix, now_ms)
    limit = min(max_message_bytes, MAX_ROW_BYTES)
    return [
        block_of(part, _messages(part, dialect, destination, identity), limit)
        for part in parts_of(
            rows,
            property_columns=property_columns,
            first_row=first_row,
            numbers=numbers,
            part_bytes=BUFFER_BYTES,
            max_row_bytes=MAX_ROW_BYTES,
        )
    ]


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
            content_types=content_types(rows, bodies),
            expirations=expirations,
            groups=application.groups,
        ),
        *application.section,
        *body(rows, bodies, needs_section=dialect.send.needs_body_section),
    ]
    return join_rows(merged(pieces))
