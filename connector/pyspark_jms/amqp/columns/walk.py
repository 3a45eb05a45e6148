"""Whole messages → the positions of their parts, one cursor for each message, all cursors at once.

A message with anything unexpected is left to the reader of one message. Does not know what the parts mean.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyspark_jms.amqp.columns.byte_reader import (
    LIST_CODES,
    MAP_CODES,
    ByteReader,
    CachedCursor,
    Code,
    Compounds,
    Values,
    layout_of,
    pick,
)
from pyspark_jms.amqp.wire.constructors import TYPES
from pyspark_jms.amqp.wire.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    VALUE,
)
from pyspark_jms.columns.arrays import Ints, Mask
from pyspark_jms.jms.headers import HeaderField, PropertiesField
from pyspark_jms.jms.subscription import MAX_ELEMENTS

__all__ = [
    "NO_BODY",
    "Entries",
    "Field",
    "Fields",
    "NeededParts",
    "Parts",
    "TooManyAtOnceError",
    "elements_of",
    "entries_of",
    "walk",
]

# --- inside of one list or map in each message ------------------------------------------------------

_FEW_ROWS, _MANY_ENTRIES = 16, 32
"""Fewer rows than ``_FEW_ROWS`` with more entries than ``_MANY_ENTRIES`` are left to the reader of one message."""

_MANY_STEPS = 1 << 14
"""Rows with more elements are left to the reader of one message: ``_FEW_ROWS`` of them are as many as all below."""

_MANY_AT_ONCE, _FEWEST_BYTES = 1 << 18, 3
"""Where there are more elements than ``_MANY_AT_ONCE``, with fewer than ``_FEWEST_BYTES`` bytes each, their positions
take more memory than the messages many times over.
"""

_KEY_HEAD = 2


class TooManyAtOnceError(Exception):
    """The rows have too many elements: read fewer rows at once."""


class Field(NamedTuple):
    """A value in each of the rows that have it."""

    rows: Ints
    code: Code
    start: Ints
    stop: Ints
    content: bytes | None = None
    """The bytes from start to stop, if they are known to be the same in all of these rows."""

    def only(self, which: Any) -> "Field":
        """``which``: a mask, or numbers."""
        return Field(self.rows[which], pick(self.code, which), self.start[which], self.stop[which], self.content)


class Entry(NamedTuple):
    """The n-th entry of a map, or element of a list, in the rows that have so many."""

    field: Field
    key: bytes | None = None
    """The key, if all rows have the same one."""
    key_start: Ints | None = None
    """The position of each key; None if all rows have ``key``, and for elements of a list."""
    key_stop: Ints | None = None

    def only(self, which: Any) -> "Entry":
        start, stop = (None if at is None else at[which] for at in (self.key_start, self.key_stop))
        return Entry(self.field.only(which), self.key, start, stop)


class CompoundCursor:
    """``bad`` is set for rows that cannot be read; they are not read again."""

    def __init__(self, reader: ByteReader, bad: Mask, rows: Ints, compounds: Compounds, cursor: CachedCursor) -> None:
        """``cursor``: the positions of the first elements."""
        self._reader = reader
        self._bad = bad
        self._rows, self.cursor = rows, cursor
        self._count, self._end = compounds.counts, compounds.end
        self._least = int(self._count.min()) if len(rows) else 0
        self._refuse(compounds.bad | (self._count > _MANY_STEPS))
        self._require_few()

    def elements(self) -> Iterator[Entry]:
        index = 0
        while self._has(index):
            field, _ = self._value()
            if len(self._rows):
                yield Entry(field)
            index += 1

    def entries(self, key_codes: tuple[int, ...]) -> Iterator[Entry]:
        """The entries of maps. A key has one of the constructors ``key_codes``, the narrow one first."""
        self._refuse(self._count % 2 == 1)
        self._count = self._count >> 1
        self._least >>= 1
        index = 0
        while self._has(index):
            same = self._same_key(key_codes[0])
            keys = None if same is not None else self._keys(key_codes)
            if not len(self._rows):
                return
            field, kept = self._value()
            entry = Entry(field, same)
            if keys is not None:
                start, stop = (at if kept is None else at[kept] for at in keys)
                entry = Entry(field, None, start, stop)
            if len(self._rows):
                yield entry
            index += 1

    def _same_key(self, code: int) -> bytes | None:
        """The key of all rows, if it is the same short one. Moves on to its end."""
        head = self.cursor.constant(_KEY_HEAD)
        whole = self.cursor.constant(_KEY_HEAD + head[1]) if head is not None and head[0] == code else None
        if whole is None:
            return None
        self.cursor.step(len(whole))
        return whole[_KEY_HEAD:]

    def _keys(self, codes: tuple[int, ...]) -> tuple[Ints, Ints]:
        """The positions of the keys of the rows whose key can be read. Moves on to their ends."""
        keys = self._values()
        wrong = np.logical_not((keys.code == codes[0]) | (keys.code == codes[1]))
        kept = self._refuse(np.broadcast_to(wrong, self._rows.shape) if keys.bad is None else keys.bad | wrong)
        return self._advance(keys.start, keys.stop, keys.step, kept)

    def _value(self) -> tuple[Field, Mask | None]:
        """The values of the rows whose value can be read, and the mask of these rows; None if these are all."""
        values = self._values()
        kept = self._refuse(values.bad)
        rows, code = self._rows, values.code if kept is None else pick(values.code, kept)
        start, stop = self._advance(values.start, values.stop, values.step, kept)
        return Field(rows, code, start, stop, values.content), kept

    def _advance(self, start: Ints, stop: Ints, step: int | None, kept: Mask | None) -> tuple[Ints, Ints]:
        """The positions of the values that are kept. Moves on to their ends."""
        if kept is not None:
            start, stop, step = start[kept], stop[kept], None
        if step is None:
            self.cursor.move(stop)
        else:
            self.cursor.step(step)
        return start, stop

    def _values(self) -> Values:
        """The values at the positions. Where all rows have the same first bytes, only the positions are computed.

        Then they are not compared with the ends of the lists, if they lie inside of the block: they follow each other,
        and so the next value that is read, or the end of the last one, lies beyond the end of the list too.
        """
        cursor = self.cursor
        head = cursor.constant(_KEY_HEAD) or cursor.constant(1)
        layout = None if head is None else layout_of(head)
        if head is None or layout is None:
            return self._reader.values(cursor.at, self._end, cursor.words())
        start, step = layout
        stop = cursor.ahead(step)
        if not cursor.covers(step):
            return Values(head[0], cursor.ahead(start), stop, stop > self._end, step)
        whole = cursor.constant(step)
        return Values(head[0], cursor.ahead(start), stop, None, step, None if whole is None else whole[start:])

    def _has(self, index: int) -> bool:
        """Take out the rows that have no more than ``index`` elements. Return whether others are left."""
        if len(self._rows) and index >= self._least:
            done = self._count == index
            self._bad[self._rows[done & (self.cursor.at != self._end)]] = True
            if done.all():
                self._rows = self._rows[:0]
                return False
            self._keep(~done)
        if index >= _MANY_ENTRIES and len(self._rows) < _FEW_ROWS:
            self._bad[self._rows] = True
            return False
        return bool(len(self._rows))

    def _refuse(self, wrong: Mask | None) -> Mask | None:
        """Take out the rows that are wrong. Return the mask of the others, or None if these are all."""
        if wrong is None or not wrong.any():
            return None
        self._bad[self._rows[wrong]] = True
        kept = ~wrong
        self._keep(kept)
        return kept

    def _require_few(self) -> None:
        total = int(self._count.sum())
        if total > _MANY_AT_ONCE and len(self._rows) > _FEW_ROWS:
            length = self._end[-1] - self.cursor.at[0]
            if int(length) < _FEWEST_BYTES * total:
                raise TooManyAtOnceError

    def _keep(self, kept: Mask) -> None:
        self._rows = self._rows[kept]
        self.cursor.keep(kept)
        self._count, self._end = self._count[kept], self._end[kept]
        self._least = int(self._count.min()) if len(self._count) else 0


# --- whole messages ---------------------------------------------------------------------------------

NO_BODY = -1
"""The constructor of a body that is absent."""

_STRING_KEYS, _SYMBOL_KEYS = TYPES["string"], TYPES["symbol"]
_DESCRIPTOR, _DESCRIPTOR_MASK, _SECTION_MASK = 0x5300, 0xFFFF, 0xFFFFFF
_SECTION = 3
"""The bytes of a section's descriptor."""
_WIDE_SIZE = 5
"""The bytes of a wide constructor and its size."""

