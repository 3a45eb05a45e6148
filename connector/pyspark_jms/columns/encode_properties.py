"""The ``properties`` column in, each row's header lines out. Knows the dialect's names, no other column."""

from dataclasses import astuple, dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.encode_columns import Rows
from pyspark_jms.columns.encode_octets import (
    Offsets,
    Piece,
    escaped,
    first_not_utf8,
    join_rows,
    octets_of,
    offsets_of,
    slices_of,
    to_binary,
)
from pyspark_jms.dialect.base import Dialect

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
        name = (self.names[index].as_py() or b"").decode(errors="replace")
        shown = name if len(name) <= _SHOWN_NAME else f"{name[:_SHOWN_NAME]}…"
        rows.refuse(row, f"has a property {shown!r} {fact}", remedy)


def property_lines(rows: Rows, dialect: Dialect) -> Piece:
    """A line for each property whose value is not null. JMS 3.1 §3.5.4: a null property reads as an absent one."""
    maps = rows.properties()
    entries = None if maps is None else _entries(maps)
    if entries is None or not len(entries.names):
        return b""
    names = _wire_names(entries, rows, dialect)
    values = escaped(
        entries.values,
        lambda index: entries.refuse(rows, index, "whose value is not UTF-8", "Encode it, in base64 for example."),
    )
    lines = join_rows([names, b":", values, b"\n"], nulls="emit_null")
    return slices_of(lines, entries.bounds)


def _entries(maps: pa.MapArray) -> _Entries:
    if maps.null_count and (np.diff(offsets_of(maps))[maps.is_null().to_numpy(zero_copy_only=False)]).any():
        maps = maps.take(pa.array(np.arange(len(maps))))  # a null map may hide entries: a copy has none
    bounds = offsets_of(maps)
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    names, values = (to_binary(child.slice(start, length)) for child in (maps.keys, maps.items))
    return _Entries(names, values, bounds - bounds[0])


def _wire_names(entries: _Entries, rows: Rows, dialect: Dialect) -> pa.Array:
    """The names as header octets; checked once each, not once a row."""
    names, distinct = entries.names, _distinct_names(entries)
    reserved = _reserved(dialect)
    if _first_wrong(distinct, reserved):
        index, fact, remedy = _first_wrong(names, reserved) or (0, "that cannot be sent", "Rename it.")
        entries.refuse(rows, index, fact, remedy)
    present = set(distinct.to_pylist()) if dialect.send_property_names else set()
    for name, wire in dialect.send_property_names.items():
        if name.encode() in present:
            names = pc.if_else(pc.equal(names, name.encode()), pa.scalar(wire.encode(), pa.binary()), names)
    return escaped(names, lambda index: entries.refuse(rows, index, "that is not UTF-8", "Rename it."))


def _distinct_names(entries: _Entries) -> pa.Array:
    """The first row's names when every row repeats them, as the rows of one producer do; else all that occur."""
    names, bounds = entries.names, entries.bounds
    width = int(bounds[1])
    if not width or names.null_count or (np.diff(bounds) != width).any():
        return names.unique()
    lengths = np.diff(offsets_of(names)).reshape(-1, width)
    if (lengths != lengths[0]).any():
        return names.unique()
    octets = octets_of(names).reshape(len(lengths), -1)
    return names.slice(0, width) if (octets == octets[0]).all() else names.unique()


def _reserved(dialect: Dialect) -> pa.Array:
    own = {name for name in astuple(dialect.send_headers) if name} | _STOMP_HEADERS | dialect.reserved_properties
    types = {name for headers in dialect.send_types.values() for name in headers}
    return pa.array(sorted(name.encode() for name in own | types), pa.binary())


def _first_wrong(names: pa.Array, reserved: pa.Array) -> tuple[int, str, str] | None:
    """Index, fact and remedy of the first name that no property may have."""
    empty = pc.equal(pc.fill_null(pc.binary_length(names), 0), 0)
    if (index := empty.index(pa.scalar(value=True)).as_py()) >= 0:
        return index, "without a name", "JMS 3.1 §3.5.1: a property's name is neither null nor empty."
    if (index := pc.is_in(names, value_set=reserved).index(pa.scalar(value=True)).as_py()) >= 0:
        return index, "whose name is a header of the frame itself", "Use the column of that meaning, or another name."
    if (index := first_not_utf8(names)) is not None:
        return index, "whose name is not UTF-8", "Rename it."
    return None
