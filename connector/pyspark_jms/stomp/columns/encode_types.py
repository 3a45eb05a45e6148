"""Column ``property_types`` and the types of typed columns → the header line ``spark_jms_types``.

The line has a JSON object without blanks: property name → JMS type, in the row's order (docs/typed-messages.md,
"Envelope").
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.elements import json_text
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_properties import Properties, StatedTypes, TypedColumn, places_of, stated_types
from pyspark_jms.columns.strings import Piece, join_rows, mask_of
from pyspark_jms.jms.model import TYPES_MARKER, ValueType
from pyspark_jms.stomp.columns.encode_properties import left_out
from pyspark_jms.stomp.columns.header_line import fixed_line
from pyspark_jms.stomp.dialects.base import Dialect
from pyspark_jms.stomp.wire.header import escape

__all__ = ["types_line"]

_EMPTY = pa.scalar(b"", pa.binary())


def types_line(
    rows: Rows, properties: Properties | None, columns: Mapping[str, TypedColumn], dialect: Dialect
) -> list[Piece]:
    """A line for each row with the type of at least one property; nothing for the others."""
    stated = stated_types(rows)
    parts = [] if stated is None else [_stated_pairs(stated, properties, columns, dialect)]
    parts += [column.where_given(_pair(name, column.kind)) for name, column in columns.items()]
    arrays = [piece for piece in parts if isinstance(piece, pa.Array)]
    if not parts:
        return []
    begin, end = fixed_line(TYPES_MARKER, "") + b"{", b"}"
    if not arrays:
        return [begin + b"".join(parts)[1:] + end]
    pairs = join_rows(parts)
    line = join_rows([begin, pc.replace_substring(pairs, b",", b"", max_replacements=1), end])
    untyped = pc.equal(pairs, _EMPTY)
    return [pc.if_else(untyped, _EMPTY, line) if pc.any(untyped).as_py() else line]


def _pair(name: str, kind: str) -> bytes:
    """A comma, the name and the type, escaped for a header."""
    return escape(f",{json_text(name)}:{json_text(kind)}").encode()


# --- of the column -------------------------------------------------------------------------------------


def _stated_pairs(
    stated: StatedTypes, properties: Properties | None, columns: Mapping[str, TypedColumn], dialect: Dialect
) -> pa.Array:
    """The pairs of each row's ``properties``, one after the other."""
    places = places_of(stated, properties, {name: column.kind for name, column in columns.items()})
    if properties is None:
        return pa.repeat(_EMPTY, stated.entries.rows.count)
    given = mask_of(properties.values.take(places).is_valid())
    names = stated.names.dictionary_encode()
    gone = np.array(
        [left_out(name.decode("utf-8", "replace"), dialect) for name in names.dictionary.to_pylist()], np.bool_
    )
    return _pairs(stated.only(given & ~gone[names.indices.to_numpy()]))


def _pairs(stated: StatedTypes) -> pa.Array:
    names, types = stated.names.dictionary_encode(), stated.types.dictionary_encode()
    keys = names.indices.to_numpy().astype(np.int64) * len(ValueType) + types.indices.to_numpy()
    encoded = pa.array(keys).dictionary_encode()
    known_names, known_types = (texts.dictionary.to_pylist() for texts in (names, types))
    pairs = [
        _pair(known_names[key // len(ValueType)].decode(), known_types[key % len(ValueType)].decode())
        for key in encoded.dictionary.to_pylist()
    ]
    lists = pa.ListArray.from_arrays(
        pa.array(stated.entries.bounds, pa.int32()), pa.array(pairs, pa.binary()).take(encoded.indices)
    )
    return pc.binary_join(lists, _EMPTY)
