r"""Messages ↔ bytes of one segment of the journal: consecutive messages of one subscription. Pure.

Whoever reads a segment gets exactly what was written, or an error that names it: never a part, never something
else. Knows neither files nor what a message says.

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
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from pyspark_jms.errors import CorruptJournalError, IllegalStateError, UnsupportedError

__all__ = ["FORMAT", "ByteArray", "Encoded", "Head", "Segment", "Stretch", "encode", "read_head"]

FORMAT = 1

ByteArray: TypeAlias = bytes | bytearray | memoryview
Index: TypeAlias = npt.NDArray[np.int64]

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


class _Run(Protocol):
    """What a connection received: bytes with an index into them."""

    octets: bytearray
    heads: "array[int]"
    ends: "array[int]"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stretch:
    """Some consecutive messages: bytes and the index into them, ready to be decoded."""

    source: str
    dialect: str
    first: int
    octets: memoryview
    heads: Index
    ends: Index

    def __len__(self) -> int:
        return len(self.ends)

    def __repr__(self) -> str:
        return f"Stretch({self.source}, first={self.first}, messages={len(self)}, bytes={len(self.octets)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Segment:
    """Messages ``first`` to ``last`` (not included) of the subscription to ``source``.

    By its id a message that comes again is recognised, and by its bytes that it is the same.
    """

    source: str
    dialect: str
    first: int
    ids: Sequence[bytes]
    octets: ByteArray
    heads: Index
    ends: Index

    @classmethod
    def of_run(cls, run: _Run, begin: int, end: int, **facts: Any) -> Self:
        """Messages ``begin`` to ``end`` (not included) of a run; ``facts`` are the fields that a run does not know.

        Nothing is copied: while the segment lives the run's bytes cannot grow.
        """
        heads, ends = np.frombuffer(run.heads, np.int64), np.frombuffer(run.ends, np.int64)
        octets, heads, ends = _cut(memoryview(run.octets), heads, ends, begin, end)
        return cls(octets=octets, heads=heads, ends=ends, **facts)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def last(self) -> int:
        return self.first + len(self.ids)

    def stretch(self, first: int, last: int) -> Stretch:
        """The messages of these sequences; nothing is copied but the index."""
        _require_range(self.first, first, last, self.last)
        view = memoryview(self.octets)
        octets, heads, ends = _cut(view, self.heads, self.ends, first - self.first, last - self.first)
        return Stretch(source=self.source, dialect=self.dialect, first=first, octets=octets, heads=heads, ends=ends)

    def __repr__(self) -> str:
        return f"Segment({self.source}, first={self.first}, messages={len(self)}, bytes={len(self.octets)})"


def _cut(octets: memoryview, heads: Index, ends: Index, begin: int, end: int) -> tuple[memoryview, Index, Index]:
    start = int(ends[begin - 1]) if begin else 0
    stop = int(ends[end - 1]) if end else 0
    return octets[start:stop], heads[begin:end] - start, ends[begin:end] - start


def _require_range(begin: int, first: int, last: int, end: int) -> None:
    if not begin <= first <= last <= end:
        raise IllegalStateError(f"Sequences [{first}, {last}) of a segment that holds [{begin}, {end}).")


# --- writing -----------------------------------------------------------------------------------


class Encoded(NamedTuple):
    """To be written one after the other: the head, and the bytes, which are not copied."""

    head: bytes
    octets: ByteArray

    @property
    def digest(self) -> bytes:
        """As ``Head.digest``."""
        return self.head[_DIGEST_AT:_COUNTS_AT]


def encode(segment: Segment) -> Encoded:
    _require_sound(segment)
    texts = segment.source.encode(), segment.dialect.encode()
    ids = b"".join(segment.ids)
    counts = segment.first, len(segment), len(segment.octets), len(ids), len(texts[0]), len(texts[1])
    front = _SAME_IN_EVERY_FORMAT.pack(_MAGIC, FORMAT)
    front += _CRC.pack(zlib.crc32(front))
    body = b"".join(
        (
            _COUNTS.pack(*counts),
            *texts,
            segment.heads.astype("<i8").tobytes(),
            segment.ends.astype("<i8").tobytes(),
            np.fromiter(map(len, segment.ids), "<u4", len(segment)).tobytes(),
            ids,
            *_block_digests(memoryview(segment.octets)),
        )
    )
    return Encoded(b"".join((front, _head_digest(front, body), body)), segment.octets)


def _require_sound(segment: Segment) -> None:
    """A segment that contradicts itself would be lost for good once its messages are acknowledged."""
    counts = {len(segment.ids), len(segment.heads), len(segment.ends)}
    if len(counts) > 1 or not segment.ids or segment.first < 0:
        raise IllegalStateError(f"{segment!r} holds no messages, or not one id and index for each.")
    if not _index_fits(segment.heads, segment.ends, len(segment.octets)):
        raise IllegalStateError(f"{segment!r} has an index that does not fit its bytes.")


def _index_fits(heads: Index, ends: Index, octets: int) -> bool:
    starts = np.concatenate(([0], ends[:-1]))
    return bool(ends[-1] == octets and (starts <= heads).all() and (heads <= ends).all())


def _block_digests(octets: memoryview) -> list[bytes]:
    return [_digest(octets[at : at + _BLOCK]) for at in range(0, len(octets), _BLOCK)]


def _digest(block: ByteArray) -> bytes:
    return blake2b(block, digest_size=_DIGEST_BYTES).digest()


def _head_digest(front: ByteArray, body: ByteArray) -> bytes:
    seal = blake2b(front, digest_size=_DIGEST_BYTES)
    seal.update(body)
    return seal.digest()


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Head:
    """A segment whose head is proved and whose bytes are not yet: they are when they are asked for."""

    name: str
    source: str
    dialect: str
    first: int
    digest: bytes
    """Of the head, and by it of the whole segment: two segments with the same digest are the same."""
    heads: Index
    ends: Index
    _id_lengths: npt.NDArray[np.uint32]
    _ids: memoryview
    _blocks: memoryview
    _bytes: memoryview

    def __len__(self) -> int:
        return len(self.ends)

    def __repr__(self) -> str:
        return f"Head({self.name}, {self.source}, first={self.first}, messages={len(self)})"

    @property
    def last(self) -> int:
        return self.first + len(self.ends)

    @property
    def octets(self) -> int:
        """How many they are."""
        return len(self._bytes)

    @property
    def ids(self) -> list[bytes]:
        bounds = accumulate(self._id_lengths.tolist(), initial=0)
        return [bytes(self._ids[begin:end]) for begin, end in pairwise(bounds)]

    def verify(self) -> None:
        """Prove all bytes."""
        self._verify(0, len(self._bytes))

    def segment(self) -> Segment:
        """The whole segment, proved; its bytes are those of the buffer that was read, not a copy."""
        self.verify()
        return Segment(
            source=self.source,
            dialect=self.dialect,
            first=self.first,
            ids=self.ids,
            octets=self._bytes,
            heads=self.heads,
            ends=self.ends,
        )

    def stretch(self, first: int, last: int) -> Stretch:
        """The messages of these sequences, proved; of the bytes only the blocks that hold them are read."""
        _require_range(self.first, first, last, self.last)
        begin, end = first - self.first, last - self.first
        self._verify(int(self.ends[begin - 1]) if begin else 0, int(self.ends[end - 1]) if end else 0)
        octets, heads, ends = _cut(self._bytes, self.heads, self.ends, begin, end)
        return Stretch(source=self.source, dialect=self.dialect, first=first, octets=octets, heads=heads, ends=ends)

    def _verify(self, start: int, stop: int) -> None:
        for block in range(start // _BLOCK, -(-stop // _BLOCK)):
            digest = self._blocks[block * _DIGEST_BYTES : (block + 1) * _DIGEST_BYTES]
            if _digest(self._bytes[block * _BLOCK : (block + 1) * _BLOCK]) != digest:
                raise _corrupt(self.name, f"the bytes from {block * _BLOCK:,} on are not those that were written")


class _Fields:
    """The rest of a head, field by field."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = _FIELDS_AT

    def take(self, octets: int) -> memoryview:
        self._at += octets
        return self._data[self._at - octets : self._at]

    def numbers(self, count: int, dtype: str) -> npt.NDArray[Any]:
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize), dtype)


