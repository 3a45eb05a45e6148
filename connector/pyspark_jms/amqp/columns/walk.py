"""Whole messages → the positions of their parts, one cursor for each message, all cursors at once.

A message with anything unexpected is left to the reader of one message. Does not know what the parts mean.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pyspark_jms.amqp.columns.byte_reader import LIST_CODES, MAP_CODES, STR8, STR32, SYM8, SYM32, ByteReader, Compounds
from pyspark_jms.amqp.columns.cached_cursor import CachedCursor
from pyspark_jms.amqp.columns.compound_cursor import CompoundCursor, Entry, Field
from pyspark_jms.amqp.wire.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    VALUE,
)
from pyspark_jms.columns.strings import Ints, Mask
from pyspark_jms.jms.subscription import MAX_ELEMENTS

__all__ = ["NO_BODY", "Entries", "Fields", "Parts", "elements_of", "entries_of", "walk"]

NO_BODY = -1
"""The constructor of a body that is absent."""

_MOST_FIELDS = {HEADER: 5, PROPERTIES: 13}
_STRING_KEYS, _SYMBOL_KEYS = (STR8, STR32), (SYM8, SYM32)
_DESCRIPTOR, _DESCRIPTOR_MASK, _SECTION_MASK = 0x5300, 0xFFFF, 0xFFFFFF
_SECTION = 3
"""The bytes of a section's descriptor."""
_WIDE_SIZE = 5
"""The bytes of a wide constructor and its size."""

Fields: TypeAlias = Sequence[Field]
Entries: TypeAlias = Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the messages that were walked; their rows are numbered from 0."""

    numbers: Ints
    """The number of each row in the block."""
    begins: Ints
    """The end of the header section, or the beginning of a message without one."""
    ends: Ints
    header: Fields
    annotations: Entries
    properties: Fields
    application_properties: Entries
    body_section: Ints
    """The code of the body section; 0 without one."""
    body_at: Ints
    """The position of the body's constructor."""
    body: Field
    """The value of the body; its code is ``NO_BODY`` without one."""

    def __len__(self) -> int:
        return len(self.numbers)

    def only(self, good: Mask) -> "Parts":
        """Some of the rows, numbered again."""
        if good.all():
            return self
        rows, kept = _Renumbered(good), np.flatnonzero(good)
        return Parts(
            self.numbers[kept],
            self.begins[kept],
            self.ends[kept],
            [rows.field(field) for field in self.header],
            rows.entries(self.annotations),
            [rows.field(field) for field in self.properties],
            rows.entries(self.application_properties),
            self.body_section[kept],
            self.body_at[kept],
            rows.field(self.body),
        )


class _Renumbered:
    def __init__(self, good: Mask) -> None:
        self._good = good
        self._numbers = np.cumsum(good) - 1
        self._every = np.flatnonzero(good)
        self._new = np.arange(len(self._every))

    def field(self, field: Field) -> Field:
        which, rows = self._which(field)
        return field.only(which)._replace(rows=rows)

    def entries(self, entries: Entries) -> Entries:
        found = []
        for entry in entries:
            which, rows = self._which(entry.field)
            if len(rows):
                kept = entry.only(which)
                found.append(kept._replace(field=kept.field._replace(rows=rows)))
        return found

    def _which(self, field: Field) -> tuple[Ints, Ints]:
        """Which of the field's values are kept, and the new numbers of their rows."""
        if len(field.rows) == len(self._good):
            return self._every, self._new
        which = np.flatnonzero(self._good[field.rows])
        return which, self._numbers[field.rows[which]]


def walk(reader: ByteReader, begins: Ints, ends: Ints, max_elements: int = MAX_ELEMENTS) -> Parts:
    """The parts of every message that has the usual sections, each of them once."""
    cursors = _Cursors(reader, begins.copy(), ends, max_elements)
    header = cursors.fields(HEADER)
    after_header = cursors.at.copy()
    cursors.entries(DELIVERY_ANNOTATIONS, _SYMBOL_KEYS)
    annotations = cursors.entries(MESSAGE_ANNOTATIONS, _SYMBOL_KEYS)
    properties = cursors.fields(PROPERTIES)
    application = cursors.entries(APPLICATION_PROPERTIES, _STRING_KEYS)
    section, body = cursors.body()
    every, at = np.arange(len(begins)), cursors.at
    parts = Parts(every, after_header, ends, header, annotations, properties, application, section, at, body)
    return parts.only(~cursors.bad)


