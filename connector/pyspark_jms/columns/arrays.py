"""Arrow arrays as numpy sees them: offsets, bytes, checks, copies and joins, all vectorised; and batches, joined.

Each offset into a received buffer is checked here, because ``pa.Array.from_buffers`` checks nothing: a wrong offset
does not raise, it ends the process. This module does not know what columns mean, and no protocols.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.errors import IllegalStateError

__all__ = [
    "Int64s",
    "Ints",
    "Mask",
    "Offsets",
    "Piece",
    "Pieces",
    "Uint8s",
    "all_begin_with",
    "binary_array",
    "bytes_of",
    "contents",
    "first_not_utf8",
    "first_true",
    "first_with_nul",
    "is_ascii_text",
    "is_first",
    "is_utf8",
    "join_rows",
    "mask_of",
    "merged",
    "not_utf8",
    "offsets_of",
    "repeated",
    "require_offsets",
    "slices_of",
    "stacked",
    "strings_at",
    "tiled",
    "to_binary",
    "with_nulls_of",
]

# --- strings in a received buffer -------------------------------------------------------------------

Ints: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Uint8s: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

_SHORT = 32
_LONG = 256
"""The mean length of pieces up to which ``take`` is never slower than ``Pieces.copied``."""

_NO_TEXT = pa.scalar("", pa.string())
MAX_BYTES = (1 << 31) - 1
"""The largest offset of Arrow's ``string`` and ``binary``, which have 32 bits; Spark reads no wider types."""


def require_offsets(total: int) -> None:
    """Refuse a column of more bytes than 32-bit offsets can address."""
    if total > MAX_BYTES:
        raise IllegalStateError(
            f"{total:,} bytes do not fit into one Arrow column ({MAX_BYTES:,}).",
            "Lower partitionBytes or maxMessageBytes.",
        )


class Pieces:
    """Piece i is ``buffer[starts[i]:ends[i]]``; pieces are taken by their numbers."""

    __slots__ = ("_array", "_offsets")

    def __init__(self, buffer: pa.Buffer, starts: Ints, ends: Ints) -> None:
        require_offsets(buffer.size)
        if not _inside(buffer.size, starts, ends):
            raise IllegalStateError("A piece lies outside its buffer.", "This is a fault of pyspark-jms: report it.")
        # Element 2i is piece i. Element 2i + 1 is what lies between two pieces, and is never taken.
        offsets = np.empty(2 * len(starts) + 1, np.int32)
        offsets[:-1:2] = starts
        offsets[1:-1:2] = ends
        offsets[-1] = buffer.size
        self._offsets = offsets
        both = [None, pa.py_buffer(offsets), buffer]
        self._array = pa.Array.from_buffers(pa.string(), 2 * len(starts), both)

    def take(self, which: Ints) -> pa.Array:
        """A string column of the pieces ``which``, null where the number is negative. It is not checked for UTF-8."""
        absent = which < 0
        return self._array.take(pa.array(2 * which, mask=absent if absent.any() else None))

    @property
    def ascending(self) -> bool:
        """Return whether each piece begins at or after the end of the piece before it."""
        return bool((self._offsets[2::2] >= self._offsets[1:-1:2]).all())

    def copied(self, keep: Mask | None) -> pa.Array:
        """All pieces, which are ascending; null where ``keep`` is false.

        ``take`` reserves memory for half of the buffer. If it needs more, it moves what it has: half of its time.
        """
        wanted = np.zeros(len(self._array), np.bool_)
        wanted[::2] = True if keep is None else keep
        _, offsets, data = pc.if_else(pa.array(wanted), self._array, _NO_TEXT).buffers()
        # What lies between two pieces has become empty, so a piece ends where the next one begins.
        bounds = np.frombuffer(offsets, np.int32)[: len(wanted) + 1 : 2].copy()
        valid = None if keep is None else pa.array(keep).buffers()[1]
        return pa.Array.from_buffers(pa.string(), len(bounds) - 1, [valid, pa.py_buffer(bounds), data])

    def all_same(self, which: Ints) -> bool:
        """Return whether there are pieces, no number is negative, and all pieces are the same short text. False:
        unknown.
        """
        if not len(which) or which.min() < 0:
            return False
        one, last = (self._array[2 * which[place]].as_buffer() for place in (0, -1))
        if not one.equals(last) or one.size > _SHORT:
            return False
        starts = self._offsets[2 * which]
        if (self._offsets[2 * which + 1] - starts != one.size).any():
            return False
        return all_begin_with(one.to_pybytes(), np.frombuffer(self._array.buffers()[2], np.uint8), starts)


