"""A block and its index, checked against its bytes. Knows where a frame ends, not what it means."""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Self

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock, index_of, positions_of, wrong_index
from pyspark_jms.columns.arrays import Ints, Mask, Uint8s, require_offsets, strings_at
from pyspark_jms.jms.subscription import MAX_ELEMENTS, too_many
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = [
    "COMMAND_LENGTH",
    "FrameBounds",
    "with_few_headers",
]

_COMMAND = b"MESSAGE\n"
COMMAND_LENGTH = len(_COMMAND)
"""The bytes before the first header line."""

_COMMAND_WORD = np.uint64(int.from_bytes(_COMMAND, "little"))
_LF = 10


@dataclass(frozen=True, slots=True)
class FrameBounds:
    """Where each MESSAGE frame of a block has its parts: ``MESSAGE LF headers LF body NUL LF``, one after the other."""

    raw: pa.Buffer
    starts: Ints
    heads: Ints
    """The first LF of the blank line, which is also the LF that ends the last header."""
    ends: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def body_starts(self) -> Ints:
        return self.heads + 2

    @property
    def body_ends(self) -> Ints:
        return self.ends - 2

    def bodies(self, keep: Mask) -> pa.Array:
        """The bodies of some frames as strings, null for the others."""
        return strings_at(self.raw, self.body_starts, self.body_ends, keep)

    def bodies_of(self, rows: Ints) -> pa.Array:
        """The bodies of these frames as binary."""
        return strings_at(self.raw, self.body_starts[rows], self.body_ends[rows]).view(pa.binary())

    @classmethod
    def of(cls, block: MessageBlock) -> Self:
        """The block's index, once the bytes bear it out; else ``IllegalStateError``."""
        raw = pa.py_buffer(block.data)
        require_offsets(raw.size)
        head, end = positions_of(block.heads), positions_of(block.ends)
        start = np.concatenate(([0], end))[:-1]
        view: Uint8s = np.frombuffer(raw, np.uint8)
        if not (_in_order(raw.size, start, head, end) and _framed(view, start, head, end)):
            raise wrong_index()
        return cls(raw, start, head, end)


def _in_order(size: int, start: Ints, head: Ints, end: Ints) -> bool:
    if len(head) != len(end) or not len(end):
        return len(head) == len(end) and not size
    # No sum below overflows: what could is beyond the size.
    if end[-1] != size or (head > size).any() or (end > size).any():
        return False
    return bool(((head >= start + COMMAND_LENGTH - 1) & (end >= head + 4)).all())


def _framed(view: Uint8s, start: Ints, head: Ints, end: Ints) -> bool:
    if not len(end):
        return True
    words = np.ndarray((len(view) - 7,), "<u8", view.data, strides=(1,))
    blank = (view[head] == _LF) & (view[head + 1] == _LF)
    closed = (view[end - 2] == 0) & (view[end - 1] == _LF)
    return bool((words[start] == _COMMAND_WORD).all() and blank.all() and closed.all())


# --- frames with very many headers ------------------------------------------------------------------

# Each header line takes sixty bytes of memory and a step of numpy, so a frame with very many of them is read without
# the properties.

_END = b"\0\n"
_KEPT_ROLES = ("@message-id", "@destination")


def with_few_headers(frames: FrameBounds, dialect: Dialect) -> tuple[FrameBounds, dict[int, str]]:
    """Replace each frame with more than ``MAX_ELEMENTS`` headers by one with those that have their own column.

    The body of such a frame is the whole frame that the broker sent. Returns the reason for each of them, too.
    """
    view: Uint8s = np.frombuffer(frames.raw, np.uint8)
    long = np.flatnonzero(frames.heads - frames.starts > MAX_ELEMENTS)  # a line has a byte at least
    many = [row for row in long.tolist() if _headers(view, frames, row) > MAX_ELEMENTS]
    if not many:
        return frames, {}
    names = [name for name, role in dialect.message_headers.items() if role[0] != "@" or role in _KEPT_ROLES]
    wanted = re.compile(rb"^(?:%s):[^\n]*\n" % b"|".join(re.escape(name.encode()) for name in names), re.MULTILINE)
    reason = f"the message has {too_many('headers')}"
    return _replaced(frames, set(many), wanted), dict.fromkeys(many, reason)


def _headers(view: Uint8s, frames: FrameBounds, row: int) -> int:
    return int(np.count_nonzero(view[frames.starts[row] + COMMAND_LENGTH : frames.heads[row] + 1] == _LF))


def _replaced(frames: FrameBounds, rows: set[int], wanted: re.Pattern[bytes]) -> FrameBounds:
    data, heads, ends = bytearray(), [], []
    raw = memoryview(frames.raw)
    places = zip(frames.starts.tolist(), frames.heads.tolist(), frames.ends.tolist(), strict=True)
    for row, (start, head, end) in enumerate(places):
        begin = len(data)
        if row in rows:
            lines = wanted.finditer(raw, start + COMMAND_LENGTH, head + 1)
            data += _COMMAND
            for line in islice(lines, MAX_ELEMENTS):
                data += line[0]
            heads.append(len(data) - 1)
            data += b"\n"
            data += raw[start : end - len(_END)]
            data += _END
        else:
            heads.append(begin + head - start)
            data += raw[start:end]
        ends.append(len(data))
    return FrameBounds.of(MessageBlock(bytes(data), index_of(np.array(heads)), index_of(np.array(ends))))
