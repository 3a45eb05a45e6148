"""One position in each row, and the bytes that follow it: read once, for all steps that move all rows alike.

A gather from scattered messages costs more than all arithmetic on what it brings.
"""

import numpy as np

from pyspark_jms.amqp.columns.byte_reader import STRIP, ByteReader
from pyspark_jms.columns.strings import Ints, Mask, Uint8s

__all__ = ["CachedCursor"]

_WORD = 8
_STRIP_WORDS, _FOLDED = STRIP // _WORD, 64


class CachedCursor:
    """Positions that move on through their rows."""

    __slots__ = ("_at", "_differing", "_moved", "_offset", "_reader", "_strip")

    def __init__(self, reader: ByteReader, at: Ints) -> None:
        self._reader = reader
        self._at = at
        self._moved = 0
        """How far all positions have moved since they were computed."""
        self._strip: Uint8s | None = None
        self._offset = 0
        """The distance of each position from the beginning of its strip."""
        self._differing: bytes | None = None
        """By place in a strip: 0 if all strips have the same byte there. None: not known yet."""

    def __len__(self) -> int:
        return len(self._at)

    @property
    def at(self) -> Ints:
        if self._moved:
            self._at, self._moved = self._at + self._moved, 0
        return self._at

    def ahead(self, distance: int) -> Ints:
        """The positions at a distance from these."""
        return self._at + (self._moved + distance)

    def words(self, ahead: int = 0) -> Ints:
        """The eight bytes at each position, or at a distance from it."""
        if self._strip is None or self._offset + ahead + _WORD > STRIP:
            self._take_strips(ahead + _WORD)
        if self._strip is None:
            return self._reader.words(self.ahead(ahead))
        begin = self._offset + ahead
        return np.ndarray((len(self),), "<i8", self._strip, offset=begin, strides=(STRIP,))

    def constant(self, size: int) -> bytes | None:
        """The bytes at each position, if all rows have the same ones there; None: they differ, or that is not known."""
        if not self.covers(size):
            self._take_strips(size + _WORD)
        if self._strip is None:
            return None
        if self._differing is None:
            self._differing = _differing(self._strip)
        begin, end = self._offset, self._offset + size
        return None if any(self._differing[begin:end]) else self._strip[begin:end].tobytes()

    def covers(self, size: int) -> bool:
        """Whether so many bytes at each position, and a word after them, have been read."""
        return self._strip is not None and self._offset + size + _WORD <= STRIP

    def _take_strips(self, size: int) -> None:
        """Read what follows the positions, if a strip has so many bytes."""
        self._strip = None if size > STRIP else self._reader.strips(self.at)
        self._offset, self._differing = 0, None

    def step(self, distance: int) -> None:
        """Move all positions on by the same distance."""
        self._moved += distance
        self._offset += distance

    def move(self, to: Ints) -> None:
        self._at, self._moved, self._strip = to, 0, None

    def keep(self, kept: Mask) -> None:
        self.move(self.at[kept])


def _differing(strips: Uint8s) -> bytes:
    """The places at which the strips are not all the same: a byte that is not 0."""
    words = strips.view(np.int64)
    changes = words[_STRIP_WORDS:] ^ words[:-_STRIP_WORDS]
    # Fold into rows of this length: numpy is slow on short rows.
    folded = len(changes) - len(changes) % (_STRIP_WORDS * _FOLDED)
    found = np.bitwise_or.reduce(changes[:folded].reshape(-1, _STRIP_WORDS * _FOLDED), axis=0)
    found = np.bitwise_or.reduce(found.reshape(_FOLDED, _STRIP_WORDS), axis=0)
    return bytes((found | np.bitwise_or.reduce(changes[folded:].reshape(-1, _STRIP_WORDS), axis=0)).tobytes())
