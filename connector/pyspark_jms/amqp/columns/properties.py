"""Application properties, and those that JMS derives from other sections → ``properties`` and ``property_types``."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Code, Refusals
from pyspark_jms.amqp.columns.fields import DistinctNames, field_at, names_of
from pyspark_jms.amqp.columns.flattened_entries import (
    IS_PROPERTY,
    NUMBER,
    SEQUENCES,
    flatten,
    only_of_types,
    property_types,
    texts_of,
)
from pyspark_jms.amqp.columns.walk import Entries, Field, Parts
from pyspark_jms.amqp.dialects.base import COMPRESSED_PROPERTY, Dialect
from pyspark_jms.amqp.wire.constructors import BIN8, BIN32, NULL, STR8, STR32
from pyspark_jms.columns.read_columns import property_keys
from pyspark_jms.columns.strings import Ints, Mask
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER

__all__ = ["MARKERS", "EnvelopedError", "property_columns", "wanted_properties"]

MARKERS = frozenset({BODY_MARKER, TYPES_MARKER})
"""The properties of an envelope (docs/typed-messages.md)."""

_OWN = ("JMSXGroupID", "JMSXGroupSeq", "JMSXUserID")
_COUNT = "JMSXDeliveryCount"
_USER_ID, _GROUP_ID, _GROUP_SEQUENCE = 1, 10, 11
_MAX_INT = (1 << 31) - 1


class EnvelopedError(Exception):
    """A message is in an envelope: all of its properties must be read."""


def wanted_properties(
    reader: ByteReader,
    parts: Parts,
    refusals: Refusals,
    dialect: Dialect,
    wanted: Sequence[str],
    *,
    from_stomp: Mask,
    delivery_counts: Ints,
) -> dict[str, pa.Array]:
    """The text and the type of each wanted property, as columns. ``EnvelopedError`` if a message is in an envelope.

    ``from_stomp``: as below.
    """
    names = names_of(reader, parts.application_properties, refusals)
    if MARKERS & names.numbers.keys():
        raise EnvelopedError
    if not wanted:
        return {}
    fields, codes = _of_producer(parts.application_properties, names, dialect, from_stomp, refusals)
    fields, codes = _of_names(fields, codes, {names.numbers.get(name, -1): place for place, name in enumerate(wanted)})
    fields = [only_of_types(field, IS_PROPERTY, refusals) for field in fields]
    for name, field in _own_fields(parts, delivery_counts, refusals):
        if name in wanted:
            fields.append(field)
            codes.append(wanted.index(name))
    flat = flatten(fields, codes, len(parts))
    refusals.add(flat.rows_with_a_name_twice(len(wanted)))
    texts, types = texts_of(reader, flat, refusals), property_types(flat)
    owners = flat.row_of_each()
    places = flat.name if isinstance(flat.name, np.ndarray) else np.tile(np.array(flat.name, np.int64), len(parts))
    found: dict[str, pa.Array] = {}
    for place, name in enumerate(wanted):
        at = np.flatnonzero(places == place)
        index = np.full(len(parts), -1)
        index[owners[at]] = at
        take = pa.array(index, mask=index < 0)
        found |= dict(zip(property_keys(name), (texts.take(take), types.take(take)), strict=True))
    return found


def _of_names(fields: list[Field], codes: list[Code], numbers: dict[int, int]) -> tuple[list[Field], list[Code]]:
    """The entries with some names, by the new numbers of these names."""
    kept_fields: list[Field] = []
    kept_codes: list[Code] = []
    for field, code in zip(fields, codes, strict=True):
        for number, place in numbers.items():
            which = np.equal(code, number)
            if which.any():
                kept_fields.append(field if which.all() else field.only(which))
                kept_codes.append(place)
    return kept_fields, kept_codes


def property_columns(
    reader: ByteReader, parts: Parts, refusals: Refusals, dialect: Dialect, *, from_stomp: Mask, delivery_counts: Ints
) -> dict[str, pa.Array]:
    """``from_stomp``: the rows without a message-id, whose properties may be headers of a SEND frame."""
    rows = len(parts)
    names = names_of(reader, parts.application_properties, refusals)
    fields, codes = _of_producer(parts.application_properties, names, dialect, from_stomp, refusals)
    fields = [only_of_types(field, IS_PROPERTY, refusals) for field in fields]
    for name, field in _own_fields(parts, delivery_counts, refusals):
        fields.append(field)
        codes.append(names.number(name))
    flat = flatten(fields, codes, rows)
    refusals.add(flat.rows_with_a_name_twice(len(names)))
    offsets = pa.array(flat.offsets, pa.int32())
    keys = flat.pick_each(names.texts(), flat.name)
    return {
        "properties": pa.MapArray.from_arrays(offsets, keys, texts_of(reader, flat, refusals)),
        "property_types": pa.MapArray.from_arrays(offsets, keys, property_types(flat)),
    }


def _of_producer(
    entries: Entries, names: DistinctNames, dialect: Dialect, from_stomp: Mask, refusals: Refusals
) -> tuple[list[Field], list[Code]]:
    """The entries that become properties. A row with a name that concerns another section is refused."""
    number_of = names.numbers
    ignored = np.zeros(len(names), np.bool_)
    stomp, own = ignored.copy(), ignored.copy()
    for name, number in number_of.items():
        ignored[number] = (
            name == _COUNT or name in dialect.ignored_properties or name.startswith(dialect.ignored_property_prefixes)
        )
        stomp[number] = name in dialect.ignored_stomp_headers
        own[number] = name in _OWN or name == COMPRESSED_PROPERTY
    found: list[Field] = []
    codes: list[Code] = []
    for entry, code in zip(entries, names.codes, strict=True):
        field = entry.field
        refusals.add_where(field.rows, own[code])
        dropped = ignored[code]
        if stomp[code].any():
            dropped = dropped | (stomp[code] & from_stomp[field.rows])
        if not dropped.any():
            found.append(field)
            codes.append(code)
        elif not dropped.all():
            kept = ~dropped
            found.append(field.only(kept))
            codes.append(code if isinstance(code, int) else code[kept])
    return found, codes


def _own_fields(parts: Parts, delivery_counts: Ints, refusals: Refusals) -> list[tuple[str, Field]]:
    """The properties that other sections have, as fields with constructors of a property."""
    counts = np.minimum(delivery_counts + 1, _MAX_INT)
    found = [(_COUNT, Field(np.arange(len(parts)), NUMBER, counts, counts))]
    strings, binaries = {STR8: STR8, STR32: STR32}, {BIN8: STR8, BIN32: STR32}
    for name, number, codes in (
        (_OWN[0], _GROUP_ID, strings),
        (_OWN[1], _GROUP_SEQUENCE, SEQUENCES),
        (_OWN[2], _USER_ID, binaries),
    ):
        field = field_at(parts.properties, number)
        given = None if field is None else _recoded(field, codes, refusals)
        if given is not None:
            found.append((name, given))
    return found


def _recoded(field: Field, codes: dict[int, int], refusals: Refusals) -> Field | None:
    """The values that are not null, with another constructor. A row with any other value is refused."""
    table = np.full(256, -1, np.int64)
    table[list(codes)] = list(codes.values())
    code = np.broadcast_to(np.asarray(field.code), field.rows.shape)
    given = table[code] >= 0
    refusals.add_where(field.rows, ~given & (code != NULL))
    if not given.any():
        return None
    return Field(field.rows[given], table[code[given]], field.start[given], field.stop[given])
