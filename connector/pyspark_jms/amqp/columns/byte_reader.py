"""The bytes of a block, read at many positions at once: constructors, sizes, numbers (AMQP 1.0 §1.6).

Nothing that is read is trusted: every read returns which of its positions must not be used.
"""

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_jms.amqp.wire.constructors import FIXED_WIDTHS, NUMBERS, SIZE_WIDTHS, TYPES
from pyspark_jms.columns.arrays import Ints, Mask, Uint8s

__all__ = [
    "LIST_CODES",
    "MAP_CODES",
    "ByteReader",
    "CachedCursor",
    "Code",
    "Compounds",
    "Refusals",
    "TooNearTheEndError",
    "Values",
    "layout_of",
    "pick",
]

LIST_CODES: Final = TYPES["list"]
MAP_CODES: Final = (*TYPES["map"], -1)
"""The narrow, the wide and the empty constructor of a compound value."""

Code: TypeAlias = int | Ints
"""The constructors of some values; one number if they are all the same."""

STRIP: Final = 64
"""The bytes that ``ByteReader.strips`` reads."""

_WORD = 8
_NARROW_HEAD, _WIDE_HEAD = 2, 5
_BYTE, _UINT32 = 0xFF, 0xFFFF_FFFF
_FORMATS = {code: np.dtype(layout.format) for code, layout in NUMBERS.items()}

_WIDTHS = np.full(256, -1, np.int64)
_SIZES = np.zeros(256, np.int64)
_WIDTHS[list(FIXED_WIDTHS)] = list(FIXED_WIDTHS.values())
_SIZES[list(SIZE_WIDTHS)] = list(SIZE_WIDTHS.values())


class TooNearTheEndError(Exception):
    """A word reaches beyond the block: the block needs zeros after its last message."""


class Values(NamedTuple):
    code: Code
    start: Ints
    """The position of each value's content."""
    stop: Ints
    bad: Mask | None
    """Which values do not end by their limits, or have no constructor. None if none is known to be so."""
    step: int | None
    """The distance from each constructor to the end of its value, if it is the same for all."""
    content: bytes | None = None
    """The bytes from start to stop, if they are known to be the same for all."""


class Compounds(NamedTuple):
    counts: Ints
    first: Ints
    """The position of the first element."""
    end: Ints
    bad: Mask
    step: int | None
    """The distance from each constructor to the first element, if it is the same for all."""


def layout_of(head: bytes) -> tuple[int, int] | None:
    """The first bytes of a value → the bytes before its content, and all its bytes; None if more bytes are needed."""
    width = int(_WIDTHS[head[0]])
    if width >= 0:
        return 1, 1 + width
    if _SIZES[head[0]] != 1 or len(head) < _NARROW_HEAD:
        return None
    return _NARROW_HEAD, _NARROW_HEAD + head[1]


def pick(code: Code, which: Any) -> Code:
    return code if isinstance(code, int) else code[which]


class ByteReader:
    """The bytes of a block. All positions that a caller passes are ascending."""

    def __init__(self, buffer: pa.Buffer) -> None:
        self.buffer = buffer
        self.raw: Uint8s = np.frombuffer(buffer, np.uint8)
        self._views: dict[np.dtype[Any], npt.NDArray[Any]] = {}
        strips = max(0, self.raw.size - STRIP + 1)
        self._strips: npt.NDArray[Any] = np.ndarray((strips,), f"V{STRIP}", self.raw.data, strides=(1,))
        self._words: Ints = np.ndarray((max(0, self.raw.size - _WORD + 1),), "<i8", self.raw.data, strides=(1,))

    def padded(self) -> "ByteReader":
        """Return these bytes with zeros after them."""
        return ByteReader(pa.py_buffer(np.concatenate((self.raw, np.zeros(2 * _WORD, np.uint8)))))

    def words(self, at: Ints) -> Ints:
        """The eight bytes at each position, as little-endian numbers."""
        try:
            return self._words[at]
        except IndexError:
            raise TooNearTheEndError from None

    def strips(self, at: Ints) -> Uint8s | None:
        """The ``STRIP`` bytes at each position, one strip after the other; None if one reaches beyond the block."""
        try:
            found: Uint8s = self._strips[at].view(np.uint8)
        except IndexError:
            return None
        return found

    def numbers(self, code: int, at: Ints) -> npt.NDArray[Any]:
        """The numbers that stand at positions, which lie inside of the block, as values of one constructor."""
        kind = _FORMATS[code]
        if kind not in self._views:
            size = self.raw.size - kind.itemsize + 1
            self._views[kind] = np.ndarray((size,), kind, self.raw.data, strides=(1,))
        return self._views[kind][at]

    @staticmethod
    def number(code: int, content: bytes) -> int:
        """The number that a value has, by its bytes."""
        return int(np.frombuffer(content, _FORMATS[code])[0])

    def values(self, at: Ints, limit: Ints, words: Ints | None = None) -> Values:
        """The values whose constructors stand at positions."""
        words = self.words(at) if words is None else words
        code = words & _BYTE
        one = int(code[0])
        if (code == one).all():
            return _alike(one, at, limit, words)
        sizes, width = _SIZES[code], _WIDTHS[code]
        unknown = (width < 0) & (sizes == 0)
        width = np.where(sizes == 1, words >> 8 & _BYTE, width)
        wide = sizes == 4  # noqa: PLR2004 - bytes of a size
        if wide.any():
            width = np.where(wide, _big_endian(words >> 8), width)
        start = at + 1 + sizes
        stop = start + width
        return Values(code, start, stop, unknown | (stop > limit), None)

    def compounds(
        self, at: Ints, limit: Ints, codes: tuple[int, ...], known: tuple[Ints, Ints] | None = None
    ) -> Compounds:
        """The lists or maps at positions. No more elements are counted than there are bytes for them.

        ``known``: the words at the positions and five bytes further, if they are known.
        """
        narrow, wide, empty = codes
        words = self.words(at) if known is None else known[0]
        code = words & _BYTE
        one = int(code[0])
        if one in {narrow, wide} and (code == one).all():
            if one == narrow:
                return _compounds_alike(_NARROW_HEAD, at, limit, words, words)
            counts = self.words(at + _WIDE_HEAD) if known is None else known[1]
            return _compounds_alike(_WIDE_HEAD, at, limit, words, counts)
        is_narrow, is_wide = code == narrow, code == wide
        count = np.where(is_narrow, words >> 16 & _BYTE, 0)
        first = at + np.where(is_narrow, 3, np.where(is_wide, 9, 1))
        end = np.where(is_narrow, at + 2 + (words >> 8 & _BYTE), at + 1)
        if is_wide.any():
            which = np.flatnonzero(is_wide)
            end[which] = at[which] + 5 + _big_endian(words[which] >> 8)
            count[which] = _big_endian(self.words(at[which] + 5))
        bad = (end > limit) | (first > end) | (count > end - first) | ~(is_narrow | is_wide | (code == empty))
        return Compounds(count, first, end, bad, None)