Fields: TypeAlias = Sequence[Field]
Entries: TypeAlias = Sequence[Entry]


@dataclass(frozen=True, slots=True)
class NeededParts:
    """The parts of each message that are located. A section that is not needed is passed over by its size."""

    header: int = len(HeaderField)
    """How many fields of the section are needed, from the first one on."""
    properties: int = len(PropertiesField)
    application_properties: bool = True


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
    """None of them if they are not needed."""
    body_section: Ints
    """The code of the body section; 0 without one."""
    body_at: Ints
    """The position of the body's constructor."""
    body: Field
    """The value of the body; its code is ``NO_BODY`` without one."""
    needed: NeededParts
    passed_over: tuple[Ints, Ints]
    """Where the sections of application properties begin and end, if they are not needed: also those of messages that
    have no row here."""

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
            self.needed,
            self.passed_over,
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
        """Return the field's values that are kept, by their numbers, and the new numbers of their rows."""
        if len(field.rows) == len(self._good):
            return self._every, self._new
        which = np.flatnonzero(self._good[field.rows])
        return which, self._numbers[field.rows[which]]


_ALL = NeededParts()
_NOWHERE = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def walk(reader: ByteReader, begins: Ints, ends: Ints, needed: NeededParts = _ALL) -> Parts:
    """The needed parts of every message that has the usual sections, each of them once."""
    cursors = _Cursors(reader, begins.copy(), ends)
    header = cursors.fields(HEADER, needed.header)
    after_header = cursors.at.copy()
    cursors.entries(DELIVERY_ANNOTATIONS, _SYMBOL_KEYS)
    annotations = cursors.entries(MESSAGE_ANNOTATIONS, _SYMBOL_KEYS)
    properties = cursors.fields(PROPERTIES, needed.properties)
    application: Entries = []
    passed_over = _NOWHERE
    if needed.application_properties:
        application = cursors.entries(APPLICATION_PROPERTIES, _STRING_KEYS)
    else:
        passed_over = cursors.pass_over(APPLICATION_PROPERTIES)
    section, body = cursors.body()
    every, at = np.arange(len(begins)), cursors.at
    parts = Parts(
        every,
        after_header,
        ends,
        header,
        annotations,
        properties,
        application,
        section,
        at,
        body,
        needed,
        passed_over,
    )
    return parts.only(~cursors.bad)


