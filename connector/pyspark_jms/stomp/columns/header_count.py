"""Frames with very many headers → frames whose headers can be read in columns.

Each header line takes sixty bytes of memory and a step of numpy. Does not know bodies.
"""

import re
from itertools import islice

import numpy as np

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.columns.strings import Uint8s
from pyspark_jms.jms.subscription import too_many
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["with_few_headers"]

_COMMAND = b"MESSAGE\n"
_END = b"\0\n"
_LF = 10
_KEPT_ROLES = ("@message-id", "@destination")


def with_few_headers(frames: FrameBounds, dialect: Dialect, most: int) -> tuple[FrameBounds, dict[int, str]]:
    """In the place of each frame with more than ``most`` headers, one with those that have a column of their own.

    The body of such a frame is the whole frame that the broker sent. Returns the reason for each of them, too.
    """
    view: Uint8s = np.frombuffer(frames.raw, np.uint8)
    long = np.flatnonzero(frames.heads - frames.starts > most)  # a line has a byte at least
    many = [row for row in long.tolist() if _headers(view, frames, row) > most]
    if not many:
        return frames, {}
    names = [name for name, role in dialect.message_headers.items() if role[0] != "@" or role in _KEPT_ROLES]
    wanted = re.compile(rb"^(?:%s):[^\n]*\n" % b"|".join(re.escape(name.encode()) for name in names), re.MULTILINE)
    reason = f"the message has {too_many('headers', most)}"
    return _replaced(frames, set(many), wanted, most), dict.fromkeys(many, reason)


def _headers(view: Uint8s, frames: FrameBounds, row: int) -> int:
    return int(np.count_nonzero(view[frames.starts[row] + len(_COMMAND) : frames.heads[row] + 1] == _LF))


def _replaced(frames: FrameBounds, rows: set[int], wanted: re.Pattern[bytes], most: int) -> FrameBounds:
    data, heads, ends = bytearray(), [], []
    raw = memoryview(frames.raw)
    places = zip(frames.starts.tolist(), frames.heads.tolist(), frames.ends.tolist(), strict=True)
    for row, (start, head, end) in enumerate(places):
        begin = len(data)
        if row in rows:
            lines = wanted.finditer(raw, start + len(_COMMAND), head + 1)
            data += _COMMAND
            for line in islice(lines, most):
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
