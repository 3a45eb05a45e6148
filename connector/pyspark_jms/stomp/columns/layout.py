"""Header lines → which line of a frame fills which column, and which lines are its properties.

Frames of one producer share one layout: then the names of the first frame are sorted, once (:func:`by_template`). Any
mix of layouts goes through a dictionary of the names (:func:`by_names`). Both give the same result.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.strings import Ints, Mask, is_first
from pyspark_jms.stomp.columns.lines import Lines
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = [
    "HeaderTexts",
    "Layout",
    "by_names",
    "by_template",
    "layout_of",
    "with_properties",
]


@dataclass(frozen=True, slots=True)
class Layout:
    """For each frame, the lines of its columns and of its properties."""

    roles: dict[str, Ints]
    """Column, or ``@name`` of the dialect → its line in each frame, -1 for none. No entry: no frame has such a line."""

    property_lines: Ints
    """The lines of all properties, in order."""

    property_offsets: Ints
    """Frame i has the properties ``property_offsets[i]`` to ``property_offsets[i + 1]``."""
    property_keys: pa.Array

    def lines_of(self, name: str) -> Ints:
        """The line of a property in each frame, -1 for none."""
        frames = len(self.property_offsets) - 1
        places = np.flatnonzero(np.asarray(pc.equal(self.property_keys, pa.scalar(name, pa.string()))))
        lines = np.full(frames, -1)
        lines[np.searchsorted(self.property_offsets, places, "right") - 1] = self.property_lines[places]
        return lines


def layout_of(lines: Lines, dialect: Dialect, properties: Collection[str] | None = None) -> Layout:
    """``properties``: the names of those that are wanted, None for all. A layout has no others."""
    return by_template(lines, dialect, properties) or by_names(lines, dialect, properties)


def with_properties(layout: Layout, lines: Lines, more: Ints) -> Layout:
    """The same layout with ``more`` lines among the properties, in order. Their names must be new in their frames."""
    if not len(more):
        return layout
    more = np.sort(more)
    at = np.searchsorted(layout.property_lines, more)
    count = len(layout.property_lines)
    order = np.insert(np.arange(count), at, count + np.arange(len(more)))
    rows = np.searchsorted(lines.first, more, "right") - 1
    added = np.bincount(rows, minlength=len(layout.property_offsets) - 1)
    return Layout(
        layout.roles,
        np.insert(layout.property_lines, at, more),
        layout.property_offsets + np.concatenate(([0], np.cumsum(added))),
        pa.concat_arrays([layout.property_keys, lines.names(more)]).take(pa.array(order)),
    )


# --- one layout ----------------------------------------------------------------------------------


def by_template(lines: Lines, dialect: Dialect, wanted: Collection[str] | None = None) -> Layout | None:
    """The layout of all frames if all have the first frame's; None if they may differ."""
    if not lines.alike:
        return None
    frames = len(lines.first) - 1
    width = len(lines) // frames
    names = lines.names(np.arange(width)).to_pylist()
    known, found = _sort_names(names, dialect)
    properties = {name: line for name, line in found.items() if wanted is None or name in wanted}
    begins = np.arange(frames) * width
    at = np.fromiter(properties.values(), np.int64, len(properties))
    keys = pa.array(properties.keys(), pa.string())
    return Layout(
        {role: begins + line for role, line in known.items()},
        (begins[:, None] + at).ravel(),
        np.arange(frames + 1) * len(at),
        _repeated(keys, frames),
    )