class _Cursors:
    """One position in each message. ``bad`` messages are not read again."""

    def __init__(self, reader: ByteReader, begins: Ints, ends: Ints) -> None:
        self._reader = reader
        self.at = begins
        self._cursor = CachedCursor(reader, begins)
        self._ends = ends
        self._every = np.arange(len(begins))
        self.bad: Mask = np.zeros(len(begins), np.bool_)

    def fields(self, section: int, needed: int) -> Fields:
        """The fields from the first one on, as many as are needed."""
        inside = self._inside(section, LIST_CODES, len(HeaderField if section == HEADER else PropertiesField))
        if inside is None:
            return []
        found = [entry.field for entry in islice(inside.elements(), needed)]
        self._go_on(inside)
        return found

    def entries(self, section: int, keys: tuple[int, ...]) -> Entries:
        inside = self._inside(section, MAP_CODES, 2 * MAX_ELEMENTS)
        if inside is None:
            return []
        found = list(inside.entries(keys))
        self._go_on(inside)
        return found

    def pass_over(self, section: int) -> tuple[Ints, Ints]:
        """Return where the section of maps begins and ends, in rows where it is the next one; move on to its end."""
        before = self.at
        inside = self._inside(section, MAP_CODES, 2 * MAX_ELEMENTS)
        if inside is None:
            return _NOWHERE
        here = self.at > before
        return before[here], self.at[here]

    def _go_on(self, inside: CompoundCursor) -> None:
        """Keep the strips of the rows, if they all are at the same distance from the end of the section."""
        if len(inside.cursor) == len(self._every):
            left = self.at - inside.cursor.at
            distance = int(left[0]) if len(left) else 0
            if distance >= 0 and (left == distance).all():
                inside.cursor.step(distance)
                self._cursor = inside.cursor

    def _inside(self, section: int, codes: tuple[int, ...], most: int) -> CompoundCursor | None:
        """Cursors inside of a section, where it is the next one; moves on to its end."""
        words = self._cursor.words()
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
        self._cursor = CachedCursor(self._reader, self.at)
        return CompoundCursor(
            self._reader, self.bad, rows, _with_most(found, most), CachedCursor(self._reader, found.first)
        )

    def _inside_all(self, codes: tuple[int, ...], most: int) -> CompoundCursor:
        """Pass over the section where every row has it."""
        cursor, begin = self._cursor, self.at + _SECTION
        words = cursor.words(_SECTION), cursor.words(_SECTION + _WIDE_SIZE)
        found = self._reader.compounds(begin, self._ends, codes, words)
        if found.step is None:
            cursor.move(found.first)
        else:
            cursor.step(_SECTION + found.step)
        self.at = np.where(found.bad, begin, found.end)
        self._cursor = CachedCursor(self._reader, self.at)
        return CompoundCursor(self._reader, self.bad, self._every, _with_most(found, most), cursor)

    def body(self) -> tuple[Ints, Field]:
        """The code of each body section and its value, which ends the message. Moves on to the constructor."""
        section = np.zeros(len(self._every), np.int64)
        code = np.full(len(self._every), NO_BODY, np.int64)
        start, stop = self._ends.copy(), self._ends.copy()
        rows = np.flatnonzero((self.at < self._ends) & ~self.bad)
        if len(rows):
            cursor = self._cursor if len(rows) == len(self._every) else CachedCursor(self._reader, self.at[rows])
            words, ends = cursor.words(), self._ends[rows]
            section[rows] = words >> 16 & 0xFF
            known = (words & _DESCRIPTOR_MASK == _DESCRIPTOR) & (section[rows] >= DATA) & (section[rows] <= VALUE)
            known &= cursor.at + _SECTION < ends
            values = self._reader.values(cursor.at + _SECTION, ends, cursor.words(_SECTION))
            self.bad[rows[~known | values.bad | (values.stop != ends)]] = True
            self.at = self.at.copy()
            self.at[rows] += _SECTION
            code[rows], start[rows], stop[rows] = values.code, values.start, values.stop
        return section, Field(self._every, code, start, stop)


