"""Messages of a block ↔ bytes that other messages can carry: whole messages, and where they came from. Pure.

The bytes are the number of messages, the size of each, the names of the source and of the dialect, and the messages as
they came, compressed if that saves a quarter. What is decoded is the block that was encoded, without the ids by which
it was acknowledged.
"""

import struct
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import ByteArray, MessageBlock, StagedBlock, index_of, part_starts, positions_of

__all__ = ["Packed", "pack_all", "unpack"]

# --- LZ4 --------------------------------------------------------------------------------------------

_LZ4 = pa.Codec("lz4")


def compress(data: ByteArray) -> bytes:
    """An LZ4 frame."""
    return bytes(_LZ4.compress(data, asbytes=True))


def compressed_share(sample: ByteArray) -> float:
    """Return what compression leaves of the bytes: 0.25 is a quarter. About 1, if they cannot be compressed."""
    return len(compress(sample)) / len(sample) if len(sample) else 1.0


def decompress(data: ByteArray, size: int) -> bytes:
    """``ValueError`` for bytes that are not the frame of so many bytes. Never makes many more than these."""
    if not len(data):
        raise ValueError("the bytes are not an LZ4 frame: there are none")  # a stream takes them for one of no bytes
    try:
        # As a stream: the codec's own function does not return the original size.
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "lz4") as stream:
            found = bytes(stream.read(size + 1))
    except OSError as error:
        raise ValueError(f"the bytes are not an LZ4 frame: {error}") from None
    if len(found) != size:
        raise ValueError("the LZ4 frame has another size than is stated")
    return found


STAGED_BYTES = 80_000
"""Bytes of the messages of one staged block, if there is more than one. With their sizes the block stays below 100 KiB,
from which on Artemis keeps a message in a file of its own (amqpMinLargeMessageSize).
"""
_MOST_BYTES = 4 * STAGED_BYTES
"""Of the messages of a compressed block, before they are compressed: what a reader makes of it has a limit."""
_MAX_SHARE = 0.75
_MAX_MESSAGES = 4_000

Packed: TypeAlias = tuple[bytes, ByteArray]
"""A staged block in two pieces: what precedes the messages, and their bytes, which are compressed or not copied."""

_PLAIN, _COMPRESSED = b"jms1", b"jms2"
_HEAD = struct.Struct(">4sIHH")
_SIZE_TYPE = np.dtype(">u4")


def pack_all(block: MessageBlock, *, source: str, dialect: str) -> Iterator[tuple[int, int, Packed]]:
    """The staged blocks of all messages: the first message, the one after the last, the bytes.

    The first messages decide whether all are compressed, and how many a block then has. The bytes of the messages must
    not change until the blocks are sent.
    """
    share = compressed_share(memoryview(block.data)[:STAGED_BYTES])
    if share > _MAX_SHARE:
        for first, last in pieces_of(block, STAGED_BYTES):
            yield first, last, pack(block, first, last, source=source, dialect=dialect)
    else:
        for first, last in pieces_of(block, min(_MOST_BYTES, int(_MAX_SHARE * STAGED_BYTES / share))):
            yield from _pack_compressed(block, first, last, source, dialect)


def _pack_compressed(
    block: MessageBlock, first: int, last: int, source: str, dialect: str
) -> Iterator[tuple[int, int, Packed]]:
    """Pack in halves, if there is less to save than the first messages promised."""
    size = block.start(last) - block.start(first)
    packed = pack(block, first, last, source=source, dialect=dialect, compressed=size <= _MOST_BYTES)
    if last - first == 1 or len(packed[1]) <= STAGED_BYTES:
        yield first, last, packed
        return
    middle = (first + last) // 2
    yield from _pack_compressed(block, first, middle, source, dialect)
    yield from _pack_compressed(block, middle, last, source, dialect)


def pieces_of(block: MessageBlock, size: int) -> list[tuple[int, int]]:
    """The parts of a block that have at most so many bytes. A larger message is a part of its own."""
    begins = [0, *part_starts(block.ends, size)]
    ends = [*begins[1:], len(block)]
    return [
        (at, min(at + _MAX_MESSAGES, end))
        for begin, end in zip(begins, ends, strict=True)
        for at in range(begin, end, _MAX_MESSAGES)
    ]


def pack(block: MessageBlock, first: int, last: int, *, source: str, dialect: str, compressed: bool = False) -> Packed:
    """One staged block of the messages ``first`` to ``last`` (not included)."""
    part = block.slice(first, last)
    names = source.encode(), dialect.encode()
    sizes = np.diff(positions_of(part.ends), prepend=0).astype(_SIZE_TYPE)
    head = _HEAD.pack(_COMPRESSED if compressed else _PLAIN, len(part), *map(len, names))
    return b"".join((head, *names, sizes.tobytes())), compress(part.data) if compressed else part.data


def unpack(data: ByteArray) -> StagedBlock:
    """``ValueError`` for bytes that ``pack`` did not make."""
    try:
        magic, count, source_bytes, dialect_bytes = _HEAD.unpack_from(data)
    except struct.error:
        raise ValueError("the bytes are too few") from None
    begin = _HEAD.size + source_bytes + dialect_bytes
    view, sizes_end = memoryview(data), begin + count * _SIZE_TYPE.itemsize
    if magic not in {_PLAIN, _COMPRESSED} or len(view) < sizes_end:
        raise ValueError("the bytes do not begin as a staged block does")
    ends = np.cumsum(np.frombuffer(view[begin:sizes_end], _SIZE_TYPE).astype(np.int64))
    names = bytes(view[_HEAD.size : begin])
    return StagedBlock(
        source=names[:source_bytes].decode(),
        dialect=names[source_bytes:].decode(),
        messages=MessageBlock(
            _messages(view[sizes_end:], int(ends[-1]) if count else 0, compressed=magic == _COMPRESSED),
            ends=index_of(ends),
        ),
    )


def _messages(data: memoryview, size: int, *, compressed: bool) -> ByteArray:
    if compressed:
        if size > _MOST_BYTES:
            raise ValueError("the messages of a compressed block are larger than such a block may be")
        return decompress(data, size)
    if len(data) != size:
        raise ValueError("the messages have another size than the block states")
    return data
