"""Cursors inside of one list or map in each message: its elements step by step, for all messages at once."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Code, Compounds, Values, layout_of, pick
from pyspark_jms.amqp.columns.cached_cursor import CachedCursor
from pyspark_jms.columns.strings import Ints, Mask

__all__ = ["CompoundCursor", "Entry", "Field", "TooManyAtOnceError"]

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

    def __init__(self, reader: ByteReader, bad: Mask, rows: Ints, compounds: Compounds, heads: CachedCursor) -> None:
        """``heads``: the positions of the first elements."""
        self._reader = reader
        self._bad = bad
        self._rows, self.heads = rows, heads
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

    def entries(self, key_codes: tuple[int, int]) -> Iterator[Entry]:
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
        head = self.heads.constant(_KEY_HEAD)
        whole = self.heads.constant(_KEY_HEAD + head[1]) if head is not None and head[0] == code else None
        if whole is None:
            return None
        self.heads.step(len(whole))
        return whole[_KEY_HEAD:]

    def _keys(self, codes: tuple[int, int]) -> tuple[Ints, Ints]:
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
            self.heads.move(stop)
        else:
            self.heads.step(step)
        return start, stop

    def _values(self) -> Values:
        """The values at the positions. Where all rows have the same first bytes, only the positions are computed.

        Then they are not compared with the ends of the lists, if they lie inside of the block: they follow each other,
        and so the next value that is read, or the end of the last one, lies beyond the end of the list too.
        """
        heads = self.heads
        head = heads.constant(_KEY_HEAD) or heads.constant(1)
        layout = None if head is None else layout_of(head)
        if head is None or layout is None:
            return self._reader.values(heads.at, self._end, heads.words())
        start, step = layout
        stop = heads.ahead(step)
        if not heads.covers(step):
            return Values(head[0], heads.ahead(start), stop, stop > self._end, step)
        whole = heads.constant(step)
        return Values(head[0], heads.ahead(start), stop, None, step, None if whole is None else whole[start:])

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

    def _refuse(self, wrong: Mask | None) -> Mask | None:
        """Take out the rows that are wrong. Returns the mask of the others, None if these are all."""
        if wrong is None or not wrong.any():
            return None
        self._bad[self._rows[wrong]] = True
        kept = ~wrong
        self._keep(kept)
        return kept

    def _require_few(self) -> None:
        total = int(self._count.sum())
        if total > _MANY_AT_ONCE and len(self._rows) > _FEW_ROWS:
            span = self._end[-1] - self.heads.at[0]
            if int(span) < _FEWEST_BYTES * total:
                raise TooManyAtOnceError

    def _keep(self, kept: Mask) -> None:
        self._rows = self._rows[kept]
        self.heads.keep(kept)
        self._count, self._end = self._count[kept], self._end[kept]
        self._least = int(self._count.min()) if len(self._count) else 0
