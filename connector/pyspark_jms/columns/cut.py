"""Pieces of one received buffer → Arrow strings, with every offset checked.

``pa.Array.from_buffers`` checks nothing: a wrong offset does not raise, it ends the process. Does not know protocols
and JMS.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.errors import IllegalStateError

__all__ = [
    "MAX_BYTES",
    "Ints",
    "Mask",
    "Pieces",
    "Uint8s",
    "all_begin_with",
    "contents",
    "cut",
    "is_utf8",
    "not_utf8",
    "require_offsets",
]

Ints: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Uint8s: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

_SHORT = 32
_LONG = 256
"""The mean length of pieces up to which ``take`` is never slower than ``Pieces.copied``."""

_NOTHING = pa.scalar("", pa.string())
MAX_BYTES = (1 << 31) - 1
"""The largest offset of Arrow's ``string`` and ``binary``, which have 32 bits; Spark reads no wider types."""


def require_offsets(total: int) -> None:
    """Refuse a column of more bytes than 32-bit offsets can address."""
    if total > MAX_BYTES:
        raise IllegalStateError(
            f"{total:,} bytes do not fit into one Arrow column ({MAX_BYTES:,}).",
            "Lower partitionBytes or maxMessageBytes.",
        )


class Pieces:
    """Piece i is ``buffer[starts[i]:ends[i]]``; pieces are taken by their numbers."""

    __slots__ = ("_array", "_offsets")

    def __init__(self, buffer: pa.Buffer, starts: Ints, ends: Ints) -> None:
        require_offsets(buffer.size)
        if not _inside(buffer.size, starts, ends):
            raise IllegalStateError("A piece lies outside its buffer.", "This is a fault of pyspark-jms: report it.")
        # Element 2i is piece i. Element 2i + 1 is what lies between two pieces, and is never taken.
        offsets = np.empty(2 * len(starts) + 1, np.int32)
        offsets[:-1:2] = starts
        offsets[1:-1:2] = ends
        offsets[-1] = buffer.size
        self._offsets = offsets
        both = [None, pa.py_buffer(offsets), buffer]
        self._array = pa.Array.from_buffers(pa.string(), 2 * len(starts), both)

    def take(self, which: Ints) -> pa.Array:
        """A string column of the pieces ``which``, null where the number is negative. It is not checked for UTF-8."""
        absent = which < 0
        return self._array.take(pa.array(2 * which, mask=absent if absent.any() else None))

    @property
    def ascending(self) -> bool:
        """Whether each piece begins at or after the end of the piece before it."""
        return bool((self._offsets[2::2] >= self._offsets[1:-1:2]).all())

    def copied(self, keep: Mask | None) -> pa.Array:
        """All pieces, which are ascending; null where ``keep`` is false.

        ``take`` reserves memory for half of the buffer. If it needs more, it moves what it has: half of its time.
        """
        wanted = np.zeros(len(self._array), np.bool_)
        wanted[::2] = True if keep is None else keep
        _, offsets, data = pc.if_else(pa.array(wanted), self._array, _NOTHING).buffers()
        # What lies between two pieces has become empty, so a piece ends where the next one begins.
        bounds = np.frombuffer(offsets, np.int32)[: len(wanted) + 1 : 2].copy()
        valid = None if keep is None else pa.array(keep).buffers()[1]
        return pa.Array.from_buffers(pa.string(), len(bounds) - 1, [valid, pa.py_buffer(bounds), data])

    def all_same(self, which: Ints) -> bool:
        """Whether there are pieces, no number is negative, and all pieces are the same short text. False: unknown."""
        if not len(which) or which.min() < 0:
            return False
        one, last = (self._array[2 * which[place]].as_buffer() for place in (0, -1))
        if not one.equals(last) or one.size > _SHORT:
            return False
        starts = self._offsets[2 * which]
        if (self._offsets[2 * which + 1] - starts != one.size).any():
            return False
        return all_begin_with(one.to_pybytes(), np.frombuffer(self._array.buffers()[2], np.uint8), starts)


def all_begin_with(text: bytes, data: Uint8s, starts: Ints) -> bool:
    """Whether ``text`` is found at each of ``starts``, of which there is at least one."""
    words = np.ndarray((max(0, len(data) - 7),), "<u8", data.data, strides=(1,))
    last = int(starts.max())
    if last + len(text) > len(data):
        return False
    for begin in range(0, len(text), 8):
        part = text[begin : begin + 8]
        at = starts
        if last + begin >= len(words):  # less than eight bytes are left there
            near_end = starts + begin >= len(words)
            if any(bytes(data[place : place + len(part)]) != part for place in (starts[near_end] + begin).tolist()):
                return False
            at = starts[~near_end]
        found = words[begin:][at] & np.uint64((1 << 8 * len(part)) - 1)
        if (found != np.uint64(int.from_bytes(part, "little"))).any():
            return False
    return True


def _inside(size: int, starts: Ints, ends: Ints) -> bool:
    if not len(starts):
        return True
    return bool(starts.min() >= 0 and ends.max() <= size and (starts <= ends).all())


def cut(buffer: pa.Buffer, starts: Ints, ends: Ints, keep: Mask | None = None) -> pa.Array:
    """A string column of ``buffer[starts[i]:ends[i]]``, null where ``keep`` is false."""
    pieces, count = Pieces(buffer, starts, ends), len(starts)
    size = int((ends - starts).sum(where=True if keep is None else keep))
    if count and size > max(_LONG * count, buffer.size // 2) and pieces.ascending:
        return pieces.copied(keep)
    every = np.arange(count)
    return pieces.take(every if keep is None else np.where(keep, every, -1))


def contents(column: pa.Array) -> tuple[pa.Buffer, Ints]:
    """The bytes of a string column that is not a slice, and the positions in them of each value and of the end."""
    _, offsets, data = column.buffers()
    positions = np.frombuffer(offsets, np.int32)[: len(column) + 1]
    return (pa.py_buffer(b"") if data is None else data), positions.astype(np.int64)


def is_utf8(column: pa.Array) -> bool:
    data, limits = contents(column)
    if limits[0] == limits[-1] or np.frombuffer(data, np.int8)[: limits[-1]].min() >= 0:  # all of it is ASCII
        return True
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def not_utf8(column: pa.Array) -> Mask:
    """Which values of a string column are not UTF-8, one by one: for a column that is not ``is_utf8``."""
    return np.array([not (value is None or _decodes(value)) for value in column.view(pa.binary()).to_pylist()])


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
