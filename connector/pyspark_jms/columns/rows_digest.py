"""The messages of a task in, one short text out that is the same for the same rows in any order.

Refuses to know columns, protocols, ledgers and what a difference means.

The digest of messages m1 … mn: each message's SHA-256 is read as four little-endian
64-bit numbers; these are added up over all messages, modulo 2**64 each; the 32 bytes of the sums and n as eight more
are hashed once again, and the first 16 bytes are shown in hexadecimal, after the version of the protocol's messages and
``-``. Batches, buffers and the order of rows leave no trace; a duplicate row counts again.

What a message holds that is not the row's must be the same at every attempt, or be left out.
"""

import hashlib
from collections.abc import Iterable
from operator import methodcaller

import numpy as np

from pyspark_jms.blocks.block import MessageBlock, positions_of

__all__ = ["RowsDigest"]

_SHOWN_BYTES = 16
_LANES = 4  # of 64 bits, in a SHA-256
_digest_of = methodcaller("digest")


class RowsDigest:
    """``add`` what ``encode`` made of each batch; ``text`` is the digest of all of it so far."""

    def __init__(self, version: str) -> None:
        self.rows = 0
        self._version = version
        self._sums = np.zeros(_LANES, np.uint64)

    def add(self, blocks: Iterable[MessageBlock]) -> None:
        for block in blocks:
            self.rows += len(block)
            ends = positions_of(block.ends).tolist()
            messages = map(memoryview(block.data).__getitem__, map(slice, [0, *block.ends[:-1]], ends))
            digests = b"".join(map(_digest_of, map(hashlib.sha256, messages)))
            self._sums += np.frombuffer(digests, "<u8").reshape(-1, _LANES).sum(axis=0, dtype=np.uint64)

    def text(self) -> str:
        totals = self._sums.astype("<u8").tobytes() + self.rows.to_bytes(8, "little")
        return f"{self._version}-{hashlib.sha256(totals).digest()[:_SHOWN_BYTES].hex()}"
