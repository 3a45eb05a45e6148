"""Header lines of frames → the columns that come from headers. Does not know bodies.

A layout states which line of a frame fills which column, and which lines are its properties. Frames of one producer
share one layout: then the names of the first frame are sorted, once (:func:`by_template`). Any mix of layouts goes
through a dictionary of the names (:func:`by_names`). Both give the same result.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.arrays import Ints, Mask, contents, is_first, strings_at, tiled
from pyspark_jms.columns.envelope import read_types, read_types_of
from pyspark_jms.columns.origins import Origin, origin_at, spelled
from pyspark_jms.columns.schema import ARROW_SCHEMA, COLUMNS, FIRST_MS, LAST_MS, TIMESTAMP, property_keys
from pyspark_jms.columns.value_texts import integers
from pyspark_jms.jms.headers import HEADERS, HeaderType
from pyspark_jms.jms.model import HIGHEST_PRIORITY, DeliveryMode, DestinationKind
from pyspark_jms.stomp.columns.lines import Fault, Lines
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["HeaderTexts", "Headers", "layout_of"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The lines of each frame's columns and properties."""

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
    """Return this layout with ``more`` lines among the properties, in order. Their names must be new there."""
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


# --- one layout -------------------------------------------------------------------------------------


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
        tiled(keys, frames),
    )


def _sort_names(names: list[str | None], dialect: Dialect) -> tuple[dict[str, int], dict[str, int]]:
    """Return role → line, and property → line, of the frame that has ``names``: None for unwanted lines."""
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


# --- any mix ----------------------------------------------------------------------------------------


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
        """Return which frames have the header with this text, or None if no frame has it."""
        if text is None or role not in self.layout.roles:
            return np.zeros(len(self), np.bool_)
        equal = pc.equal(self.text(role), pa.scalar(text, pa.string())).fill_null(_FALSE)
        mask: Mask = equal.to_numpy(zero_copy_only=False)
        return mask


# --- the columns that come from headers -------------------------------------------------------------

_INT32 = (-(1 << 31), (1 << 31) - 1)
_AFTER_LINES = 1 << 61
_MAX_DIGITS = 20
_DURABLE, _OTHER = (pa.scalar(int(mode), pa.int32()) for mode in (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT))
_TOPIC, _NOTHING = pa.scalar(f"{DestinationKind.TOPIC}://", pa.string()), pa.scalar("", pa.string())


