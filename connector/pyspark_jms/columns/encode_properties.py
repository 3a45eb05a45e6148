"""The ``properties`` column in, each row's header lines out. Knows the dialect's names, no other column."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.encode_columns import Rows
from pyspark_jms.columns.encode_octets import (
    Offsets,
    Piece,
    escaped,
    first_true,
    join_rows,
    mask_of,
    octets_of,
    offsets_of,
    repeated,
    slices_of,
    to_binary,
)
from pyspark_jms.dialect.base import Dialect, SendHeaders

__all__ = ["property_lines"]

_STOMP_HEADERS = frozenset({"destination", "transaction", "receipt", "content-length", "content-type", "persistent"})
"""STOMP 1.2 "SEND" and "Standard Headers", and ours: no dialect may leave these to a row."""

_SHOWN_NAME = 60
"""Characters of a property's name that an error shows; a name may be a whole payload by mistake."""


@dataclass(frozen=True, slots=True)
class _Entries:
    """The properties of all rows, one after the other; row i has those from ``bounds[i]`` to ``bounds[i + 1]``."""

    names: pa.Array
    values: pa.Array
    bounds: Offsets

    def refuse(self, rows: Rows, index: int, fact: str, remedy: str) -> NoReturn:
        row = int(np.searchsorted(self.bounds, index, side="right")) - 1
        name = self.names[index].as_py().decode(errors="replace")
        shown = name if len(name) <= _SHOWN_NAME else f"{name[:_SHOWN_NAME]}…"
        rows.refuse(row, f"has a property {shown!r} {fact}", remedy)


def property_lines(rows: Rows, dialect: Dialect) -> Piece:
    """A line for each property whose value is not null. JMS 3.1 §3.5.4: a null property reads as an absent one."""
    maps = rows.properties()
    entries = None if maps is None else _entries(maps)
    if entries is None or not len(entries.names):
        return b""
    names = _name_parts(entries, rows, dialect)
    values = escaped(
        entries.values,
        lambda index: entries.refuse(rows, index, "whose value is not UTF-8", "Encode it, in base64 for example."),
    )
    return slices_of(join_rows([names, values]), entries.bounds)


def _entries(maps: pa.MapArray) -> _Entries:
    if maps.null_count and (np.diff(offsets_of(maps))[mask_of(maps.is_null())]).any():
        maps = maps.take(pa.array(np.arange(len(maps))))  # a null map may hide entries: a copy has none
    bounds = offsets_of(maps)
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    names, values = (to_binary(child.slice(start, length)) for child in (maps.keys, maps.items))
    return _Entries(names, values, bounds - bounds[0])


def _name_parts(entries: _Entries, rows: Rows, dialect: Dialect) -> pa.Array:
    """LF, name and colon of each property's line. A name is checked and escaped once, not once a row."""
    width = _width(entries)
    encoded = None if width else entries.names.dictionary_encode()
    distinct = entries.names.slice(0, width) if encoded is None else encoded.dictionary

    def refuse(code: int, fact: str, remedy: str) -> NoReturn:
        first = code if encoded is None else int((encoded.indices.to_numpy() == code).argmax())
        entries.refuse(rows, first, fact, remedy)

    parts = join_rows([b"\n", _wire_names(distinct, dialect, refuse), b":"])
    return repeated(parts, rows.count) if encoded is None else parts.take(encoded.indices)


def _width(entries: _Entries) -> int:
    """How many properties each row has, if all repeat the first one's names, as those of one producer do; else 0."""
    names, bounds = entries.names, entries.bounds
    width = int(bounds[1])
    if not width or (np.diff(bounds) != width).any():
        return 0
    lengths, octets = np.diff(offsets_of(names)), octets_of(names)
    if (lengths[width:] != lengths[:-width]).any():
        return 0
    row_bytes = int(lengths[:width].sum())
    return width if (octets[row_bytes:] == octets[: len(octets) - row_bytes]).all() else 0


def _wire_names(names: pa.Array, dialect: Dialect, refuse: Callable[[int, str, str], NoReturn]) -> pa.Array:
    nameless = first_true(mask_of(pc.equal(names, pa.scalar(b"", pa.binary()))))  # Arrow's maps have no null key
    if nameless is not None:
        refuse(nameless, "without a name", "JMS 3.1 §3.5.1: a property's name is neither null nor empty.")
    headers = _reserved(dialect.reserved_properties, dialect.send_headers)
    reserved = first_true(mask_of(pc.is_in(names, value_set=headers)))
    if reserved is not None:
        refuse(reserved, "whose name is a header of the frame", "Use the column of that meaning, or another name.")
    for name, wire in dialect.send_property_names.items():
        here = pc.equal(names, pa.scalar(name.encode(), pa.binary()))
        names = pc.if_else(here, pa.scalar(wire.encode(), pa.binary()), names)
    return escaped(names, lambda code: refuse(code, "whose name is not UTF-8", "Rename it."))


@cache
def _reserved(reserved: frozenset[str], headers: SendHeaders) -> pa.Array:
    own = {name for name in astuple(headers) if name}
    return pa.array(sorted(name.encode() for name in reserved | own | _STOMP_HEADERS), pa.binary())
