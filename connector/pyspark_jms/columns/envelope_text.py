"""Column ``map`` or ``stream`` → the text of each row's envelope (docs/typed-messages.md, "Envelope").

One line of JSON without blanks: ``{"map":[{"name":"n","type":"int","value":"3"},…]}``, ``{"stream":[{"type":…},…]}``.
Does not know protocols.
"""

from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.elements import Elements, check_names, check_values, elements_of
from pyspark_jms.columns.json_text import json_escaped
from pyspark_jms.columns.ragged import Piece, join_rows
from pyspark_jms.columns.rows import Entries, Rows
from pyspark_jms.errors import MessageTooLargeError

__all__ = ["envelopes"]


def envelopes(rows: Rows, column: Literal["map", "stream"]) -> pa.Array:
    """The JSON of each row, as binary. A row with a null has an empty map or stream."""
    elements = elements_of(rows, column)
    if elements is None or not len(elements.entries):
        return pa.repeat(pa.scalar(f'{{"{column}":[]}}'.encode(), pa.binary()), rows.count)
    lists = pa.ListArray.from_arrays(pa.array(elements.entries.bounds, pa.int32()), _texts(elements))
    return join_rows([f'{{"{column}":['.encode(), pc.binary_join(lists, pa.scalar(b",", pa.binary())), b"]}"])


def _texts(elements: Elements) -> pa.Array:
    entries = elements.entries
    check_values(elements)
    values = _escaped(entries, elements.values.view(pa.binary()), "its value is not UTF-8")
    pieces: list[Piece] = [b"{"] if entries.names is None else [b'{"name":"', _names(entries, entries.names), b'",']
    pieces += _type_parts(elements.types)
    if not values.null_count:
        return join_rows([*pieces, b'"', values, b'"}'])
    quoted = join_rows([b'"', values, b'"}']).fill_null(pa.scalar(b"null}", pa.binary()))
    return join_rows([*pieces, quoted])


def _names(entries: Entries, names: pa.Array) -> pa.Array:
    check_names(entries, names)
    return _escaped(entries, names, "its name is not UTF-8")


def _escaped(entries: Entries, texts: pa.Array, not_utf8: str) -> pa.Array:
    return json_escaped(
        texts,
        lambda index: entries.refuse(index, not_utf8, "Encode it, in base64 for example."),
        lambda index: _too_large(entries, index),
    )


def _type_parts(types: pa.Array) -> list[Piece]:
    encoded = types.dictionary_encode()
    parts = [f'"type":"{kind}","value":'.encode() for kind in encoded.dictionary.to_pylist()]
    return [parts[0]] if len(parts) == 1 else [pa.array(parts, pa.binary()).take(encoded.indices)]


def _too_large(entries: Entries, index: int) -> NoReturn:
    row = int(entries.owners(np.array([index]))[0])
    error = MessageTooLargeError(
        f"{entries.rows.label(row)} has a body that is larger than 2 GB as JSON.",
        "Send a smaller body, or split it into several rows.",
    )
    entries.rows.fail(np.arange(entries.rows.count) == row, error)