class Headers:
    """The headers of all frames, by the column that they fill."""

    def __init__(self, headers: HeaderTexts, dialect: Dialect, unread_markers: Ints) -> None:
        """``unread_markers``: lines of body markers that stay properties."""
        self._headers = headers
        self._lines, self._layout = headers.lines, headers.layout
        self._dialect = dialect
        self._unread_markers = unread_markers
        self.faults: list[Fault] = list(headers.lines.faults)

    def columns(self, wanted: Collection[str] = COLUMNS) -> dict[str, pa.Array]:
        """Every wanted column that is one header, and the properties."""
        roles = dict.fromkeys(self._dialect.message_headers.values())
        columns = {role: self._column(role) for role in roles if role in wanted}
        if self._dialect.message_id_is_jms and "JMSMessageID" in wanted:
            columns["JMSMessageID"] = self._headers.text("@message-id")
        if "properties" not in wanted and "property_types" not in wanted:
            return columns
        types, unread_types = self._property_types()
        return columns | {"property_types": types, "properties": self._properties(unread_types)}

    def property_columns(self, names: Sequence[str]) -> dict[str, pa.Array]:
        """The text and the type of each of these properties."""
        found: dict[str, pa.Array] = {}
        types = read_types_of(self._headers.text("@types"), names) if names else []
        for name, stated in zip(names, types, strict=True):
            text, kind = property_keys(name)
            found |= {text: self._lines.values(self._layout.lines_of(name)), kind: stated}
        return found

    def _column(self, role: str) -> pa.Array:
        """One column. A value that is the same in all frames is read once."""
        read = _READERS.get(role, _as_it_is)
        lines = self._layout.roles.get(role)
        if lines is None or self._lines.one_value(lines):
            known = len(self.faults)
            texts = pa.nulls(1, pa.string()) if lines is None else self._lines.values(lines[:1])
            column = read(self, role, texts)
            if len(self.faults) == known:
                return pa.repeat(column[0], len(self._headers))
            del self.faults[known:]
        return read(self, role, self._headers.text(role))

    def read_from(self, source: Origin) -> pa.Array:
        """JMSDestination. A queue is constant; a subscription may have wildcards, so each frame names its topic."""
        constant, kind = spelled(source, self._numbers, str), origin_at(source, 0).kind
        if kind is DestinationKind.QUEUE:
            return constant if isinstance(constant, pa.Array) else pa.repeat(constant, len(self._headers))
        prefix = self._dialect.addresses.prefixes[kind]
        names = self._plain(_without_prefix(self._headers.text("@destination"), prefix))
        named = pc.binary_join_element_wise(_TOPIC, names, _NOTHING)
        return pc.coalesce(named, constant)

    def delivery_id(self, source: Origin) -> pa.Array:
        separator = self._dialect.stable_id_separator
        if separator is None:
            return pa.nulls(len(self._headers), pa.string())
        queues = spelled(source, self._numbers, lambda each: each.name)
        return stable_ids(self._headers.text("@message-id"), separator, queues)

    @property
    def _numbers(self) -> Ints:
        return np.arange(len(self._headers))

    def time(self, role: str, texts: pa.Array) -> pa.Array:
        moments, wrong = times(texts, self._dialect.timestamp_unit_ms if role == "JMSTimestamp" else 1)
        self._blame(role, wrong)
        return moments

    def priority(self, role: str, texts: pa.Array) -> pa.Array:
        """Brokers and JMS clients take a higher priority for the highest one."""
        numbers, wrong = integers(texts, *_INT32)
        self._blame(role, wrong)
        return pc.cast(pc.if_else(pc.greater(numbers, _HIGHEST), _HIGHEST, numbers), pa.int32())

    def reply_to(self, role: str, texts: pa.Array) -> pa.Array:
        if role not in self._layout.roles:
            return texts
        return self._plain(destinations(texts, self._dialect.reply_to_prefixes))

    def _plain(self, names: pa.Array) -> pa.Array:
        """Names without percent-encoding, if the broker uses it. Each distinct name is decoded once."""
        if not self._dialect.addresses.percent_encoded:
            return names
        encoded = names.dictionary_encode()
        return pa.array([unquote(name) for name in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)

    def _property_types(self) -> tuple[pa.Array, Ints]:
        """``property_types``, and the lines of markers that could not be read."""
        markers = self._headers.line("@types")
        if "@types" not in self._layout.roles:
            return pa.nulls(len(self._headers), ARROW_SCHEMA.field("property_types").type), markers[:0]
        types, unreadable = read_types(self._headers.text("@types"))
        return types, markers[unreadable]

    def _properties(self, unread_types: Ints) -> pa.Array:
        unread = np.concatenate([self._unread_markers, unread_types])
        layout = with_properties(self._layout, self._lines, unread)
        offsets = pa.array(layout.property_offsets, pa.int32())
        return pa.MapArray.from_arrays(offsets, layout.property_keys, self._lines.values(layout.property_lines))

    def _blame(self, role: str, rows: list[int]) -> None:
        headers = [header for header, filled in self._dialect.message_headers.items() if filled == role]
        place = _AFTER_LINES + COLUMNS.index(role)
        self.faults += [Fault(row, place, f"header {headers[0]!r} is not a number") for row in rows]


def _as_it_is(_headers: Headers, _role: str, texts: pa.Array) -> pa.Array:
    return texts


def _without_prefix(texts: pa.Array, prefix: str) -> pa.Array:
    if not prefix:
        return texts
    return pc.if_else(pc.starts_with(texts, prefix), pc.utf8_slice_codeunits(texts, len(prefix)), texts)


_Reader: TypeAlias = Callable[[Headers, str, pa.Array], pa.Array]
_BY_TYPE: dict[HeaderType, _Reader] = {
    HeaderType.ADDRESS: Headers.reply_to,
    HeaderType.BOOLEAN: lambda _headers, _role, texts: truths(texts),
    HeaderType.TIME: Headers.time,
}
_READERS = {header.name: _BY_TYPE.get(header.type, _as_it_is) for header in HEADERS} | {
    "JMSDeliveryMode": lambda _headers, _role, texts: pc.if_else(truths(texts), _DURABLE, _OTHER),
    "JMSPriority": Headers.priority,
}


# --- texts of headers → typed columns ---------------------------------------------------------------

# Typed scalars: with a plain Python value pyarrow looks for pandas in each call, which costs more than the call.
_NO_NUMBER = pa.scalar(None, pa.int64())
_TRUE = pa.scalar("true", pa.string())
_NONE = pa.scalar(0, pa.int64())
_HIGHEST = pa.scalar(HIGHEST_PRIORITY, pa.int64())
_SLASH = pa.scalar("/", pa.string())
_QUEUE = f"{DestinationKind.QUEUE}://"


def times(texts: pa.Array, unit_ms: int = 1) -> tuple[pa.Array, list[int]]:
    """Milliseconds, or another unit, since the epoch → timestamps; 0 → null (JMS 3.1 §3.4.4, §3.4.9, §3.4.13)."""
    numbers, wrong = integers(texts, FIRST_MS // unit_ms, LAST_MS // unit_ms)
    micros_in_unit = pa.scalar(1000 * unit_ms, pa.int64())
    micros = pc.multiply(pc.if_else(pc.equal(numbers, _NONE), _NO_NUMBER, numbers), micros_in_unit)
    return micros.view(TIMESTAMP), wrong


def has_unheld_time(message: bytes, dialect: Dialect) -> bool:
    """Return True if a time of the message lies outside of the years that the columns hold."""
    for line in message.partition(b"\n\n")[0].split(b"\n"):
        name, _, value = line.partition(b":")
        role = dialect.message_headers.get(name.decode(errors="replace"))
        if _READERS.get(role or "") is Headers.time and len(value) <= _MAX_DIGITS and value.strip().isdigit():
            milliseconds = int(value) * (dialect.timestamp_unit_ms if role == "JMSTimestamp" else 1)
            if milliseconds > LAST_MS:
                return True
    return False


def truths(texts: pa.Array) -> pa.Array:
    """Read ``true`` in upper or lower case as true, all else and a null as false, as ``Boolean.valueOf`` in Java."""
    return pc.equal(pc.ascii_lower(texts), _TRUE).fill_null(_FALSE)


def destinations(texts: pa.Array, prefixes: dict[str, str]) -> pa.Array:
    """``queue://NAME`` or ``topic://NAME``. A name without a known prefix is taken for a queue."""
    which = np.zeros(len(texts), np.int64)
    for number, prefix in enumerate(prefixes, 1):
        begins = pc.starts_with(texts, prefix).fill_null(_FALSE).to_numpy(zero_copy_only=False)
        which[begins & (which == 0)] = number
    skipped = np.array([0, *(len(prefix.encode()) for prefix in prefixes)])
    names = _without_start(texts, skipped[which])
    urls = pa.array([_QUEUE, *prefixes.values()], pa.string())
    return pc.binary_join_element_wise(urls.take(pa.array(which)), names, _NOTHING)


def stable_ids(ids: pa.Array, separator: str, queues: pa.Scalar | pa.Array) -> pa.Array:
    """``QUEUE/ID``, where ID is what follows ``separator``, or all where it is not; null where ID is empty."""
    at = pc.find_substring(ids, separator).fill_null(-1).to_numpy().astype(np.int64)
    found = _without_start(ids, np.where(at < 0, 0, at + len(separator.encode())))
    return pc.binary_join_element_wise(queues, found, _SLASH)


def _without_start(texts: pa.Array, skipped: Ints) -> pa.Array:
    """Each text without its first ``skipped`` bytes; null where nothing is left."""
    data, limits = contents(texts)
    starts, ends = limits[:-1] + skipped, limits[1:]
    return strings_at(data, np.minimum(starts, ends), ends, starts < ends)