class _Cursors:
    """One position in each message. ``bad`` messages are not read again."""

    def __init__(self, reader: ByteReader, begins: Ints, ends: Ints, max_elements: int) -> None:
        self._reader = reader
        self._max_elements = max_elements
        self.at = begins
        self._heads = CachedCursor(reader, begins)
        self._ends = ends
        self._every = np.arange(len(begins))
        self.bad: Mask = np.zeros(len(begins), np.bool_)

    def fields(self, section: int) -> Fields:
        inside = self._inside(section, LIST_CODES, _MOST_FIELDS[section])
        if inside is None:
            return []
        found = [entry.field for entry in inside.elements()]
        self._go_on(inside)
        return found

    def entries(self, section: int, keys: tuple[int, int]) -> Entries:
        inside = self._inside(section, MAP_CODES, 2 * self._max_elements)
        if inside is None:
            return []
        found = list(inside.entries(keys))
        self._go_on(inside)
        return found

    def _go_on(self, inside: CompoundCursor) -> None:
        """Keep the strips of the rows, if they all have come to the end of the section together."""
        if len(inside.heads) == len(self._every) and (inside.heads.at == self.at).all():
            self._heads = inside.heads

    def _inside(self, section: int, codes: tuple[int, int, int], most: int) -> CompoundCursor | None:
        """Cursors inside of a section, where it is the next one; moves on to its end."""
        words = self._heads.words()
        wanted = section << 16 | _DESCRIPTOR
        here = ((words & _SECTION_MASK) == wanted) & (self.at + _SECTION < self._ends) & ~self.bad
        if here.all():
            return self._inside_all(codes, most)
        rows = np.flatnonzero(here)
        if not len(rows):
            return None
        begin = self.at[rows] + _SECTION
        found = self._reader.compounds(begin, self._ends[rows], codes)
        self.at = self.at.copy()
        self.at[rows] = np.where(found.bad, begin, found.end)
        self._heads = CachedCursor(self._reader, self.at)
        return CompoundCursor(
            self._reader, self.bad, rows, _with_most(found, most), CachedCursor(self._reader, found.first)
        )

    def _inside_all(self, codes: tuple[int, int, int], most: int) -> CompoundCursor:
        """The same where every row has the section."""
        heads, begin = self._heads, self.at + _SECTION
        words = heads.words(_SECTION), heads.words(_SECTION + _WIDE_SIZE)
        found = self._reader.compounds(begin, self._ends, codes, words)
        if found.step is None:
            heads.move(found.first)
        else:
            heads.step(_SECTION + found.step)
        self.at = np.where(found.bad, begin, found.end)
        self._heads = CachedCursor(self._reader, self.at)
        return CompoundCursor(self._reader, self.bad, self._every, _with_most(found, most), heads)

    def body(self) -> tuple[Ints, Field]:
        """The code of each body section and its value, which ends the message. Moves on to the constructor."""
        section = np.zeros(len(self._every), np.int64)
        code = np.full(len(self._every), NO_BODY, np.int64)
        start, stop = self._ends.copy(), self._ends.copy()
        rows = np.flatnonzero((self.at < self._ends) & ~self.bad)
        if len(rows):
            heads = self._heads if len(rows) == len(self._every) else CachedCursor(self._reader, self.at[rows])
            words, ends = heads.words(), self._ends[rows]
            section[rows] = words >> 16 & 0xFF
            known = (words & _DESCRIPTOR_MASK == _DESCRIPTOR) & (section[rows] >= DATA) & (section[rows] <= VALUE)
            known &= heads.at + _SECTION < ends
            values = self._reader.values(heads.at + _SECTION, ends, heads.words(_SECTION))
            self.bad[rows[~known | values.bad | (values.stop != ends)]] = True
            self.at = self.at.copy()
            self.at[rows] += _SECTION
            code[rows], start[rows], stop[rows] = values.code, values.start, values.stop
        return section, Field(self._every, code, start, stop)


def entries_of(reader: ByteReader, at: Ints, limit: Ints, most: int = MAX_ELEMENTS) -> tuple[Entries, Mask]:
    """The entries of the maps at positions, and which maps cannot be read; rows are numbered from 0."""
    return _of_bodies(_lists(reader, at, limit, MAP_CODES, 2 * most), lambda inside: inside.entries(_STRING_KEYS))


def elements_of(reader: ByteReader, at: Ints, limit: Ints, most: int = MAX_ELEMENTS) -> tuple[Entries, Mask]:
    """The elements of the lists at positions, and which lists cannot be read."""
    return _of_bodies(_lists(reader, at, limit, LIST_CODES, most), CompoundCursor.elements)


def _lists(
    reader: ByteReader, at: Ints, limit: Ints, codes: tuple[int, int, int], most: int
) -> tuple[CompoundCursor, Mask]:
    bad = np.zeros(len(at), np.bool_)
    compounds = _with_most(reader.compounds(at, limit, codes), most)
    return CompoundCursor(reader, bad, np.arange(len(at)), compounds, CachedCursor(reader, compounds.first)), bad


def _with_most(found: Compounds, most: int) -> Compounds:
    """Lists with more elements than ``most`` are bad."""
    return found._replace(bad=found.bad | (found.counts > most))


def _of_bodies(
    lists: tuple[CompoundCursor, Mask], read: Callable[[CompoundCursor], Iterator[Entry]]
) -> tuple[Entries, Mask]:
    inside, bad = lists
    found = list(read(inside))
    if bad.any():
        found = [entry.only(~bad[entry.field.rows]) for entry in found]
    return found, bad