def all_begin_with(text: bytes, data: Uint8s, starts: Ints) -> bool:
    """Return whether ``text`` is found at each of ``starts``, of which there is at least one."""
    words = np.ndarray((max(0, len(data) - 7),), "<u8", data.data, strides=(1,))
    last = int(starts.max())
    if last + len(text) > len(data):
        return False
    for begin in range(0, len(text), 8):
        part = text[begin : begin + 8]
        at = starts
        if last + begin >= len(words):  # less than eight bytes are left there
            near_end = starts + begin >= len(words)
            if any(bytes(data[place : place + len(part)]) != part for place in (starts[near_end] + begin).tolist()):
                return False
            at = starts[~near_end]
        found = words[begin:][at] & np.uint64((1 << 8 * len(part)) - 1)
        if (found != np.uint64(int.from_bytes(part, "little"))).any():
            return False
    return True


def _inside(size: int, starts: Ints, ends: Ints) -> bool:
    if not len(starts):
        return True
    return bool(starts.min() >= 0 and ends.max() <= size and (starts <= ends).all())


def strings_at(buffer: pa.Buffer, starts: Ints, ends: Ints, keep: Mask | None = None) -> pa.Array:
    """A string column of ``buffer[starts[i]:ends[i]]``, null where ``keep`` is false."""
    pieces, count = Pieces(buffer, starts, ends), len(starts)
    size = int((ends - starts).sum(where=True if keep is None else keep))
    if count and size > max(_LONG * count, buffer.size // 2) and pieces.ascending:
        return pieces.copied(keep)
    every = np.arange(count)
    return pieces.take(every if keep is None else np.where(keep, every, -1))


def contents(column: pa.Array) -> tuple[pa.Buffer, Ints]:
    """The bytes of a string column that is not a slice, and the positions in them of each value and of the end."""
    _, offsets, data = column.buffers()
    positions = np.frombuffer(offsets, np.int32)[: len(column) + 1]
    return (pa.py_buffer(b"") if data is None else data), positions.astype(np.int64)


def is_utf8(column: pa.Array) -> bool:
    data, limits = contents(column)
    if limits[0] == limits[-1] or np.frombuffer(data, np.int8)[: limits[-1]].min() >= 0:  # all of it is ASCII
        return True
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def not_utf8(column: pa.Array) -> Mask:
    """Which values of a string column are not UTF-8, one by one: for a column that is not ``is_utf8``."""
    return np.array([not (value is None or _decodes(value)) for value in column.view(pa.binary()).to_pylist()])


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- strings and lists of the sink, or already checked ----------------------------------------------

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
    """Return these strings as ``binary``, without a copy unless their offsets are 64 bits wide."""
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
    """Entry i is ``array[bounds[i]:bounds[i + 1]]``, bytes end to end; shares the data."""
    offsets = np.ascontiguousarray(offsets_of(array)[bounds], np.int32)
    data = array.buffers()[2] or pa.py_buffer(b"")
    return pa.Array.from_buffers(_BINARY, len(bounds) - 1, [None, pa.py_buffer(offsets), data])


def is_ascii_text(array: pa.Array) -> bool:
    """Return whether no entry of a binary array holds a NUL or a byte above 127: one pass that spares two others."""
    data = bytes_of(array)
    return not len(data) or bool(data.view(np.int8).min() > 0)


def first_not_utf8(array: pa.Array) -> int | None:
    """The first entry of a binary array that is not UTF-8: a broker would replace what it cannot read."""
    if is_ascii_text(array):
        return None
    try:
        array.cast(pa.string())
    except pa.ArrowInvalid:
        return next((i for i, entry in enumerate(array) if entry.is_valid and not _decodes(entry.as_py())), None)
    return None


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


def tiled(array: pa.Array, times: int) -> pa.Array:
    """An array of any type, ``times`` times over. ``repeated`` is faster."""
    if times <= 1:
        return array.slice(0, len(array) * times)
    half = tiled(array, times // 2)
    return pa.concat_arrays([half, half, array.slice(0, len(array) * (times % 2))])


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


_TABLE_FACTOR = 8
"""A table of rows × keys is faster than sorting, up to this number of cells per entry."""


def is_first(rows: Ints, key: Ints, row_count: int, key_count: int) -> Mask:
    """Return whether an entry is the first one in its row with its key; keys are numbers below ``key_count``."""
    cells = row_count * key_count
    cell = rows * key_count + key
    number = np.arange(len(cell))
    if cells > _TABLE_FACTOR * len(cell):
        _, inverse_first = np.unique(cell, return_index=True)
        first = np.zeros(len(cell), np.bool_)
        first[inverse_first] = True
        return first
    table = np.empty(cells, np.int64)
    table[cell[::-1]] = number[::-1]
    firsts: Mask = table[cell] == number
    return firsts


# --- the rows of several batches --------------------------------------------------------------------

_BYTES_OF_A_SLICE = 4096
"""So many bytes are copied by ``take`` in the time that one more slice costs."""


def merged(most: pa.RecordBatch, numbers: Ints, others: pa.RecordBatch) -> pa.RecordBatch:
    """``numbers``: by row of the result, the number of the row in ``most``; -1: the next row of ``others``."""
    if not len(most):
        return others
    missing = np.flatnonzero(numbers < 0)
    places = numbers.copy()
    places[missing] = np.arange(len(most), len(most) + len(missing))
    turns = (np.diff(places) != 1) | (places[1:] == len(most))
    begins = np.concatenate(([0], np.flatnonzero(turns) + 1))
    sizes = np.diff(begins, append=len(places))
    runs = list(zip(places[begins].tolist(), sizes.tolist(), strict=True))
    # If ``most`` has all rows, a row of ``others`` replaces the one of that number; some columns may be equal.
    in_place = pa.array(missing) if len(most) == len(numbers) else None

    def column(first: pa.Array, second: pa.Array) -> pa.Array:
        if in_place is not None:
            if first.take(in_place).equals(second):
                return first
            if second.null_count == len(second) and not (first.type.num_fields or first.offset):
                return _without(first, missing)
        return _column(first, second, pa.array(places), runs)

    columns = [column(first, second) for first, second in zip(most.columns, others.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=most.schema)


def _without(column: pa.Array, missing: Ints) -> pa.Array:
    """Null at some places of a column that is no slice. The values stay where they are: a text is not copied."""
    valid = np.array(column.is_valid())
    valid[missing] = False
    _, *values = column.buffers()
    return pa.Array.from_buffers(column.type, len(column), [pa.array(valid).buffers()[1], *values])


def _column(first: pa.Array, second: pa.Array, places: pa.Array, runs: Sequence[tuple[int, int]]) -> pa.Array:
    """The values at ``places``, counted through both columns."""
    if first.nbytes + second.nbytes < _BYTES_OF_A_SLICE * len(runs):
        return pa.concat_arrays([first, second]).take(places)
    split = len(first)
    return pa.concat_arrays(
        [first.slice(begin, size) if begin < split else second.slice(begin - split, size) for begin, size in runs]
    )


def stacked(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of all batches. The list is emptied: what has been copied is freed, column by column."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    columns = [list(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]
    batches.clear()
    columns.reverse()
    return pa.RecordBatch.from_arrays([_joined(columns.pop()) for _ in schema], schema=schema)


def _joined(parts: list[pa.Array]) -> pa.Array:
    """The arrays as one. The list is emptied: of a nested type, only one child is there twice at a time."""
    kind = parts[0].type
    if not kind.num_fields:
        whole = pa.concat_arrays(parts)
        parts.clear()
        return whole
    absent = pa.array(np.concatenate([np.asarray(part.is_null()) for part in parts]))
    if pa.types.is_struct(kind):
        children = [list(fields) for fields in zip(*(part.flatten() for part in parts), strict=True)]
        parts.clear()
        children.reverse()
        fields = [_joined(children.pop()) for _ in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=absent)
    offsets = pa.array(_offsets(parts))
    children = [list(each) for each in zip(*(_children(part) for part in parts), strict=True)]
    parts.clear()
    children.reverse()
    whole = [_joined(children.pop()) for _ in range(len(children))]
    made = pa.MapArray if pa.types.is_map(kind) else pa.ListArray
    return made.from_arrays(offsets, *whole, kind, mask=absent)


def _offsets(parts: Sequence[Any]) -> Ints:
    lengths = [np.diff(np.asarray(part.offsets)) for part in parts]
    return np.concatenate([np.zeros(1, np.int32), np.cumsum(np.concatenate(lengths), dtype=np.int32)])


def _children(part: Any) -> tuple[pa.Array, ...]:
    """The elements of lists, or the keys and the items of maps, of an array that may be a slice."""
    begin, end = (part.offsets[place].as_py() for place in (0, -1))
    every = (part.keys, part.items) if pa.types.is_map(part.type) else (part.values,)
    return tuple(child.slice(begin, end - begin) for child in every)
