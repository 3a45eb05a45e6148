r"""Messages ↔ bytes of one segment of the journal: consecutive messages of one subscription. Pure.

Whoever reads a segment gets exactly what was written, or an error that names it: never a part, never something
else. Knows neither files nor the content of messages.

Format 1, little endian, no padding::

    0    8   magic "JMSSEGM\n"
    8    4   format
    12   4   CRC-32 of the 12 bytes before: these 16 are the same in every format to come
    16   32  BLAKE2b of the head without this field
    48   24  first sequence, messages n, bytes (8 each)
    72   16  bytes of all ids (8), of source (4), of dialect (4)
    88       source, dialect (UTF-8), heads (8 n), ends (8 n), lengths of the ids (4 n), ids,
             BLAKE2b of every 256 KiB of the bytes (32 each): here the head ends
             the bytes: message i is [ends[i - 1], ends[i]), its headers end at heads[i]

The head seals itself and, by the digests of the blocks, the bytes: a range of a big segment can be read and
proved without its rest.
"""

import struct
import zlib
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyspark_jms.blocks.block import ByteArray, MessageBlock, Positions, index_of, positions_of
from pyspark_jms.errors import CorruptJournalError, IllegalStateError, UnsupportedError

__all__ = ["Segment", "encode", "read_head"]

FORMAT = 1

_MAGIC = b"JMSSEGM\n"
_SAME_IN_EVERY_FORMAT = struct.Struct("<8sI")
_CRC = struct.Struct("<I")
_COUNTS = struct.Struct("<qqqqII")
_DIGEST_BYTES = 32
_DIGEST_AT = _SAME_IN_EVERY_FORMAT.size + _CRC.size
_COUNTS_AT = _DIGEST_AT + _DIGEST_BYTES
_FIELDS_AT = _COUNTS_AT + _COUNTS.size
_BLOCK = 256 << 10
"""Small enough that a task which reads a part proves little more, big enough that the digests weigh nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Messages ``first`` to ``last`` (not included) of the subscription to ``source``.

    The ids in the block are those by which a redelivered message is recognised; its bytes prove that it is the same.
    """

    source: str
    dialect: str
    first: int
    block: MessageBlock

    def __len__(self) -> int:
        return len(self.block)

    @property
    def last(self) -> int:
        return self.first + len(self.block)

    @property
    def ids(self) -> list[bytes]:
        return [identifier for identifier in self.block.ids if identifier is not None]


# --- writing -----------------------------------------------------------------------------------


class Encoded(NamedTuple):
    """To be written one after the other: the head, and the bytes, which are not copied."""

    head: bytes
    data: ByteArray

    @property
    def digest(self) -> bytes:
        """Return the digest that ``SegmentReader.digest`` will return."""
        return self.head[_DIGEST_AT:_COUNTS_AT]


def encode(segment: Segment) -> Encoded:
    _require_sound(segment)
    texts = segment.source.encode(), segment.dialect.encode()
    block, ids = segment.block, segment.ids
    id_bytes = sum(map(len, ids))
    counts = segment.first, len(block), len(block.data), id_bytes, len(texts[0]), len(texts[1])
    front = _SAME_IN_EVERY_FORMAT.pack(_MAGIC, FORMAT)
    front += _CRC.pack(zlib.crc32(front))
    body = b"".join(
        (
            _COUNTS.pack(*counts),
            *texts,
            positions_of(block.heads).astype("<i8").tobytes(),
            positions_of(block.ends).astype("<i8").tobytes(),
            np.fromiter(map(len, ids), "<u4", len(ids)).tobytes(),
            *ids,
            *_block_digests(memoryview(block.data)),
        )
    )
    return Encoded(b"".join((front, _head_digest(front, body), body)), block.data)


def _require_sound(segment: Segment) -> None:
    """A segment that contradicts itself would be lost for good once its messages are acknowledged."""
    block, ids = segment.block, segment.ids
    if not ids or len({len(ids), len(block.heads), len(block.ends)}) > 1 or segment.first < 0:
        raise IllegalStateError(f"{segment!r} holds no messages, or not one id and index for each.")
    if not _index_fits(positions_of(block.heads), positions_of(block.ends), len(block.data)):
        raise IllegalStateError(f"{segment!r} has an index that does not fit its bytes.")


def _index_fits(heads: Positions, ends: Positions, size: int) -> bool:
    starts = np.concatenate(([0], ends[:-1]))
    return bool(ends[-1] == size and (starts <= heads).all() and (heads <= ends).all())


def _block_digests(data: memoryview) -> list[bytes]:
    return [_digest(data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK)]


def _digest(block: ByteArray) -> bytes:
    return blake2b(block, digest_size=_DIGEST_BYTES).digest()


