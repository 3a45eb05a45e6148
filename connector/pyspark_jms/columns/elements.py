"""Column ``map`` or ``stream`` → the elements of all rows, checked by the rules of JMS, and each row's envelope.

An envelope (docs/typed-messages.md) is one line of JSON without blanks:
``{"map":[{"name":"n","type":"int","value":"3"},…]}``, ``{"stream":[{"type":…},…]}``. Its strings are escaped by
RFC 8259, over whole columns. The text never has a NUL or a line end, so it can end neither a line of JSON nor a message
whose text ends at a NUL. This module does not know protocols.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.arrays import (
    Mask,
    Piece,
    Uint8s,
    bytes_of,
    first_not_utf8,
    is_first,
    join_rows,
    mask_of,
    offsets_of,
    to_binary,
    with_nulls_of,
)
from pyspark_jms.columns.rows import Entries, Rows, compact
from pyspark_jms.columns.value_texts import jms_types, misfits
from pyspark_jms.errors import MessageTooLargeError
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.rules import element_value_problem

__all__ = ["check_names", "check_values", "elements_of", "envelopes", "json_text"]

_EMPTY = pa.scalar(b"", pa.binary())
_STRING = pa.scalar(ValueType.STRING.value, pa.string())


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of all rows, one after the other; types and values as strings. No type is null."""

    entries: Entries
    types: pa.Array
    values: pa.Array


def elements_of(rows: Rows, column: Literal["map", "stream"]) -> Elements | None:
    """Return the elements, or None when no row has one. ``check_names`` and ``check_values`` are still to be called."""
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


def _typed(entries: Entries, types: pa.Array, values: pa.Array) -> Elements:
    """Elements with a type for each null value: JMS gives a null no type, and it is sent as a string."""
    if types.null_count:
        typeless = mask_of(types.is_null())
        remedy = f"Set its type to one of {', '.join(ValueType)}."
        entries.refuse_any(typeless & mask_of(values.is_valid()), "it has a value but no type", remedy)
        types = types.fill_null(_STRING)
    return Elements(entries, jms_types(types, of_elements=True), values)


def check_names(entries: Entries, names: pa.Array) -> None:
    """Refuse an empty name, a name that a row has twice, and one that is not UTF-8."""
    nameless = mask_of(pc.equal(names, _EMPTY))  # Arrow's maps have no null key
    entries.refuse_any(nameless, "its name is empty: JMS 3.1 §3.11.3", "Set its name.")
    encoded = names.dictionary_encode()
    first = is_first(entries.owners_of_all(), encoded.indices.to_numpy(), entries.rows.count, len(encoded.dictionary))
    entries.refuse_any(~first, "an earlier item has the same name", "Use each name once.")
    wrong = first_not_utf8(names)
    if wrong is not None:
        entries.refuse(wrong, "its name is not UTF-8", "Rename it.")


def check_values(elements: Elements) -> None:
    """Refuse a value that is not UTF-8, or that is not valid for its type."""
    odd = first_not_utf8(elements.values.view(pa.binary()))
    if odd is not None:
        elements.entries.refuse(odd, "its value is not UTF-8", "Encode it, in base64 for example.")

    def fact(index: int) -> str:
        kind = elements.types.view(pa.binary())[index].as_py().decode(errors="replace")
        value = elements.values[index].as_py()
        return f"its value {element_value_problem(kind, value) or 'is not of its type'}"

    wrong: Mask = misfits(elements.types, elements.values)
    remedy = f"Correct the value or its type, one of {', '.join(ValueType)}."
    elements.entries.refuse_any(wrong, fact, remedy)


# --- strings in JSON --------------------------------------------------------------------------------

LARGEST_TEXT = (1 << 31) - (1 << 24)
"""The limit of the escaped strings of an array, in bytes. It leaves room for the JSON around them."""

# RFC 8259 §7: a quotation mark and a backslash are escaped by a backslash, control characters by their number.
_ESCAPES = {code: f"\\u{code:04x}" for code in range(ord(" "))} | {ord(plain): f"\\{plain}" for plain in '"\\'}

# The escape of each byte, split into its prefix and its last character.
_PREFIX = np.zeros((256, 5), np.uint8)
_PREFIX_LENGTH = np.zeros(256, np.int64)
_LAST = np.arange(256, dtype=np.uint8)
for _byte, _escape in _ESCAPES.items():
    _PREFIX[_byte, : len(_escape) - 1] = list(_escape[:-1].encode())
    _PREFIX_LENGTH[_byte] = len(_escape) - 1
    _LAST[_byte] = ord(_escape[-1])


def json_text(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def json_escaped(array: pa.Array, not_utf8: Callable[[int], NoReturn], too_long: Callable[[int], NoReturn]) -> pa.Array:
    """A binary array as the inside of JSON strings; nulls stay nulls.

    ``not_utf8`` is called with the index of an entry that is not UTF-8, ``too_long`` with the index of the longest
    entry if one array cannot hold them all.
    """
    wrong = first_not_utf8(array)
    if wrong is not None:
        not_utf8(wrong)
    plain = bytes_of(array)
    positions = np.flatnonzero((plain < ord(" ")) | (plain == ord('"')) | (plain == ord("\\")))
    if not len(positions):
        return array
    lengths = _PREFIX_LENGTH[plain[positions]]
    offsets = (offsets_of(array) - offsets_of(array)[0]).astype(np.int64)
    owners = np.searchsorted(offsets, positions, side="right") - 1
    offsets[1:] += np.cumsum(np.bincount(owners, weights=lengths, minlength=len(array)).astype(np.int64))
    if offsets[-1] > LARGEST_TEXT:
        too_long(int(np.diff(offsets).argmax()))
    data = np.insert(_LAST[plain], np.repeat(positions, lengths), _prefixes(plain[positions]))
    return with_nulls_of(array, offsets.astype(np.int32), pa.py_buffer(data))


def _prefixes(plain: Uint8s) -> Uint8s:
    """The prefixes of these bytes, one after the other."""
    rows = _PREFIX[plain]
    inside: Uint8s = rows[np.arange(rows.shape[1]) < _PREFIX_LENGTH[plain][:, None]]
    return inside


# --- envelopes --------------------------------------------------------------------------------------


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
