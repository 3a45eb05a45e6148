"""One position in each row, and the bytes that follow it: read once, for all steps that move all rows alike.

A gather from scattered messages costs more than all arithmetic on what it brings.
"""

import numpy as np

from pyspark_jms.amqp.columns.octets import STRIP, Octets
from pyspark_jms.columns.cut import Ints, Mask, Uint8s

__all__ = ["Heads"]

_WORD = 8


class Heads:
    """Positions that move on through their rows."""

    __slots__ = ("_octets", "_offset", "_strip", "at")

    def __init__(self, octets: Octets, at: Ints) -> None:
        self._octets = octets
        self.at = at
        self._strip: Uint8s | None = None
        self._offset = 0
        """The distance of each position from the beginning of its strip."""

    def __len__(self) -> int:
        return len(self.at)

    def words(self, ahead: int = 0) -> Ints:
        """The eight bytes at each position, or at a distance from it."""
        if self._strip is None or self._offset + ahead + _WORD > STRIP:
            self._strip = None if ahead + _WORD > STRIP else self._octets.strips(self.at)
            self._offset = 0
        if self._strip is None:
            return self._octets.words(self.at + ahead)
        begin = self._offset + ahead
        return np.ndarray((len(self.at),), "<i8", self._strip, offset=begin, strides=(STRIP,))

    def move(self, to: Ints, step: int | None) -> None:
        """``step``: the distance, if it is the same in all rows."""
        self.at = to
        if step is None:
            self._strip = None
        else:
            self._offset += step

    def keep(self, kept: Mask) -> None:
        self.at = self.at[kept]
        self._strip = None