def read_head(buffer: ByteArray, name: str) -> Head:
    """Prove the head of a segment, and that the bytes behind it are as many as it says. ``name`` is for errors."""
    data = memoryview(buffer)
    _require_format(data, name)
    first, count, octets, id_bytes, source, dialect = _counts(data, name)
    fields = _Fields(data)
    texts = bytes(fields.take(source)).decode(), bytes(fields.take(dialect)).decode()
    head = Head(
        name=name,
        source=texts[0],
        dialect=texts[1],
        first=first,
        digest=bytes(data[_DIGEST_AT:_COUNTS_AT]),
        heads=fields.numbers(count, "<i8").astype(np.int64),
        ends=fields.numbers(count, "<i8").astype(np.int64),
        _id_lengths=fields.numbers(count, "<u4"),
        _ids=fields.take(id_bytes),
        _blocks=fields.take(-(-octets // _BLOCK) * _DIGEST_BYTES),
        _bytes=fields.take(octets),
    )
    if not _index_fits(head.heads, head.ends, octets) or head._id_lengths.sum() != id_bytes:  # noqa: SLF001 its maker
        raise _corrupt(name, "its index contradicts its bytes")
    return head


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
    first, count, octets, id_bytes, source, dialect = _COUNTS.unpack_from(data, _COUNTS_AT)
    head = _FIELDS_AT + source + dialect + count * (8 + 8 + 4) + id_bytes
    head += -(-octets // _BLOCK) * _DIGEST_BYTES
    if min(first, count - 1, octets, id_bytes) < 0 or not _FIELDS_AT <= head <= len(data):
        raise _corrupt(name, "its head is torn or altered")
    if _head_digest(data[:_DIGEST_AT], data[_COUNTS_AT:head]) != data[_DIGEST_AT:_COUNTS_AT]:
        raise _corrupt(name, "its head is not the one that was written")
    if head + octets != len(data):
        raise _corrupt(name, f"it has {len(data):,} bytes, and was written with {head + octets:,}")
    return first, count, octets, id_bytes, source, dialect


def _corrupt(name: str, what: str) -> CorruptJournalError:
    return CorruptJournalError(f"Segment {name} cannot be read: {what}.")
