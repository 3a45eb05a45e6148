"""Properties of rows that all have the same names and types, in the same order, as one producer's do → their entries.

Such a property is one column: its type is looked up once, and each row has the same bytes around the values.
"""

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.encode_pieces import SMALL, STR8, WIDE, lengths_of, side_by_side, sized, sized_bytes
from pyspark_jms.amqp.columns.encode_values import plain_values
from pyspark_jms.columns.sink_properties import Names, Properties, StatedTypes, repeated_width
from pyspark_jms.columns.strings import Piece, Uint8s, binary_array, join_rows, slices_of
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import PROPERTY_TYPES

__all__ = ["uniform_entries"]

_TYPES = {kind.encode(): kind for kind in PROPERTY_TYPES}


def uniform_entries(properties: Properties, names: Names, stated: StatedTypes | None) -> list[Piece] | None:
    """Keys and values of each row.

    None if the rows differ in names or types, and if a value is not valid for its type or needs the full check.
    """
    kinds = _kinds(names, stated)
    if kinds is None:
        return None
    if all(kind is ValueType.STRING for kind in kinds) and not properties.values.null_count:
        return [_strings(properties, names.distinct)]
    pieces: list[Piece] = []
    for place, (name, kind) in enumerate(zip(names.distinct, kinds, strict=True)):
        texts = properties.values.take(pa.array(np.arange(place, len(properties.values), len(kinds))))
        values = sized(texts, STR8) if kind is ValueType.STRING else plain_values(kind, texts.view(pa.string()))
        if values is None:
            return None
        pieces += [sized_bytes(name, STR8), *values]
    return pieces


def _kinds(names: Names, stated: StatedTypes | None) -> list[ValueType] | None:
    """The type of each name. A type without a property is left to the checks of ``places_of``."""
    if not names.each_row:
        return None
    if stated is None:
        return [ValueType.STRING] * len(names.distinct)
    width = repeated_width(stated.entries.bounds, stated.names)
    if not width or repeated_width(stated.entries.bounds, stated.types) != width:
        return None
    first = (texts[:width].to_pylist() for texts in (stated.names, stated.types))
    types = {name: _TYPES[kind] for name, kind in zip(*first, strict=True) if kind in _TYPES and name in names.distinct}
    return [types.get(name, ValueType.STRING) for name in names.distinct] if len(types) == width else None


def _strings(properties: Properties, names: list[bytes]) -> pa.Array:
    """The keys, constructors and sizes of each row are one template, so an entry is two pieces: these and the value."""
    rows, width = properties.entries.rows.count, len(names)
    lengths = lengths_of(properties.values)
    wide = bool(lengths.max() > SMALL)
    sizes = lengths.astype(">u4" if wide else "u1").view(np.uint8).reshape(rows, width, -1)
    parts: list[bytes | Uint8s] = []
    for place, name in enumerate(names):
        parts += [sized_bytes(name, STR8) + bytes((STR8 + WIDE * wide,)), sizes[:, place]]
    ends = np.cumsum([len(part) + sizes.shape[2] for part in parts[::2]])
    bounds = np.zeros(rows * width + 1, np.int32)
    for place, end in enumerate(ends.tolist()):
        bounds[1 + place :: width] = np.arange(end, end + rows * int(ends[-1]), int(ends[-1]))
    heads = binary_array(bounds, side_by_side(parts, rows).reshape(-1))
    return slices_of(join_rows([heads, properties.values]), properties.entries.bounds)
