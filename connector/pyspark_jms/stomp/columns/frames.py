"""A block and its index, checked against its bytes. Knows where a frame ends, not what it means."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock, positions_of
from pyspark_jms.columns.strings import Ints, Uint8s, require_offsets
from pyspark_jms.errors import IllegalStateError

__all__ = ["FrameBounds", "wrong_index"]

_COMMAND = b"MESSAGE\n"
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


def wrong_index() -> IllegalStateError:
    return IllegalStateError(
        "The index of a block does not fit its bytes.", "This is a fault of pyspark-jms: report it."
    )


def _in_order(size: int, start: Ints, head: Ints, end: Ints) -> bool:
    if len(head) != len(end) or not len(end):
        return len(head) == len(end) and not size
    # No sum below overflows: what could is beyond the size.
    if end[-1] != size or (head > size).any() or (end > size).any():
        return False
    return bool(((head >= start + len(_COMMAND) - 1) & (end >= head + 4)).all())


def _framed(view: Uint8s, start: Ints, head: Ints, end: Ints) -> bool:
    if not len(end):
        return True
    words = np.ndarray((len(view) - 7,), "<u8", view.data, strides=(1,))
    blank = (view[head] == _LF) & (view[head + 1] == _LF)
    closed = (view[end - 2] == 0) & (view[end - 1] == _LF)
    return bool((words[start] == _COMMAND_WORD).all() and blank.all() and closed.all())
