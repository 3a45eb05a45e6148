"""Frames → their header lines: names and values, unescaped, valid UTF-8. Does not know the names of headers.

Every step works on the header blocks of all frames at once. Only lines that are not UTF-8 are read one by one.
``split_lines`` reads all lines, ``wanted_lines`` those with some names.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import wrong_index
from pyspark_jms.columns.arrays import (
    Int64s,
    Ints,
    Mask,
    Pieces,
    Uint8s,
    all_begin_with,
    contents,
    is_utf8,
    require_offsets,
    strings_at,
)
from pyspark_jms.jms.rules import shown_name
from pyspark_jms.sentences import MAX_FAULTS_SHOWN
from pyspark_jms.stomp.columns.escapes import unescape_buffer
from pyspark_jms.stomp.columns.frames import COMMAND_LENGTH, FrameBounds

__all__ = ["Fault", "Lines", "NotPlainError", "split_lines", "wanted_lines"]

_LF, _CR, _COLON, _BACKSLASH = 10, 13, 58, 92
_NOT_ASCII = 0x80
_COLON_LF = _COLON | _LF << 8
_PASS = 1 << 17
"""The number of bytes that are searched at once: the results stay in the cache, and in memory that is reused."""
_ALL_BITS = 0xFF
_SHARED_BITS = _ALL_BITS ^ _COLON ^ _LF
_NAME, _VALUE = 0, 1


class Fault(NamedTuple):
    """The reason why frame ``row`` could not be read. Faults of one frame are ordered by ``place``."""

    row: int
    place: int
    reason: str


class NotPlainError(Exception):
    """A value that was asked for is not ASCII without escapes: read all lines."""


@dataclass(frozen=True, slots=True)
class AlikeLines:
    """The header lines of frames that all have the names of the first one, in the same order: ASCII without escapes.

    Only the values that are asked for are located.
    """

    buffer: pa.Buffer
    limits: Ints
    """The LFs before and after each line. Consecutive lines of a frame have one in common."""
    names_of_first: list[bytes | None]
    """The names of the first frame, each with its colon. None if the name may be another one in other frames."""
    first: Ints
    """Frame i has the lines ``first[i]`` to ``first[i + 1]``."""
    between: int = 0
    """How many of ``limits`` lie between the last line of a frame and the first one of the next frame."""
    is_plain: bool = True
    """Whether the values are known to be ASCII without escapes. Else values raise ``NotPlainError``."""

    alike: bool = True
    faults: Sequence[Fault] = ()

    def __len__(self) -> int:
        return int(self.first[-1])

    def names(self, lines: Ints) -> pa.Array:
        """Null for a name that is not known."""
        names = pa.array([None if name is None else name[:-1] for name in self.names_of_first], pa.string())
        return names.take(pa.array(lines % len(self.names_of_first)))

    def values(self, lines: Ints) -> pa.Array:
        """Null where ``lines`` is negative."""
        keep = lines >= 0
        values = strings_at(self.buffer, *self._bounds(lines * keep), None if keep.all() else keep)
        if not (self.is_plain or _all_plain(values)):
            raise NotPlainError
        return values

    def one_value(self, lines: Ints) -> bool:
        """Return whether the values of ``lines`` are all the same short text. False: unknown."""
        if not len(lines) or lines.min() < 0:
            return False
        starts, ends = self._bounds(lines)
        return Pieces(self.buffer, starts, ends).all_same(np.arange(len(lines)))

    def _bounds(self, lines: Ints) -> tuple[Ints, Ints]:
        """Return where the values begin and end."""
        sizes = np.array([0 if name is None else len(name) for name in self.names_of_first], np.int32)
        at = lines + lines // len(sizes) * self.between if self.between else lines
        return self.limits[at] + sizes[lines % len(sizes)] + 1, self.limits[at + 1]


def _all_plain(values: pa.Array) -> bool:
    buffer, limits = contents(values)
    data: Uint8s = np.frombuffer(buffer, np.uint8)[: limits[-1]]
    return _is_ascii(data) and _is_plain(data)


def _is_ascii(data: Uint8s) -> bool:
    return bool(data.max(initial=0) < _NOT_ASCII)


def _is_plain(data: Uint8s) -> bool:
    return not _holds(data, _CR) and not _holds(data, _BACKSLASH)


@dataclass(frozen=True, slots=True)
class MixedLines:
    """The header lines of all frames; piece 2i is the name of line i, piece 2i + 1 its value."""

    pieces: Pieces
    first: Ints
    """Frame i has the lines ``first[i]`` to ``first[i + 1]``."""
    alike: bool
    """Whether all frames have the names of the first one, in the same order. False: unknown."""
    faults: list[Fault]

    def __len__(self) -> int:
        return int(self.first[-1])

    def names(self, lines: Ints) -> pa.Array:
        return self.pieces.take(2 * lines)

    def values(self, lines: Ints) -> pa.Array:
        """Null where ``lines`` is negative."""
        return self.pieces.take(2 * lines + 1)

    def one_value(self, lines: Ints) -> bool:
        """Return whether the values of ``lines`` are all the same short text. False: unknown."""
        return self.pieces.all_same(2 * lines + 1)


Lines: TypeAlias = AlikeLines | MixedLines


@dataclass(slots=True)
class _Block:
    """The header blocks of all frames, one after the other, and the positions of their lines."""

    data: Uint8s
    starts: Ints
    """Line × (name, value)."""
    ends: Ints
    """Line × (name, value). A line without a colon is a name only: its value begins after its end."""
    first: Ints
    alike: bool
    faults: list[Fault]

    def piece(self, line: int, side: int) -> bytes:
        return bytes(self.data[self.starts[line, side] : self.ends[line, side]])

    def name(self, line: int, number: int) -> str:
        return shown_name(self.piece(line, _NAME).decode(errors="replace"), number)

    def blame(self, lines: Ints, reason: Callable[[int, int], str]) -> None:
        """Add a fault for each of ``lines``, which are in order, up to the limit of a frame.

        ``reason`` is called with a line and its number in the frame.
        """
        rows = np.searchsorted(self.first, lines, "right") - 1
        # A header block may have a million bad lines.
        shown = np.arange(len(lines)) - np.searchsorted(rows, rows) <= MAX_FAULTS_SHOWN
        for row, line in zip(rows[shown].tolist(), lines[shown].tolist(), strict=True):
            self.faults.append(Fault(row, line, reason(line, line - int(self.first[row]) + 1)))


def split_lines(frames: FrameBounds) -> Lines:
    """Read every header line. A line without a colon is left out, and is a fault."""
    heads = strings_at(frames.raw, frames.starts + COMMAND_LENGTH, frames.heads + 1)
    buffer, limits = contents(heads)
    data: Uint8s = np.frombuffer(buffer, np.uint8)[: limits[-1]]
    alike = _as_in_first(data, limits)
    ascii_only = _is_ascii(data)
    if alike is not None and ascii_only and _is_plain(data):
        names, ends = alike
        return AlikeLines(buffer, np.append(np.int32(-1), ends), list(names), np.arange(len(frames) + 1) * len(names))
    block = _block(data, limits, None if alike is None else _separators_of(*alike))
    whole = block.starts[:, _VALUE] <= block.ends[:, _VALUE]
    if _holds(block.data, _CR):
        _trim_cr(block)
    if _holds(block.data, _BACKSLASH):
        _undo_escapes(block, whole)
    buffer = pa.py_buffer(block.data)
    if not (ascii_only or is_utf8(strings_at(buffer, np.array([0]), np.array([len(block.data)])))):
        buffer = _replace_wrong_utf8(block, whole)
    if not whole.all():
        _leave_out(block, whole)
    pieces = Pieces(buffer, block.starts.ravel(), block.ends.ravel())
    return MixedLines(pieces, block.first, block.alike, block.faults)


def _block(data: Uint8s, limits: Ints, of_first: Ints | None) -> _Block:
    ends = _separators(data) if of_first is None else of_first
    starts = np.empty_like(ends)
    starts.ravel()[:1] = 0
    np.add(ends.ravel()[:-1], 1, out=starts.ravel()[1:])
    return _Block(data, starts, ends, _first_lines(ends[:, _VALUE], limits), of_first is not None, [])


def _first_lines(line_ends: Ints, limits: Ints) -> Ints:
    """The number of lines before each limit. No search is needed if all frames have the same number of lines."""
    frames = len(limits) - 1
    width = len(line_ends) // frames
    if width * frames == len(line_ends) and width and (line_ends[width - 1 :: width] + 1 == limits[1:]).all():
        return np.arange(frames + 1) * width
    return np.searchsorted(line_ends, limits)


def _as_in_first(data: Uint8s, limits: Ints) -> tuple[list[bytes], Ints] | None:
    """The names of the first frame and the LF of each line, if every frame has these names in this order; else None."""
    frames = len(limits) - 1
    names = _names(data, limits, 0)
    # In mixed layouts neighbours mostly differ, so this check is cheap.
    if not names or _names(data, limits, min(1, frames - 1)) != names or _names(data, limits, frames - 1) != names:
        return None
    ends = _positions(data, _LF)
    if len(ends) != frames * len(names) or (ends[len(names) - 1 :: len(names)] + 1 != limits[1:]).any():
        return None
    begins = limits[:-1]
    for name, of_line in zip(names, ends.reshape(frames, len(names)).T, strict=True):
        if not all_begin_with(name, data, begins):
            return None
        begins = of_line.astype(np.int64) + 1
    return names, ends


def _separators_of(names: list[bytes], ends: Ints) -> Ints:
    """The result of ``_separators`` for lines with these names."""
    found = np.empty((len(ends), 2), np.int32)
    found[:, 1] = ends
    found[0, 0] = -1
    found[1:, 0] = ends[:-1]
    found[:, 0] += np.tile(np.fromiter(map(len, names), np.int32, len(names)), len(ends) // len(names))
    return found


def _names(data: Uint8s, limits: Ints, frame: int) -> list[bytes] | None:
    """The names of one frame."""
    return _names_in(bytes(data[limits[frame] : limits[frame + 1]]))


def _names_in(headers: bytes) -> list[bytes] | None:
    """The names of header lines, each with its colon; None if a line has no colon."""
    names = [line[: line.find(b":") + 1] for line in headers.split(b"\n")[:-1]]
    return names if all(names) else None


def _separators(data: Uint8s) -> Ints:
    """The positions of the first colon and the LF of every line; twice the LF if there is no colon."""
    # One pass finds both, because they differ in two bits only; * and 0x1a share the other six bits with them.
    found = _positions(data, _COLON & _LF, _SHARED_BITS)
    if len(found) % 2 == 0 and (data[found].view("<u2") == _COLON_LF).all():
        return found.reshape(-1, 2)
    ends = np.flatnonzero(data == _LF)
    colons = np.append(np.flatnonzero(data == _COLON), len(data))
    starts = np.concatenate(([0], ends + 1))[:-1]
    first_colons = np.minimum(colons[np.searchsorted(colons, starts)], ends)
    return np.stack((first_colons, ends), axis=1).astype(np.int32)


def _positions(data: Uint8s, wanted: int, bits: int = _ALL_BITS) -> Ints:
    """The positions of the bytes whose ``bits`` are those of ``wanted``."""
    found = [np.empty(0, np.int32)]
    for begin in range(0, len(data), _PASS):
        matching = (data[begin : begin + _PASS] & bits) == wanted
        found.append(np.flatnonzero(matching).astype(np.int32) + np.int32(begin))
    return np.concatenate(found)


def _holds(data: Uint8s, wanted: int) -> bool:
    return any((data[begin : begin + _PASS] == wanted).any() for begin in range(0, len(data), _PASS))


def _trim_cr(block: _Block) -> None:
    # STOMP 1.2 "Frames": EOL is an optional CR and a LF.
    starts, ends = block.starts[:, _VALUE], block.ends[:, _VALUE]
    block.ends[:, _VALUE] -= (starts < ends) & (block.data[ends - 1] == _CR)


def _undo_escapes(block: _Block, whole: Mask) -> None:
    """Replace each escape by one byte, and move the positions of lines. An undefined escape stays, and is a fault."""
    block.data, removed, slashes = unescape_buffer(block.data)
    undefined = np.unique(np.searchsorted(block.ends.ravel(), slashes) // 2)
    piece = np.searchsorted(block.ends.ravel(), removed)
    gone = np.bincount(piece, minlength=block.ends.size).astype(np.int32)
    until = np.cumsum(gone, dtype=np.int32)
    block.starts -= (until - gone).reshape(-1, 2)
    block.ends -= until.reshape(-1, 2)
    block.blame(
        undefined[whole[undefined]],
        lambda line, number: f"header {block.name(line, number)} holds an escape that STOMP 1.2 does not define",
    )


def _replace_wrong_utf8(block: _Block, whole: Mask) -> pa.Buffer:
    """Append a readable copy of each line that is not UTF-8, and move the positions of its name and value there."""
    lines = np.searchsorted(block.ends[:, _VALUE], np.flatnonzero(block.data >= _NOT_ASCII))
    suspects = np.unique(lines)
    suspects = suspects[whole[suspects]]
    pieces = [[block.piece(line, side) for side in (_NAME, _VALUE)] for line in suspects.tolist()]
    fixed = [[piece.decode(errors="replace").encode() for piece in pair] for pair in pieces]
    wrong = np.array([before != after for before, after in zip(pieces, fixed, strict=True)], np.bool_)
    block.blame(suspects[wrong], lambda line, number: f"header {block.name(line, number)} is not valid UTF-8")
    readable = bytearray(block.data)
    for line, pair in zip(suspects[wrong].tolist(), compress(fixed, wrong), strict=True):
        for side, piece in enumerate(pair):
            block.starts[line, side] = len(readable)
            readable += piece
            require_offsets(len(readable))
            block.ends[line, side] = len(readable)
    return pa.py_buffer(readable)


def _leave_out(block: _Block, whole: Mask) -> None:
    if (block.starts[~whole, _NAME] == block.ends[~whole, _NAME]).any():
        raise wrong_index()  # the headers end before the position in the index
    block.blame(np.flatnonzero(~whole), lambda _, number: f"header line {number} has no colon")
    block.starts, block.ends = block.starts[whole], block.ends[whole]
    block.first = np.concatenate(([0], np.cumsum(whole)))[block.first]


# --- the lines with some names ----------------------------------------------------------------------

# A read of a few columns needs a few lines of frames of one layout. The other lines are neither read nor checked: that
# each of them is none of the wanted ones is known from one byte of its name.

_AROUND = 3
"""The LFs of a frame beside those of its header lines: after the command, of the blank line, and at the end."""
_WORD = 8
_MOST_LINES = 64
"""In a frame with more lines, the choice of the bytes to compare takes longer than to read all lines."""
_UNUSUAL = frozenset("\\:\r\n")


class _LineEnds(NamedTuple):
    """Where each line of frames with the same number of lines ends."""

    buffer: pa.Buffer
    data: Uint8s
    limits: Int64s
    """Frame × LF: first that before the first line, then that of each line."""


class _Comparison(NamedTuple):
    """The bytes by which a line that is not wanted differs from each wanted one."""

    column: int
    offset: int
    """The distance of the byte from the beginning of the line."""
    byte: int


def wanted_lines(frames: FrameBounds, wanted: Collection[str]) -> AlikeLines | None:
    """Return the lines with the names ``wanted``, if each frame has them at the places at which the first frame has
    them.

    None if that is unknown. Whether the values are ASCII without escapes is checked when they are read
    (``NotPlainError``).
    """
    if any(not name.isascii() or not _UNUSUAL.isdisjoint(name) for name in wanted):
        return None  # a header can have such a name in several spellings
    names = _names_of_first(frames)
    if names is None or len(names) > _MOST_LINES:
        return None
    found = _in_place(frames, len(names)) or _copied(frames, len(names))
    if found is None:
        return None
    whole, parts = _comparisons(tuple(names), frozenset(name.encode() + b":" for name in wanted))
    return _lines(found, names, whole) if _are_alike(found, names, whole, parts) else None


def _names_of_first(frames: FrameBounds) -> list[bytes] | None:
    """The names of the first frame, each with its colon, if a line has one and the last frame has as many lines."""
    first, last = (
        bytes(memoryview(frames.raw)[int(frames.starts[row]) + COMMAND_LENGTH : int(frames.heads[row]) + 1])
        for row in (0, -1)
    )
    names = _names_in(first)
    if not names or last.count(b"\n") != len(names) or len(last) < _WORD:
        return None
    return names


def _in_place(frames: FrameBounds, width: int) -> _LineEnds | None:
    """Search the frames as they lie in the block, if the bodies are short and have no LF; else None."""
    data: Uint8s = np.frombuffer(frames.raw, np.uint8)
    heads = int((frames.heads - frames.starts).sum())
    each = width + _AROUND
    one = data[frames.starts[0] : frames.ends[0]]
    if data.size > 2 * heads or np.count_nonzero(one == _LF) != each:
        return None
    found = _line_feeds(data)
    if len(found) != each * len(frames):
        return None
    limits = found.reshape(len(frames), each)
    alike = (limits[:, 0] == frames.starts + (COMMAND_LENGTH - 1)).all() and (limits[:, width] == frames.heads).all()
    return _LineEnds(frames.raw, data, limits) if alike else None


def _copied(frames: FrameBounds, width: int) -> _LineEnds | None:
    """Search the headers alone."""
    begins = frames.starts + (COMMAND_LENGTH - 1)  # with the LF of the command
    buffer, bounds = contents(strings_at(frames.raw, begins, frames.heads + 1))
    data: Uint8s = np.frombuffer(buffer, np.uint8)[: bounds[-1]]
    found = _line_feeds(data)
    if len(found) != (width + 1) * len(frames):
        return None
    limits = found.reshape(len(frames), width + 1)
    return _LineEnds(buffer, data, limits) if (limits[:, 0] == bounds[:-1]).all() else None


_FEEDS_PASS = _PASS >> 1
"""Less than ``_PASS``, because a position takes 64 bits here."""


def _line_feeds(data: Uint8s) -> Int64s:
    found = []
    for begin in range(0, len(data), _FEEDS_PASS):
        at = np.flatnonzero(data[begin : begin + _FEEDS_PASS] == _LF)
        at += begin
        found.append(at)
    return np.concatenate(found)


@lru_cache(maxsize=64)
def _comparisons(names: tuple[bytes, ...], wanted: frozenset[bytes]) -> tuple[list[int], list[_Comparison]]:
    """The lines that are wanted, and the bytes that show of each other line that it is not."""
    last = len(names) - 1  # a broker's rule for bodies may ask which header is the last one
    whole = [column for column, name in enumerate(names) if name in wanted or column == last]
    parts = [
        _Comparison(column, offset, name[offset])
        for column, name in enumerate(names)
        if column not in whole
        for offset in _distinguishing(name, wanted)
    ]
    return whole, parts


def _distinguishing(name: bytes, others: Collection[bytes]) -> list[int]:
    """Offsets such that the name differs from each of the others at one of them. A name has its colon at the end."""
    left, found = set(others), list[int]()
    while left:
        differing = [{other for other in left if at < len(other) and other[at] != name[at]} for at in range(len(name))]
        best = max(range(len(name)), key=lambda at: len(differing[at]))
        found.append(best)
        left -= differing[best]
    return found


def _are_alike(found: _LineEnds, names: list[bytes], whole: list[int], parts: list[_Comparison]) -> bool:
    """Return whether each frame has the wanted names where the first one has them, and on no other line."""
    before = found.limits[:, : len(names)]
    if parts:
        places = before[:, [part.column for part in parts]]
        places += np.array([1 + part.offset for part in parts])
        if places.max() >= len(found.data):
            return False
        if (found.data[places] != np.array([part.byte for part in parts], np.uint8)).any():
            return False
    return all(all_begin_with(names[column], found.data, before[:, column] + 1) for column in whole)


def _lines(found: _LineEnds, names: list[bytes], whole: list[int]) -> AlikeLines:
    known = [name if column in whole else None for column, name in enumerate(names)]
    frames, limits = found.limits.shape
    first = np.arange(frames + 1) * len(names)
    return AlikeLines(found.buffer, found.limits.ravel(), known, first, limits - len(names), is_plain=False)
