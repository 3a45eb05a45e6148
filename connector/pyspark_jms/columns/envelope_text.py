"""Column ``map`` or ``stream`` → the text of each row's envelope (docs/typed-messages.md, "Envelope").

One line of JSON without blanks: ``{"map":[{"name":"n","type":"int","value":"3"},…]}``, ``{"stream":[{"type":…},…]}``.
Refuses to know protocols.
"""

from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.first import is_first
from pyspark_jms.columns.json_text import json_escaped
from pyspark_jms.columns.ragged import Mask, Piece, join_rows, mask_of, offsets_of, to_binary
from pyspark_jms.columns.rows import Entries, Rows, compact
from pyspark_jms.columns.typed_values import misfits
from pyspark_jms.errors import MessageTooLargeError
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import element_name_problem, element_value_problem

__all__ = ["envelopes"]

_EMPTY = pa.scalar(b"", pa.binary())
_STRING = pa.scalar(ValueType.STRING.value, pa.string())


@dataclass(frozen=True, slots=True)
class _Elements:
    """The elements of all rows, one after the other; types and values as strings."""

    entries: Entries
    types: pa.Array
    values: pa.Array


def envelopes(rows: Rows, column: Literal["map", "stream"]) -> pa.Array:
    """The JSON of each row, as binary. A row with a null has an empty map or stream."""
    elements = _elements(rows, column)
    if elements is None or not len(elements.entries):
        return pa.repeat(pa.scalar(f'{{"{column}":[]}}'.encode(), pa.binary()), rows.count)
    lists = pa.ListArray.from_arrays(pa.array(elements.entries.bounds, pa.int32()), _texts(elements))
    return join_rows([f'{{"{column}":['.encode(), pc.binary_join(lists, pa.scalar(b",", pa.binary())), b"]}"])


def _elements(rows: Rows, column: str) -> _Elements | None:
    lists = rows.column(column)
    if lists is None:
        return None
    lists = compact(lists)
    bounds = offsets_of(lists)
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    is_map = pa.types.is_map(lists.type)
    structs = (lists.items if is_map else lists.values).slice(start, length)
    # flatten: a null element has neither type nor value, whatever bytes are under the null
    parts = {field.name: _text(part) for field, part in zip(structs.type, structs.flatten(), strict=True)}
    names = to_binary(lists.keys.slice(start, length)) if is_map else None
    entries = Entries(rows, bounds - start, "a map item" if is_map else "a stream element", names)
    return _typed(entries, parts["type"], parts["value"])


def _text(array: pa.Array) -> pa.Array:
    return to_binary(array).view(pa.string())


def _typed(entries: Entries, types: pa.Array, values: pa.Array) -> _Elements:
    """Elements with a type for each null value: JMS gives a null no type, and it is sent as a string."""
    if types.null_count:
        typeless = mask_of(types.is_null())
        remedy = f"Set its type to one of {', '.join(ValueType)}."
        entries.refuse_any(typeless & mask_of(values.is_valid()), "it has a value but no type", remedy)
        types = types.fill_null(_STRING)
    return _Elements(entries, types, values)


def _texts(elements: _Elements) -> pa.Array:
    entries = elements.entries
    values = json_escaped(
        elements.values.view(pa.binary()),
        lambda index: entries.refuse(index, "its value is not UTF-8", "Encode it, in base64 for example."),
        lambda index: _too_large(entries, index),
    )
    _check_values(elements)
    pieces: list[Piece] = [b"{"] if entries.names is None else [b'{"name":"', _names(entries, entries.names), b'",']
    pieces += _type_parts(elements.types)
    if not values.null_count:
        return join_rows([*pieces, b'"', values, b'"}'])
    quoted = join_rows([b'"', values, b'"}']).fill_null(pa.scalar(b"null}", pa.binary()))
    return join_rows([*pieces, quoted])


def _names(entries: Entries, names: pa.Array) -> pa.Array:
    nameless = mask_of(pc.equal(names, _EMPTY))  # Arrow's maps have no null key
    entries.refuse_any(nameless, f"its name {element_name_problem('')}", "Set its name.")
    encoded = names.dictionary_encode()
    first = is_first(entries.owners_of_all(), encoded.indices.to_numpy(), entries.rows.count, len(encoded.dictionary))
    entries.refuse_any(~first, "an earlier item has the same name", "Use each name once.")
    return json_escaped(
        names,
        lambda index: entries.refuse(index, "its name is not UTF-8", "Rename it."),
        lambda index: _too_large(entries, index),
    )


def _type_parts(types: pa.Array) -> list[Piece]:
    encoded = types.dictionary_encode()
    parts = [f'"type":"{kind}","value":'.encode() for kind in encoded.dictionary.to_pylist()]
    return [parts[0]] if len(parts) == 1 else [pa.array(parts, pa.binary()).take(encoded.indices)]


def _check_values(elements: _Elements) -> None:
    def fact(index: int) -> str:
        kind = elements.types.view(pa.binary())[index].as_py().decode(errors="replace")
        value = elements.values[index].as_py()
        return f"its value {element_value_problem(kind, value) or 'is not of its type'}"

    wrong: Mask = misfits(elements.types, elements.values)
    remedy = f"Correct the value or its type, one of {', '.join(ValueType)}."
    elements.entries.refuse_any(wrong, fact, remedy)


def _too_large(entries: Entries, index: int) -> NoReturn:
    row = int(entries.owners(np.array([index]))[0])
    error = MessageTooLargeError(
        f"{entries.rows.label(row)} has a body that is larger than 2 GB as JSON.",
        "Send a smaller body, or split it into several rows.",
    )
    entries.rows.fail(np.arange(entries.rows.count) == row, error)
