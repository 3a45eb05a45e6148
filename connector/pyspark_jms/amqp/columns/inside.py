"""Cursors inside of one list or map in each message: its elements step by step, for all messages at once."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Code, Compounds, Values, layout_of, pick
from pyspark_jms.amqp.columns.heads import Heads
from pyspark_jms.columns.cut import Ints, Mask

__all__ = ["Entry", "Field", "Inside"]

_FEW_ROWS, _MANY_ENTRIES = 16, 32
"""Fewer rows than ``_FEW_ROWS`` with more entries than ``_MANY_ENTRIES`` are left to the reader of one message."""

_KEY_HEAD = 2


class Field(NamedTuple):
    """A value in each of the rows that have it."""

    rows: Ints
    code: Code
    start: Ints
    stop: Ints

    def only(self, which: Any) -> "Field":
        """``which``: a mask, or numbers."""
        return Field(self.rows[which], pick(self.code, which), self.start[which], self.stop[which])


class Entry(NamedTuple):
    """The n-th entry of a map, or element of a list, in the rows that have so many."""

    field: Field
    key: bytes | None = None
    """The key, if all rows have the same one."""
    key_start: Ints | None = None
    """The position of each key; None if there is only ``key``, and for elements of a list."""
    key_stop: Ints | None = None

    def only(self, which: Any) -> "Entry":
        start, stop = (None if at is None else at[which] for at in (self.key_start, self.key_stop))
        return Entry(self.field.only(which), self.key, start, stop)


class Inside:
    """``bad`` is set for rows that cannot be read; they are not read again."""

    def __init__(self, reader: ByteReader, bad: Mask, rows: Ints, compounds: Compounds, heads: Heads) -> None:
        """``heads``: the positions of the first elements."""
        self._reader = reader
        self._bad = bad
        self._rows, self.heads = rows, heads
        self._count, self._end = compounds.counts, compounds.end
        self._least = int(self._count.min()) if len(rows) else 0
        self._refuse(compounds.bad)

    def elements(self) -> Iterator[Entry]:
        index = 0
        while self._has(index):
            values = self._values()
            kept = self._refuse(values.bad)
            code, start, stop = values.code, values.start, values.stop
            if kept is not None:
                code, start, stop = pick(code, kept), start[kept], stop[kept]
            if len(self._rows):
                yield Entry(Field(self._rows, code, start, stop))
            self.heads.move(stop, values.step if kept is None else None)
            index += 1

    def entries(self, key_codes: tuple[int, int]) -> Iterator[Entry]:
        """The entries of maps. A key has one of the constructors ``key_codes``, the narrow one first."""
        self._refuse(self._count % 2 == 1)
        self._count = self._count >> 1
        self._least >>= 1
        index = 0
        while self._has(index):
            keys = self._values()
            wrong = keys.bad | ~_is_one_of(keys.code, key_codes)
            head = None if keys.step is None or keys.code != key_codes[0] else self.heads.constant(keys.step)
            key = None if head is None else head[_KEY_HEAD:]
            if wrong.any():
                self.heads.move(np.where(wrong, self.heads.at, keys.stop), None)
            else:
                self.heads.move(keys.stop, keys.step)
            values = self._values()
            kept = self._refuse(wrong | values.bad)
            entry = Entry(Field(self._rows, values.code, values.start, values.stop), key, keys.start, keys.stop)
            if kept is not None:
                field = Field(self._rows, pick(values.code, kept), values.start[kept], values.stop[kept])
                entry = Entry(field, key, keys.start[kept], keys.stop[kept])
            if len(self._rows):
                yield entry
            self.heads.move(entry.field.stop, values.step if kept is None else None)
            index += 1

    def _values(self) -> Values:
        """The values at the positions. Where all rows have the same first bytes, only the positions are computed."""
        head = self.heads.constant(_KEY_HEAD) or self.heads.constant(1)
        layout = None if head is None else layout_of(head)
        if head is None or layout is None:
            return self._reader.values(self.heads.at, self._end, self.heads.words())
        start, step = layout
        stop = self.heads.at + step
        return Values(head[0], self.heads.at + start, stop, stop > self._end, step)

    def _has(self, index: int) -> bool:
        """Take out the rows that have no more than ``index`` elements. Returns whether others are left."""
        if len(self._rows) and index >= self._least:
            done = self._count == index
            self._bad[self._rows[done & (self.heads.at != self._end)]] = True
            if done.all():
                self._rows = self._rows[:0]
                return False
            self._keep(~done)
        if index >= _MANY_ENTRIES and len(self._rows) < _FEW_ROWS:
            self._bad[self._rows] = True
            return False
        return bool(len(self._rows))

    def _refuse(self, wrong: Mask) -> Mask | None:
        """Take out the rows that are wrong. Returns the mask of the others, None if these are all."""
        if not wrong.any():
            return None
        self._bad[self._rows[wrong]] = True
        kept = ~wrong
        self._keep(kept)
        return kept

    def _keep(self, kept: Mask) -> None:
        self._rows = self._rows[kept]
        self.heads.keep(kept)
        self._count, self._end = self._count[kept], self._end[kept]
        self._least = int(self._count.min()) if len(self._count) else 0


def _is_one_of(code: Code, codes: tuple[int, int]) -> Mask | np.bool_:
    if isinstance(code, int):
        return np.bool_(code in codes)
    found: Mask = (code == codes[0]) | (code == codes[1])
    return found
