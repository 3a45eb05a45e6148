"""Column ``property_types`` and the types of typed columns → the header line ``spark_jms_types``.

The line has a JSON object without blanks: property name → JMS type, in the row's order (docs/typed-messages.md,
"Envelope").
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.json_text import json_text
from pyspark_jms.columns.ragged import Int64s, Mask, Piece, bytes_of, join_rows, mask_of, offsets_of, to_binary
from pyspark_jms.columns.rows import Entries, Rows, compact
from pyspark_jms.columns.typed_columns import TypedColumn
from pyspark_jms.columns.typed_values import misfits
from pyspark_jms.jms.model import TYPES_MARKER, ValueType
from pyspark_jms.jms.rules import PROPERTY_TYPES, property_value_problem
from pyspark_jms.stomp.columns.encode_properties import Properties, left_out
from pyspark_jms.stomp.columns.header_line import fixed_line
from pyspark_jms.stomp.dialects.base import Dialect
from pyspark_jms.stomp.wire.header import escape

__all__ = ["types_line"]

_TYPES = tuple(kind.value for kind in ValueType if kind in PROPERTY_TYPES)
_KNOWN = pa.array([kind.encode() for kind in _TYPES], pa.binary())
_EMPTY = pa.scalar(b"", pa.binary())
_REMEDY = f"The type of a property is one of {', '.join(_TYPES)}."


def types_line(
    rows: Rows, properties: Properties | None, columns: Mapping[str, TypedColumn], dialect: Dialect
) -> list[Piece]:
    """A line for each row with the type of at least one property; nothing for the others."""
    stated = _stated(rows)
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


@dataclass(frozen=True, slots=True)
class _Stated:
    """The types of all rows, one after the other, as binary; none is null."""

    entries: Entries
    names: pa.Array
    types: pa.Array

    def only(self, mask: Mask) -> "_Stated":
        entries, kept = self.entries.only(mask), pa.array(mask)
        return _Stated(entries, self.names.filter(kept), self.types.filter(kept))


def _stated(rows: Rows) -> _Stated | None:
    maps = rows.column("property_types")
    if maps is None:
        return None
    maps = compact(maps)
    bounds = offsets_of(maps)
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    names, types = (to_binary(child.slice(start, length)) for child in (maps.keys, maps.items))
    stated = _Stated(Entries(rows, bounds - start, "a type for the property", names), names, types)
    if types.null_count:
        stated = stated.only(mask_of(types.is_valid()))
    return stated if len(stated.names) else None


def _stated_pairs(
    stated: _Stated, properties: Properties | None, columns: Mapping[str, TypedColumn], dialect: Dialect
) -> pa.Array:
    """The pairs of each row's ``properties``, one after the other."""
    unknown = ~mask_of(pc.is_in(stated.types, value_set=_KNOWN))
    stated.entries.refuse_any(unknown, "JMS has no such type of properties", _REMEDY)
    of_columns = _of_columns(stated, columns)
    places = _places(stated, properties)
    missing = (places < 0) & ~of_columns
    stated.entries.refuse_any(missing, "the row has no such property", "Leave it out, or add the property.")
    if properties is None:
        return pa.repeat(_EMPTY, stated.entries.rows.count)
    values = properties.values.take(pa.array(places, mask=places < 0))
    _check_values(stated, values)
    names = pa.array([name.encode() for name in left_out(dialect)], pa.binary())
    return _pairs(stated.only(mask_of(values.is_valid()) & ~mask_of(pc.is_in(stated.names, value_set=names))))


def _of_columns(stated: _Stated, columns: Mapping[str, TypedColumn]) -> Mask:
    """Which entries are about typed columns. Their types must be those of the columns."""
    found = np.zeros(len(stated.names), np.bool_)
    for name, column in columns.items():
        own = mask_of(pc.equal(stated.names, pa.scalar(name.encode(), pa.binary())))
        other = own & ~mask_of(pc.equal(stated.types, pa.scalar(column.kind.encode(), pa.binary())))
        stated.entries.refuse_any(other, f"the column of that name is a {column.kind}", "Leave it out.")
        found |= own
    return found


def _places(stated: _Stated, properties: Properties | None) -> Int64s:
    """The position of each type's property; -1 if the row has no such property."""
    if properties is None:
        return np.full(len(stated.names), -1)
    if _same(stated.entries.bounds, properties.entries.bounds) and _same_texts(stated.names, properties.names):
        return np.arange(len(stated.names))
    encoded = pa.concat_arrays([properties.names, stated.names]).dictionary_encode()
    codes, kinds = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    there = codes[: len(properties.names)] + kinds * properties.entries.owners_of_all()
    asked = codes[len(properties.names) :] + kinds * stated.entries.owners_of_all()
    order = np.argsort(there, kind="stable")
    at = np.minimum(np.searchsorted(there[order], asked), len(there) - 1)
    return np.where(there[order][at] == asked, order[at], -1)


def _same_texts(one: pa.Array, other: pa.Array) -> bool:
    lengths = _same(np.diff(offsets_of(one)), np.diff(offsets_of(other)))
    return lengths and _same(bytes_of(one), bytes_of(other))


def _same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return bool(np.array_equal(one, other))


def _check_values(stated: _Stated, values: pa.Array) -> None:
    def fact(index: int) -> str:
        problem = property_value_problem(stated.types[index].as_py().decode(), values[index].as_py().decode())
        return f"its value {problem or 'is not of that type'}"

    wrong = misfits(stated.types.view(pa.string()), values.view(pa.string()))
    replace(stated.entries, kind="a property").refuse_any(wrong, fact, "Correct the value or its type.")


def _pairs(stated: _Stated) -> pa.Array:
    names, types = stated.names.dictionary_encode(), stated.types.dictionary_encode()
    keys = names.indices.to_numpy().astype(np.int64) * len(_TYPES) + types.indices.to_numpy()
    encoded = pa.array(keys).dictionary_encode()
    known_names, known_types = (texts.dictionary.to_pylist() for texts in (names, types))
    pairs = [
        _pair(known_names[key // len(_TYPES)].decode(), known_types[key % len(_TYPES)].decode())
        for key in encoded.dictionary.to_pylist()
    ]
    lists = pa.ListArray.from_arrays(
        pa.array(stated.entries.bounds, pa.int32()), pa.array(pairs, pa.binary()).take(encoded.indices)
    )
    return pc.binary_join(lists, _EMPTY)
