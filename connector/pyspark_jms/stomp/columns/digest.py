"""The SEND frames of a task in, one short text out that is the same for the same rows in any order.

Does not know columns, ledgers and what a difference means.

The digest, version 1, of frames f1 … fn: each frame's SHA-256, its NUL excluded, is read as four little-endian
64-bit numbers; these are added up over all frames, modulo 2**64 each; the 32 bytes of the sums and n as eight
more are hashed once again, and the first 16 bytes are shown in hexadecimal, after ``1-``. Batches, buffers and the
order of rows leave no trace; a row that comes twice counts twice.

What a frame holds that is not the row's must be the same at every attempt: the transaction has a constant name,
and a frame that holds a time counted from now is digested as it would be at the epoch (``counts_from_now``).
"""

import hashlib
from collections.abc import Iterable
from operator import methodcaller

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock, positions_of
from pyspark_jms.columns.send_defaults import SendDefaults
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["RowsDigest", "counts_from_now"]

_VERSION = "1"
_SHOWN_BYTES = 16
_LANES = 4  # of 64 bits, in a SHA-256
_digest_of = methodcaller("digest")


class RowsDigest:
    """``add`` what ``encode`` made of each batch; ``text`` is the digest of all of it so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._sums = np.zeros(_LANES, np.uint64)

    def add(self, blocks: Iterable[MessageBlock]) -> None:
        for block in blocks:
            self.rows += len(block)
            nuls = (positions_of(block.ends) - 1).tolist()
            frames = map(memoryview(block.data).__getitem__, map(slice, [0, *block.ends[:-1]], nuls))
            digests = b"".join(map(_digest_of, map(hashlib.sha256, frames)))
            self._sums += np.frombuffer(digests, "<u8").reshape(-1, _LANES).sum(axis=0, dtype=np.uint64)

    def text(self) -> str:
        totals = self._sums.astype("<u8").tobytes() + self.rows.to_bytes(8, "little")
        return f"{_VERSION}-{hashlib.sha256(totals).digest()[:_SHOWN_BYTES].hex()}"


def counts_from_now(schema: pa.Schema, dialect: Dialect, defaults: SendDefaults) -> bool:
    """Whether frames of these columns and defaults may hold a time that was counted from the time of encoding."""
    columns = {name.lower() for name in schema.names}
    headers = dialect.send_headers
    delays = headers.delivery_delay is None and (defaults.delivery_delay_ms or "delivery_delay" in columns)
    times = headers.delivery_time is None and "jmsdeliverytime" in columns
    return bool(defaults.time_to_live_ms or "time_to_live" in columns or delays or times)
