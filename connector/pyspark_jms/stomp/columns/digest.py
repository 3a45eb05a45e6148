"""The SEND frames of a task in, one short text out that is the same for the same rows in any order.

Knows where a frame ends; refuses to know columns, ledgers and what a difference means.

The digest, version 1, of frames f1 … fn: each frame's SHA-256, its NUL excluded, is read as four little-endian
64-bit numbers; these are added up over all frames, modulo 2**64 each; the 32 bytes of the sums and n as eight
more are hashed once again, and the first 16 bytes are shown in hexadecimal, after ``1-``. Batches, buffers and the
order of rows leave no trace; a row that comes twice counts twice.

What a frame holds that is not the row's must be the same at every attempt: the transaction has a constant name,
and a frame that holds a time counted from now is digested as it would be at the epoch (``counts_from_now``).
"""

import hashlib
from collections.abc import Sequence
from operator import methodcaller

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import Int64s
from pyspark_jms.stomp.columns.encode_headers import SendDefaults
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["RowsDigest", "counts_from_now"]

_VERSION = "1"
_SHOWN_BYTES = 16
_LANES = 4  # of 64 bits, in a SHA-256

_BLANK_LINE = b"\n\n"
_CONTENT_LENGTH = b"\ncontent-length:"
_BEGIN = np.frombuffer(b"SEND\n", np.uint8)
_digest_of = methodcaller("digest")


class RowsDigest:
    """``add`` what ``encode`` made of each batch; ``text`` is the digest of all of it so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._sums = np.zeros(_LANES, np.uint64)

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        """Whole SEND frames, ``rows`` of them in all."""
        self.rows += rows
        for buffer, ends in zip(buffers, _frame_ends(buffers, rows), strict=True):
            starts = [0, *(ends[:-1] + 1).tolist()]
            frames = map(buffer.__getitem__, map(slice, starts, ends.tolist()))
            digests = b"".join(map(_digest_of, map(hashlib.sha256, frames)))
            self._sums += np.frombuffer(digests, "<u8").reshape(-1, _LANES).sum(axis=0, dtype=np.uint64)

    def text(self) -> str:
        octets = self._sums.astype("<u8").tobytes() + self.rows.to_bytes(8, "little")
        return f"{_VERSION}-{hashlib.sha256(octets).digest()[:_SHOWN_BYTES].hex()}"


def counts_from_now(schema: pa.Schema, dialect: Dialect, defaults: SendDefaults) -> bool:
    """Whether frames of these columns and defaults may hold a time that was counted from the time of encoding."""
    columns = {name.lower() for name in schema.names}
    headers = dialect.send_headers
    delays = headers.delivery_delay is None and (defaults.delivery_delay_ms or "delivery_delay" in columns)
    times = headers.delivery_time is None and "jmsdeliverytime" in columns
    return bool(defaults.time_to_live_ms or "time_to_live" in columns or delays or times)


# --- where frames end ----------------------------------------------------------------------------------


def _frame_ends(buffers: Sequence[memoryview], rows: int) -> list[Int64s]:
    """The position of each frame's NUL.

    Every frame ends in a NUL before SEND or the buffer's end. A body may hold the same bytes: when there are more
    of them than rows, and only then, the frames are walked through one by one.
    """
    ends = [_nuls_before_send(buffer) for buffer in buffers]
    if sum(map(len, ends)) != rows:
        ends = [_walked(bytes(buffer)) for buffer in buffers]
        assert sum(map(len, ends)) == rows, "a buffer holds other frames than were announced"
    return ends


def _nuls_before_send(buffer: memoryview) -> Int64s:
    octets = np.frombuffer(buffer, np.uint8)
    nuls = np.flatnonzero(octets == 0)
    follows = nuls[nuls < len(octets) - len(_BEGIN)]
    begins = np.ones(len(follows), np.bool_)
    for place, byte in enumerate(_BEGIN, 1):
        begins &= octets[follows + place] == byte
    return np.concatenate([follows[begins], nuls[nuls == len(octets) - 1]])


def _walked(octets: bytes) -> Int64s:
    ends, start = [], 0
    while start < len(octets):
        head = octets.index(_BLANK_LINE, start)
        at = octets.find(_CONTENT_LENGTH, start, head)
        if at < 0:
            end = octets.index(b"\0", head + len(_BLANK_LINE))
        else:
            at += len(_CONTENT_LENGTH)
            line_end = octets.index(b"\n", at)
            end = head + len(_BLANK_LINE) + int(octets[at:line_end])
        ends.append(end)
        start = end + 1
    return np.array(ends, np.int64)