def _head_digest(front: ByteArray, body: ByteArray) -> bytes:
    seal = blake2b(front, digest_size=_DIGEST_BYTES)
    seal.update(body)
    return seal.digest()


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentReader:
    """A segment whose head is proved and whose messages are checked when they are read."""

    name: str
    source: str
    dialect: str
    first: int
    digest: bytes
    """Of the head, and by it of the whole segment: two segments with the same digest are the same."""
    _id_lengths: npt.NDArray[np.uint32] = field(repr=False)
    _ids: memoryview = field(repr=False)
    _digests: memoryview = field(repr=False)
    _unproved: MessageBlock

    def __len__(self) -> int:
        return len(self._unproved)

    @property
    def last(self) -> int:
        return self.first + len(self)

    def verify(self) -> None:
        """Prove all bytes."""
        self._verify(0, len(self._unproved.data))

    def segment(self) -> Segment:
        """The whole segment, proved; its bytes are those of the buffer that was read, not a copy."""
        self.verify()
        bounds = accumulate(self._id_lengths.tolist(), initial=0)
        ids: list[bytes | None] = [bytes(self._ids[begin:end]) for begin, end in pairwise(bounds)]
        block = replace(self._unproved, ids=ids)
        return Segment(source=self.source, dialect=self.dialect, first=self.first, block=block)

    def block(self, first: int, last: int) -> MessageBlock:
        """The messages of these sequences, proved, without ids. Only the 256 KiB pieces that hold them are read."""
        if not self.first <= first <= last <= self.last:
            raise IllegalStateError(f"Sequences [{first}, {last}) of a segment that holds [{self.first}, {self.last}).")
        begin, end = first - self.first, last - self.first
        self._verify(self._unproved.start(begin), self._unproved.start(end))
        return self._unproved.slice(begin, end)

    def _verify(self, start: int, stop: int) -> None:
        for block in range(start // _BLOCK, -(-stop // _BLOCK)):
            digest = self._digests[block * _DIGEST_BYTES : (block + 1) * _DIGEST_BYTES]
            if _digest(self._unproved.data[block * _BLOCK : (block + 1) * _BLOCK]) != digest:
                raise _corrupt(self.name, f"the bytes from {block * _BLOCK:,} on are not those that were written")


class _Fields:
    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = _FIELDS_AT

    def take(self, size: int) -> memoryview:
        self._at += size
        return self._data[self._at - size : self._at]

    def numbers(self, count: int, dtype: str) -> npt.NDArray[Any]:
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize), dtype)


def read_head(buffer: ByteArray, name: str) -> SegmentReader:
    """Prove the head of a segment, and that as many bytes follow it as it states. ``name`` is for errors."""
    data = memoryview(buffer)
    _require_format(data, name)
    first, count, size, id_bytes, source, dialect = _counts(data, name)
    fields = _Fields(data)
    texts = bytes(fields.take(source)).decode(), bytes(fields.take(dialect)).decode()
    heads, ends = (fields.numbers(count, "<i8").astype(np.int64) for _ in range(2))
    reader = SegmentReader(
        name=name,
        source=texts[0],
        dialect=texts[1],
        first=first,
        digest=bytes(data[_DIGEST_AT:_COUNTS_AT]),
        _id_lengths=(id_lengths := fields.numbers(count, "<u4")),
        _ids=fields.take(id_bytes),
        _digests=fields.take(-(-size // _BLOCK) * _DIGEST_BYTES),
        _unproved=MessageBlock(fields.take(size), index_of(heads), index_of(ends)),
    )
    if not _index_fits(heads, ends, size) or id_lengths.sum() != id_bytes:
        raise _corrupt(name, "its index contradicts its bytes")
    return reader


def _require_format(data: memoryview, name: str) -> None:
    if len(data) < _FIELDS_AT:
        raise _corrupt(name, f"it has {len(data)} bytes, fewer than any segment")
    magic, version = _SAME_IN_EVERY_FORMAT.unpack_from(data)
    (crc,) = _CRC.unpack_from(data, _SAME_IN_EVERY_FORMAT.size)
    if magic != _MAGIC or crc != zlib.crc32(data[: _SAME_IN_EVERY_FORMAT.size]):
        raise _corrupt(name, "it does not begin as a segment does")
    if version > FORMAT:
        raise UnsupportedError(
            f"Segment {name} is of format {version}; this release reads formats up to {FORMAT}.",
            "Use the release of pyspark-jms that wrote it, or a newer one.",
        )


def _counts(data: memoryview, name: str) -> tuple[int, int, int, int, int, int]:
    """The numbers of the head, once it is proved that they are those that were written."""
    first, count, size, id_bytes, source, dialect = _COUNTS.unpack_from(data, _COUNTS_AT)
    head = _FIELDS_AT + source + dialect + count * (8 + 8 + 4) + id_bytes
    head += -(-size // _BLOCK) * _DIGEST_BYTES
    if min(first, count - 1, size, id_bytes) < 0 or not _FIELDS_AT <= head <= len(data):
        raise _corrupt(name, "its head is torn or altered")
    if _head_digest(data[:_DIGEST_AT], data[_COUNTS_AT:head]) != data[_DIGEST_AT:_COUNTS_AT]:
        raise _corrupt(name, "its head is not the one that was written")
    if head + size != len(data):
        raise _corrupt(name, f"it has {len(data):,} bytes, and was written with {head + size:,}")
    return first, count, size, id_bytes, source, dialect


def _corrupt(name: str, what: str) -> CorruptJournalError:
    return CorruptJournalError(f"Segment {name} cannot be read: {what}.")