def entries_of(reader: ByteReader, at: Ints, limit: Ints) -> tuple[Entries, Mask]:
    """The entries of the maps at positions, and which maps cannot be read; rows are numbered from 0."""
    return _of_bodies(reader, at, limit, MAP_CODES, lambda inside: inside.entries(_STRING_KEYS))


def elements_of(reader: ByteReader, at: Ints, limit: Ints) -> tuple[Entries, Mask]:
    """The elements of the lists at positions, and which lists cannot be read."""
    return _of_bodies(reader, at, limit, LIST_CODES, CompoundCursor.elements)


def _with_most(found: Compounds, most: int) -> Compounds:
    """Lists with more elements than ``most`` are bad."""
    return found._replace(bad=found.bad | (found.counts > most))


def _of_bodies(
    reader: ByteReader, at: Ints, limit: Ints, codes: tuple[int, ...], read: Callable[[CompoundCursor], Iterator[Entry]]
) -> tuple[Entries, Mask]:
    most = 2 * MAX_ELEMENTS if codes == MAP_CODES else MAX_ELEMENTS  # an element of a map is a key and a value
    bad = np.zeros(len(at), np.bool_)
    compounds = _with_most(reader.compounds(at, limit, codes), most)
    first = CachedCursor(reader, compounds.first)
    found = list(read(CompoundCursor(reader, bad, np.arange(len(at)), compounds, first)))
    if bad.any():
        found = [entry.only(~bad[entry.field.rows]) for entry in found]
    return found, bad
