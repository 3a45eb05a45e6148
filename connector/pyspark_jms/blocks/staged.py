"""A part of a block ↔ bytes that another message can carry: whole messages, and where they came from. Pure.

The bytes are the number of messages, the size of each, the names of the source and of the dialect, and the messages as
they came. What is decoded is the block that was encoded, without the ids by which it was acknowledged.
"""

import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pyspark_jms.blocks.block import ByteArray, MessageBlock, index_of, positions_of
from pyspark_jms.blocks.fit import cuts

__all__ = ["STAGED_BYTES", "Packed", "StagedBlock", "pack", "pieces_of", "unpack"]

STAGED_BYTES = 80_000
"""Messages of one staged block, if there is more than one. With their sizes the block stays below 100 KiB, from which
on Artemis keeps a message in a file of its own (amqpMinLargeMessageSize).
"""
_MAX_MESSAGES = 4_000

Packed: TypeAlias = tuple[bytes, ByteArray]
"""A staged block in two pieces: what precedes the messages, and the bytes of the messages, which are not copied."""

_MAGIC = b"jms1"
_HEAD = struct.Struct(">4sIHH")
_SIZE_TYPE = np.dtype(">u4")


@dataclass(frozen=True, slots=True, repr=False)
class StagedBlock:
    """Messages of one source, in the order in which they were received."""

    source: str
    """The destination, as ``Destination`` spells it."""

    dialect: str
    messages: MessageBlock

    def __len__(self) -> int:
        return len(self.messages)


def pieces_of(block: MessageBlock) -> list[tuple[int, int]]:
    """The parts of a block that are staged as one message each. A large message is a part of its own."""
    begins = [0, *cuts(block.ends, STAGED_BYTES)]
    ends = [*begins[1:], len(block)]
    return [
        (at, min(at + _MAX_MESSAGES, end))
        for begin, end in zip(begins, ends, strict=True)
        for at in range(begin, end, _MAX_MESSAGES)
    ]


def pack(block: MessageBlock, first: int, last: int, *, source: str, dialect: str) -> Packed:
    """Messages ``first`` to ``last`` (not included): their bytes must not change until the block is sent."""
    part = block.slice(first, last)
    names = source.encode(), dialect.encode()
    sizes = np.diff(positions_of(part.ends), prepend=0).astype(_SIZE_TYPE)
    head = _HEAD.pack(_MAGIC, len(part), *map(len, names))
    return b"".join((head, *names, sizes.tobytes())), part.data


def unpack(data: ByteArray) -> StagedBlock:
    """``ValueError`` for bytes that ``pack`` did not make."""
    try:
        magic, count, source_bytes, dialect_bytes = _HEAD.unpack_from(data)
    except struct.error:
        raise ValueError("the bytes are too few") from None
    begin = _HEAD.size + source_bytes + dialect_bytes
    view, sizes_end = memoryview(data), begin + count * _SIZE_TYPE.itemsize
    if magic != _MAGIC or len(view) < sizes_end:
        raise ValueError("the bytes do not begin as a staged block does")
    ends = np.cumsum(np.frombuffer(view[begin:sizes_end], _SIZE_TYPE).astype(np.int64))
    if len(view) - sizes_end != (int(ends[-1]) if count else 0):
        raise ValueError("the messages have another size than the block states")
    names = bytes(view[_HEAD.size : begin])
    return StagedBlock(
        source=names[:source_bytes].decode(),
        dialect=names[source_bytes:].decode(),
        messages=MessageBlock(view[sizes_end:], ends=index_of(ends)),
    )
