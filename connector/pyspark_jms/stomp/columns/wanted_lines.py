"""Frames of one layout → the header lines with some names; the other lines are neither read nor checked.

A read of a few columns needs a few lines. That each other line is none of them is known from one byte of its name.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.strings import Int64s, Uint8s, all_begin_with, contents, strings_at
from pyspark_jms.stomp.columns.frames import COMMAND_LENGTH, FrameBounds
from pyspark_jms.stomp.columns.lines import AlikeLines

__all__ = ["wanted_lines"]

_LF = 10
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
    """The lines with the names ``wanted``, if each frame has them at the places at which the first frame has them.

    None: unknown. Whether the values are ASCII without escapes is checked when they are read (``NotPlainError``).
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
    lines = first.split(b"\n")[:-1]
    names = [line[: line.find(b":") + 1] for line in lines]
    if not names or not all(names) or last.count(b"\n") != len(names) or len(last) < _WORD:
        return None
    return names


# --- line ends --------------------------------------------------------------------------------------


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


_PASS = 1 << 16
"""The number of bytes that are searched at once: the results stay in the cache."""


def _line_feeds(data: Uint8s) -> Int64s:
    found = []
    for begin in range(0, len(data), _PASS):
        at = np.flatnonzero(data[begin : begin + _PASS] == _LF)
        at += begin
        found.append(at)
    return np.concatenate(found)


# --- names ------------------------------------------------------------------------------------------


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
    """Whether each frame has the wanted names where the first one has them, and no other line has one of them."""
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
