"""Arrow arrays of strings and lists as numpy sees them: offsets, bytes, checks, copies and joins, all vectorised.

Knows how Arrow holds such arrays. Does not know columns and protocols.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.cut import Mask, Uint8s

__all__ = [
    "Int64s",
    "Mask",
    "Offsets",
    "Piece",
    "Uint8s",
    "binary_array",
    "bytes_of",
    "first_not_utf8",
    "first_true",
    "first_with_nul",
    "is_ascii_text",
    "join_rows",
    "mask_of",
    "offsets_of",
    "repeated",
    "slices_of",
    "to_binary",
    "with_nulls_of",
]

Int64s: TypeAlias = npt.NDArray[np.int64]
Offsets: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

Piece: TypeAlias = bytes | pa.Array
"""A part of what ``join_rows`` makes of each row: the same bytes for every row, or a binary array."""

_BINARY = pa.binary()
_WIDE = frozenset(kind.id for kind in (pa.large_string(), pa.large_binary(), pa.large_list(pa.null())))
_POOL = pa.system_memory_pool()
# The encoded messages of one batch are some megabytes, freed before the next batch. glibc keeps such blocks for reuse,
# also for numpy's temporaries. Arrow's own pool gives them back, and new pages cost a fifth of the encoder's time.
_FALSE = pa.scalar(value=False)
_NOTHING = pa.scalar(b"", _BINARY)


def offsets_of(array: pa.Array) -> Offsets:
    """The ``len + 1`` offsets of a string, binary, list or map array, into its whole child or data buffer."""
    wide = array.type.id in _WIDE
    buffer = array.buffers()[1]
    if buffer is None or not buffer.size:
        return np.zeros(1, np.int32)
    offsets = np.frombuffer(buffer, np.int64) if wide else np.frombuffer(buffer, np.int32)
    return offsets[array.offset : array.offset + len(array) + 1]


def to_binary(array: pa.Array) -> pa.Array:
    """The same strings as ``binary``, without a copy unless their offsets are 64 bits wide."""
    if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        array = array.take(pa.array(np.arange(len(array))))  # offsets that begin at 0 and so fit 32 bits
        return array.cast(pa.string() if pa.types.is_large_string(array.type) else _BINARY).view(_BINARY)
    return array.view(_BINARY)


def bytes_of(array: pa.Array) -> Uint8s:
    """All bytes of a binary array's entries, one after the other, those hidden under a null included."""
    offsets = offsets_of(array)
    data = array.buffers()[2]
    if data is None or offsets[-1] == offsets[0]:
        return np.zeros(0, np.uint8)
    return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]


def slices_of(array: pa.Array, bounds: Offsets) -> pa.Array:
    """Entry i spans ``array[bounds[i]:bounds[i + 1]]``, bytes end to end; shares the data."""
    offsets = np.ascontiguousarray(offsets_of(array)[bounds], np.int32)
    data = array.buffers()[2] or pa.py_buffer(b"")
    return pa.Array.from_buffers(_BINARY, len(bounds) - 1, [None, pa.py_buffer(offsets), data])


def is_ascii_text(array: pa.Array) -> bool:
    """Whether no entry of a binary array holds a NUL or an byte above 127: one pass that spares two others."""
    data = bytes_of(array)
    return not len(data) or bool(data.view(np.int8).min() > 0)


def first_not_utf8(array: pa.Array) -> int | None:
    """The first entry of a binary array that is not UTF-8: a broker would replace what it cannot read."""
    if is_ascii_text(array):
        return None
    try:
        array.cast(pa.string())
    except pa.ArrowInvalid:
        return next((i for i, entry in enumerate(array) if entry.is_valid and not _is_utf8(entry.as_py())), None)
    return None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def first_with_nul(array: pa.Array) -> int | None:
    """The first entry of a binary array that holds a NUL."""
    data = bytes_of(array)
    if not len(data) or data.min():
        return None
    return first_true(mask_of(pc.match_substring(array, "\0")))


def mask_of(array: pa.Array) -> Mask:
    """A boolean array; null counts as false."""
    mask: Mask = array.fill_null(_FALSE).to_numpy(zero_copy_only=False)
    return mask


def first_true(mask: Mask) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def binary_array(offsets: Offsets, data: Uint8s) -> pa.Array:
    """Entry i is ``data[offsets[i]:offsets[i + 1]]``; the offsets fit 32 bits."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32, copy=False)), pa.py_buffer(data)]
    return pa.Array.from_buffers(_BINARY, len(offsets) - 1, buffers)


def with_nulls_of(array: pa.Array, offsets: Offsets, data: pa.Buffer) -> pa.Array:
    """A binary array of these bytes, null where ``array`` is null."""
    if not array.null_count:
        return pa.Array.from_buffers(_BINARY, len(array), [None, pa.py_buffer(offsets), data])
    # A validity bitmap can be sliced only at byte boundaries; the bits before the first entry stay as padding.
    padding = array.offset % 8
    validity = array.buffers()[0].slice(array.offset // 8)
    offsets = np.concatenate([np.zeros(padding, offsets.dtype), offsets])
    return pa.Array.from_buffers(_BINARY, len(array), [validity, pa.py_buffer(offsets), data], offset=padding)


def repeated(array: pa.Array, times: int) -> pa.Array:
    """A binary array without nulls, ``times`` times over."""
    data, width = bytes_of(array), len(array)
    ends = (offsets_of(array)[1:] - offsets_of(array)[0]).astype(np.int32)
    offsets = np.zeros(times * width + 1, np.int32)
    np.add.outer(np.arange(times, dtype=np.int32) * np.int32(len(data)), ends, out=offsets[1:].reshape(times, width))
    return binary_array(offsets, np.tile(data, times))


def join_rows(pieces: Sequence[Piece]) -> pa.Array:
    """The pieces of each row one after the other; a null makes its row null."""
    arguments: list[pa.Array | pa.Scalar] = []
    constant = b""
    for piece in pieces:
        if isinstance(piece, bytes):
            constant += piece
        else:
            arguments += [pa.scalar(constant, _BINARY), piece] if constant else [piece]
            constant = b""
    arguments += [pa.scalar(constant, _BINARY)] if constant else []
    return pc.binary_join_element_wise(*arguments, _NOTHING, memory_pool=_POOL)