def _repeated(keys: pa.Array, times: int) -> pa.Array:
    if times <= 1:
        return keys.slice(0, len(keys) * times)
    half = _repeated(keys, times // 2)
    return pa.concat_arrays([half, half, keys.slice(0, len(keys) * (times % 2))])


def _sort_names(names: list[str | None], dialect: Dialect) -> tuple[dict[str, int], dict[str, int]]:
    """Role → line, and property → line, of the one frame that has ``names``. None: a line that is not wanted."""
    known: dict[str, int] = {}
    given = [(line, name) for line, name in enumerate(names) if name is not None]
    for line, name in given:
        if name in dialect.message_headers and (name in dialect.last_occurrence_counts or name not in known):
            known[name] = line
    properties: dict[str, int] = {}
    for line, name in given:
        if known.get(name) != line and not _is_ignored(name, dialect):
            properties.setdefault(dialect.property_names.get(name, name), line)
    roles: dict[str, int] = {}
    for name, role in dialect.message_headers.items():
        if name in known:
            roles.setdefault(role, known[name])
    return roles, properties


def _is_ignored(name: str, dialect: Dialect) -> bool:
    return name in dialect.ignored_headers or name.startswith(dialect.ignored_header_prefixes)


# --- any mix -------------------------------------------------------------------------------------


def by_names(lines: Lines, dialect: Dialect, wanted: Collection[str] | None = None) -> Layout:
    """The layout of each frame."""
    frames = len(lines.first) - 1
    every = np.arange(len(lines))
    rows = np.repeat(np.arange(frames), np.diff(lines.first))
    encoded = lines.names(every).dictionary_encode()
    code = encoded.indices.to_numpy().astype(np.int64)
    header = _position(encoded.dictionary, dialect.message_headers)[code]
    table = _known_lines(rows, header, frames, dialect)
    known = header >= 0
    known[known] = table[rows[known], header[known]] == every[known]
    ignored = np.array([_is_ignored(name, dialect) for name in encoded.dictionary.to_pylist()], np.bool_)[code]
    others = np.flatnonzero(~known & ~ignored)
    keys = _renamed(encoded.dictionary, dialect.property_names).dictionary_encode()
    key = keys.indices.to_numpy().astype(np.int64)[code[others]]
    if wanted is not None:
        is_wanted = np.array([name in wanted for name in keys.dictionary.to_pylist()], np.bool_)[key]
        others, key = others[is_wanted], key[is_wanted]
    first = is_first(rows[others], key, frames, len(keys.dictionary))
    counts = np.bincount(rows[others[first]], minlength=frames)
    return Layout(
        _roles(table, dialect),
        others[first],
        np.concatenate(([0], np.cumsum(counts))),
        keys.dictionary.take(pa.array(key[first])),
    )


def _position(names: pa.Array, among: Iterable[str]) -> Ints:
    """The position of each of ``names`` in ``among``, -1 for none."""
    found = pc.index_in(names, value_set=pa.array(list(among), pa.string()))
    position: Ints = found.fill_null(-1).to_numpy().astype(np.int64)
    return position


def _renamed(names: pa.Array, renames: Mapping[str, str]) -> pa.Array:
    position = pc.index_in(names, value_set=pa.array(list(renames), pa.string()))
    return pc.coalesce(pa.array(list(renames.values()), pa.string()).take(position), names)


def _known_lines(rows: Ints, header: Ints, frames: int, dialect: Dialect) -> Ints:
    """Frame × known header → the line, -1 for none."""
    table = np.full((frames, len(dialect.message_headers)), -1)
    known = np.flatnonzero(header >= 0)
    backwards = known[::-1]  # the last assignment to a cell wins: that of the first line with the name
    table[rows[backwards], header[backwards]] = backwards
    for column, name in enumerate(dialect.message_headers):
        if name in dialect.last_occurrence_counts:
            mine = known[header[known] == column]
            table[rows[mine], column] = mine
    return table


def _roles(table: Ints, dialect: Dialect) -> dict[str, Ints]:
    """The line of each column. Of two headers for one column, the dialect's first one that a frame has counts."""
    roles: dict[str, Ints] = {}
    for column, role in enumerate(dialect.message_headers.values()):
        if (table[:, column] >= 0).any():
            line = roles.get(role, table[:, column])
            roles[role] = np.where(line < 0, table[:, column], line)
    return roles


# --- one header of all frames -----------------------------------------------------------------------

_FALSE = pa.scalar(value=False, type=pa.bool_())


@dataclass(frozen=True, slots=True)
class HeaderTexts:
    """The headers of all frames by role: a column, or ``@name`` of the dialect."""

    lines: Lines
    layout: Layout

    def __len__(self) -> int:
        return len(self.lines.first) - 1

    def line(self, role: str) -> Ints:
        """The line of each frame, -1 for none."""
        line = self.layout.roles.get(role)
        return np.full(len(self), -1) if line is None else line

    def text(self, role: str) -> pa.Array:
        """The text of each frame, null for none."""
        line = self.layout.roles.get(role)
        return pa.nulls(len(self), pa.string()) if line is None else self.lines.values(line)

    def equals(self, role: str, text: str | None) -> Mask:
        """Which frames have the header with this text. None: no frame has it."""
        if text is None or role not in self.layout.roles:
            return np.zeros(len(self), np.bool_)
        equal = pc.equal(self.text(role), pa.scalar(text, pa.string())).fill_null(_FALSE)
        mask: Mask = equal.to_numpy(zero_copy_only=False)
        return mask