def _compounds_alike(head: int, at: Ints, limit: Ints, words: Ints, counts: Ints) -> Compounds:
    """Lists or maps that have all the same constructor; ``head``: the bytes of it and of a size."""
    wide = head == _WIDE_HEAD
    size, count = (_big_endian(words >> 8), _big_endian(counts)) if wide else (words >> 8 & _BYTE, words >> 16 & _BYTE)
    end, step = at + head + size, 2 * head - 1
    first = at + step
    return Compounds(count, first, end, (end > limit) | (first > end) | (count > end - first), step)


def _alike(code: int, at: Ints, limit: Ints, words: Ints) -> Values:
    width = int(_WIDTHS[code])
    if width >= 0:
        stop = at + (1 + width)
        return Values(code, at + 1, stop, stop > limit, 1 + width)
    if not _SIZES[code]:
        return Values(code, at, at, np.ones(len(at), np.bool_), None)
    head = 1 + int(_SIZES[code])
    sizes = _big_endian(words >> 8) if head > _NARROW_HEAD else words >> 8 & _BYTE
    first = int(sizes[0])
    start = at + head
    if (sizes == first).all():
        stop = at + (head + first)
        return Values(code, start, stop, stop > limit, head + first)
    stop = start + sizes
    return Values(code, start, stop, stop > limit, None)


def _big_endian(words: Ints) -> Ints:
    """The big-endian number in the first four bytes of each word."""
    numbers: Ints = (words & _UINT32).astype(np.uint32).byteswap().astype(np.int64)
    return numbers


# --- one position in each row -----------------------------------------------------------------------

# The bytes that follow it are read once, for all steps that move all rows alike: a gather from scattered messages costs
# more than all arithmetic on what it brings.

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
        """By place in a strip: 0 if all strips have the same byte there. None if that is not known yet."""

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
        """Return the bytes at each position if all rows have the same ones there, or None if they differ, or if that is
        unknown.
        """
        if not self.covers(size):
            self._take_strips(size + _WORD)
        if self._strip is None:
            return None
        if self._differing is None:
            self._differing = _differing(self._strip)
        begin, end = self._offset, self._offset + size
        return None if any(self._differing[begin:end]) else self._strip[begin:end].tobytes()

    def covers(self, size: int) -> bool:
        """Return whether so many bytes at each position, and a word after them, have been read."""
        return self._strip is not None and self._offset + size + _WORD <= STRIP

    def _take_strips(self, size: int) -> None:
        """Read what follows the positions, if a strip has so many bytes."""
        self._strip = None if size > STRIP else self._reader.strips(self.at)
        self._offset, self._differing = 0, None

    def step(self, distance: int) -> None:
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


# --- rows that the vectorised decoder does not take -------------------------------------------------

# A step that refuses a row goes on with anything in its place: the reader of one message makes the whole row again.


class Refusals:
    def __init__(self) -> None:
        self._rows: list[Ints] = []

    def add(self, rows: Ints) -> None:
        if len(rows):
            self._rows.append(rows)

    def add_where(self, rows: Ints, wrong: Mask | np.bool_) -> None:
        """Refuse the rows where ``wrong`` is true; it may be one value for all of them."""
        if wrong.any():
            self._rows.append(rows[np.broadcast_to(wrong, rows.shape)])

    def rows(self) -> Ints:
        """The refused rows, each once, in order."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *self._rows]))
