"""Columns ``destination`` and ``JMSReplyTo`` → ``to``, ``reply-to``, and the kinds that annotations have for them."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.encode_pieces import STR8, sized, sized_bytes
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.columns.row_fields import distinct_destinations
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.strings import Int64s, Piece, first_not_utf8, mask_of
from pyspark_jms.jms.model import Destination, DestinationKind

__all__ = ["NO_KIND", "Addresses", "addresses_of", "reply_addresses_of"]

_KINDS = ("queue", "topic", "temp-queue", "temp-topic")
"""The kind by the value of ``x-opt-jms-dest`` and ``x-opt-jms-reply-to``."""

NO_KIND = -1


@dataclass(frozen=True, slots=True)
class Addresses:
    """The address of each row as an encoded string, and its kind."""

    pieces: list[Piece]
    kinds: Int64s
    """An index into queue, topic, temporary queue, temporary topic; ``NO_KIND`` for a row without an address."""


def addresses_of(rows: Rows, dialect: Dialect, default: Destination | None) -> Addresses:
    """``to``. Each distinct destination is checked once."""
    made = distinct_destinations(rows, default, lambda destination, by_row: _checked(destination, dialect, by_row))
    addresses = [sized_bytes(dialect.send.address(one.kind, one.name).encode(), STR8) for one in made.distinct]
    kinds = np.array([int(one.kind is DestinationKind.TOPIC) for one in made.distinct])
    if made.indices is None:
        return Addresses([addresses[0]], np.repeat(kinds, rows.count))
    return Addresses([pa.array(addresses, pa.binary()).take(made.indices)], kinds[made.indices.to_numpy()])


def _checked(destination: Destination, dialect: Dialect, by_row: bool) -> Destination:  # noqa: FBT001
    dialect.send.check_name(destination.name, by_row=by_row)
    return destination


def reply_addresses_of(rows: Rows, dialect: Dialect) -> Addresses | None:
    """``reply-to``; None if no row has one. A text without ``queue://``, ``topic://`` etc. is a queue's name."""
    texts = rows.text("JMSReplyTo")
    if texts is None:
        return None
    wrong = first_not_utf8(texts)
    if wrong is not None:
        rows.refuse(wrong, "has a JMSReplyTo that is not UTF-8", "Encode it, in base64 for example.")
    encoded = texts.dictionary_encode()
    parsed = [_parse(data.decode()) for data in encoded.dictionary.to_pylist()]
    indices = encoded.indices
    nameless = pa.array([code for code, (_, name) in enumerate(parsed) if not name], indices.type)
    remedy = "Use queue://NAME, topic://NAME or a queue's name, or leave it null."
    rows.refuse_any(mask_of(pc.is_in(indices, value_set=nameless)), "has a JMSReplyTo without a name", remedy)
    names = pa.array([dialect.send.address(kind, name).encode() for kind, name in parsed], pa.binary())
    kinds = np.array([*(_KINDS.index(kind) for kind, _ in parsed), NO_KIND])
    places = indices.fill_null(pa.scalar(len(parsed), indices.type)).to_numpy()
    return Addresses(sized(names.take(indices), STR8), kinds[places])


def _parse(text: str) -> tuple[str, str]:
    """The kind and the name."""
    kind, separator, name = text.partition("://")
    return (kind, name) if separator and kind in _KINDS else ("queue", text)
